"""Find what a built page would load from the web, and files it asks for that are not there.

Also says when the book has grown too large to be sent by mail or opened over a slow line.
`python tools/check_html.py [folder]` prints one line per finding and exits 1 if there is one. Links
that a reader may follow are not loads; scripts, styles, fonts, pictures and frames are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that make a browser fetch something as soon as the page opens.
LOADS = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
}
# A <link> of these kinds only names another page.
NAMES = {"canonical", "next", "prev", "search", "index", "author", "license", "help", "alternate"}
CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]")
MEGABYTE = 10**6
LIMIT = 25 * MEGABYTE  # of the whole folder, MathJax (2) and the theme (8) included
# In inline scripts: an address handed to something that loads it.
SCRIPT = re.compile(
    r"(?:import\s*\(?|from|src\s*=|href\s*=|fetch\(|require\w*\(|_URL\s*=)"
    r"\s*['\"`]((?:https?:)?//[^'\"`]+)"
)


class Page(HTMLParser):
    """Collects the addresses that one page loads, each with the line it stands on."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[tuple[int, str]] = []
        self.inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inside = tag if tag in ("script", "style") else None
        kinds = set(given.get("rel", "").lower().split())
        if tag == "link" and not kinds <= NAMES:
            self.add(given.get("href", ""))
        for name in LOADS.get(tag, ()):
            value = given.get(name, "")
            if name == "srcset":  # "one.png 1x, two.png 2x"
                for part in value.split(","):
                    self.add(part.strip().split(" ")[0])
            else:
                self.add(value)
        for address in css_loads(given.get("style", "")):
            self.add(address)

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            for address in css_loads(data):
                self.add(address)
        elif self.inside == "script":
            for address in SCRIPT.findall(data):
                self.add(address)

    def add(self, address: str) -> None:
        if address and not address.startswith(("data:", "#")):
            self.loads.append((self.getpos()[0], address))


def css_loads(text: str) -> list[str]:
    """Addresses that a style sheet loads."""
    return [first or second for first, second in CSS.findall(text)]


def problem(file: Path, address: str) -> str | None:
    """What is wrong with loading `address` from `file`, or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return f"loads {address} from the web"
    if not (file.parent / unquote(parts.path)).exists():
        return f"loads {address}, which is not there"
    return None


def problems(folder: Path) -> Iterator[str]:
    """One sentence per finding in the HTML and CSS files under `folder`."""
    files = sorted(p for kind in ("*.html", "*.css") for p in folder.rglob(kind))
    if not any(p.suffix == ".html" for p in files):
        yield f"{folder}: no page there; build the book first (`make book`)"
    for file in files:
        if "webpack-macros" in file.name:  # the theme's templates, not pages
            continue
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".html":
            page = Page()
            page.feed(text)
            loads = page.loads
        else:
            loads = [
                (text[: m.start()].count("\n") + 1, m[1] or m[2])
                for m in CSS.finditer(text)
                if not (m[1] or m[2]).startswith(("data:", "#"))
            ]
        for line, address in loads:
            found = problem(file, address)
            if found:
                yield f"{file.relative_to(folder)}:{line} {found}"


def sizes(folder: Path) -> dict[str, int]:
    """The bytes of every file under `folder`, the largest first."""
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    pairs = [(name, file.stat().st_size) for name, file in files.items()]
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def too_large(folder: Path, limit: int = LIMIT) -> Iterator[str]:
    """One sentence if the files under `folder` take more than `limit` bytes, naming the largest."""
    found = sizes(folder)
    total = sum(found.values())
    if total > limit:
        largest = ", ".join(f"{name} ({b / MEGABYTE:.1f})" for name, b in list(found.items())[:5])
        yield (
            f"{folder}: {total / MEGABYTE:.1f} MB, more than {limit / MEGABYTE:g} MB; "
            f"the largest files (in MB): {largest}"
        )


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "_build" / "html"
    found = [*problems(folder), *too_large(folder)]
    total = sum(sizes(folder).values())
    good = f"{folder}: every page loads only its own files; {total / MEGABYTE:.1f} MB"
    print("\n".join(found) or good)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
