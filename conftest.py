"""What every test run needs before the first kernel or tensor: repeatable arithmetic.

The variables are set here, not in a fixture, because nbval starts its kernels from this process and
they inherit them; tools/run_chapters.py sets the same when it stores a chapter's outputs.
"""

import gc
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent

# One thread, unless tools/portable.py asks for more.
os.environ["OMP_NUM_THREADS"] = os.environ.get("FAIRPG_TEST_THREADS", "1")
os.environ["PYTHONHASHSEED"] = "0"
# Training makes and drops tensors of the same sizes. The C library returns their memory each time
# and asks for it again, for a fifth of a chapter's time, unless told to keep so many bytes.
for name, size in {"MMAP_THRESHOLD": 64, "TRIM_THRESHOLD": 256, "TOP_PAD": 16}.items():
    os.environ.setdefault(f"MALLOC_{name}_", str(size * 2**20))
# Kernels run inside book/: without this they would miss a checkout that is not installed.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), str(ROOT / "book"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import pytest  # noqa: E402
import torch  # noqa: E402

from tools.chromium import NAMES, find  # noqa: E402

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
NO_BROWSER = f"no browser: none of {', '.join(NAMES)} is on the PATH"
# Fixtures that start a cluster, processes, or a test run of their own.
SLOW = {"cluster", "scheduler", "checkout", "run_with", "process", "found"}
LONG = ("slow", "browser", "build", "chapter")

collect_ignore_glob = ["_build/*", ".venv/*", "build/*"]


def pytest_configure(config):
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(ROOT / "tests" / "nbval_sanitize.cfg")


@pytest.hookimpl(tryfirst=True)  # before pytest drops what `-m` does not want
def pytest_collection_modifyitems(items):
    """Mark what can be told from the item itself; the rest is marked in the tests."""
    browser = find()
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("chapter")
            # Pictures are not compared: nbval leaves PNG out by itself, and SVG only so.
            item.parent.skip_compare = {*item.parent.skip_compare, "image/svg+xml"}
        if "built_book" in getattr(item, "fixturenames", ()):
            item.add_marker("build")
        if SLOW.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        if "chrome" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if browser is None and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
    # Files with long tests first: else one process ends with such a file, and the other waits. One
    # process builds the book, and those who look at it come after other work, not to wait for it;
    # another compiles what many call, who would each compile it again before it is stored.
    long = {item.path for item in items if any(item.get_closest_marker(mark) for mark in LONG)}
    book = dict.fromkeys(item.path for item in items if item.get_closest_marker("build"))
    ahead = {path: 2 if path in book else 1 for path in long} | {path: 0 for path in [*book][:1]}
    ahead |= {path: 0 for path in long if path.name == "test_compiled.py"}
    items.sort(key=lambda item: ahead.get(item.path, 3))


def pytest_collection_finish():
    gc.freeze()  # modules and tests stay to the end: no use in going through them again and again


@pytest.hookimpl(wrapper=True, tryfirst=True)  # so that it is the last line of all
def pytest_sessionfinish(session):
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    left_out = sum(NO_BROWSER in str(report.longrepr) for report in skipped)
    if left_out:
        reporter.write_line(
            f"{left_out} tests look at the built pages in a browser and were left out, because "
            f"there is no Chromium here ({', '.join(NAMES)}). Everything else was run. "
            "On Debian and Ubuntu `sudo apt-get install chromium` brings one."
        )
    return result


@pytest.fixture(scope="session")
def built_book():
    """The folder of the built pages: `make book`, from nothing, once per test run.

    From nothing, because Sphinx repeats no warning about a page it does not read again. Two xdist
    workers that need the book share one build.
    """
    from filelock import FileLock

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    stamp = ROOT / "_build" / ".tested"
    lock = Path(tempfile.gettempdir()) / f"book-{hashlib.sha256(bytes(ROOT)).hexdigest()[:12]}.lock"
    with FileLock(str(lock)):
        if not (stamp.exists() and stamp.read_text() == run):
            shutil.rmtree(ROOT / "_build", ignore_errors=True)
            build = make_book()
            assert build.returncode == 0, f"`make book` failed:\n{build.stdout[-6000:]}"
            stamp.write_text(run)
    return ROOT / "_build" / "html"


def make_book(*overrides):
    """`make book` with the Python that runs the tests; -o: it is set up already."""
    prefix = sys.prefix
    command = ["make", "book", f"VENV={prefix}", "-o", "setup", "-o", f"{prefix}/.installed"]
    return subprocess.run(
        [*command, *overrides],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
