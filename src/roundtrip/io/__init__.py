"""Model files, checks of paths, atomic writes, devices and progress bars."""
