"""Find links between built pages that lead nowhere: a missing file, or a missing place in it.

`python tools/check_links.py [folder]` prints one line per finding and exits 1 if there is one.
Addresses on the web are not followed: the book must be checkable without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Anchors(HTMLParser):
    """The links of one page, each with its line, and the places that a link may name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[int, str]] = []
        self.places: set[str] = {"", "top"}  # both mean the top of any page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.add(given.get("id", ""))
        if tag == "a":
            self.places.add(given.get("name", ""))
            if "href" in given:
                self.links.append((self.getpos()[0], given["href"]))


def read_pages(folder: Path) -> dict[Path, Anchors]:
    """Every page under `folder`, parsed; the theme's templates are no pages."""
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        if "webpack-macros" not in file.name:
            pages[file.resolve()] = anchors = Anchors()
            anchors.feed(file.read_text(encoding="utf-8"))
    return pages


def problem(file: Path, address: str, pages: dict[Path, Anchors]) -> str | None:
    """What is wrong with a link to `address` in `file`, or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.is_file():
        return f"links to {address}, which is not there"
    if target in pages and unquote(parts.fragment) not in pages[target].places:
        return f"links to {address}: {target.name} has no place #{parts.fragment}"
    return None


def internal_links(pages: dict[Path, Anchors]) -> int:
    """How many links stay inside the book."""
    parts = [urlsplit(href) for anchors in pages.values() for _, href in anchors.links]
    return sum(not (part.scheme or part.netloc) for part in parts)


def problems(folder: Path) -> Iterator[str]:
    """One sentence per broken link in the pages under `folder`."""
    pages = read_pages(folder)
    if not pages:
        yield f"{folder}: no page there; build the book first (`make book`)"
    for file, anchors in pages.items():
        for line, address in anchors.links:
            found = problem(file, address, pages)
            if found:
                yield f"{file.relative_to(folder.resolve())}:{line} {found}"


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "_build" / "html"
    found = list(problems(folder))
    count = internal_links(read_pages(folder))
    print(
        "\n".join(found) if found else f"{folder}: all {count} links between pages lead somewhere"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
