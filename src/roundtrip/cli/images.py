"""``roundtrip generate``: new images of each class."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from roundtrip.cli.app import (
    TABLES,
    Device,
    ModelFile,
    Quiet,
    Seed,
    app,
    check_output,
    load_density,
    write,
)
from roundtrip.io.atomic import atomic_write, check_writable


@app.command()
def generate(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Picture to write: .png, .svg, .pdf.")
    ],
    per_class: Annotated[int, typer.Option(min=1, help="Number of images per class.")] = 25,
    sort: Annotated[
        Literal["likelihood", "none"], typer.Option(help="Most likely first, or as drawn.")
    ] = "likelihood",
    table: Annotated[
        Path | None, typer.Option(help=f"Also write label and log density per image: {TABLES}.")
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
    check_writable(output)
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{output}: the name of a picture ends in .png, .svg or .pdf")
    check_output(table)

    from roundtrip.plots import image_grid
    from roundtrip.reproduce.generation import generate_images

    estimator = load_density(model, device)
    estimator.set_params(verbose=0 if quiet else 1)
    result = generate_images(estimator, per_class, sort=sort, random_state=seed)
    layout = estimator.schema_.images
    assert layout is not None
    images = layout.flatten(result.images).reshape(-1, *layout.shape)
    captions = [f"{value:.0f}" for value in result.density.log_density]
    rows = [str(label) for label in result.labels[::per_class]]
    figure = image_grid(images, captions, rows)
    with atomic_write(output) as temporary:
        figure.savefig(temporary, dpi=200)
    if table is not None:
        write(result.to_frame(), table)
