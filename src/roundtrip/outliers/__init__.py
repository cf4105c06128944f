"""Outlier detection by density."""
