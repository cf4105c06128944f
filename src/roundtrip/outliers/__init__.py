"""Outlier detection by density."""

from roundtrip.outliers.detector import RoundtripDetector

__all__ = ["RoundtripDetector"]
