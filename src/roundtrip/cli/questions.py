"""``roundtrip impute``, ``predict`` and ``probability``: questions about parts of rows."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roundtrip.cli.app import (
    TABLES,
    DataFile,
    Device,
    ModelFile,
    Quiet,
    Seed,
    TableOutput,
    app,
    check_output,
    load_density,
    read_for,
    split_names,
    write,
)
from roundtrip.cli.conditions import Given, conditions_of_options, labels_of

if TYPE_CHECKING:
    import pandas as pd

    from roundtrip.density.conditional import Conditional
    from roundtrip.estimator import Roundtrip

QUANTILES = ".05,.5,.95"


@app.command()
def impute(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"File to write: {TABLES}.")],
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draw missing cells so many times (multiple imputation); the column `draw` "
            "numbers the completed tables, one below the other.",
        ),
    ] = None,
    how: Annotated[
        Literal["mean", "median"], typer.Option(help="What numbers become without --draws.")
    ] = "mean",
    seed: Seed = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Fill the missing cells of DATA, given the observed cells of their row.

    Numbers become means, categories their likeliest level. Columns that the model does not know
    stay as they are.

    \b
    Example:
      roundtrip impute people.rt gaps.csv -o filled.csv
      roundtrip impute people.rt gaps.csv -o filled.csv --draws 5 --seed 1
    """
    check_output(output, data)

    import numpy as np
    import pandas as pd

    estimator = load_density(model, device).set_params(verbose=0 if quiet else 1)
    if estimator.schema_.images is not None:  # before the file is read as a table
        raise ValueError(f"impute is for tables, and {model} holds a density of images")
    X = read_for(estimator, data)
    others = _other_columns(estimator, data)  # raises before a long run
    filled = estimator.impute(X, draws=draws, how=how, random_state=seed)
    tables = [_beside(others, each) for each in (filled if draws else [filled])]
    if draws is None:
        write(tables[0], output)
    elif isinstance(tables[0], pd.DataFrame):
        name = "draw"
        while name in tables[0]:
            name += "_"
        write(pd.concat(dict(enumerate(tables, 1)), names=[name]).reset_index(name), output)
    else:
        numbers = np.arange(1, draws + 1).repeat(len(X))
        write(np.column_stack([numbers, np.concatenate(tables)]), output)
    if not quiet:
        typer.echo(f"{int(pd.isna(np.asarray(X, dtype=object)).sum())} cells filled", err=True)


