"""Stop what takes long at random moments, call it again, compare byte by byte: `make interrupt`.

Each trial starts a command in an empty folder, sends a signal at a random moment, waits until no
process of it is left, and gives the same command again. What the folder then holds is compared,
byte by byte, with what an undisturbed command leaves; only the seconds that a run took may differ.
SIGINT goes to all processes, as a terminal sends it; SIGTERM and SIGKILL to the first one only, as
`kill` does, so that the workers must find out by themselves.

The process of a command is a fork of this one, which has imported everything: importing takes
longer than the small problems here, and nothing can be lost meanwhile. Half of the moments are
counted from the start of the process, half from the first file that it writes. A trial is a line in
OUT/trials.jsonl as soon as it is over.

    python -m tools.interrupt --rounds 10 --seed 0 --out _build/interrupt
    python -m tools.interrupt --tasks fit audit --rounds 2

Processes are looked for in /proc, so this runs on Linux.
"""

import argparse
import csv
import importlib
import io
import json
import os
import random
import re
import runpy
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

import torch

from fairpg_lite import TrainConfig, certify, save_letor, synthetic, tradeoff
from fairpg_lite._files import write_whole

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")
#: Seconds after which no process of a command that was killed may be there.
GONE_AFTER = 10.0
#: Seconds after which a command counts as hanging.
HANGS_AFTER = 600.0
#: What a writer that was killed leaves beside its target; the next one removes it an hour later.
TEMPORARY = re.compile(r"\..*\.part|\.probe")
_SECONDS = re.compile(r'"seconds": [0-9.e+-]+')


@dataclass(frozen=True)
class Task:
    """A command to be stopped; it is run in the folder that is looked at afterwards.

    Attributes:
        name: of the task.
        words: a module, and the options of its command.
        codes: how the second call may end.
    """

    name: str
    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Moment:
    """When a signal is sent.

    Attributes:
        after: "start" of the process, or "file", the first in the folder.
        seconds: to wait from then on.
    """

    after: str
    seconds: float


@dataclass(frozen=True)
class Whole:
    """What an undisturbed command leaves, and how long it took.

    Attributes:
        contents: of every file, by its name.
        seconds: from the start to the end.
        first_file: seconds from the start to the first file.
    """

    contents: dict[str, bytes]
    seconds: float
    first_file: float

    def moment(self, after: str, part: float) -> Moment:
        """So much of the way from the start, or from the first file, to the end."""
        return Moment(after, part * (self.seconds - (self.first_file if after == "file" else 0.0)))


@dataclass(frozen=True)
class Trial:
    """What became of one interruption.

    Attributes:
        task: the command's name.
        signal: that was sent.
        moment: when.
        was_running: whether the command was still there; if not, it was only called twice.
        code: how it ended.
        gone: seconds from the signal until its last process had ended.
        temporaries: files that a killed writer left behind.
        code_again: how the second call ended.
        differing: names of the files that differ from those of an undisturbed command.
        fault: what was wrong, in words; empty if nothing was.
    """

    task: str
    signal: str
    moment: Moment
    was_running: bool
    code: int | None
    gone: float
    temporaries: int
    code_again: int | None
    differing: tuple[str, ...]
    fault: str


