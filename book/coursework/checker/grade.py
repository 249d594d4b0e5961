"""Grade one submission: its code in a process of its own, the right answers and points in ours.

A submission runs in `checker.sandbox`, inside bubblewrap (`checker.bubblewrap`) and with limits on
time, memory and output. What it sends back is JSON, and is examined here.
"""

import copyreg
import hashlib
import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

import fairpg_lite
from checker import TASKS, WEEKS, disparities, examined, tasks_of
from checker.bubblewrap import INSIDE, Sandbox, open_filter, python_path, with_filter
from checker.given import Answer, generator_in
from checker.names import as_lines

MEMORY = 6.0  # gigabytes
SEED = 1  # of the functions' inputs; answers typed by hand go with the student's own
LARGEST = 2**25  # characters of one answer
NOTEBOOK = 2**25  # bytes of the largest notebook that is read
CLOCK = 5  # seconds on the clock for each second of processor time that is allowed
START = 30.0  # seconds to import torch on a busy machine
PATIENCE = 3  # a submission that was stopped so often is not started again
HERE = Path(__file__).parent


@dataclass
class Result:
    """What one submission earned, task by task, and what to tell its author.

    Attributes:
        points: by task; only of the tasks that were graded.
        messages: what the checker said, by task.
        notes: on the notebook as a whole.
        blank: the tasks that were not answered.
        reason: why nothing was graded; empty if something was.
    """

    student: str
    digest: str = ""
    seed: int | None = None
    points: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TASKS, 0))
    messages: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TASKS, ""))
    notes: list[str] = field(default_factory=list)
    blank: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def total(self) -> int:
        return sum(self.points.values())

    @property
    def out_of(self) -> int:
        """The points that could be had."""
        return sum(TASKS[task].points for task in self.points)


class Stopped(Exception):  # noqa: N818 - a finding on its way up
    """The submission's process ended, took too long, or sent what is no answer."""


