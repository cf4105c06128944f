"""``roundtrip score`` and ``sample``: densities of rows, and new rows."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roundtrip.cli.app import (
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
from roundtrip.cli.conditions import Given, conditions_of_options, labels_of
from roundtrip.cli.facts import readable

if TYPE_CHECKING:
    from roundtrip.estimator import Roundtrip


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
    columns: Annotated[
        str | None,
        typer.Option(
            help="Score these columns only, the others integrated out: names separated by commas."
        ),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(help="Density of the other columns given these: names separated by commas."),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write the log density of each row of DATA with its standard error and diagnostics.

    A model fitted with column names finds its columns and its context by name and ignores other
    columns.

    \b
    Example:
      roundtrip score people.rt new.csv -o scores.csv
      roundtrip score people.rt new.csv --columns age,income
      roundtrip score people.rt new.csv --given job,age
    """
    check_output(output, data)
    estimator = load_density(model, device)
    known = labels_of(estimator, "--given", given)
    part = labels_of(estimator, "--columns", columns)
    if part is not None and not hasattr(estimator, "feature_names_in_"):
        raise ValueError("--columns needs a model whose columns have names")
    X = read_for(estimator, data, part and list(dict.fromkeys([*part, *(known or ())])))
    estimator.set_params(verbose=0 if quiet else 1)
    result = estimator.density(
        X,
        context=context_for(estimator, data),
        method=method,
        tol=tol,
        max_evaluations=max_evaluations,
        n_samples=n_samples,
        sigma=sigma,
        given=known,
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
    given: Given = None,
    spread: Annotated[
        bool, typer.Option("--spread", help="Leave rounded columns spread over their steps.")
    ] = False,
    seed: Seed = None,
) -> None:
    """Draw new rows, or images into an .npy file, from a model; rounded as the data was.

    \b
    Example:
      roundtrip sample people.rt -n 1000 -o new.csv --seed 1
      roundtrip sample people.rt -n 100 --given job=student --given age=18..25
    """
    check_output(output)
    estimator = load_density(model, "auto")
    to_npy = output is not None and output.suffix.lower() == ".npy"
    if estimator.schema_.images is not None and not to_npy:
        raise ValueError("images need a file that ends in .npy: give it with -o")
    if given:
        if context is not None:
            raise ValueError("--context and --given exclude each other")
        conditions = conditions_of_options(estimator, "--given", given)
        write(estimator.sample(n, seed, given=conditions, rounded=not spread), output)
        return
    asked = _asked(estimator, context)
    write(estimator.sample(n, random_state=seed, context=asked, rounded=not spread), output)


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
