"""What a reader asks for, and where the answer goes."""

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
    name : of the figure or table.
    output : folder for results; each figure or table has a folder of its own in it.
    quick : reduced settings, to see it work; results go to a folder of their own.
    methods : which to compare; None: all of the figure or table.
    seeds : how many times each is fitted, with seeds 0, 1, ...; None: 3 for tables, 1 if quick.
        Figures are of one seed.
    budget : seconds a fit; None: the figure's own.
    paper_budget : the same for the paper's preset.
    data_home : folder with the data sets; None: ROUNDTRIP_DATA, the cache or a download.
    download : whether data sets that are not there may be downloaded.
    quiet : tell nothing on stderr.
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
        """Where the results of this request go."""
        return self.output / (f"{self.name}-quick" if self.quick else self.name)

    def runs(self) -> Runs:
        """The single results that are known."""
        return Runs(self.folder / "runs.json")

    def refuse(self, *options: str) -> None:
        """Raise a `ValueError` if one of these options was given: this figure has no use for it."""
        for option in options:
            if getattr(self, option) is not None:
                raise ValueError(f"{self.name} has no {option.replace('_', ' ')} to choose")

    def chosen(self, known: Sequence[str]) -> list[str]:
        """The methods that were asked for, in the figure's own order."""
        if self.methods is None:
            return list(known)
        for method in self.methods:
            check_choice("method", method, known)
        return [method for method in known if method in self.methods]

    def seconds(self, method: str, *, own: float, paper: float, quick: float) -> float:
        """How long a fit of `method` may take: as asked for, or the figure's own."""
        asked = self.paper_budget if method == PAPER else self.budget
        if asked is not None:
            return asked
        return quick if self.quick else paper if method == PAPER else own

    def limits(self, *, own: float, paper: float, quick: float) -> str:
        """`seconds` for people."""
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
        """Write a picture as PNG and, if it is not made of pixels, as SVG, named after its part."""
        self.folder.mkdir(parents=True, exist_ok=True)
        from matplotlib import rc_context

        # The same numbers give the same file: no date, and ids that are not random.
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
