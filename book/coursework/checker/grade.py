"""Grade a class: every submission in a process of its own, the right answers and points in ours.

`mark` grades one notebook, `grade` a folder of them. A submission runs in `checker.sandbox` with
limits on time and memory; on Linux with user namespaces it also has no network, sees no process but
its own and can write nowhere but into a folder of its own in memory. Where there are none, sockets
are blocked inside Python and the rest is not: then grade in a container.
"""

import csv
import hashlib
import html
import io
import itertools
import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import fairpg_lite
from checker import TASKS, disparities, examined
from checker.calls import Answer
from checker.sandbox import cells_of
from fairpg_lite._files import write_whole

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


@dataclass(frozen=True)
class Rules:
    """How submissions are graded: processor seconds for each cell and each task, gigabytes, and the
    seed of the functions' inputs (answers typed by hand go with the student's own).
    """

    timeout: float = 60.0
    memory: float = 6.0
    seed: int = 1
    hide: tuple[str, ...] = ()


@dataclass
class Result:
    """What one submission earned, task by task, and what to tell its author."""

    student: str
    digest: str = ""
    seed: int | None = None
    points: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TASKS, 0))
    messages: dict[str, str] = field(
        default_factory=lambda: {task: f"{task}: not examined" for task in TASKS}
    )
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.points.values())

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)


class Stopped(Exception):  # noqa: N818 - a finding on its way up
    """The submission's process ended, or took too long."""


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


class Session:
    """One submission in its sandbox; started again without the cell that stopped it."""

    def __init__(self, notebook: Path, rules: Rules, result: Result) -> None:
        self.cells, self.rules, self.result = cells_of(notebook), rules, result
        self.skip: set[int] = set()
        self.stops, self.handed = 0, set[str]()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run the cells, so that functions can be called."""
        while self.stops < PATIENCE:
            self._open()
            cell = -1
            try:
                while "seed" not in (said := self.hear()):
                    if "documents" in said:
                        self.tell(disparities.three_documents(int(said["documents"])))
                        continue
                    cell = int(said["cell"])
                    if said["error"]:
                        self.result.note(f"Cell {cell + 1} ends with {str(said['error'])[:500]}")
                    self.allow()
                self.result.seed, self.handed = int(said["seed"]), set(said["handed"])
                return
            except (Stopped, KeyError, TypeError, ValueError) as stopped:
                self.stops += 1
                at = next(k for k in itertools.count(cell + 1) if k not in self.skip)
                self.skip.add(at)
                why = stopped if isinstance(stopped, Stopped) else "it sent messages of its own"
                self.result.note(f"Cell {at + 1}: {why}; it was left out.")
                self.close()
        raise Stopped(f"it was stopped {PATIENCE} times")

    def _open(self) -> None:
        self.scratch = tempfile.mkdtemp()
        self.line, theirs = socket.socketpair()
        inside = jail(self.rules.hide)
        shut = (*inside, self.scratch) if inside else ()
        root = str(Path(fairpg_lite.__file__).parents[1])
        options = {"memory": self.rules.memory, "block_sockets": not shut, "path": root}
        told = json.dumps({**options, "skip": sorted(self.skip)})
        with theirs:
            self.process = subprocess.Popen(
                [*shut, sys.executable, str(HERE / "sandbox.py"), str(theirs.fileno()), told],
                pass_fds=(theirs.fileno(),),
                cwd=self.scratch,
                env=environment(self.scratch),
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
        wall = self.rules.timeout * (1 if self.before is None else CLOCK)
        self.deadline = time.monotonic() + wall + more

    def _in_time(self) -> None:
        now = self.processor()
        spent = 0.0 if now is None or self.before is None else now - self.before
        if spent > self.rules.timeout or time.monotonic() > self.deadline:
            raise Stopped(f"it took longer than {self.rules.timeout:g} seconds")

    def processor(self) -> float | None:
        """Processor seconds of the sandbox so far; None where the system does not tell."""
        try:
            first = self.process.pid if self.process else 0
            below = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            lines = [Path(f"/proc/{pid}/stat").read_text() for pid in (first, *below)]
        except OSError:
            return None
        fields = [line.rpartition(")")[2].split() for line in lines]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def tell(self, message: Any) -> None:
        data = pickle.dumps(message)
        self.line.settimeout(START + CLOCK * self.rules.timeout)  # for whoever does not listen
        try:
            self.line.sendall(len(data).to_bytes(8, "big") + data)
        except OSError:
            raise Stopped("the process ended") from None

    def hear(self) -> dict[str, Any]:
        """One line of JSON from the sandbox, and nothing but JSON."""
        self.line.settimeout(0.5)
        while b"\n" not in self.buffer:
            try:
                more = self.line.recv(2**16)
            except TimeoutError:
                self._in_time()
                continue
            except OSError:
                more = b""
            if not more:
                raise Stopped("the process ended (a crash, os._exit, or too much memory)")
            self.buffer += more
            if len(self.buffer) > LARGEST:
                raise Stopped("an answer is too large")
            if b"\n" not in more:  # a drop at a time is no way to gain time
                self._in_time()
        line, _, self.buffer = self.buffer.partition(b"\n")
        try:
            said = json.loads(line)
        except RecursionError:
            raise ValueError("no message") from None
        if not isinstance(said, dict):
            raise ValueError("no message")
        return said

    def ask(self, *question: Any) -> Answer:
        if self.process is None:
            self.start()
            self.allow()
        try:
            self.tell(question)
            return Answer.unpacked(self.hear()["answer"])
        except (KeyError, TypeError, ValueError, RuntimeError):
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


def environment(scratch: str) -> dict[str, str]:
    """Nothing of the teacher's own."""
    names = ("PATH", "LANG", "LD_LIBRARY_PATH")
    kept = {key: os.environ[key] for key in names if key in os.environ}
    fixed = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "MPLCONFIGDIR": scratch}
    return {**kept, **fixed, "HOME": scratch, "TMPDIR": scratch, "PYTHONHASHSEED": "0"}


