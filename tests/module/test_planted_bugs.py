"""Every planted bug turns its named test red."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from planted_bugs import BUGS, COMPILED

pytestmark = pytest.mark.thorough

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def run_with():
    """A function of a bug's name (or None) and tests: runs these with the bug planted."""
    command = [sys.executable, str(TESTS / "module" / "planted_process.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd="/", **pipes) as process:

        def run(bug, *tests):
            question = {"bug": bug, "tests": [f"tests/{test}" for test in tests]}
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            return answer["code"], answer["output"]

        yield run
        process.stdin.close()


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug, run_with):
    test = BUGS[bug].test
    code, output = run_with(bug, test)
    # 1: tests ran and failed. Anything else (no such test, nothing to replace) proves nothing.
    assert code == 1, f"{test} did not catch it:\n{output[-2000:]}"
    assert "ImportError" not in output


def test_without_a_bug_the_loops_pass_as_python(run_with):
    """It is the bug that is caught. All other named tests are run as they are by the suite."""
    code, output = run_with(None, *sorted({b.test for b in BUGS.values() if COMPILED in b.test}))
    assert code == 0, output[-2000:]
