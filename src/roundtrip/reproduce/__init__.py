"""Figures and tables of the paper, computed again and shown beside the paper's own."""

from collections.abc import Callable
from importlib.util import find_spec

from roundtrip.io.atomic import check_writable
from roundtrip.parameters import check_choice
from roundtrip.reproduce.bias import bias
from roundtrip.reproduce.fig2 import fig2
from roundtrip.reproduce.fig3 import fig3
from roundtrip.reproduce.fig_s1 import fig_s1
from roundtrip.reproduce.fig_s2 import fig_s2
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.table1 import table1
from roundtrip.reproduce.table2 import table2

EXPERIMENTS: dict[str, Callable[[Request], str]] = {
    "fig2": fig2,
    "fig3": fig3,
    "figS1": fig_s1,
    "figS2": fig_s2,
    "table1": table1,
    "table2": table2,
    "bias": bias,
}

__all__ = ["EXPERIMENTS", "Request", "reproduce"]


def reproduce(request: Request) -> str:
    """Compute a figure or table and write it to the request's folder.

    Parameters
    ----------
    request : Request
        What to compute.

    Returns
    -------
    str
        The page in Markdown.
    """
    check_choice("name", request.name, list(EXPERIMENTS))
    needed = {"matplotlib": "plots", "zuko": "baselines"}
    if request.name == "table2":
        needed["pyod"] = "pyod"
    for package, extra in needed.items():
        if find_spec(package) is None:  # raises before an hour of fitting
            raise ImportError(f"{package} is missing: pip install 'roundtrip[{extra}]'")
    request.folder.mkdir(parents=True, exist_ok=True)
    check_writable(request.folder / "runs.json")
    return EXPERIMENTS[request.name](request)
