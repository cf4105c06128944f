"""Python blocks of Markdown documents, run as a reader would run them."""

import doctest
import re
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Every python block with the number of its first line."""
    text = page.read_text()
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in BLOCK.finditer(text)]


def run_blocks(page: Path, names: dict[str, Any] | None = None, **replaced: str) -> dict[str, Any]:
    """Run all python blocks of a page one after the other; gives the names they leave behind.

    Blocks with prompts are doctests. In other blocks each key of `replaced` becomes its value.
    """
    names = {"__name__": page.stem} if names is None else names
    for line, block in python_blocks(page):
        if block.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            names |= test.globs
        else:
            for old, new in replaced.items():
                block = block.replace(old, new)
            # Empty lines in front, so that errors name the line of the page.
            exec(compile("\n" * line + block, str(page), "exec"), names)
    return names
