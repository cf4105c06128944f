"""What a model file holds of a schema."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.data.context import Context
from roundtrip.data.images import ImageLayout
from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.data.rounding import Rounding
from roundtrip.data.scaling import Scaling
from roundtrip.data.table_format import TableFormat, restored_column


def file_parts(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the JSON content and the tensors of the attributes of a schema.

    Parameters
    ----------
    schema : mapping
        Attributes by name.

    Returns
    -------
    content : dict
        JSON content.
    tensors : dict
        Tensors by name.
    """
    parts = {name: schema[name] for name in ("form", "context", "images")}
    indicators = schema["kinds"][len(schema["kinds"]) - len(schema["indicated"]) :]
    content = {name: None if part is None else part.plain() for name, part in parts.items()}
    content |= {
        "rounding": [column.plain() for column in schema["rounding"]],
        "indicators": [column.plain() for column in indicators],
        "indicated": list(schema["indicated"]),
    }
    tensors = {
        "shift": torch.from_numpy(schema["scaling"].shift),
        "scale": torch.from_numpy(schema["scaling"].scale),
        "incomplete": torch.from_numpy(schema["incomplete"]),
    }
    return content, tensors


def restored_parts(content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the attributes of a schema by name from what `file_parts` gave."""
    _check_scaling(tensors)
    context, images = content["context"], content["images"]
    form = None if content["form"] is None else TableFormat.restored(content["form"])
    columns = () if form is None else form.columns
    layout = None if images is None else ImageLayout(**images)
    kinds = (*columns, *map(restored_column, content["indicators"]))
    rounding = tuple(Rounding.restored(column) for column in content["rounding"])
    _check_counts(len(tensors["shift"]), layout, kinds, rounding, content["indicated"])
    return {
        "scaling": Scaling(tensors["shift"].numpy(), tensors["scale"].numpy()),
        "rounding": rounding,
        "form": form,
        "context": None if context is None else Context.restored(context),
        "images": layout,
        "kinds": kinds,
        "incomplete": tensors["incomplete"].numpy(),
        "indicated": tuple(content["indicated"]),
    }


def _check_scaling(tensors: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` for a scaling that no table has."""
    shift, scale, incomplete = (tensors[name] for name in ("shift", "scale", "incomplete"))
    if not shift.ndim == 1 or not shift.shape == scale.shape == incomplete.shape:
        raise ValueError("shift, scale and missing cells of the columns differ in number")
    if shift.dtype != torch.float64 or scale.dtype != torch.float64:
        raise ValueError("shift and scale of the columns must be float64")
    if incomplete.dtype != torch.bool:
        raise ValueError("which columns have missing cells must be true or false")
    if not bool((shift.isfinite() & scale.isfinite() & (scale > 0)).all()):
        raise ValueError("shift and scale of the columns must be finite, and scale above 0")


def _check_counts(
    features: int,
    images: ImageLayout | None,
    kinds: Sequence[Column],
    rounding: Sequence[Rounding],
    indicated: Sequence[int],
) -> None:
    """Raise `ValueError` if parts of a schema are not of as many features."""
    if images is not None:
        if images.features != features or not 0 < images.top < np.inf:
            raise ValueError(f"images of {images.features} numbers, but {features} are scaled")
        return
    columns = features - len(indicated)
    if not len(kinds) == len(rounding) == features or not all(0 <= j < columns for j in indicated):
        raise ValueError(
            f"{features} columns are scaled, {len(kinds)} have kinds, {len(rounding)} a rounding"
        )
    for kind in kinds:
        if isinstance(kind, CategoryColumn):
            kind.check()
    for each in rounding:
        each.check()
