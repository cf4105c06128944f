"""Saving what took long to compute, even if the place for it is full by then."""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from roundtrip.io.saved import SavedToFile


def saved(fitted: "SavedToFile", output: Path) -> Path:
    """Save a fitted object to a file, or to another place, and return where it is.

    If no place takes it and the user is there, the command waits until there is one.
    """
    while True:
        try:
            fitted.save(output)
            return output
        except OSError as error:
            problem = re.sub(r"^\[Errno \d+\] ", "", str(error))
        for place in _other_places(output):
            try:
                fitted.save(place)
            except OSError:
                continue
            typer.echo(f"warning: {problem}; the model is in {place} instead", err=True)
            return place
        if not sys.stdin.isatty():
            raise OSError(f"{problem}; no other folder takes the model either, so that it is lost")
        typer.prompt(
            f"{problem}\nMake room and press Enter to try again (Ctrl-C gives the model up)",
            default="",
            show_default=False,
            err=True,
        )


def _other_places(output: Path) -> Iterator[Path]:
    """Yield files in other folders that do not exist yet."""
    for folder in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        place = folder / output.name
        number = 1
        while place.exists():
            number += 1
            place = folder / f"{output.stem}-{number}{output.suffix}"
        yield place
