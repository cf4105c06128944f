"""Types of columns of numbers, which samples have, too."""

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMPY = ("bool", *WHOLE, "float16", "float32", "float64")
NULLABLE = ("boolean", *(name.replace("i", "I").replace("u", "U") for name in WHOLE))
KNOWN = (*NUMPY, *NULLABLE, "Float32", "Float64")
OTHER = "float64"
"""Type of samples of columns with any other type, such as objects."""


def number_type(name: str) -> str:
    """Return the type that samples of a column of numbers have.

    Parameters
    ----------
    name : str
        Type of the column in the table of fit.

    Returns
    -------
    str
        The same type if it is one of numbers that pandas and NumPy have.

    Examples
    --------
    >>> [number_type(name) for name in ("Int8", "float32", "object", "int64[pyarrow]")]
    ['Int8', 'float32', 'float64', 'int64[pyarrow]']
    """
    arrow = name.endswith("[pyarrow]") and not name.startswith("decimal")
    return name if name in KNOWN or arrow else OTHER