def make_inputs(folder: Path) -> None:
    """The files that the commands read."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, queries, seed in (("train", 20, 0), ("valid", 5, 1), ("test", 5, 2)):
        data = synthetic(queries, seed=seed)
        assert data.groups is not None
        save_letor(data, folder / f"{part}.txt")
        lines = "".join(f"{int(group)}\n" for group in data.groups)
        write_whole(folder / f"{part}.groups", lines)
    generator = random.Random(0)
    shown = []
    grades = []
    groups = []
    for query in range(40):
        documents = [f"d{query}-{number}" for number in range(8)]
        for number, document in enumerate(documents):
            grades.append(f"{query} 0 {document} {number % 3}\n")
            groups.append(f"{document} {'ab'[number % 2]}\n")
        for draw in range(3):
            generator.shuffle(documents)
            for rank, document in enumerate(documents, 1):
                shown.append((draw, f"{query} Q0 {document} {rank} {-rank} tag\n"))
    for draw in range(3):
        write_whole(folder / f"run.{draw}.txt", "".join(line for d, line in shown if d == draw))
    write_whole(folder / "qrels.txt", "".join(grades))
    write_whole(folder / "groups.txt", "".join(groups))


def tasks(inputs: Path) -> list[Task]:
    """What is stopped: the commands of the package, two functions, and a reproduction."""
    command = ("fairpg_lite",)
    train = (str(inputs / "train.txt"), "--groups", str(inputs / "train.groups"))
    test = ("--test", str(inputs / "test.txt"), "--test-groups", str(inputs / "test.groups"))
    valid = ("--valid", str(inputs / "valid.txt"), "--valid-groups", str(inputs / "valid.groups"))
    setting = ("--lr", "0.05", "--out", ".")
    grid = ("--epochs", "3", "--lam", "0", "5", "--seeds", "2")
    runs = tuple(str(inputs / f"run.{draw}.txt") for draw in range(3))
    judged = ("--qrels", str(inputs / "qrels.txt"), "--groups", str(inputs / "groups.txt"))
    called = ("tools.interrupt", "--call")
    return [
        # Gini is trained by autograd, the others by the compiled loops where Numba is.
        Task("fit", (*command, "fit", *train, *valid, *setting, "--lam", "5", "--epochs", "30")),
        Task(
            "fit, autograd",
            (*command, "fit", *train, *setting, "--epochs", "8", "--disparity", "gini"),
        ),
        Task("sweep", (*command, "sweep", *train, *test, *setting, *grid)),
        Task("sweep, 2 jobs", (*command, "sweep", *train, *test, *setting, *grid, "--jobs", "2")),
        Task("tradeoff", (*called, "tradeoff")),
        Task("reproduce", ("experiments", "synthetic", "--quick", "--out", ".")),
        # A report that is there is not replaced: then the second call says so, and ends with 2.
        Task("audit", (*command, "audit", *runs, *judged, "--out", "."), (0, 2)),
        Task("certify", (*called, "certify")),
    ]


def call(function: str) -> None:
    """One of the functions that have no command, in the current folder."""
    if function == "tradeoff":
        tradeoff(
            synthetic(20, seed=0),
            synthetic(6, seed=1),
            [0.0, 20.0],
            2,
            out=".",
            config=TrainConfig(epochs=3, lr=0.1, compiled=False),
            progress=False,
        )
    elif function == "certify":
        calibration = synthetic(400, seed=1)
        scores = calibration.features.sum(-1)
        path = {f"temperature {t}": scores / t for t in (100, 30, 10, 4, 2, 1)}
        certificate = certify(path, calibration, delta=0.01, cap=0.25, progress=False)
        write_whole("certificate.json", json.dumps(asdict(certificate), indent=1))
    else:
        raise SystemExit(f"tools.interrupt: there is no call {function!r}.")


def prepare_processes() -> None:
    """Import what the commands import, and what their workers need to."""
    folders = [str(ROOT), str(ROOT / "book")]
    sys.path += folders
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    for name in ("fairpg_lite.cli", "matplotlib.pyplot", "experiments.synthetic", "numba"):
        with suppress(ImportError):
            importlib.import_module(name)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its name, without run times and temporary files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not TEMPORARY.fullmatch(path.name):
            found[path.relative_to(folder).as_posix()] = without_seconds(path)
    return found


def without_seconds(path: Path) -> bytes:
    """What a file holds, but for the seconds that runs took: in JSON, and a column of a CSV."""
    if path.suffix == ".json":
        return _SECONDS.sub('"seconds": _', path.read_text("utf-8")).encode()
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        timed = [number for number, name in enumerate(rows[0]) if name == "seconds"]
        text = io.StringIO()
        writer = csv.writer(text)
        for row in rows:
            writer.writerow([cell for number, cell in enumerate(row) if number not in timed])
        return text.getvalue().encode()
    return path.read_bytes()


def start(task: Task, folder: Path) -> ForkProcess:
    """The command in a session of its own; what it says goes beside the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    process = get_context("fork").Process(target=_run, args=(task, folder))
    process.start()
    while process.is_alive() and os.getsid(_pid(process)) != process.pid:
        time.sleep(0.001)
    return process


