"""``roundtrip detect``: the odd rows of a table, and why they are odd."""

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
    top: Annotated[int, typer.Option(min=1, help="How many rows to show and explain.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Write score and p-value of all rows: {TABLES}."),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Share of wrongly named rows allowed in the column `outlier`.")
    ] = 0.1,
    reference: Annotated[
        str | None,
        typer.Option(
            help="What p-values compare with: held-out, rows that `fit --outliers` did not train "
            "on; trimmed, these with a tail in place of outliers; or model, rows that the model "
            "draws."
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Show the oddest rows of DATA with their p-values and the two features responsible.

    MODEL is one of `fit --outliers`, or of `fit`: p-values are then by comparison with rows that
    the model generates itself. `outlier` marks rows so that at most a share --rate of them should
    be none (false-discovery rate over DATA; `predict` in Python has a threshold instead). If the
    rows of `fit --outliers` had outliers, too, compare with the others: --reference trimmed. Rows
    of `fit` itself are no new rows: their p-values are too large.

    \b
    Example:
      roundtrip fit train.csv --outliers -o detector.rt
      roundtrip detect detector.rt new.csv --top 20 -o scores.csv
    """
    import pandas as pd

    from roundtrip import Roundtrip, RoundtripClassifier, RoundtripDetector, load
    from roundtrip.outliers.conformal import conformal_p_value, discovered
    from roundtrip.parameters import check_number

    check_output(output, data)
    check_number("--rate", rate, above=0, below=1)
    detector = load(model, device=device)
    if isinstance(detector, RoundtripClassifier):
        raise ValueError(f"{model} holds a classifier: fit with --outliers, or without --context")
    if isinstance(detector, Roundtrip):
        detector = RoundtripDetector.from_density(detector.set_params(verbose=0 if quiet else 1))
    detector.set_params(verbose=0 if quiet else 1)
    detector.estimator_.set_params(verbose=0 if quiet else 1)
    compared = detector.reference_scores(reference)  # a wrong one is told now
    X = read_for(detector, data)
    scores = detector.score_samples(X)
    p_values = conformal_p_value(scores, compared)
    result = pd.DataFrame(
        {"score": scores, "p_value": p_values, "outlier": discovered(p_values, rate)},
        index=X.index if isinstance(X, pd.DataFrame) else None,
    )
    marked = int(result["outlier"].sum())
    if output is not None:
        write(result.reset_index(names="row"), output)
    oddest = result["score"].to_numpy().argsort(kind="stable")[:top]
    rows = X.iloc[oddest] if isinstance(X, pd.DataFrame) else X[oddest]
    explained = detector.explain(rows).to_frame()
    shown = result.iloc[oddest].reset_index(names="row")
    show(shown.join(explained.reset_index(drop=True)), total=marked, rate=rate)
    if not quiet and not marked and rate * (1 + len(compared)) < len(result):
        typer.echo(
            f"no p-value is below 1 / {1 + len(compared)}, which is too large for single rows "
            f"among {len(result)} at --rate {rate:g}: that takes a comparison with "
            f"{math.ceil(len(result) / rate)} rows, so fit on more, allow a higher --rate, or take "
            "the p-values by themselves",
            err=True,
        )
    if not quiet and reference is None and detector.n_trimmed_:
        typer.echo(
            f"{detector.n_trimmed_} row(s) of fit were clearly odd: if they were outliers, "
            "--reference trimmed compares with what the others suggest",
            err=True,
        )


def show(table: "pd.DataFrame", total: int, rate: float) -> None:
    """Print the oddest rows for people."""
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
            *map(Text, reasons),  # names may hold brackets, which mean something to rich
        )
    console = Console()
    console.print(shown)
    console.print(
        f"{total} row(s) marked as outliers, false-discovery rate {rate:g}", highlight=False
    )
