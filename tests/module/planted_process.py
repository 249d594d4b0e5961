"""One process that runs tests with planted bugs: for test_planted_bugs.py.

Reads lines of JSON, {"bug": a name or null, "tests": [...]}, and answers each with {"code",
"output"}. Starting Python, PyTorch and pytest takes longer than the tests, so that is done once:
every run is a fork of this process, which has imported everything but the package itself.
"""

import importlib
import json
import os
import sys
import tempfile
import traceback
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / name) for name in ("", "book", "tests", "tests/module")]
# What tests and package import, beside pytest's plugins. Only speed depends on this list.
HEAVY = (
    "torch",
    "hypothesis.extra.numpy",
    "joblib",
    "numba",
    "matplotlib.pyplot",
    "pandas",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.datasets",
    "sklearn.metrics",
    "torch.autograd.gradcheck",
    "torch.distributed.tensor",  # torch.testing.assert_close does; it brings all of sympy
)
# Python runs a file of this name whenever it starts: the bug is in processes of the test, too.
IN_OTHER_PROCESSES = "import planted_bugs\nplanted_bugs.BUGS[{!r}].plant()\n"


def run(bug: str | None, tests: list[str], place: Path) -> None:
    """In the fork: the tests with the bug; never returns."""
    with (place / "output").open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(ROOT)
    paths = PATHS
    if bug is not None:
        (place / "sitecustomize.py").write_text(IN_OTHER_PROCESSES.format(bug))
        paths = [str(place), *PATHS]
        importlib.import_module("fairpg_lite")
        importlib.import_module("planted_bugs").BUGS[bug].plant()
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # Hypothesis is imported already; that its asserts are not rewritten is no concern here.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *quiet, *tests])
    sys.stdout.flush()
    os._exit(int(code))


def answer(bug: str | None, tests: list[str]) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pid = os.fork()
        if pid == 0:
            try:
                run(bug, tests, place)
            except BaseException:
                (place / "output").write_text(traceback.format_exc())
            os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return {"code": code, "output": (place / "output").read_text()}


def main() -> None:
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than running as Python
    sys.path[:0] = PATHS
    for name in (*HEAVY, *(plugin.module for plugin in entry_points(group="pytest11"))):
        importlib.import_module(name)
    assert not any(name.startswith("fairpg_lite") for name in sys.modules)
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
