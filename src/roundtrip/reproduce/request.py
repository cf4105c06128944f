"""`Request`: which figure or table to compute, how, and where its files go."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundtrip.io.atomic import atomic_write
from roundtrip.parameters import check_choice, check_integer, check_number
from roundtrip.reproduce.methods import PAPER
from roundtrip.reproduce.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Request:
    """One figure or table to compute.

    Attributes
    ----------
    name : str
        Name of the figure or table.
    output : Path
        Folder of the results; each figure or table has a folder of its own in it.
    quick : bool
        Whether to use reduced settings, as a trial; results go to a folder of their own.
    methods : sequence of str or None
        Methods to compare; None for all of the figure or table.
    seeds : int or None
        Number of fits per method, with seeds 0, 1, ...; None for 3, or 1 if quick. Only tables
        have several.
    budget, paper_budget : float or None
        Seconds per fit, and per fit of the paper's preset; None for those of the figure or table.
    data_home : Path or None
        Folder with the data sets; None for ROUNDTRIP_DATA or the cache.
    download : bool
        Whether missing data sets may be downloaded.
    quiet : bool
        Whether to print nothing on stderr.
    """

    name: str
    output: Path = Path("results")
    quick: bool = False
    methods: Sequence[str] | None = None
    seeds: int | None = None
    budget: float | None = None
    paper_budget: float | None = None
    data_home: Path | None = None
    download: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.seeds is not None:
            check_integer("seeds", self.seeds, minimum=1)
        for name in ("budget", "paper_budget"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)

    @property
    def folder(self) -> Path:
        """Folder of the results of this request."""
        return self.output / (f"{self.name}-quick" if self.quick else self.name)

    def runs(self) -> Runs:
        """Stored results of single runs."""
        return Runs(self.folder / "runs.json")

    def refuse(self, *options: str) -> None:
        """Raise a `ValueError` if one of these options was given: they do not apply."""
        for option in options:
            if getattr(self, option) is not None:
                raise ValueError(f"{self.name} has no {option.replace('_', ' ')} to choose")

    def chosen(self, known: Sequence[str]) -> list[str]:
        """Methods asked for, in the order of `known`."""
        if self.methods is None:
            return list(known)
        for method in self.methods:
            check_choice("method", method, known)
        return [method for method in known if method in self.methods]

    def seconds(self, method: str, *, own: float, paper: float, quick: float) -> float:
        """Time limit of a fit of `method`: as asked for, or that of the figure."""
        asked = self.paper_budget if method == PAPER else self.budget
        if asked is not None:
            return asked
        return quick if self.quick else paper if method == PAPER else own

    def limits(self, *, own: float, paper: float, quick: float) -> str:
        """Time limits as a phrase."""
        each = {"own": own, "paper": paper, "quick": quick}
        text = f"at most {self.seconds('', **each):g} s a fit"
        if self.methods is not None and PAPER not in self.methods:
            return text
        return f"{text}, the paper's preset {self.seconds(PAPER, **each):g} s"

    def write_text(self, name: str, text: str) -> None:
        """Write a file into the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / name) as temporary:
            temporary.write_text(text)

    def write_figure(self, figure: "Figure", part: str = "", *, vector: bool = True) -> None:
        """Write a figure as PNG and, if `vector`, as SVG; `part` is added to the file's name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        from matplotlib import rc_context

        # Equal numbers give equal files: no date, and no random ids.
        with rc_context({"svg.hashsalt": self.name}):
            kinds: dict[str, dict[str, Any]] = {"png": {}}
            if vector:
                kinds["svg"] = {"Date": None}
            for suffix, metadata in kinds.items():
                with atomic_write(self.folder / f"{self.name}{part}.{suffix}") as temporary:
                    figure.savefig(temporary, dpi=150, metadata=metadata)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], "|---" * len(header) + "|", *text[1:]])
