"""Grade one submission: its code in a process of its own, the right answers and points in ours.

A submission runs in `checker.sandbox` with limits on time and memory; on Linux with user namespaces
it also has no network, sees no process but its own and can write nowhere but into a folder of its
own in memory. Where there are none, only sockets are blocked: then grade in a container.
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
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

import fairpg_lite
from checker import TASKS, disparities, examined
from checker.given import Answer, generator_in

MEMORY = 6.0  # gigabytes
SEED = 1  # of the functions' inputs; answers typed by hand go with the student's own
LARGEST = 2**25  # characters of one answer
CLOCK = 5  # seconds on the clock for each second of processor time that is allowed
START = 30.0  # seconds to import torch on a busy machine
PATIENCE = 3  # a submission that was stopped so often is not started again
HERE = Path(__file__).parent
SOLUTION = [HERE.parent / f"solution.{kind}" for kind in ("md", "ipynb")]
# Read-only disks, hidden folders and files, an own folder in memory to write to; then the command.
JAIL = """
for disk in $1; do mount -o remount,ro,bind "$disk" || exit 9; done
for path in $2; do
  if [ -d "$path" ]; then mount -t tmpfs tmpfs "$path" || exit 9
  else mount --bind /dev/null "$path" || exit 9; fi
done
mount -t tmpfs tmpfs "$3" && cd "$3" || exit 9
shift 3
exec setsid "$@"
"""


@dataclass
class Result:
    """What one submission earned, task by task, and what to tell its author."""

    student: str
    digest: str = ""
    seed: int | None = None
    points: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TASKS, 0))
    messages: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TASKS, ""))
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.points.values())


class Stopped(Exception):  # noqa: N818 - a finding on its way up
    """The submission's process ended, took too long, or sent what is no answer."""


@lru_cache(maxsize=8)
def jail(hide: tuple[str, ...]) -> tuple[str, ...]:
    """The command that shuts a process in, to be followed by a folder for it; () if none works.

    Nobody inside sees what is in ``hide``, or writes anywhere on the disks that hold it.
    """
    paths = [p for p in (*map(Path, hide), *SOLUTION) if p.exists()]
    disks = {"/", *(str(next(q for q in [p, *p.parents] if q.is_mount())) for p in paths)}
    options = "--user --map-root-user --net --pid --fork --mount --mount-proc --kill-child"
    lists = (" ".join(sorted(disks)), " ".join(map(str, paths)))
    command = ("unshare", *options.split(), "sh", "-c", JAIL, "sh", *lists)
    with tempfile.TemporaryDirectory() as scratch:
        probe = [*command, scratch, "sh", "-c", f"touch here && ! touch '{HERE}/.probe'"]
        try:
            done = subprocess.run(probe, capture_output=True, check=False)
        except OSError:
            return ()
    return command if done.returncode == 0 else ()


