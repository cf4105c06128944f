"""Model files, atomic writes, devices and progress bars."""
