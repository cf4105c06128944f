"""The command line: ``roundtrip fit``, ``score``, ``sample`` and so on.

Results go to stdout or the file of ``-o``; progress, warnings and errors go to stderr. Every
mistake of the user is one line ``error: ...`` and exit code 2.
"""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from roundtrip import __version__

# torch and pandas take seconds to import: the commands import them, so that --help doesn't.
if TYPE_CHECKING:
    from roundtrip.estimator import Roundtrip
    from roundtrip.tables import Table

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

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file of `fit`.")]
TABLES = ".csv, .tsv (both also .gz), .parquet, .npy"
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=f"A table: {TABLES} or .npz.")]
TableOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help=f"{TABLES}; without it, csv to stdout.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="For repeatable results.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]


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
    """


@app.command()
def fit(
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"The *{MODEL_SUFFIX} to write.")],
    preset: Annotated[
        Literal["default", "paper"], typer.Option(help="The settings of what is not given here.")
    ] = "default",
    latent_dim: Annotated[
        int | None, typer.Option(min=1, help="Latent dimension; chosen from the data if absent.")
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
        typer.Option(help="How rows scatter around what G generates."),
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(min=1, help="Most epochs of training.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Most seconds of training.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Keep the state of training in this file; go on from it if it exists."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Rows in one step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size.")] = None,
    seed: Seed = None,
    device: Device = "auto",
    columns: Annotated[
        str | None, typer.Option(help="Use only these columns: names with commas between.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to the rows of DATA and save it. Ctrl-C stops early and keeps the best.

    \b
    Example:
      roundtrip fit people.csv -o people.rt --columns height,weight --seed 1
    """
    from roundtrip import Roundtrip
    from roundtrip.atomic import check_writable
    from roundtrip.tables import read_table

    if output.suffix != MODEL_SUFFIX:
        raise ValueError(f"{output}: the name of a model file ends in {MODEL_SUFFIX}")
    check_writable(output)
    if checkpoint is not None:
        if checkpoint.resolve() == output.resolve():
            raise ValueError("--checkpoint and --output are the same file")
        check_writable(checkpoint)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    table = read_table(data, names)
    if names is not None and not hasattr(table, "columns"):
        raise ValueError(f"--columns needs column names, but {data} has none")
    settings: dict[str, Any] = {
        "latent_dim": latent_dim,
        "objective": objective,
        "noise": noise,
        "max_epochs": max_epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"random_state": seed, "device": device, "verbose": 0 if quiet else 1}
    if scale is not None:
        settings["scale"] = None if scale == "none" else scale
    estimator = (Roundtrip.paper if preset == "paper" else Roundtrip)(**settings)
    estimator.fit(table, max_time=max_time, checkpoint=checkpoint).save(output)
    if not quiet:
        facts = {"rows": len(table), **_facts(estimator), "model": str(output)}
        for name, value in facts.items():
            typer.echo(f"{name.replace('_', ' '):27}{_readable(value)}")


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
        typer.Option(help="Standard error to reach, in nats (adaptive; the model's, 0.05)."),
    ] = None,
    max_evaluations: Annotated[
        int | None, typer.Option(min=1, help="Most work on a row (adaptive; 20000).")
    ] = None,
    n_samples: Annotated[
        int | None, typer.Option(min=1, help="Draws for each row (importance).")
    ] = None,
    sigma: Annotated[float | None, typer.Option(help="Noise other than the fitted.")] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write the log density of each row of DATA with its standard error and diagnostics.

    A model fitted with column names finds its columns by name; others are ignored.

    \b
    Example:
      roundtrip score people.rt new.csv -o scores.csv
    """
    from roundtrip import load

    _check_output(output, data)
    estimator = load(model, device=device)
    X = _read_for(estimator, data)
    estimator.set_params(verbose=0 if quiet else 1)
    result = estimator.density(
        X,
        method=method,
        tol=tol,
        max_evaluations=max_evaluations,
        n_samples=n_samples,
        sigma=sigma,
    )
    _write(result.to_frame(), output)
    if output is not None and not quiet:
        typer.echo(result.summary(), err=True)


@app.command()
def sample(
    model: ModelFile,
    n: Annotated[int, typer.Option("-n", "--n-rows", min=1, help="How many rows to draw.")],
    output: TableOutput = None,
    seed: Seed = None,
) -> None:
    """Draw new rows from a model.

    \b
    Example:
      roundtrip sample people.rt -n 1000 -o new.csv --seed 1
    """
    from roundtrip import load

    _check_output(output)
    _write(load(model).sample(n, random_state=seed), output)


@app.command()
def generate(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture: .png, .svg, .pdf.")],
    per_class: Annotated[int, typer.Option(min=1, help="Images of each class.")] = 25,
    sort: Annotated[
        Literal["likelihood", "none"], typer.Option(help="Likeliest first, or as drawn.")
    ] = "likelihood",
    table: Annotated[
        Path | None, typer.Option(help=f"Write label and log density of each: {TABLES}.")
    ] = None,
    seed: Seed = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Draw new images of each class from a model of images, with their log densities.

    \b
    Example:
      roundtrip generate digits.rt --per-class 25 --sort likelihood -o grid.png
    """
    from roundtrip import load
    from roundtrip.atomic import atomic_write, check_writable
    from roundtrip.generation import generate_images
    from roundtrip.plots import image_grid

    check_writable(output)
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{output}: the name of a picture ends in .png, .svg or .pdf")
    _check_output(table)
    estimator = load(model, device=device)
    estimator.set_params(verbose=0 if quiet else 1)
    result = generate_images(estimator, per_class, sort=sort, random_state=seed)
    layout = estimator.image_layout_
    assert layout is not None
    images = layout.flatten(result.images).reshape(-1, *layout.shape)
    captions = [f"{value:.0f}" for value in result.density.log_density]
    rows = [str(label) for label in result.labels[::per_class]]
    figure = image_grid(images, captions, rows)
    with atomic_write(output) as temporary:
        figure.savefig(temporary, dpi=200)
    if table is not None:
        _write(result.to_frame(), table)


