"""``roundtrip detect``: the outliers of a table, and why they are outliers."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundtrip.cli.app import (
    TABLES,
    DataFile,
    Device,
    ModelFile,
    Quiet,
    app,
    check_output,
    read_for,
    write,
)

if TYPE_CHECKING:
    import pandas as pd


@app.command()
def detect(
    model: ModelFile,
    data: DataFile,
    top: Annotated[int, typer.Option(min=1, help="Number of rows to show and explain.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Write score and p-value of every row: {TABLES}."),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="False-discovery rate of the column `outlier`.")
    ] = 0.1,
    contamination: Annotated[
        float | None,
        typer.Option(help="Mark this share of the rows, the oddest, instead of using --rate."),
    ] = None,
    explain: Annotated[
        int,
        typer.Option(min=0, help="Number of rows to explain in a sentence, the oddest first."),
    ] = 0,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Rows that p-values compare with: held-out, rows that `fit --outliers` did not "
            "train on; trimmed, held-out rows with outliers replaced by an estimated tail; model, "
            "rows drawn from the model."
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Show the most unusual rows of DATA with their p-values and the two features responsible.

    MODEL comes from `fit --outliers`, or from `fit`; in the latter case p-values compare rows with
    rows drawn from the model. The column `outlier` marks rows such that at most a share --rate of
    them is expected to be usual rows (false-discovery rate over DATA; `predict` in Python uses a
    threshold instead). If the data of `fit --outliers` contained outliers, use --reference trimmed.
    Rows used in `fit` have p-values that are too large.

    \b
    Example:
      roundtrip fit train.csv --outliers -o detector.rt
      roundtrip detect detector.rt new.csv --top 20 --explain 10 -o scores.csv
    """
    check_output(output, data)

    import pandas as pd

    from roundtrip import (
        Roundtrip,
        RoundtripClassifier,
        RoundtripDetector,
        RoundtripImputer,
        load,
    )
    from roundtrip.outliers.conformal import conformal_p_value, discovered
    from roundtrip.parameters import check_number

    check_number("--rate", rate, above=0, below=1)
    if contamination is not None:
        check_number("--contamination", contamination, above=0, below=1)
    detector = load(model, device=device)
    if isinstance(detector, RoundtripClassifier):
        raise ValueError(f"{model} holds a classifier: fit with --outliers, or without --context")
    if isinstance(detector, RoundtripImputer):
        detector = detector.estimator_
    if isinstance(detector, Roundtrip):
        detector = RoundtripDetector.from_density(detector.set_params(verbose=0 if quiet else 1))
    detector.set_params(verbose=0 if quiet else 1)
    if detector.estimator_ is not None:
        detector.estimator_.set_params(verbose=0 if quiet else 1)
    compared = detector.reference_scores(reference)  # raises before the scoring
    X = read_for(detector, data)
    scores = detector.score_samples(X)
    p_values = conformal_p_value(scores, compared)
    if contamination is None:
        named, rule = discovered(p_values, rate), f"false-discovery rate {rate:g}"
    else:
        named = scores.argsort(kind="stable").argsort() < round(contamination * len(scores))
        rule = f"a share of {contamination:g}"
    result = pd.DataFrame(
        {"score": scores, "p_value": p_values, "outlier": named},
        index=X.index if isinstance(X, pd.DataFrame) else None,
    )
    marked = int(result["outlier"].sum())
    if output is not None:
        write(result.reset_index(names="row"), output)
    lowest = result["score"].to_numpy().argsort(kind="stable")[: max(top, explain)]
    rows = X.iloc[lowest] if isinstance(X, pd.DataFrame) else X[lowest]
    explanation = detector.explain(rows)
    explained = explanation.to_frame().reset_index(drop=True)
    shown = result.iloc[lowest].reset_index(names="row").join(explained)
    show(shown[:top], total=marked, rule=rule)
    for row, sentence in zip(shown["row"][:explain], explanation.sentences(), strict=False):
        typer.echo(f"row {row}: {sentence}")
    if (
        not quiet
        and not marked
        and contamination is None
        and rate * (1 + len(compared)) < len(result)
    ):
        typer.echo(
            f"the smallest possible p-value, 1 / {1 + len(compared)}, is too large for single rows "
            f"among {len(result)} at --rate {rate:g}, which needs {math.ceil(len(result) / rate)} "
            "reference rows: fit on more rows, allow a higher --rate, or use the p-values directly",
            err=True,
        )
    if not quiet and reference is None and detector.n_trimmed_:
        typer.echo(
            f"{detector.n_trimmed_} row(s) of fit were trimmed as clear outliers: with --reference "
            "trimmed, p-values compare rows with data without outliers",
            err=True,
        )


def show(table: "pd.DataFrame", total: int, rule: str) -> None:
    """Print the most unusual rows as a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE)
    for heading in ("row", "score", "p-value", "outlier", "because of", "and"):
        shown.add_column(heading, justify="left" if heading in ("because of", "and") else "right")
    for _, row in table.iterrows():
        reasons = [
            f"{row[f'feature_{place}']} ({row[f'nats_{place}']:+.2f})"
            if f"feature_{place}" in row
            else ""
            for place in (1, 2)
        ]
        shown.add_row(
            Text(str(row["row"])),
            f"{row['score']:.2f}",
            f"{row['p_value']:.2g}",
            "yes" if row["outlier"] else "no",
            *map(Text, reasons),  # rich would interpret brackets in names
        )
    console = Console()
    console.print(shown)
    console.print(f"{total} row(s) marked as outliers, {rule}", highlight=False)
