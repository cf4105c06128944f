"""What all commands share: the application, common options, reading and writing of tables.

Results go to stdout or to the file of ``-o``; progress, warnings and errors go to stderr. A user's
mistake gives one line ``error: ...`` and exit code 2.
"""

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from roundtrip import __version__
from roundtrip.io import paths

# torch and pandas take seconds to import: each command imports them, so that --help is fast.
if TYPE_CHECKING:
    import pandas as pd

    from roundtrip.data.tables import Table
    from roundtrip.estimator import Roundtrip

MODEL_SUFFIX = ".rt"


class OneLineMessages(TyperGroup):
    """A group of commands that reports errors and warnings in one line each."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and exit: 0 if it succeeded, 2 if the user made a mistake."""
        kwargs["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _complain("warning", message)
            try:
                sys.exit(super().main(*args, **kwargs))
            except typer.TyperException as error:
                _complain("error", error.format_message())
            except (ValueError, OSError, MemoryError, RuntimeError, ImportError) as error:
                first_line = str(error).partition("\n")[0]  # the rest is scikit-learn's advice
                _complain("error", re.sub(r"^\[Errno \d+\] ", "", first_line))
        sys.exit(2)


app = typer.Typer(
    cls=OneLineMessages,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _checked_by(check: Callable[[Path], None]) -> Callable[[Path], Path]:
    """Return a callback that checks a file as soon as the command line is read."""

    def checked(path: Path) -> Path:
        check(path)
        return path

    return checked


ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Model file that `fit` wrote.", callback=_checked_by(paths.check_file)
    ),
]
TABLES = ".csv, .tsv (both also .gz), .parquet, .npy"
DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help=f"Table: {TABLES} or .npz.", callback=_checked_by(paths.check_input)
    ),
]
TableOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=f"File to write: {TABLES}; csv to stdout by default."),
]
Seed = Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Seed of random numbers.")]
Device = Annotated[str, typer.Option(help="Device: auto, cpu, cuda, cuda:1, ...")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]


def split_names(names: str | None) -> list[str] | None:
    """Return the names in an option, which are separated by commas."""
    return None if names is None else [name.strip() for name in names.split(",")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roundtrip {__version__}")
        raise typer.Exit


@app.callback()
def roundtrip(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Density estimation for tables: fit a Roundtrip model, then score and sample.

    \b
    Example:
      roundtrip fit train.csv -o model.rt
      roundtrip score model.rt test.csv -o scores.csv
      roundtrip sample model.rt -n 1000 -o new.csv
      roundtrip impute model.rt gaps.csv -o filled.csv
    """


def check_output(output: Path | None, data: Path | None = None) -> None:
    """Raise a `ValueError` before a long run if the output can't be written or is the input."""
    if output is not None:
        paths.check_output(output)
        if data is not None and output.resolve() == data.resolve():
            raise ValueError(f"{output} is the input: writing it would destroy the data")


def load_density(model: Path, device: str) -> "Roundtrip":
    """Load the density estimator of a model file, also of a classifier or an imputer."""
    from roundtrip import Roundtrip, RoundtripClassifier, RoundtripImputer, load

    held = load(model, device=device)
    if isinstance(held, RoundtripClassifier | RoundtripImputer):
        return held.estimator_
    if not isinstance(held, Roundtrip):
        raise ValueError(f"{model} holds an outlier detector: use `roundtrip detect`")
    return held


def read_for(estimator: "Roundtrip", data: Path, columns: Sequence[str] | None = None) -> "Table":
    """Read the columns that a model needs: by name if it has names, otherwise by position.

    `columns` are some of its names, for questions about a part of the rows.
    """
    import numpy as np
    import pandas as pd

    from roundtrip.data.tables import read_table

    if not hasattr(estimator, "feature_names_in_"):
        schema = getattr(estimator, "schema_", None)
        context = None if schema is None else schema.context
        return np.asarray(read_table(data, without=(context and context.names) or ()))
    names = list(estimator.feature_names_in_ if columns is None else columns)
    density: Any = getattr(estimator, "estimator_", estimator)  # of a detector
    # What was text in `fit`, such as codes and dates, is text here even if it looks like numbers.
    kinds = {} if density is None else density.columns_  # without a density all are numbers
    text = [name for name, column in kinds.items() if not column.is_of_numbers]
    table = read_table(data, names, text=text)
    if isinstance(table, pd.DataFrame):
        return table
    if table.shape[1] != len(names):
        raise ValueError(f"{data} has {table.shape[1]} columns, the model needs {len(names)}")
    warnings.warn(f"{data} has no column names: the model's order is assumed", stacklevel=2)
    return pd.DataFrame(table, columns=names)


def context_for(estimator: "Roundtrip", data: Path) -> "pd.DataFrame | list[Any] | None":
    """Read the context of the rows of a table, by the names its columns had in `fit`."""
    from roundtrip.data.tables import read_columns

    context = estimator.schema_.context
    if context is None:
        return None
    if context.names is None:
        raise ValueError(
            "the model was fitted with a context whose columns had no names, so that they can't "
            "be found in a file; use it from Python"
        )
    values = read_columns(data, context.names)
    return values if context.labels is None else context.recognised(values.iloc[:, 0].tolist())


def write(table: "Table", output: Path | None) -> None:
    """Write a table to a file, or as csv to stdout."""
    from roundtrip.data.libraries import as_frame
    from roundtrip.data.tables import write_table, write_text

    _, frame = as_frame(table)  # of polars, for instance
    table = table if frame is None else frame
    if output is None:
        write_text(table, sys.stdout)
        sys.stdout.flush()  # not at exit, where a closed pipe prints a traceback
    else:
        write_table(table, output)


def _complain(kind: str, message: object) -> None:
    typer.echo(f"{kind}: {' '.join(str(message).split())}", err=True)