@dataclass
class Far:
    """A student's function as the examiners see it: a `checker.calls.Remote`."""

    session: Session
    task: str

    def ask(self, inputs: dict[str, Any], forbid: str, upstream: Tensor | None) -> Answer:
        return self.session.ask(self.task, 0, inputs, forbid, upstream)

    def cpu(self) -> float:
        """As the system counts it: what the submission says of itself need not be true."""
        spent = self.session.processor()
        return time.monotonic() if spent is None else spent


def mark(student: str, notebook: Path, rules: Rules, seed: int | None = None) -> Result:
    """Grade one notebook; ``seed`` is the one the student was given, if it was not free."""
    torch.set_num_threads(1)
    result = Result(student, digest(notebook, rules, seed))
    try:
        session = Session(notebook, rules, result)
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        result.note(f"This is no notebook: {type(error).__name__}: {error}")
        return result
    try:
        session.start()
        if seed is not None and seed != result.seed:
            result.note(f"The seed is {result.seed}; {seed} was set, and is used here.")
        own = result.seed if seed is None else seed
        for task in TASKS:
            result.messages[task] = _mark_task(task, session, rules, own or 0)
    except Stopped as stopped:
        result.note(f"The submission was given up: {stopped}.")
    finally:
        session.close()
    return result


def _mark_task(task: str, session: Session, rules: Rules, own: int) -> str:
    """Put down the points; what to tell the student. Typed answers go with the student's seed."""
    session.allow()
    if task not in session.handed:
        return f"{task:<7} {TASKS[task].title}: no `check` with an answer"
    answers: tuple[Any, ...] = (Far(session, task),)
    seed = rules.seed
    try:
        if TASKS[task].answers > 1:
            seed = own
            given = [session.ask(task, k, None, "", None) for k in range(TASKS[task].answers)]
            answers = tuple(
                ... if answer.blank else "no number" if answer.value is None else answer.value
                for answer in given
            )
        session.result.points[task], lines = examined(task, answers, seed)
        return "\n".join(lines)
    except Stopped as stopped:
        session.stops += 1
        session.close()
        if session.stops >= PATIENCE:
            raise
        return f"Stopped: {stopped}."
    except Exception as error:  # whatever an answer does to us costs only its own task
        return f"{task}: could not be examined: {type(error).__name__}: {error}"