def read_notebook(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook.

    Raises:
        ValueError: the file is no notebook that can be read, with the reason in words.
    """
    if notebook.is_symlink() or not notebook.is_file():
        raise ValueError("it is no ordinary file")
    size = notebook.stat().st_size
    if size > NOTEBOOK:
        raise ValueError(f"it has {size / 2**20:.0f} MB, and no more than 32 are read")
    try:
        cells = json.loads(notebook.read_bytes())["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is no notebook ({type(error).__name__}: {error})") from None


def cells_of(notebook: Path) -> list[str]:
    """The code cells of a notebook as plain Python: a line for IPython alone does nothing."""
    cells = read_notebook(notebook)
    sources = [cell["source"] for cell in cells if cell.get("cell_type") == "code"]
    return [re.sub(r"^(\s*)[%!?].*$", r"\1pass", source, flags=re.M) for source in sources]


# PyTorch's own way with a generator gives up a reference to None each time, until Python dies.
copyreg.pickle(torch.Generator, lambda stream: (generator_in, (stream.get_state(),)))


class Session:
    """One submission in its sandbox; started again without the cell that stopped it."""

    def __init__(
        self,
        cells: list[str],
        timeout: float,
        sandbox: Sandbox,
        expected: dict[str, list[str]],
    ) -> None:
        self.cells = cells
        self.timeout = timeout
        self.sandbox = sandbox
        self.expected = expected
        self.stops = 0
        self.seed = 0
        self.week = 0
        self.handed = set[str]()
        self.notes = list[str]()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run the cells, so that functions can be called."""
        while self.stops < PATIENCE:
            self._open()
            cell = 0
            try:
                while "seed" not in (said := self.hear()):
                    if "documents" in said:
                        self.tell(disparities.three_documents(int(said["documents"])))
                        continue
                    cell = int(said["cell"])
                    if said["error"]:
                        self.notes.append(f"Cell {cell} ends with {str(said['error'])[:500]}")
                    self.allow()
                self._begin(said)
                return
            except Exception as error:  # whatever it does to us costs only itself
                why = error if isinstance(error, Stopped) else "it sent messages of its own"
                self.notes.append(f"Cell {cell + 1}: {why}; it was left out.")
                self.cells[cell : cell + 1] = [""]
                self.stops += 1
                self.close()
        raise Stopped(f"it was stopped {PATIENCE} times")

    def _begin(self, said: dict[str, Any]) -> None:
        """Take down what the notebook handed in."""
        self.seed = int(said["seed"])
        self.week = int(said["week"])
        self.handed = {str(task) for task in said["handed"]}
        for task in said["taken"]:
            if task in self.expected:
                names = " and ".join(f"`{name}`" for name in self.expected[task])
                self.notes.append(f"{task}: its `check` was not run; {names} was graded.")

    def _open(self) -> None:
        self.scratch = tempfile.mkdtemp()
        self.line, theirs = socket.socketpair()
        words, places = self._where()
        kept = {"PATH", "LANG", "LD_LIBRARY_PATH"} & os.environ.keys()  # nothing else of ours
        fixed = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}
        fixed |= {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1", "USER": "student"}
        options = [str(theirs.fileno()), str(MEMORY), "shut" if self.sandbox else "open"]
        with theirs, open_filter() as program:
            passed = [theirs.fileno()]
            if self.sandbox:
                words = [*with_filter(self.sandbox.command, program), *words]
                passed += [] if program is None else [program]
            elif shutil.which("setpriv"):  # a grader that is killed takes the submission along
                words = ["setpriv", "--pdeathsig", "KILL", *words]
            self.process = subprocess.Popen(
                [*words, *options],
                pass_fds=passed,
                cwd=self.scratch,
                env={name: os.environ[name] for name in kept} | places | fixed,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.buffer = b""
        self.allow(START)
        self.tell((self.cells, self.expected))

    def _where(self) -> tuple[list[str], dict[str, str]]:
        """What to run, and the folders it is told of, inside the sandbox or without one."""
        if self.sandbox:
            program = INSIDE / "checker" / "sandbox.py"
            scratch, packages = "/tmp", python_path()
        else:
            program = HERE / "sandbox.py"
            scratch, packages = self.scratch, str(Path(fairpg_lite.__file__).parents[1])
        places = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR"), scratch)
        return [sys.executable, str(program)], {**places, "PYTHONPATH": packages}

    def allow(self, more: float = 0.0) -> None:
        """From now on the limit again: processor time, so that a busy machine stops nobody."""
        self.before = self.processor()
        self.deadline = time.monotonic() + CLOCK * self.timeout + more

    def processor(self) -> float:
        """Processor seconds of the sandbox so far; the clock where the system does not tell."""
        first = self.process.pid if self.process else 0
        if not Path(f"/proc/{first}/task/{first}/children").exists():
            return time.monotonic()
        ticks = 0
        waiting = [str(first)]
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):  # one that has ended meanwhile
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
                waiting += Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return ticks / os.sysconf("SC_CLK_TCK")

    def tell(self, message: Any) -> None:
        self.line.settimeout(START + CLOCK * self.timeout)  # for whoever does not listen
        try:
            self.line.sendall(pickle.dumps(message))
        except OSError:
            raise Stopped("the process ended") from None

    def hear(self) -> Any:
        """What one line of the sandbox's says; whoever asks finds out whether it is an answer."""
        self.line.settimeout(0.5)
        while b"\n" not in self.buffer:
            # Before every piece of it, so that a drop at a time is no way to gain time.
            spent = self.processor() - self.before
            if spent > self.timeout or time.monotonic() > self.deadline:
                raise Stopped(f"it took longer than {self.timeout:g} seconds")
            try:
                more = self.line.recv(2**16)
            except TimeoutError:
                continue
            except OSError:
                more = b""
            if not more:
                raise Stopped("the process ended (a crash, os._exit, or too much memory)")
            self.buffer += more
            if len(self.buffer) > LARGEST:
                raise Stopped("an answer is too large")
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def ask(self, *question: Any) -> Answer:
        """With the time as the system counts it: what a submission says of itself may be false."""
        if self.process is None:
            self.start()
            self.allow()
        before = self.processor()
        self.tell(question)
        try:
            given, seconds = self.hear()["answer"], self.processor() - before
            value, slope = (
                None if given[name] is None else torch.tensor(given[name], dtype=torch.float64)
                for name in ("value", "slope")
            )
            called = tuple(str(name)[:100] for name in given["module_calls"])
            return Answer(value, str(given["fault"]), bool(given["blank"]), slope, seconds, called)
        except (KeyError, TypeError, ValueError, RuntimeError, OverflowError):
            raise Stopped("the process sent something that is no answer") from None

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            with suppress(ProcessLookupError, PermissionError):  # what it left in its session
                os.killpg(self.process.pid, 9)
            self.process.wait()
            self.line.close()
            shutil.rmtree(self.scratch, ignore_errors=True)
        self.process = None


def mark(
    student: str,
    notebook: Path,
    sandbox: Sandbox,
    *,
    tasks: Sequence[str] = tuple(TASKS),
    seed: int | None = None,
    timeout: float = 60.0,
) -> Result:
    """Grade one notebook.

    Args:
        student: whose it is.
        notebook: the file.
        sandbox: what shuts it in; `Sandbox()` for none.
        tasks: what is graded; all by default.
        seed: the one that was set for the student; that of the notebook by default.
        timeout: seconds of processor time for each cell and each task.

    Returns:
        The points and what to tell the student, whatever the notebook does.
    """
    result = ungraded(student, "", tasks)
    try:
        result.digest = digest(notebook, seed, timeout, tasks)
        cells = cells_of(notebook)
    except (OSError, ValueError) as error:
        result.reason = as_lines(f"{error}")
        return result
    expected = {task: list(TASKS[task].names) for task in tasks}
    session = Session(cells, timeout, sandbox, expected)
    try:
        session.start()
        result.seed = session.seed
        if seed is not None and seed != result.seed:
            session.notes.append(f"The seed is {result.seed}; {seed} was set, and is used here.")
        if session.week and session.week != _week_of(tasks):
            session.notes.append(f"This is the notebook of week {session.week}.")
        for task in tasks:
            _mark_task(task, session, result, result.seed if seed is None else seed)
    except Stopped as stopped:
        session.notes.append(f"The submission was given up: {stopped}.")
    finally:
        session.close()
    result.notes = [as_lines(note) for note in dict.fromkeys(session.notes)]
    return result


def _week_of(tasks: Sequence[str]) -> int | None:
    """The week that has these tasks, if one has."""
    return next((week for week in WEEKS if tasks_of(week) == list(tasks)), None)


def ungraded(student: str, reason: str, tasks: Sequence[str] = tuple(TASKS)) -> Result:
    """A result without points, with the reason."""
    return Result(
        student,
        points=dict.fromkeys(tasks, 0),
        messages=dict.fromkeys(tasks, ""),
        reason=reason,
    )


def _mark_task(task: str, session: Session, result: Result, own: int) -> None:
    """Put down the points and what to tell the student; typed answers go with the own seed."""
    head = f"{task:<7} {TASKS[task].title}"
    said = f"{head}: not answered (there is no `check` with an answer)"
    points: int | None = None
    session.allow()
    answers = [partial(session.ask, task, place) for place in range(TASKS[task].answers)]
    try:
        if task in session.handed:
            seed = SEED if len(answers) == 1 else own
            points, said = examined(task, answers, seed)
    except Stopped as stopped:
        points = 0
        said = f"{head}: stopped, {stopped}"
        session.stops += 1
        session.close()
        if session.stops >= PATIENCE:
            result.messages[task] = said
            raise
    except Exception as error:  # whatever an answer does to us costs only its own task
        points = 0
        said = f"{head}: could not be examined: {type(error).__name__}: {error}"
    if points is None:
        result.blank.append(task)
    result.points[task] = points or 0
    result.messages[task] = as_lines(said)


def digest(notebook: Path, seed: int | None, timeout: float, tasks: Sequence[str]) -> str:
    """Changes with whatever a result depends on; only of an ordinary file of a usual size."""
    whole = not notebook.is_symlink() and notebook.is_file()
    whole = whole and notebook.stat().st_size <= NOTEBOOK
    parts = [notebook.read_bytes() if whole else b""]
    parts += [repr((seed, timeout, tuple(tasks))).encode()]
    parts += [path.read_bytes() for path in sorted([*HERE.glob("*.py"), *HERE.glob("*.toml")])]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
