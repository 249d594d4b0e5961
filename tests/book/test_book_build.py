"""`make book` builds without a warning, and the pages hold what they should."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from tools.check_chapters import ROOT, UNPUBLISHED, files_in, problems
from tools.run_chapters import chapters, main

pytestmark = pytest.mark.build

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = [p for p in (ROOT / "book").rglob("*.md") if not p.name.startswith("_")]


def extension():
    spec = importlib.util.spec_from_file_location("offline", ROOT / "book" / "_ext" / "offline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_make_book_builds_every_page(built_book):
    missing = {name for name in files_in(TOC) if not (built_book / f"{name}.html").exists()}
    assert not missing
    assert (built_book / "index.html").exists()


def test_a_page_loads_what_it_uses(built_book):
    """No script with all icons of the world, but the icons shown; no MathJax at all."""
    icons = (built_book / "_static" / "icons.css").read_text(encoding="utf-8")
    for path in [built_book / "search.html", *built_book.glob("book/**/*.html")]:
        page = path.read_text(encoding="utf-8")
        assert "fontawesome.js" not in page, path
        assert "tex-svg-full.js" not in page, path
        shown = re.findall(r'<(?:i|span) class="[^"]*\bfa[bs]? (fa-[a-z-]+)', page)
        shown += re.findall(r'<(?:i|span) class="[^"]*\bfa-(?:solid|brands) (fa-[a-z-]+)', page)
        assert not [name for name in shown if f".{name} " not in icons], path


def test_formulas_were_drawn_when_the_book_was_built(built_book):
    page = (built_book / "book" / "notation.html").read_text()
    formulas = re.findall(r'class="math [^>]*>', page)
    assert len(formulas) > 50
    assert all("data-tex=" in formula for formula in formulas)
    assert page.count("<mjx-container") == len(formulas)
    stored = set(re.findall(r'<path id="([^"]+)"', page))
    assert set(re.findall(r'<use href="#([^"]+)"', page)) <= stored
    assert (built_book / "_static" / "formulas.css").stat().st_size > 500


def test_figures_have_their_words(built_book):
    page = (built_book / "book" / "01_ten_candidates.html").read_text()
    pictures = re.findall(r'<img\b[^>]*src="(?:\.\./_images|data:)[^>]*>', page)
    drawings = re.findall(r'<div class="drawn [^>]*>', page)
    assert drawings
    assert all(re.search(r'alt="[^"]{20,}"', image) for image in pictures)
    assert all(re.search(r'role="img" aria-label="[^"]{20,}"', one) for one in drawings)


def test_solutions_are_folded_with_their_code_inside(built_book):
    page = (built_book / "book" / "01_ten_candidates.html").read_text()
    opened = [m.start() for m in re.finditer(r'<div class="solution dropdown admonition"', page)]
    assert len(opened) >= 3
    for start, stop in zip(
        opened, [*opened[1:], page.index('id="what-the-paper-says')], strict=True
    ):
        assert 'class="cell' in page[start:stop]


def test_repository_links_only_where_an_address_is_known(built_book):
    page = (built_book / "book" / "01_ten_candidates.html").read_text()
    address = extension().repository()
    assert ("mybinder.org" in page) == (address is not None)
    assert ("colab.research" in page) == (address or "").startswith("https://github.com/")
    assert ("source-repository-button" in page) == (address is not None)


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/owner/name.git", "https://github.com/owner/name"),
        ("https://token@github.com/owner/name", "https://github.com/owner/name"),
        ("git@gitlab.com:owner/name.git\n", "https://gitlab.com/owner/name"),
        ("ssh://git@github.com/owner/na.me", "https://github.com/owner/na.me"),
        ("", None),
        ("../elsewhere", None),
        ("file:///srv/git/name.git", None),
        ("https://git.example.org/owner/name", None),
        ("https://example.org/github.com/owner/name", None),
    ],
)
def test_which_addresses_are_known(remote, address, monkeypatch):
    module = extension()
    assert module.web_address(remote) == address
    monkeypatch.setenv("FAIRPG_REPOSITORY_URL", remote)
    assert module.repository() == address


@pytest.fixture
def project(tmp_path):
    """A small book with the project's own settings: the landing page and three more."""
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    book = tmp_path / "book"
    shutil.copytree(ROOT / "book" / "_ext", book / "_ext", ignore=shutil.ignore_patterns("__py*"))
    for name in ("_static", "_templates", "explorables"):
        shutil.copytree(ROOT / "book" / name, book / name)
    shutil.copy(ROOT / "book" / "references.bib", book)
    (book / "notation.md").write_text("# Notation\n\n$$\n\\E[x]\n$$ (eq-mean)\n")
    (book / "glossary.md").write_text(
        "# Glossary\n\n```{glossary}\nexposure\n    Attention, see {eq}`eq-mean`.\n```\n"
    )
    (book / "intro.md").write_text(
        "# Start\n\nSee {doc}`notation`, {term}`exposure` and {cite:p}`singh2019policy`.\n"
    )
    (book / "bibliography.md").write_text("# Bibliography\n\n```{bibliography}\n```\n")
    files = "\n".join(
        f"      - file: book/{name}" for name in ("notation", "glossary", "bibliography")
    )
    toc = f"format: jb-book\nroot: book/intro\nparts:\n  - caption: All\n    chapters:\n{files}\n"
    (tmp_path / "_toc.yml").write_text(toc)
    return tmp_path


SOURCES = (ROOT, ROOT / "book", ROOT / "book" / "coursework")


