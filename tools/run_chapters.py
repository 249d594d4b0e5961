"""Run chapters and store their outputs: `python tools/run_chapters.py [--all] [chapter ...]`.

A chapter is `book/NN_name.md` (what people edit) beside `book/NN_name.ipynb` (executed; what the
page shows and nbval compares). This tool turns the first into the second. Without arguments it runs
the chapters whose text differs from their notebook; with names (`01`, `01_ten_candidates`, or a
path) those; with `--all` every one, which is right after a change in `fairpg_lite` that moves a
number. A notebook file is written only when something in it changed. Before a chapter is run, the
code cells of its text are brought into the house format (book/ruff.toml).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT / "book", ROOT):  # the checkout's own fairpg_lite, installed or not
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import jupytext  # noqa: E402
import nbformat  # noqa: E402
from jupytext.compare import NotebookDifference, compare_notebooks  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError, CellTimeoutError  # noqa: E402

PATTERNS = ("[0-9][0-9]_*.md", "A[0-9]_*.md", "coursework/*.md")
SECONDS_PER_CELL = 600  # against hanging only, as nbval's limit in pyproject.toml
# What makes a run repeatable; conftest.py sets the same for nbval.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}",
}


def chapters(book: Path = ROOT / "book") -> list[Path]:
    """The text files of all chapters, in reading order."""
    return sorted(path for pattern in PATTERNS for path in book.glob(pattern))


def select(names: list[str], known: list[Path]) -> list[Path]:
    """The chapters that `names` mean: a number, a file name with or without suffix, or a path."""
    chosen = []
    for name in names:
        stem = Path(name).stem
        found = [p for p in known if p.stem == stem or p.stem.startswith(f"{stem}_")]
        if not found:
            listing = ", ".join(p.stem for p in known) or "none yet"
            raise SystemExit(f"run_chapters: no chapter called {name!r}; there are: {listing}.")
        chosen += found
    return chosen


def up_to_date(text: Path) -> bool:
    """Whether the notebook beside `text` has the same cells and was run from top to bottom."""
    notebook = text.with_suffix(".ipynb")
    if not notebook.exists():
        return False
    stored = nbformat.read(notebook, as_version=4)
    try:
        compare_notebooks(stored, jupytext.read(text), fmt="md:myst")
    except NotebookDifference:
        return False
    code = [c for c in stored.cells if c.cell_type == "code" and c.source.strip()]
    return [c.execution_count for c in code] == list(range(1, len(code) + 1))


def with_fixed_ids(notebook: nbformat.NotebookNode) -> None:
    """Cell ids from the cells' own text, so that inserting a cell leaves the others' ids alone."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        cell.id = f"{digest}-{seen[digest]}" if seen[digest] else digest
        seen[digest] += 1


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Remove what differs between runs or machines and no reader needs."""
    for key in ("widgets", "language_info"):
        notebook.metadata.pop(key, None)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if {"remove-output", "nbval-ignore-output"} <= set(cell.metadata.get("tags", [])):
            cell.outputs = []  # a live widget: nothing to show without its kernel
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = _small(data["image/png"])
            if "image/svg+xml" in data:
                from explorables.sliders import short_svg  # it brings PyTorch

                data["image/svg+xml"] = short_svg(data["image/svg+xml"])


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Text that a slow cell printed in pieces, as one output."""
    whole: list[nbformat.NotebookNode] = []
    for output in outputs:
        if (
            whole
            and output.output_type == whole[-1].output_type == "stream"
            and (output.name == whole[-1].name)
        ):
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def _small(png: str) -> str:
    return base64.b64encode(palette_png(base64.b64decode(png))).decode()


def palette_png(png: bytes, colours: int = 128) -> bytes:
    """The same picture with a palette and no text chunks: a third of the size, equal on each run.

    Matplotlib stamps its version into a PNG; without the stamp a chapter's file changes only when
    the picture does. 128 colours are more than a line or bar chart with smooth edges uses.
    """
    from fairpg_lite._extras import require  # it brings PyTorch

    image = require("PIL.Image", "plots")
    with image.open(io.BytesIO(png)) as picture:
        white = image.new("RGBA", picture.size, "white")
        flat = image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    small = flat.quantize(colours, method=image.Quantize.MEDIANCUT, dither=image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, format="PNG", optimize=True)
    return out.getvalue()


def format_code(text: Path) -> None:
    """Bring the code cells of the text into ruff's format, touching nothing else in the file."""
    notebook = jupytext.read(text)
    name = str(text.with_suffix(".ipynb"))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", name, "-"],
        input=nbformat.writes(notebook),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{text.stem}: left unformatted: {done.stderr.strip()}", file=sys.stderr)
        return
    content = before = text.read_text(encoding="utf-8")
    formatted = nbformat.reads(done.stdout, as_version=4)
    for old, new in zip(notebook.cells, formatted.cells, strict=True):
        if old.cell_type == "code" and old.source != new.source:
            content = content.replace(f"\n{old.source}\n```", f"\n{new.source}\n```")
    if content != before:
        text.write_text(content, encoding="utf-8")


def run(text: Path) -> str:
    """Execute a chapter; the JSON of its notebook."""
    notebook = jupytext.read(text)
    with_fixed_ids(notebook)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(text.parent)}},
    )
    client.execute()
    tidy(notebook)
    return nbformat.writes(notebook) + "\n"


def report_failure(text: Path, error: Exception) -> None:
    """Say which chapter and cell failed, and how, without the traceback's colour codes."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    print(f"\nFAILED {text.stem}\n{plain}", file=sys.stderr)


def main(arguments: list[str] | None = None, book: Path = ROOT / "book") -> int:
    parser = argparse.ArgumentParser(description="Run chapters and store their outputs.")
    parser.add_argument("names", nargs="*", help="chapters: 01, 01_ten_candidates or a path")
    parser.add_argument("--all", action="store_true", help="run every chapter")
    options = parser.parse_args(arguments)
    os.environ.update(ENVIRONMENT)
    known = chapters(book)
    chosen = select(options.names, known) if options.names else known
    failed = 0
    for text in chosen:
        if not (options.all or options.names) and up_to_date(text):
            print(f"{text.stem:<32} as stored")
            continue
        start = time.perf_counter()
        format_code(text)
        try:
            content = run(text)
        except (CellExecutionError, CellTimeoutError) as error:
            report_failure(text, error)
            failed += 1
            continue
        notebook = text.with_suffix(".ipynb")
        same = notebook.exists() and notebook.read_text(encoding="utf-8") == content
        if not same:
            notebook.write_text(content, encoding="utf-8")
        verdict = "unchanged" if same else "written"
        print(f"{text.stem:<32} {verdict:<10} {time.perf_counter() - start:5.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
