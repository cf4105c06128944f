"""Conversion between the user's rows and the model's tensors: columns, scaling, images, context."""

from roundtrip.data.rows import Rows
from roundtrip.data.schema import Schema

__all__ = ["Rows", "Schema"]