def cells_of(notebook: Path) -> list[str]:
    """The code cells of a notebook as plain Python: a line for IPython alone does nothing."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [re.sub(r"^(\s*)[%!?].*$", r"\1pass", source, flags=re.M) for source in sources]


# PyTorch's own way with a generator gives up a reference to None each time, until Python dies.
copyreg.pickle(torch.Generator, lambda stream: (generator_in, (stream.get_state(),)))


class Session:
    """One submission in its sandbox; started again without the cell that stopped it."""

    def __init__(self, cells: list[str], timeout: float, jail: Sequence[str]) -> None:
        self.cells, self.timeout, self.jail = cells, timeout, jail
        self.stops, self.handed, self.seed, self.notes = 0, set[str](), 0, list[str]()
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
                self.seed, self.handed = int(said["seed"]), set(said["handed"])
                return
            except Exception as error:  # whatever it does to us costs only itself
                why = error if isinstance(error, Stopped) else "it sent messages of its own"
                self.notes.append(f"Cell {cell + 1}: {why}; it was left out.")
                self.cells[cell : cell + 1] = [""]
                self.stops += 1
                self.close()
        raise Stopped(f"it was stopped {PATIENCE} times")

    def _open(self) -> None:
        self.scratch = scratch = tempfile.mkdtemp()
        self.line, theirs = socket.socketpair()
        shut = [*self.jail, scratch] if self.jail else []
        names = {"PATH", "LANG", "LD_LIBRARY_PATH"} & os.environ.keys()  # nothing else of ours
        places = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), scratch)
        fixed = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}
        paths = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(Path(fairpg_lite.__file__).parents[1])}
        options = [str(theirs.fileno()), str(MEMORY), "shut" if shut else "open"]
        # A grader that is killed takes the submission along.
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with theirs:
            self.process = subprocess.Popen(
                [*leash, *shut, sys.executable, str(HERE / "sandbox.py"), *options],
                pass_fds=(theirs.fileno(),),
                cwd=scratch,
                env={name: os.environ[name] for name in names} | places | fixed | paths,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.buffer = b""
        self.allow(START)
        self.tell(self.cells)

    def allow(self, more: float = 0.0) -> None:
        """From now on the limit again: processor time, so that a busy machine stops nobody."""
        self.before = self.processor()
        self.deadline = time.monotonic() + CLOCK * self.timeout + more

    def processor(self) -> float:
        """Processor seconds of the sandbox so far; the clock where the system does not tell."""
        first, ticks = self.process.pid if self.process else 0, 0
        below = Path(f"/proc/{first}/task/{first}/children")
        if not below.exists():
            return time.monotonic()
        for pid in (first, *below.read_text().split()):
            with suppress(OSError):  # one that has ended meanwhile
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
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
            return Answer(value, str(given["fault"]), bool(given["blank"]), slope, seconds)
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
    seed: int | None = None,
    timeout: float = 60.0,
    hide: tuple[str, ...] = (),
) -> Result:
    """Grade one notebook; ``seed`` is the student's, ``timeout`` of each cell and each task."""
    result = Result(student, digest(notebook, seed, timeout))
    try:
        session = Session(cells_of(notebook), timeout, jail(hide))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        result.notes.append(f"This is no notebook: {type(error).__name__}: {error}")
        return result
    try:
        session.start()
        result.seed = session.seed
        if seed is not None and seed != result.seed:
            session.notes.append(f"The seed is {result.seed}; {seed} was set, and is used here.")
        for task in TASKS:
            _mark_task(task, session, result, result.seed if seed is None else seed)
    except Stopped as stopped:
        session.notes.append(f"The submission was given up: {stopped}.")
    finally:
        session.close()
    result.notes = list(dict.fromkeys(session.notes))  # cells run again say the same again
    return result


def _mark_task(task: str, session: Session, result: Result, own: int) -> None:
    """Put down the points and what to tell the student; typed answers go with the own seed."""
    head = f"{task:<7} {TASKS[task].title}"
    said = f"{head}: no `check` with an answer"
    session.allow()
    answers = [partial(session.ask, task, place) for place in range(TASKS[task].answers)]
    try:
        if task in session.handed:
            seed = SEED if len(answers) == 1 else own
            points, said = examined(task, answers, seed)
            result.points[task] = points or 0
    except Stopped as stopped:
        said = f"{head}: stopped, {stopped}"
        session.stops += 1
        session.close()
        if session.stops >= PATIENCE:
            raise
    except Exception as error:  # whatever an answer does to us costs only its own task
        said = f"{head}: could not be examined: {type(error).__name__}: {error}"
    result.messages[task] = said


def digest(notebook: Path, seed: int | None, timeout: float) -> str:
    """Changes with whatever a result depends on."""
    parts = [notebook.read_bytes(), repr((seed, timeout)).encode()]
    parts += [path.read_bytes() for path in sorted([*HERE.glob("*.py"), *HERE.glob("*.toml")])]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