def _run(task: Task, folder: Path) -> None:
    """In the new process: as `python -m MODULE ...`, but everything is imported already."""
    os.setsid()
    # A shell lets what it starts in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(folder.with_name(f"{folder.name}.log"), "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    scratch = folder.with_name(f"{folder.name}-tmp")
    scratch.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    os.chdir(folder)
    sys.argv = list(task.words)
    try:
        runpy.run_module(task.words[0], run_name="__main__", alter_sys=True)
    finally:
        # As Python does at its end; a forked process would first wait for idle workers.
        loky = sys.modules.get("joblib.externals.loky.process_executor")
        if loky is not None:
            loky._python_exit()


def _pid(process: ForkProcess) -> int:
    assert process.pid is not None
    return process.pid


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        with suppress(OSError):  # one that has ended meanwhile
            if os.getsid(pid) == session:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(pid)
    return found


def undisturbed(task: Task, folder: Path) -> Whole:
    """Run a command to its end."""
    begin = time.monotonic()
    process = start(task, folder)
    first_file = None
    while process.is_alive():
        if first_file is None and any(folder.iterdir()):
            first_file = time.monotonic() - begin
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    if process.exitcode != 0:
        log = folder.with_name(f"{folder.name}.log")
        raise SystemExit(f"tools.interrupt: {task.name} fails undisturbed; see {log}.")
    return Whole(contents(folder), seconds, seconds if first_file is None else first_file)


def wait_for(moment: Moment, process: ForkProcess, folder: Path) -> None:
    """Until the moment has come or the process has ended."""
    if moment.after == "file":
        while process.is_alive() and not any(folder.iterdir()):
            time.sleep(0.001)
    process.join(moment.seconds)


def stop(process: ForkProcess, name: str) -> float:
    """Send the signal, and return the seconds until the last process of the session has ended."""
    number = signal.Signals[name]
    pid = _pid(process)
    begin = time.monotonic()
    with suppress(ProcessLookupError):  # it has ended meanwhile
        if name == "SIGINT":
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    while process.is_alive() or members(pid):
        if time.monotonic() - begin > HANGS_AFTER:
            os.killpg(pid, signal.SIGKILL)
            process.join()
            break
        time.sleep(0.05)
    return time.monotonic() - begin


def interrupt(
    task: Task,
    whole: Whole,
    name: str,
    moment: Moment,
    folder: Path,
    gone_after: float = GONE_AFTER,
) -> Trial:
    """Stop a command, give it again, and compare.

    Args:
        task: the command.
        whole: what it leaves undisturbed.
        name: of the signal.
        moment: when it is sent.
        folder: where the command runs; a new one.
        gone_after: seconds after which all its processes must have ended; not asked of SIGINT,
            which Python hears when the step that it is at has ended.

    Returns:
        What happened.
    """
    process = start(task, folder)
    wait_for(moment, process, folder)
    was_running = process.is_alive()
    gone = stop(process, name)
    code = process.exitcode
    temporaries = sum(bool(TEMPORARY.fullmatch(path.name)) for path in folder.rglob("*"))
    claims_success = code == 0 and contents(folder) != whole.contents
    again = start(task, folder)
    again.join(HANGS_AFTER)
    code_again = again.exitcode
    if code_again is None:
        os.killpg(_pid(again), signal.SIGKILL)
    found = contents(folder)
    names = sorted(found.keys() | whole.contents.keys())
    differing = tuple(file for file in names if found.get(file) != whole.contents.get(file))
    faults = {
        "it ended with 0, and not all was there": claims_success,
        f"a process was there {gone:.0f} s later": name != "SIGINT" and gone > gone_after,
        f"the second call ended with {code_again}": code_again not in task.codes,
        f"{len(differing)} files differ": bool(differing),
    }
    return Trial(
        task=task.name,
        signal=name,
        moment=moment,
        was_running=was_running,
        code=code,
        gone=round(gone, 3),
        temporaries=temporaries,
        code_again=code_again,
        differing=differing,
        fault="; ".join(text for text, is_so in faults.items() if is_so),
    )


