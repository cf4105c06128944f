"""``roundtrip reproduce``: figures and tables of the paper."""

from pathlib import Path
from typing import Annotated

import typer

from roundtrip.cli.app import Quiet, app


@app.command()
def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="fig2, fig3, figS1, figS2, table1, table2, bias.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Reduced settings, at most 3 minutes.")
    ] = False,
    methods: Annotated[
        str | None, typer.Option(help="Only these methods: names separated by commas.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Fits per method (tables; 3).")] = None,
    budget: Annotated[float | None, typer.Option(help="Seconds per fit.")] = None,
    paper_budget: Annotated[
        float | None, typer.Option(help="Seconds per fit of the paper's preset.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the data sets (or set ROUNDTRIP_DATA).")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download missing data sets (gigabytes).")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "results"
    ),
    quiet: Quiet = False,
) -> None:
    """Compute a figure or table of the paper and show it beside the paper's numbers.

    Stored results are not computed again: an interrupted run resumes where it stopped.

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
