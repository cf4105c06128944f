"""Model files, atomic writes and devices."""
