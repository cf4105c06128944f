"""The user's rows and the tensors of the model: columns, scaling, images, context, files."""

from roundtrip.data.rows import Rows
from roundtrip.data.schema import Schema

__all__ = ["Rows", "Schema"]