@app.command()
def info(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
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

    from roundtrip import load

    estimator = load(model)
    settings = dict(sorted(estimator.get_params().items()))
    facts = {"file": str(model), **_facts(estimator)}
    if as_json:
        typer.echo(json.dumps({**facts, "settings": settings}, indent=2))
        return
    for title, part in (("fitted", facts), ("settings", settings)):
        table = Table(box=box.SIMPLE, show_header=False, title=title, title_justify="left")
        for name, value in part.items():
            table.add_row(name.replace("_", " "), Text(_readable(value)))
        Console().print(table)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="fig2, figS1, figS2, table1, bias.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Reduced settings, at most 3 minutes.")
    ] = False,
    methods: Annotated[
        str | None, typer.Option(help="Only these: names with commas between.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Fits of each method (tables; 3).")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Seconds a fit.")] = None,
    paper_budget: Annotated[
        float | None, typer.Option(help="Seconds a fit of the paper's preset.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the data sets (or set ROUNDTRIP_DATA).")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download data sets that are missing (gigabytes).")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results.")] = Path(
        "results"
    ),
    quiet: Quiet = False,
) -> None:
    """Compute a figure or table of the paper, beside the paper's own numbers.

    What is known is not computed again: an interrupted run goes on where it stopped.

    \b
    Example:
      roundtrip reproduce fig2 --quick
    """
    from roundtrip.reproduce import Request
    from roundtrip.reproduce import reproduce as run

    request = Request(
        name=name,
        output=output,
        quick=quick,
        methods=None if methods is None else [each.strip() for each in methods.split(",")],
        seeds=seeds,
        budget=budget,
        paper_budget=paper_budget,
        data_home=data,
        download=download,
        quiet=quiet,
    )
    typer.echo(run(request))
    if not quiet:
        typer.echo(f"written to {request.folder}", err=True)


def main() -> None:
    """Run the command line."""
    app(sys.argv[1:] or ["--help"])


def _check_output(output: Path | None, data: Path | None = None) -> None:
    """Refuse an output that can't be written, or that is the input, before the work is done."""
    from roundtrip.tables import check_output

    if output is not None:
        check_output(output)
        if data is not None and output.resolve() == data.resolve():
            raise ValueError(f"{output} is the input: writing it would destroy the data")


def _read_for(estimator: "Roundtrip", data: Path) -> "Table":
    """The columns a model needs: by name if it has names, else as they stand in the table."""
    import pandas as pd

    from roundtrip.tables import read_table

    if not hasattr(estimator, "feature_names_in_"):
        return pd.DataFrame(read_table(data)).to_numpy()
    names = list(estimator.feature_names_in_)
    table = read_table(data, names)
    if isinstance(table, pd.DataFrame):
        return table
    if table.shape[1] != len(names):
        raise ValueError(f"{data} has {table.shape[1]} columns, the model needs {len(names)}")
    warnings.warn(f"{data} has no column names: the model's order is assumed", stacklevel=2)
    return pd.DataFrame(table, columns=names)


def _write(table: "Table", output: Path | None) -> None:
    from roundtrip.tables import write_table, write_text

    if output is None:
        write_text(table, sys.stdout)
        sys.stdout.flush()  # here and not at exit, where a closed pipe would print a traceback
    else:
        write_table(table, output)


def _facts(estimator: "Roundtrip") -> dict[str, Any]:
    """What was learned, in the order in which it is shown; the history may have no epoch."""
    validation = estimator.history_.get("validation_log_likelihood", [None])
    return {
        "columns": estimator.n_features_in_,
        "column_names": list(getattr(estimator, "feature_names_in_", [])) or None,
        "latent_dim": estimator.latent_dim_,
        **({"sigma": estimator.sigma_} if _has_one_sigma(estimator) else {}),
        "epochs": estimator.n_iter_,
        "best_epoch": estimator.best_epoch_,
        "validation_log_likelihood": validation[estimator.best_epoch_ - 1],
        "parameters": sum(weights.numel() for weights in estimator.model_.parameters()),
    }


def _has_one_sigma(estimator: "Roundtrip") -> bool:
    return isinstance(getattr(estimator, "sigma_", None), float)


def _readable(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_readable(item) for item in value)
    return f"{value:.5g}" if isinstance(value, float) else "-" if value is None else str(value)


def _complain(kind: str, message: object) -> None:
    typer.echo(f"{kind}: {' '.join(str(message).split())}", err=True)


if __name__ == "__main__":
    main()