def build(project, **environment):
    program = Path(sys.executable).parent / "jupyter-book"
    return subprocess.run(
        [program, "build", str(project), "-W", "-n", "--keep-going"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), **environment},
    )


def add_chapter(project):
    """A chapter of two cells."""
    cells = [nbformat.v4.new_markdown_cell("# Ten candidates"), nbformat.v4.new_code_cell("1 + 1")]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.write(notebook, project / "book" / "01_ten_candidates.ipynb")
    with (project / "_toc.yml").open("a") as toc:
        toc.write("  - numbered: true\n    chapters:\n      - file: book/01_ten_candidates\n")
    with (project / "book" / "intro.md").open("a") as page:
        page.write("\nAnd {chapter}`chapter 1`.\n")


def test_a_clean_small_book_builds_with_links_to_a_known_repository(project):
    add_chapter(project)
    done = build(project, FAIRPG_REPOSITORY_URL="git@github.com:owner/name.git")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    html = project / "_build" / "html"
    page = (html / "book" / "01_ten_candidates.html").read_text()
    assert (
        "mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/book/01_ten_candidates.ipynb" in page
    )
    assert 'href="https://github.com/owner/name"' in page
    colab = "colab.research.google.com/github/owner/name/blob/main/book/01_ten_candidates.ipynb"
    assert f'href="https://{colab}"' in page
    other = (html / "book" / "notation.html").read_text()  # nothing to run there
    assert "mybinder.org" not in other
    assert "colab.research" not in other


def test_a_downloaded_chapter_was_run_and_reads_in_plain_jupyter(built_book):
    """No role or directive of MyST, every macro defined, the chapter's own code and outputs."""
    texts = [text for text in chapters() if text.parent.name == "book"]
    macros = CONFIG["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    for path in (text.with_suffix(".ipynb") for text in texts):
        page = (built_book / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert f'href="../_sources/book/{path.name}"' in page
        copy = built_book / "_sources" / "book" / path.name
        notebook = nbformat.read(copy, as_version=4)
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        left = re.findall(r"\{[a-z:-]+\}`|^`{3,}\{.*|^:{3,}|^:[\w-]+:.*|^\([\w-]+\)=", text, re.M)
        assert left == [], copy.name
        for name in macros:
            assert f"\\newcommand{{\\{name}}}" in notebook.cells[0].source, copy.name
        cells = [
            [(c.source, c.outputs) for c in nbformat.read(p, 4).cells if c.cell_type == "code"]
            for p in (copy, path)
        ]
        assert cells[0] == cells[1], copy.name


def test_a_repository_elsewhere_has_no_colab_button(project):
    add_chapter(project)
    done = build(project, FAIRPG_REPOSITORY_URL="https://gitlab.com/owner/name.git")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    page = (project / "_build" / "html" / "book" / "01_ten_candidates.html").read_text()
    assert "mybinder.org/v2/gl/owner%2Fname/main?urlpath=lab/tree/book/01_ten" in page
    assert "colab.research" not in page


BROKEN = [
    ("See {doc}`nowhere`.", "unknown document"),
    ("See {eq}`eq-nowhere`.", "eq-nowhere"),
    ("See {py:func}`~fairpg_lite.metrics.nowhere`.", "not found: fairpg_lite.metrics.nowhere"),
    ("See {py:func}`group_dispartiy`.", "not found: group_dispartiy"),
    ("See {cite:p}`nobody1999`.", "could not find bibtex key"),
    ("See {term}`unheard of`.", "term not in glossary"),
    ("See {chapter}`chapter 1`.", "'chapter 1' is none of the chapters of _toc.yml"),
]


def test_broken_references_fail_the_build(project):
    """All in one build, which goes on after the first and names each."""
    page = project / "book" / "intro.md"
    page.write_text("\n\n".join([page.read_text(), *(plant for plant, _ in BROKEN)]) + "\n")
    done = build(project)
    assert done.returncode != 0
    for _, complaint in BROKEN:
        assert complaint in done.stdout + done.stderr


def test_macros_are_defined_once_and_documented():
    macros = CONFIG["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    notation = (ROOT / "book" / "notation.md").read_text()
    assert not [name for name in macros if not re.search(rf"`\\{name}\b", notation)]
    defining = re.compile(r"\\(?:re)?newcommand|\\def\b|\\DeclareMathOperator")
    assert not [page.name for page in PAGES if defining.search(page.read_text())]


def test_every_page_in_the_contents_exists_and_the_reverse():
    listed = files_in(TOC)
    here = {p.relative_to(ROOT).with_suffix("").as_posix() for p in PAGES}
    assert listed == here - UNPUBLISHED


def test_the_template_keeps_the_rules_it_teaches(tmp_path):
    """Run as a chapter, the template breaks no rule: whoever copies it begins with a chapter."""
    (tmp_path / "book").mkdir()
    text = tmp_path / "book" / "07_template.md"
    shutil.copy(ROOT / "book" / "_template.md", text)
    (tmp_path / "_toc.yml").write_text("root: book/07_template\n")
    before = text.read_text()
    assert main([], tmp_path / "book") == 0
    assert text.read_text() == before  # in the house format already
    assert problems(text, tmp_path) == []


def test_pages_name_no_folder_of_the_machine_that_built_them(built_book):
    home = str(ROOT)
    named = [p.name for p in built_book.rglob("*.html") if home in p.read_text()]
    assert not named
    assert Path(home).is_absolute()
