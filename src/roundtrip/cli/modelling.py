"""``roundtrip fit``, ``score``, ``sample`` and ``info``: from a table to a model and back."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roundtrip.cli.app import (
    MODEL_SUFFIX,
    DataFile,
    Device,
    ModelFile,
    Quiet,
    Seed,
    TableOutput,
    app,
    check_output,
    context_for,
    load_density,
    read_for,
    write,
)
from roundtrip.cli.facts import density_facts, detector_facts, print_facts, readable
from roundtrip.cli.rescue import saved
from roundtrip.io.atomic import check_writable

if TYPE_CHECKING:
    from roundtrip.estimator import Roundtrip


@app.command()
def fit(
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"*{MODEL_SUFFIX} file to write.")],
    preset: Annotated[
        Literal["default", "paper"], typer.Option(help="Settings for options not given.")
    ] = "default",
    latent_dim: Annotated[
        int | None, typer.Option(min=1, help="Latent dimension; by default chosen from the data.")
    ] = None,
    scale: Annotated[
        Literal["standard", "minmax", "none"] | None, typer.Option(help="How columns are scaled.")
    ] = None,
    objective: Annotated[
        Literal["likelihood", "adversarial", "hybrid"] | None,
        typer.Option(help="What training optimises."),
    ] = None,
    noise: Annotated[
        Literal["isotropic", "diagonal", "heteroscedastic", "mixture"] | None,
        typer.Option(help="Distribution of rows around the output of G."),
    ] = None,
    prior: Annotated[
        Literal["normal", "mixture"] | None, typer.Option(help="Distribution of z.")
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(min=1, help="Largest number of epochs.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File for the state of training; resume from it if it exists."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Rows per training step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    seed: Seed = None,
    device: Device = "auto",
    columns: Annotated[
        str | None, typer.Option(help="Use only these columns: names separated by commas.")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Fit p(x | context): names of columns (or arrays of an .npz) separated by commas; "
            "one column of labels, or covariates."
        ),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(help="Columns of codes that are categories: names separated by commas."),
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(
            help="Columns of dates like 2024-12-31 (ISO 8601) in text files: names separated by "
            "commas."
        ),
    ] = None,
    missing: Annotated[
        Literal["ignore", "model"] | None,
        typer.Option(help="Whether the density includes which cells are missing."),
    ] = None,
    outliers: Annotated[
        bool, typer.Option("--outliers", help="Fit an outlier detector for `roundtrip detect`.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to the rows or images of DATA and save it. Ctrl-C stops and keeps the best epoch.

    Columns of text and booleans are categories; empty cells are missing.

    \b
    Example:
      roundtrip fit people.csv -o people.rt --columns height,weight --seed 1
      roundtrip fit people.csv -o people.rt --categories zip --dates birthday
      roundtrip fit digits.npz --context y -o digits.rt
    """
    if output.suffix != MODEL_SUFFIX:
        raise ValueError(f"{output}: the name of a model file ends in {MODEL_SUFFIX}")
    check_writable(output)
    if checkpoint is not None:
        if checkpoint.resolve() == output.resolve():
            raise ValueError("--checkpoint and --output are the same file")
        check_writable(checkpoint)
    settings: dict[str, Any] = {
        "latent_dim": latent_dim,
        "objective": objective,
        "noise": noise,
        "prior": prior,
        "max_epochs": max_epochs,
        "objective__batch_size": batch_size,
        "objective__learning_rate": learning_rate,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if outliers:
        of_density = settings | {
            "scale": scale,
            "max_time": max_time,
            "checkpoint": checkpoint,
            "context": context,
            "missing": missing,
            "preset": None if preset == "default" else preset,
        }
        useless = [name for name, value in of_density.items() if value is not None]
        if useless:
            options = ", ".join(
                f"--{name.removeprefix('objective__').replace('_', '-')}" for name in useless
            )
            raise ValueError(
                f"--outliers fits a density with settings of its own: leave out {options}"
            )
    names, conditioned = _split(columns), _split(context)
    both = set(names or ()) & set(conditioned or ())
    if both:
        raise ValueError(f"--columns and --context both name {', '.join(sorted(both))}")
    kinds = _kinds(categories, dates, conditioned or ())

    from roundtrip import Roundtrip, RoundtripDetector
    from roundtrip.data.context import Context
    from roundtrip.data.images import are_images
    from roundtrip.data.tables import read_columns, read_table

    conditions = None
    if conditioned is not None:
        conditions = read_columns(data, conditioned)
        Context.fit(conditions).plain()  # raises before the fit if it can't be saved
    table = read_table(data, names, without=conditioned or (), text=kinds)
    if (names or kinds) and not hasattr(table, "columns"):
        given = {"--columns": names, "--categories": categories, "--dates": dates}
        option = next(name for name, value in given.items() if value)
        raise ValueError(f"{option} needs column names, but {data} has none")
    absent = [name for name in kinds if name not in getattr(table, "columns", ())]
    if absent:
        raise ValueError(f"--categories or --dates names {', '.join(absent)}, which is no column")
    if outliers:
        detector = RoundtripDetector(
            columns=kinds or None, device=device, random_state=seed, verbose=0 if quiet else 1
        ).fit(table)
        output = saved(detector.set_params(verbose=0), output)
        if not quiet:
            print_facts({"rows": len(table), **detector_facts(detector), "model": str(output)})
        return
    settings |= {"random_state": seed, "device": device, "verbose": 0 if quiet else 1}
    if kinds:
        settings["columns"] = kinds
    if missing is not None:
        settings["missing"] = missing
    if scale is not None:
        settings["scale"] = None if scale == "none" else scale
    paper = Roundtrip.paper_images if are_images(table) else Roundtrip.paper
    estimator = (paper() if preset == "paper" else Roundtrip()).set_params(**settings)
    estimator.fit(table, context=conditions, max_time=max_time, checkpoint=checkpoint)
    # Bars are for this command, not for the file.
    output = saved(estimator.set_params(verbose=0), output)
    if not quiet:
        print_facts({"rows": len(table), **density_facts(estimator), "model": str(output)})


@app.command()
def score(
    model: ModelFile,
    data: DataFile,
    output: TableOutput = None,
    method: Annotated[
        Literal["adaptive", "importance", "laplace"],
        typer.Option(help="How the density is computed."),
    ] = "adaptive",
    tol: Annotated[
        float | None,
        typer.Option(help="Standard error to reach, in nats (adaptive; default: as in fit)."),
    ] = None,
    max_evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations of G per row at most (adaptive; 20000).")
    ] = None,
    n_samples: Annotated[
        int | None, typer.Option(min=1, help="Draws per row (importance).")
    ] = None,
    sigma: Annotated[float | None, typer.Option(help="Noise in place of the fitted sigma.")] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write the log density of each row of DATA with its standard error and diagnostics.

    A model fitted with column names finds its columns and its context by name and ignores other
    columns.

    \b
    Example:
      roundtrip score people.rt new.csv -o scores.csv
    """
    check_output(output, data)
    estimator = load_density(model, device)
    X = read_for(estimator, data)
    estimator.set_params(verbose=0 if quiet else 1)
    result = estimator.density(
        X,
        context=context_for(estimator, data),
        method=method,
        tol=tol,
        max_evaluations=max_evaluations,
        n_samples=n_samples,
        sigma=sigma,
    )
    write(result.to_frame(), output)
    if output is not None and not quiet:
        typer.echo(result.summary(), err=True)


@app.command()
def sample(
    model: ModelFile,
    n: Annotated[int, typer.Option("-n", "--n-rows", min=1, help="Number of rows to draw.")],
    output: TableOutput = None,
    context: Annotated[
        str | None,
        typer.Option(help="Context of all rows: a label, or covariates separated by commas."),
    ] = None,
    spread: Annotated[
        bool, typer.Option("--spread", help="Leave rounded columns spread over their steps.")
    ] = False,
    seed: Seed = None,
) -> None:
    """Draw new rows, or images into an .npy file, from a model; rounded as the data was.

    \b
    Example:
      roundtrip sample people.rt -n 1000 -o new.csv --seed 1
    """
    check_output(output)
    estimator = load_density(model, "auto")
    to_npy = output is not None and output.suffix.lower() == ".npy"
    if estimator.schema_.images is not None and not to_npy:
        raise ValueError("images need a file that ends in .npy: give it with -o")
    asked = _asked(estimator, context)
    write(estimator.sample(n, random_state=seed, context=asked, rounded=not spread), output)


@app.command()
def info(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model file holds.

    \b
    Example:
      roundtrip info people.rt
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from roundtrip import Roundtrip, RoundtripDetector, load
    from roundtrip.io.saved import plain_parameters

    held = load(model)
    if isinstance(held, Roundtrip):
        facts = density_facts(held)
    elif isinstance(held, RoundtripDetector):
        facts = detector_facts(held)
    else:
        facts = {"holds": "classifier", **density_facts(held.estimator_)}
        facts |= {"context": "class", "classes": held.classes_.tolist()}
    settings = held.get_params(deep=False)
    settings.pop("estimator", None)  # the fitted density is shown instead
    facts, settings = {"file": str(model), **facts}, dict(sorted(settings.items()))
    if as_json:
        typer.echo(json.dumps({**facts, "settings": plain_parameters(settings)}, indent=2))
        return
    for title, part in (("fitted", facts), ("settings", settings)):
        table = Table(box=box.SIMPLE, show_header=False, title=title, title_justify="left")
        for name, value in part.items():
            table.add_row(name.replace("_", " "), Text(readable(value)))
        Console().print(table)


def _kinds(categories: str | None, dates: str | None, context: Sequence[str]) -> dict[str, str]:
    """Return the kinds of columns that the options give."""
    kinds = dict.fromkeys(_split(categories) or (), "category")
    for name in _split(dates) or ():
        if name in kinds:
            raise ValueError(f"--categories and --dates both name {name}")
        kinds[name] = "date"
    both = set(kinds) & set(context)
    if both:
        raise ValueError(f"--categories or --dates and --context name {', '.join(sorted(both))}")
    return kinds


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def _asked(estimator: "Roundtrip", text: str | None) -> Any:
    """Context given on the command line, in the type it had in `fit`."""
    known = estimator.schema_.context
    if known is None and text is None:
        return None
    if known is None:
        raise ValueError(f"--context {text}: the model was fitted without one")
    if text is None:
        kind = "covariates" if known.labels is None else readable(known.labels)
        raise ValueError(f"the model was fitted with a context: give --context ({kind})")
    if known.labels is not None:
        return known.recognised([text])
    try:
        return [[float(number) for number in text.split(",")]]
    except ValueError:
        raise ValueError(f"--context {text}: covariates are numbers with commas between") from None
