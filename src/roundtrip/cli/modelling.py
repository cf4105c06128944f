"""``roundtrip fit`` and ``info``: from a table to a model, and what it holds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from roundtrip.cli.app import (
    MODEL_SUFFIX,
    DataFile,
    Device,
    ModelFile,
    Quiet,
    Seed,
    app,
    split_names,
)
from roundtrip.cli.facts import density_facts, detector_facts, print_facts, readable
from roundtrip.cli.rescue import saved
from roundtrip.io.atomic import check_writable


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
    part_encoder: Annotated[
        bool | None,
        typer.Option(
            help="Train the encoder that questions about parts of rows need; by default if the fit "
            "takes long enough. Without it, each command that asks them trains one first."
        ),
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
            "part_encoder": part_encoder,
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
    names, conditioned = split_names(columns), split_names(context)
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
    if part_encoder is not None:
        settings["part_encoder"] = part_encoder
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

    from roundtrip import Roundtrip, RoundtripDetector, RoundtripImputer, load
    from roundtrip.io.saved import plain_parameters

    held = load(model)
    if isinstance(held, Roundtrip):
        facts = density_facts(held)
    elif isinstance(held, RoundtripDetector):
        facts = detector_facts(held)
    elif isinstance(held, RoundtripImputer):
        facts = {"holds": "imputer", **density_facts(held.estimator_)}
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
    kinds = dict.fromkeys(split_names(categories) or (), "category")
    for name in split_names(dates) or ():
        if name in kinds:
            raise ValueError(f"--categories and --dates both name {name}")
        kinds[name] = "date"
    both = set(kinds) & set(context)
    if both:
        raise ValueError(f"--categories or --dates and --context name {', '.join(sorted(both))}")
    return kinds
