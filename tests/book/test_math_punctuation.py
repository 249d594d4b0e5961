"""Punctuation behind a formula stays on its line, and no sentence loses or gains a mark."""

import re

import pytest

from tools.check_chapters import ROOT

EXTENSIONS = ROOT / "book" / "_ext"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The $n$, the **bold**. Then $m$.", ["n,", "m."]),
        ("Twice **a**. And $b$. Then *c*. And $d$.", ["b.", "d."]),
        ("Between $x$ and ($y$), and a word $z$", ["y),"]),
        ("$a$", []),
    ],
)
def test_marks_stay_with_their_formula(tmp_path, text, kept):
    from sphinx.testing.util import SphinxTestApp

    folder = tmp_path / "book"
    folder.mkdir()
    settings = f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\n"
    settings += "extensions = ['myst_parser', 'sphinx.ext.mathjax', 'math_punctuation']\n"
    settings += "myst_enable_extensions = ['dollarmath']\n"
    (folder / "conf.py").write_text(settings)
    (folder / "index.md").write_text(f"# Page\n\n{text}\n")
    app = SphinxTestApp("html", srcdir=folder)
    app.build()
    html = (folder / "_build" / "html" / "index.html").read_text()
    assert app.warning.getvalue() == ""
    app.cleanup()
    body = re.search(r"</h1>\s*<p>(.*?)</p>", html, re.S)[1]
    together = re.findall(r'<span class="nowrap">(.*?</span>.*?)</span>', body)
    bare = [re.sub(r"<[^>]+>|\\[()]", "", pair) for pair in together]
    assert bare == kept
    assert re.sub(r"<[^>]+>|\\[()]", "", body) == re.sub(r"[$*]", "", text)
