"""How long does a reader wait, from starting a kernel to a chapter's first result and to its last?

python -m benchmarks.first_result

Run it in an environment made from Binder's pins (``binder/environment.yml``) to see what Binder's
readers see once their machine is up.
"""

import subprocess
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from benchmarks import _timing

COMMAND = "python -m benchmarks.first_result"
BOOK = Path(__file__).parent.parent / "book"


def read_through(path: Path) -> dict[str, float]:
    """Seconds until the kernel answers, the first cell has an output, the last cell has run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}})
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    with client.setup_kernel():
        seconds["kernel"] = time.perf_counter() - start
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            cell.outputs = []
            client.execute_cell(cell, index)
            if cell.outputs:
                seconds.setdefault("first", time.perf_counter() - start)
        seconds["last"] = time.perf_counter() - start
    return seconds


def main() -> None:
    """Print, as multiples of importing PyTorch in a fresh interpreter, and store."""
    yardstick = [sys.executable, "-c", "import torch"]
    torch = _timing.interleaved({"torch": lambda: subprocess.run(yardstick, check=True)}, 3)
    chapters = {}
    for path in sorted(BOOK.glob("[0-9]*.ipynb")):
        seconds = read_through(path)
        chapters[path.stem] = seconds
        first = seconds["first"] / torch["torch"]
        last = seconds["last"] / torch["torch"]
        print(
            f"{path.stem:<24} first result {seconds['first']:5.1f} s ({first:4.1f} x import "
            f"torch), whole chapter {seconds['last']:5.1f} s ({last:4.1f} x)",
            flush=True,
        )
    _timing.store("first_result", COMMAND, seconds={**torch, "chapters": chapters})


if __name__ == "__main__":
    main()
