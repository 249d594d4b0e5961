"""One process that runs tests against changed copies of the package: for test_mutants.py.

python mutant_process.py

Reads lines of JSON, {"folder": ..., "tests": [...], "plant": a name of plants.py or null},
and answers each with {"code", "output"}.
Starting Python, PyTorch and pytest takes longer than the tests, so that is done once: every run is
a fork of this process, which has imported everything but the package itself.
"""

import gc
import importlib
import json
import os
import sys
import tempfile
import traceback
from importlib.metadata import entry_points
from pathlib import Path

import pytest

# What tests and package import, beside pytest's plugins. Only speed depends on this list.
HEAVY = (
    "torch",
    "numpy",
    "hypothesis.extra.numpy",
    "joblib",
    "numba",
    "matplotlib.pyplot",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.datasets",
    "sklearn.metrics",
    "torch.autograd.gradcheck",
    "torch.distributed.tensor",  # torch.testing.assert_close does; it brings all of sympy
)


def run(folder: Path, tests: list[str], plant: str | None, output: Path) -> None:
    """In the fork: the tests of ``folder`` against the package of ``folder``; never returns."""
    with output.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    paths = [str(folder), str(folder / "tests"), str(folder / "tests" / "module")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # for processes that the tests start
    sys.path[:0] = paths
    if plant is not None:
        importlib.import_module("fairpg_lite")
        importlib.import_module("plants").PLANTS[plant][0]()
    # Hypothesis is imported already; that its asserts are not rewritten is no concern here.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *quiet, *tests])
    sys.stdout.flush()
    os._exit(int(code))


def answer(folder: str, tests: list[str], plant: str | None) -> dict:
    with tempfile.TemporaryDirectory() as place:
        output = Path(place, "output")
        pid = os.fork()
        if pid == 0:
            try:
                run(Path(folder), tests, plant, output)
            except BaseException:
                output.write_text(traceback.format_exc())
            os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return {"code": code, "output": output.read_text()}


def main() -> None:
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than running as Python
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != here]
    for name in (*HEAVY, *(plugin.module for plugin in entry_points(group="pytest11"))):
        importlib.import_module(name)
    assert not any(name.startswith("fairpg_lite") for name in sys.modules)
    gc.freeze()  # a fork need not go through all that to find its own rubbish
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