def digest(notebook: Path, rules: Rules, seed: int | None) -> str:
    """Changes with whatever a result depends on."""
    parts = [notebook.read_bytes(), repr((rules, seed)).encode()]
    parts += [path.read_bytes() for path in sorted([*HERE.glob("*.py"), *HERE.glob("*.toml")])]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def submissions(folder: Path) -> dict[str, Path]:
    """The notebook of each student: ``NAME.ipynb``, or the one in the folder ``NAME``."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") for part in parts):
            continue
        name = path.stem if len(parts) == 1 else parts[0]
        if name not in found or path.stem == "assignment":
            found[name] = path
    if not found:
        raise FileNotFoundError(
            f"grade: no notebook in {folder}; put there NAME.ipynb, or a folder NAME for each "
            "student with a notebook inside."
        )
    return found


def grade(
    folder: Path,
    out: Path,
    feedback: Path,
    rules: Rules,
    *,
    jobs: int = 2,
    seeds: dict[str, int] | None = None,
) -> list[Result]:
    """Grade every submission in ``folder``; a second call goes on where the first one ended."""
    found, given, log = submissions(folder), seeds or {}, out.with_suffix(".jsonl")
    feedback.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {result.student: result for result in _logged(log)}
    done = {
        name: result
        for name, result in done.items()
        if name in found and result.digest == digest(found[name], rules, given.get(name))
    }
    todo = [name for name in found if name not in done]
    write_whole(log, "".join(json.dumps(asdict(result)) + "\n" for result in done.values()))
    with log.open("a", encoding="utf-8") as file:
        for result in _marked([(n, found[n], rules, given.get(n)) for n in todo], jobs):
            done[result.student] = result
            file.write(json.dumps(asdict(result)) + "\n")
            file.flush()
            progress(len(done), len(found), result)
            write_whole(feedback / f"{result.student}.html", feedback_page(result))
            write_whole(out, table([done[name] for name in found if name in done]))
    return [done[name] for name in found]


Job = tuple[str, Path, Rules, int | None]


def _marked(jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """Results as they come. Whoever breaks the worker that grades them is tried once more alone."""
    broken = []
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = {pool.submit(mark, *job): job for job in jobs}
        for future in as_completed(running):
            try:
                yield future.result()
            except BrokenProcessPool:
                broken.append(running[future])
    for job in broken:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            try:
                yield pool.submit(mark, *job).result()
            except BrokenProcessPool:
                note = "The submission ended the process that grades it, twice."
                yield Result(job[0], digest(*job[1:]), notes=[note])


def _logged(log: Path) -> Iterator[Result]:
    for line in log.read_text("utf-8").splitlines() if log.exists() else []:
        try:
            yield Result(**json.loads(line))
        except (ValueError, TypeError):  # the last line of a run that was killed
            continue


def progress(done: int, of: int, result: Result) -> None:
    bar = "#" * (30 * done // of)
    print(f"[{bar:<30}] {done}/{of}  {result.student}: {result.total}", file=sys.stderr, flush=True)


def table(results: Sequence[Result]) -> str:
    """One row per student: name, points of each task, total."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["student", *TASKS, "total"])
    rows.writerows([r.student, *(r.points[task] for task in TASKS), r.total] for r in results)
    return text.getvalue()


def feedback_page(result: Result) -> str:
    """What a student is told: the points and the checker's words, as a page of HTML."""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result.notes)
    parts = "".join(
        f"<h2>{html.escape(TASKS[task].title)}: {result.points[task]} of {TASKS[task].points}</h2>"
        f"<pre>{html.escape(result.messages[task])}</pre>"
        for task in TASKS
    )
    name, seed = html.escape(result.student), "none" if result.seed is None else result.seed
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{name}: {result.total} points</title><style>body{{font:16px/1.5 sans-serif;"
        "max-width:46em;margin:2em auto}pre{white-space:pre-wrap}</style></head><body>"
        f"<h1>{name}: {result.total} of {sum(task.points for task in TASKS.values())} points</h1>"
        f"<p>Seed of the notebook: {seed}. The written answers A, B and C are marked by a person."
        f"</p><ul>{notes}</ul>{parts}</body></html>\n"
    )
