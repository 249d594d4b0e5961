"""What every test run needs: repeatable arithmetic, kernels that find the checkout, one built book.

Environment variables are set when this file is read, not in a fixture, because nbval starts its
kernels from this process and they inherit them; tools/run_chapters.py sets the same when it stores
a chapter's outputs.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent

# Sums of several threads come out in another last digit; tools/portable.py asks for more threads.
os.environ["OMP_NUM_THREADS"] = os.environ.get("FAIRPG_TEST_THREADS", "1")
# Sets of texts are walked in the same order on every run.
os.environ["PYTHONHASHSEED"] = "0"
# Kernels run inside book/: without this they would miss a checkout that is not installed.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), str(ROOT / "book"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import pytest  # noqa: E402
import torch  # noqa: E402

from tools.chromium import NAMES, find  # noqa: E402

# The variable above is for processes that are started; PyTorch here was imported by pytest already.
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
NO_BROWSER = f"no browser: none of {', '.join(NAMES)} is on the PATH"
# Fixtures that start a cluster, processes, or a test run of their own: their tests are slow.
SLOW = {"cluster", "scheduler", "checkout", "run_with", "process", "found"}

# What is built or installed in the checkout has tests and notebooks of its own.
# The last makes stored values with libraries that are not installed here.
collect_ignore_glob = [
    "_build/*",
    ".venv*/*",
    "build/*",
    "tests/fixtures/other_libraries.py",
]


def pytest_configure(config):
    """Sanitise outputs without an option on every command line, `pytest --nbval book/` included."""
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(ROOT / "tests" / "nbval_sanitize.cfg")


@pytest.hookimpl(tryfirst=True)  # before pytest drops what `-m` does not want
def pytest_collection_modifyitems(items):
    """Mark what can be told from the item itself, so that nobody has to remember it in a test."""
    browser = find()
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.path.suffix == ".ipynb":
            item.add_marker("chapter")
            # Pictures are not compared: nbval leaves PNG out by itself, and SVG only so.
            item.parent.skip_compare = {*item.parent.skip_compare, "image/svg+xml"}
        if "built_book" in fixtures:
            item.add_marker("build")
        if SLOW & fixtures:
            item.add_marker("slow")
        if "chrome" in fixtures:
            item.add_marker("browser")
        if browser is None and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


@pytest.hookimpl(wrapper=True, tryfirst=True)  # so that it is the last line of all
def pytest_sessionfinish(session):
    """Say how many tests were left out for want of a browser: a green run would not show it."""
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
            if build.returncode:
                said = build.stdout.splitlines()
                faults = [line for line in said if "WARNING" in line or "ERROR" in line]
                pytest.fail("`make book` failed:\n" + "\n".join(faults or said[-40:]))
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
