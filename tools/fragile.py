"""Printed numbers that rounding decides: `make fragile`, or `python -m tools.fragile`.

Every chapter is run again with its inputs and initial weights moved by one part in 10^12
(tools/nudge.py says which), and what it prints is compared with what is stored. A number that moves
would move on another processor too. The tool finds them here, before a reader does. Figures are not
compared, nor cells whose output nbval leaves alone. Processes that a chapter starts are moved too.

    python -m tools.fragile --chapters 04 11
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from tools.run_chapters import ENVIRONMENT, ROOT, SECONDS_PER_CELL, chapters, select

NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
PICTURE = re.compile(r"data:image/[^\"')]+|<Figure [^>]*>|<[\w.]+ (?:object )?at 0x[0-9a-f]+>")
NUDGE = "import tools.nudge as _nudge\n_nudge.install()"


@dataclass
class Found:
    """What one chapter prints, and what of it moved."""

    numbers: int = 0
    moved: list[str] = field(default_factory=list)  # "cell 8: 0.66 became 0.65"
    raised: list[str] = field(default_factory=list)  # cells that no longer run to their end


def printed(cell: nbformat.NotebookNode) -> str:
    """The text of a cell's outputs, without pictures."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        text = output.get("text") or data.get("text/html") or data.get("text/plain") or ""
        parts.append(PICTURE.sub("", text))
    # A slow cell prints in several pieces, and not always in the same ones.
    return "".join(parts)


def compare(stored: nbformat.NotebookNode, run: nbformat.NotebookNode) -> Found:
    """The two notebooks have the same cells; numbers are counted as nbval numbers cells, from 0."""
    found = Found()
    code = [[c for c in book.cells if c.cell_type == "code"] for book in (stored, run)]
    for number, (before, after) in enumerate(zip(*code, strict=True)):
        failure = next((o for o in after.outputs if o.output_type == "error"), None)
        expected = {"raises-exception", "nbval-raises-exception"} & set(
            before.metadata.get("tags", [])
        )
        if failure and not expected:
            found.raised.append(f"cell {number}: {failure.ename}: {failure.evalue[:80]}")
            continue
        if "nbval-ignore-output" in before.metadata.get("tags", []):
            continue
        texts = printed(before), printed(after)
        old, new = (NUMBER.findall(text) for text in texts)
        found.numbers += len(old)
        if len(old) != len(new):
            found.moved.append(f"cell {number}: {len(old)} numbers became {len(new)}")
        elif old == new and NUMBER.sub("#", texts[0]) != NUMBER.sub("#", texts[1]):
            found.moved.append(f"cell {number}: other words")
        found.moved += [
            f"cell {number}: {a} became {b}"
            for a, b in zip(old, new, strict=False)
            if len(old) == len(new) and a != b
        ]
    return found


def examine(notebook: Path) -> Found:
    """Run one stored chapter with moved inputs and compare."""
    stored = nbformat.read(notebook, as_version=4)
    moving = copy.deepcopy(stored)
    moving.cells.insert(0, nbformat.v4.new_code_cell(NUDGE))
    for cell in moving.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    client = NotebookClient(
        moving,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        allow_errors=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(notebook.parent)}},
    )
    with tempfile.TemporaryDirectory() as folder:  # Python runs this file of it whenever it starts
        Path(folder, "sitecustomize.py").write_text(NUDGE)
        path = os.pathsep.join([folder, str(ROOT), os.environ.get("PYTHONPATH", "")])
        client.execute(env={**os.environ, "PYTHONPATH": path})
    first = moving.cells.pop(0)
    if first.outputs:
        raise RuntimeError(f"fragile: the inputs could not be moved: {first.outputs}")
    return compare(stored, moving)


def main(arguments: list[str] | None = None, book: Path = ROOT / "book") -> int:
    parser = argparse.ArgumentParser(description="Which printed numbers does rounding decide?")
    parser.add_argument("--chapters", nargs="+", metavar="NN", help="only these")
    options = parser.parse_args(arguments)
    os.environ.update(ENVIRONMENT)
    known = [t for t in chapters(book) if t.stem != "assignment"]  # its blanks compute nothing
    texts = select(options.chapters, known) if options.chapters else known
    numbers = moved = raised = 0
    for text in texts:
        start = time.monotonic()
        try:
            found = examine(text.with_suffix(".ipynb"))
        except (CellTimeoutError, DeadKernelError) as error:
            found = Found(raised=[str(error).splitlines()[0]])
        numbers += found.numbers
        moved += len(found.moved)
        raised += len(found.raised)
        counts = f"{found.numbers:>5} numbers {len(found.moved):>4} moved"
        print(f"{text.stem:<32}{counts}{time.monotonic() - start:>6.0f} s", flush=True)
        for line in [*found.moved, *found.raised]:
            print(f"  {line}", flush=True)
    print(f"{numbers} printed numbers, {moved} moved; {raised} cells failed a check of their own.")
    return 1 if moved or raised else 0


if __name__ == "__main__":
    sys.exit(main())