def attack(
    chosen: Sequence[Task],
    out: Path,
    *,
    rounds: int,
    seed: int = 0,
    signals: Sequence[str] = SIGNALS,
    gone_after: float = GONE_AFTER,
    say: Callable[[str], None] = print,
) -> Iterator[Trial]:
    """Every signal to every command, in every round at another moment.

    Args:
        chosen: the commands.
        out: a folder to work in; a trial without a fault leaves nothing but its line there.
        rounds: trials of each command with each signal.
        seed: of the moments.
        signals: their names.
        gone_after: as in `interrupt`.
        say: takes a line for the terminal.

    Yields:
        The trials as they end.
    """
    wholes = {}
    for task in chosen:
        folder = out / f"{task.name}-whole".replace(", ", "-").replace(" ", "")
        wholes[task.name] = undisturbed(task, folder)
        twice = undisturbed(task, folder.with_name(f"{folder.name}-2"))
        if twice.contents != wholes[task.name].contents:
            raise SystemExit(f"tools.interrupt: {task.name} differs from one call to the next.")
        wholes[task.name] = twice  # the first one may have compiled something
        say(f"{task.name}: undisturbed in {twice.seconds:.1f} s, {len(twice.contents)} files")
    generator = random.Random(seed)
    plan = [(task, name, number) for number in range(rounds) for task in chosen for name in signals]
    for count, (task, name, number) in enumerate(plan, 1):
        whole = wholes[task.name]
        moment = whole.moment(("start", "file")[number % 2], generator.random())
        folder = out / f"trial-{count:04}"
        trial = interrupt(task, whole, name, moment, folder, gone_after)
        with open(out / "trials.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trial)) + "\n")
        when = f"{moment.seconds:.2f} s after the {'first file' if number % 2 else 'start'}"
        result = trial.fault or "the same"
        say(f"{count}/{len(plan)} {task.name}, {name} {when}, gone {trial.gone:.1f} s: {result}")
        if not trial.fault:
            for path in (folder, folder.with_name(f"{folder.name}-tmp")):
                shutil.rmtree(path, ignore_errors=True)
            folder.with_name(f"{folder.name}.log").unlink(missing_ok=True)
        yield trial


def table(trials: Sequence[Trial]) -> str:
    """The trials in Markdown, a row for each command and signal."""
    lines = [
        "| command | signal | runs | stopped midway | temporary files left | longest until all "
        "processes were gone, s | faults |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for task in dict.fromkeys(trial.task for trial in trials):
        for name in SIGNALS:
            rows = [trial for trial in trials if (trial.task, trial.signal) == (task, name)]
            if rows:
                midway = sum(trial.code != 0 for trial in rows)
                left = sum(trial.temporaries for trial in rows)
                longest = max(trial.gone for trial in rows)
                faults = sum(bool(trial.fault) for trial in rows)
                lines.append(
                    f"| {task} | {name} | {len(rows)} | {midway} | {left} | {longest:.1f} "
                    f"| {faults} |"
                )
    midway = sum(trial.code != 0 for trial in trials)
    faults = sum(bool(trial.fault) for trial in trials)
    lines.append(f"| all | | {len(trials)} | {midway} | | | {faults} |")
    return "\n".join(lines)


def main() -> int:
    """Attack; the exit code is 1 if there was a fault."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.interrupt",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=9, help="trials of each with each signal")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--tasks", nargs="+", metavar="X", help="names of commands; all by default")
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=SIGNALS, metavar="X")
    parser.add_argument(
        "--gone-after", type=float, default=GONE_AFTER, metavar="X", help="seconds for all to end"
    )
    parser.add_argument("--out", type=Path, default=Path("_build/interrupt"), help="a new folder")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.call:
        call(args.call)
        return 0
    prepare_processes()
    out = args.out.resolve()
    if out.exists():
        parser.error(f"{out} is there already; remove it, or give --out.")
    make_inputs(out / "inputs")
    known = tasks(out / "inputs")
    unknown = set(args.tasks or []) - {task.name for task in known}
    if unknown:
        parser.error(f"no task {sorted(unknown)}; there are {[task.name for task in known]}.")
    chosen = [task for task in known if not args.tasks or task.name in args.tasks]
    trials = list(
        attack(
            chosen,
            out,
            rounds=args.rounds,
            seed=args.seed,
            signals=args.signals,
            gone_after=args.gone_after,
            say=lambda line: print(line, flush=True),
        )
    )
    print(table(trials))
    for trial in trials:
        if trial.fault:
            print(f"{trial.task}, {trial.signal}: {trial.fault}; {', '.join(trial.differing)}")
    return int(any(trial.fault for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
