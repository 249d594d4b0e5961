"""Sphinx extension: a page loads what it uses.

Sphinx puts MathJax (2.2 MB) on the first page too, and the theme on every page a script with all of
Font Awesome's icons (1.5 MB). Here MathJax comes with formulas only, and the few icons that the
pages show are taken out of that script into a small style sheet.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme
from sphinx.application import Sphinx

USED = re.compile(
    r'<(?:i|span) class="(?:theme-switch )?(?:fa-solid|fa-brands|fas|fab) (fa-[a-z-]+)'
)
LOADED = re.compile(r"<(?:link|script)[^>]*scripts/fontawesome\.js[^>]*>(?:</script>)?\n?")
LOOK = """\
:is(i, span)[class*="fa-"]::before {
  background: currentcolor;
  content: "";
  display: inline-block;
  height: 1em;
  mask: var(--icon) center / contain no-repeat;
  vertical-align: -0.125em;
  width: 1em;
}
.fa-lg { font-size: 1.25em; }
"""


def drawing(script: str, name: str) -> str:
    """One icon of Font Awesome's script, as SVG; its solid form is the last of its name.

    >>> drawing('a:[8,9,[],"f0","M0 0"],b:[1,2,["c"],"f1","M1 1"]', "c")
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 2"><path d="M1 1"/></svg>'
    """
    key = rf'"?{re.escape(name)}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"'
    alias = rf'\[(\d+),(\d+),\[[^\]]*"{re.escape(name)}"[^\]]*\],"[0-9a-f]+","([^"]+)"'
    found = re.findall(rf"[{{,]{key}", script) or re.findall(alias, script)
    if not found:
        raise LookupError(f"lighter.py: the theme's script has no icon {name!r}.")
    width, height, path = found[-1]
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    return f'<svg {box}><path d="{path}"/></svg>'


def keep_used_icons(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    used: set[str] = set()
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        used.update(USED.findall(text))
        page.write_text(LOADED.sub("", text), encoding="utf-8")
    # Not the built copy: a second build finds that one gone.
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    source = (theme / "scripts" / "fontawesome.js").read_text(encoding="utf-8")
    icons = [
        f'.{name} {{ --icon: url("data:image/svg+xml,{quote(drawing(source, name[3:]))}"); }}\n'
        for name in sorted(used)
    ]
    (out / "_static" / "icons.css").write_text(LOOK + "".join(icons), encoding="utf-8")
    for left in (out / "_static" / "scripts").glob("fontawesome.js*"):
        left.unlink()


def no_formulas(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Take MathJax from a page without formulas: Sphinx gives it to the first page of all too."""
    if 'class="math' not in context.get("body", ""):
        context["script_files"] = [x for x in context["script_files"] if not _of_mathjax(x)]


def _of_mathjax(script: object) -> bool:
    """The program, or the inline settings that wait for it."""
    settings = getattr(script, "attributes", {}).get("body") or ""
    program = str(getattr(script, "filename", script))
    return "mathjax" in program or "window.MathJax" in settings


def setup(app: Sphinx) -> dict:
    app.add_css_file("icons.css")
    app.connect("html-page-context", no_formulas, priority=900)  # after Sphinx has added it
    app.connect("build-finished", keep_used_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
