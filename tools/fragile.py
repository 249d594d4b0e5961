"""Printed numbers that rounding decides: `make fragile`, or `python -m tools.fragile`.

Every chapter is run again with its inputs and initial weights moved by one part in 10^12, and what
it prints is compared with what is stored. A number that moves would move on another processor too.
The tool finds them here, before a reader does. Figures are not compared, nor cells whose output
nbval leaves alone.

Moved are the numbers that a chapter writes down or draws (torch.tensor, torch.rand, torch.randn
called by the chapter itself), the features of every RankingDataset, and the initial weights of the
module's scorers, in the chapter's kernel and in the processes that it starts. Whole numbers stay:
they are labels, grades and counts. In float32, which has no twelve digits, the last bit is moved.
Equal numbers stay equal, because the move depends on the number alone; so a tie that a chapter
means remains one.

    python -m tools.fragile --chapters 04 11
"""

from __future__ import annotations

import argparse
import copy
import functools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import torch
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from torch import Tensor

from tools.run_chapters import ENVIRONMENT, ROOT, SECONDS_PER_CELL, chapters, select

NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
PICTURE = re.compile(r"data:image/[^\"')]+|<Figure [^>]*>|<[\w.]+ (?:object )?at 0x[0-9a-f]+>")
PART = 1e-12
#: What a kernel or process runs first. A chapter must not find more names than it makes.
MOVE_INPUTS = "import tools.fragile as _fragile\n_fragile.move_inputs()"


def moved(x: Tensor) -> Tensor:
    """`x` with every number moved by up to `PART` of itself, or by the last bit of its format."""
    if not torch.is_floating_point(x):
        return x
    part = max(PART, torch.finfo(x.dtype).eps)
    with torch.no_grad():
        way = torch.cos(1e3 * x.double())  # some up, some down, the same for the same number
        new = (x.double() * (1 + part * way)).to(x.dtype)
        return torch.where(x == x.round(), x, new).requires_grad_(x.requires_grad)


def _of_the_chapter(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`make`, whose result is moved if the chapter itself asked for it."""

    @functools.wraps(make)
    def wrapper(*args: Any, **kwargs: Any) -> Tensor:
        made = make(*args, **kwargs)
        return moved(made) if sys._getframe(1).f_globals.get("__name__") == "__main__" else made

    return wrapper


def move_inputs() -> None:
    """Wrap what is moved; a second time changes nothing."""
    if hasattr(torch.tensor, "__wrapped__"):
        return
    from fairpg_lite import LinearScorer, MLPScorer
    from fairpg_lite.data import RankingDataset

    for name in ("tensor", "rand", "randn"):
        setattr(torch, name, _of_the_chapter(getattr(torch, name)))

    def moves_features(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def wrapper(self: Any, features: Any, *args: Any, **kwargs: Any) -> None:
            if isinstance(features, Tensor):
                features = moved(features)
            init(self, features, *args, **kwargs)

        return wrapper

    def moves_weights(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            with torch.no_grad():
                for weights in self.parameters():
                    weights.copy_(moved(weights))

        return wrapper

    RankingDataset.__init__ = moves_features(RankingDataset.__init__)  # type: ignore[method-assign]
    for scorer in (LinearScorer, MLPScorer):
        scorer.__init__ = moves_weights(scorer.__init__)  # type: ignore[method-assign]


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
    moving.cells.insert(0, nbformat.v4.new_code_cell(MOVE_INPUTS))
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
        Path(folder, "sitecustomize.py").write_text(MOVE_INPUTS)
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
