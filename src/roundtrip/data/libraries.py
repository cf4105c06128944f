"""Tables of pandas, polars, pyarrow and other libraries, and pandas DataFrames."""

import base64
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow


def as_frame(X: Any) -> tuple[str, pd.DataFrame | None]:
    """Return the library of a table and the table as a pandas DataFrame; None for arrays.

    Parameters
    ----------
    X : object
        What the user gave.

    Returns
    -------
    library : str
        "pandas", "polars", "pyarrow", ...; "numpy" for everything that is not a table of columns.
    frame : DataFrame or None
        The table.

    Examples
    --------
    >>> as_frame([[1.0]])
    ('numpy', None)
    >>> library, frame = as_frame(pyarrow.table({"a": [1, None]}))
    >>> library, frame["a"].tolist()
    ('pyarrow', [1, <NA>])
    """
    if isinstance(X, pd.DataFrame):
        return "pandas", X
    if isinstance(X, pyarrow.Table):
        check_unique(X.column_names)
    try:
        table = nw.from_native(X)
    except TypeError:
        return "numpy", None
    if isinstance(table, nw.LazyFrame):
        raise ValueError("the table is lazy, its rows are not there yet; call .collect() first")
    # Through Arrow, which keeps missing cells and whole numbers as they are.
    frame = table.to_arrow().to_pandas(types_mapper=_nullable, date_as_object=False)
    return table.implementation.value, frame


def check_unique(labels: Sequence[Any]) -> None:
    """Raise `ValueError` if several columns have the same label."""
    seen = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"the table has several columns named {label!r}; rename them")
        seen.add(label)


def as_library(frame: pd.DataFrame, library: str, schema: str | None) -> Any:
    """Convert a DataFrame to a table of another library.

    Parameters
    ----------
    frame : DataFrame
        The table.
    library : str
        The library, as `as_frame` names it.
    schema : str or None
        What `arrow_schema` gave for a table with the same columns; the result has its types.

    Returns
    -------
    object
        The table.
    """
    if library == "pandas":
        return frame
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    if schema is not None:
        types = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(schema)))
        table = table.cast(types, safe=False)  # days of draws that are not rounded have a rest
    backend: Any = library
    return table if library == "pyarrow" else nw.from_arrow(table, backend=backend).to_native()


def arrow_schema(X: Any) -> str | None:
    """Return the types of the columns of a table that is not pandas' as text."""
    if isinstance(X, pd.DataFrame):
        return None
    types = nw.from_native(X, eager_only=True).to_arrow().schema.remove_metadata()
    return base64.b64encode(types.serialize().to_pybytes()).decode()


def _nullable(arrow_type: Any) -> Any:
    """Return pandas' nullable type for whole numbers and booleans, which would become float."""
    if pyarrow.types.is_boolean(arrow_type):
        return pd.BooleanDtype()
    if pyarrow.types.is_integer(arrow_type):
        name = str(arrow_type)
        return pd.api.types.pandas_dtype(name.replace("i", "I").replace("u", "U"))
    return None