@app.command()
def predict(
    model: ModelFile,
    data: DataFile,
    column: Annotated[str, typer.Option(help="Column to predict from the others.")],
    output: TableOutput = None,
    quantiles: Annotated[
        str | None,
        typer.Option(help=f"Probabilities separated by commas; of numbers {QUANTILES} by default."),
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Write standard errors, which draws of z leave.")
    ] = False,
    draws: Annotated[int, typer.Option(min=64, help="Draws of z per row.")] = 512,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Predict a column of DATA from the other columns of each row, with its distribution.

    Writes mean, standard deviation and quantiles of a number or date; of a category the likeliest
    level and the probability of each. DATA need not have the column, and cells of it are ignored;
    other columns that it lacks, and missing cells, are integrated out.

    \b
    Example:
      roundtrip predict people.rt new.csv --column income -o income.csv
      roundtrip predict people.rt new.csv --column age --quantiles .1,.9 --errors
    """
    check_output(output, data)
    levels = _probabilities(quantiles)

    estimator = load_density(model, device).set_params(verbose=0 if quiet else 1)
    labels = labels_of(estimator, "--column", column) or []
    if len(labels) != 1:
        raise ValueError(f"--column is for one column, got {column}")
    names = None
    if hasattr(estimator, "feature_names_in_"):
        names = _names_in(estimator, data, without=column)
    law = estimator.conditional(read_for(estimator, data, names), labels[0], draws=draws)
    write(prediction(law, levels, errors=errors), output)


@app.command()
def probability(
    model: ModelFile,
    event: Annotated[
        list[str],
        typer.Argument(metavar="EVENT...", help="Conditions that all hold, such as balance=..0"),
    ],
    given: Given = None,
    output: TableOutput = None,
    tol: Annotated[
        float, typer.Option(help="Standard error to reach, relative to the probability.")
    ] = 0.02,
    device: Device = "auto",
) -> None:
    """Write the probability of an EVENT, perhaps given something, with its standard error.

    \b
    Example:
      roundtrip probability people.rt balance=..0 --given job=student --given age=18..25
    """
    check_output(output)
    estimator = load_density(model, device)
    asked = conditions_of_options(estimator, "EVENT", event)
    known = conditions_of_options(estimator, "--given", given) if given else None
    write(estimator.probability(asked, given=known, tol=tol).to_frame(), output)


def prediction(law: "Conditional", levels: list[float] | None, *, errors: bool) -> "pd.DataFrame":
    """Return what `predict` writes of distributions."""
    import pandas as pd

    parts: dict[Any, Any] = {}

    def add(name: str, answer: Any) -> None:
        values, error = answer if errors else (answer, None)
        parts[name] = values
        if error is not None:
            parts[f"{name}_error"] = error

    column = law.units.column
    if column.kind == "category":
        parts["mode"] = law.mode()
        for level in levels or ():
            parts[f"q{level:g}"] = law.quantile(level)
        answer = law.probabilities(with_error=errors)
        each = answer if errors else (answer,)
        for level in each[0].columns:
            frames = tuple(frame[level] for frame in each)
            add(f"p_{level}", frames if errors else frames[0])
    else:
        add("mean", law.mean(with_error=errors))
        add("sd", law.std(with_error=errors))
        for level in _probabilities(QUANTILES) or [] if levels is None else levels:
            add(f"q{level:g}", law.quantile(level, with_error=errors))
    parts["converged"] = pd.Series(law.converged, index=law.index)
    return pd.DataFrame(parts)


def _probabilities(text: str | None) -> list[float] | None:
    """Return the numbers of ``--quantiles``; None without the option."""
    try:
        return None if text is None else [float(each) for each in split_names(text) or ()]
    except ValueError:
        raise ValueError(
            f"--quantiles {text}: give probabilities with commas between, as in {QUANTILES}"
        ) from None


def _names_in(estimator: "Roundtrip", data: Path, *, without: str) -> list[str]:
    """Return the columns of the model that a file has; warns of those that it lacks."""
    from roundtrip.data.tables import read_names

    names = list(estimator.feature_names_in_)
    there = read_names(data)
    if there is None:
        return names
    lacking = [name for name in names if name not in there and name != without]
    found = [name for name in names if name in there]
    if not set(found) - {without}:
        raise ValueError(f"{data} has no column that the model knows, beside {without}")
    if lacking:
        warnings.warn(f"{data} lacks {', '.join(lacking)}, which are integrated out", stacklevel=2)
    return found


def _other_columns(estimator: "Roundtrip", data: Path) -> "pd.DataFrame | None":
    """Return the columns of a file that the model does not know, and empty ones for the others."""
    import pandas as pd

    from roundtrip.data.tables import read_names, read_table

    there = read_names(data) if hasattr(estimator, "feature_names_in_") else None
    if there is None:
        return None
    known = set(estimator.feature_names_in_)
    others = [name for name in there if name not in known]
    if not others:
        return pd.DataFrame(columns=there)
    # As text, so that they come out as they went in.
    return pd.DataFrame(read_table(data, others, text=others)).reindex(columns=there)


def _beside(others: "pd.DataFrame | None", filled: Any) -> Any:
    """Return a completed table with the other columns of its file, in the order of the file."""
    import pandas as pd

    from roundtrip.data.libraries import as_frame

    _, frame = as_frame(filled)
    if frame is None or others is None:
        return filled
    known = list(frame.columns)
    return pd.concat([frame, others.drop(columns=known)], axis=1)[list(others)]
