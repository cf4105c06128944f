"""The command line: ``roundtrip fit``, ``score``, ``sample`` and so on, one module per subject."""

import sys

from roundtrip.cli import images, modelling, outliers, paper, questions, scoring
from roundtrip.cli.app import app

__all__ = ["app", "images", "main", "modelling", "outliers", "paper", "questions", "scoring"]


def main() -> None:
    """Run the command line."""
    app(sys.argv[1:] or ["--help"])
