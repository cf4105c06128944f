"""Put the pages of results/ into the documents that show them.

    python docs/include.py            # after `roundtrip reproduce ...`

A document names a page in a pair of comments, ``<!-- begin: results/bias/bias.md -->`` and
``<!-- end -->``; what stands between them is replaced by the page without its title, with paths of
pictures as seen from docs/.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- begin: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def included(text: str) -> str:
    """A document with all its blocks brought up to date."""

    def block(match: re.Match[str]) -> str:
        page = ROOT / match[2]
        body = page.read_text().split("\n", 1)[1].strip()
        body = re.sub(r"\]\(([\w-]+\.png)\)", rf"](../{Path(match[2]).parent}/\1)", body)
        body = re.sub(r"^## ", "### ", body, flags=re.MULTILINE)
        return f"{match[1]}\n{body}\n\n{match[3]}"

    return BLOCK.sub(block, text)


def main() -> None:
    """Bring all documents up to date."""
    for document in Path(__file__).parent.glob("*.md"):
        text = document.read_text()
        if included(text) != text:
            document.write_text(included(text))
            print(f"{document.name} brought up to date")


if __name__ == "__main__":
    main()
