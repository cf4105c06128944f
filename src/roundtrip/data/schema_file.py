"""What a model file holds of a schema."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from roundtrip.data.context import Context
from roundtrip.data.images import ImageLayout
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
    context, images = content["context"], content["images"]
    form = None if content["form"] is None else TableFormat.restored(content["form"])
    columns = () if form is None else form.columns
    return {
        "scaling": Scaling(tensors["shift"].numpy(), tensors["scale"].numpy()),
        "rounding": tuple(Rounding.restored(column) for column in content["rounding"]),
        "form": form,
        "context": None if context is None else Context.restored(context),
        "images": None if images is None else ImageLayout(**images),
        "kinds": (*columns, *map(restored_column, content["indicators"])),
        "incomplete": tensors["incomplete"].numpy(),
        "indicated": tuple(content["indicated"]),
    }
