"""Sweeps in processes that are killed: run by test_sweep.py, once, because torch starts slowly.

python sweep_process.py FOLDER

Every sweep is a fork of this process, which has one thread and nothing open. Prints one JSON line:
what each killed sweep left behind, before it was resumed.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sweep_experiments import Careless, Plain

from fairpg_lite import _files
from fairpg_lite.sweeps import computing, grid, run_cells, running
from fairpg_lite.sweeps.records import read_record

FILES = _files.__file__
KILLS = 20
CELLS = grid(Plain(pause=0.005), [0, 0.1, 25], range(3)) + grid(Careless(500), [0.5], range(3))
WRITING = {"write_whole", "whole_file"}


def forked(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def sweep(out: Path) -> None:
    run_cells(CELLS, out, progress=False)


def telling(out: Path, pipe: int) -> None:
    """A sweep that writes a byte into ``pipe`` for every cell it has stored."""
    write = running.write_record

    def told(path: Path, cell: dict) -> None:
        write(path, cell)
        os.write(pipe, b".")

    running.write_record = told
    sweep(out)


def wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def state(out: Path) -> dict:
    """What a kill left: whole cells, files that are no cell, temporary files."""
    files = [p for p in out.rglob("*") if p.is_file()]
    cells = [p for p in files if p.suffix == ".json"]
    broken = [p.name for p in cells if read_record(p) is None]
    return {"cells": len(cells), "broken": broken, "temporary": len(files) - len(cells)}


def lines_of(work: Callable[[], object], kill_at: int | None = None) -> int:
    """Lines of the functions that write which `work` runs; at line `kill_at` the process dies."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename != FILES or frame.f_code.co_name not in WRITING:
            return None
        if event == "line":
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def killed_by_clock(folder: Path, rng: random.Random) -> list[dict]:
    start = time.perf_counter()
    assert wait(forked(lambda: sweep(folder / "undisturbed"))) == 0
    each = (time.perf_counter() - start) / len(CELLS)
    left = []
    for trial in range(KILLS):
        out, cells = folder / f"clock{trial}", rng.randrange(len(CELLS) - 2)
        read, write = os.pipe()
        pid = forked(lambda out=out, write=write: telling(out, write))
        os.close(write)
        for _ in range(cells):
            assert os.read(read, 1), "the sweep ended before it was killed"
        time.sleep(each * rng.random())
        os.kill(pid, signal.SIGKILL)
        os.close(read)
        left.append({"code": wait(pid), **state(out)})
        assert wait(forked(lambda out=out: sweep(out))) == 0
    return left


def killed_at_a_line(folder: Path, rng: random.Random) -> list[dict]:
    """The same points on every machine, among them those between two steps of a write."""
    total = lines_of(lambda: sweep(folder / "counted"))
    left = []
    for trial in range(KILLS):
        out, line = folder / f"line{trial}", rng.randrange(total)
        pid = forked(lambda out=out, line=line: lines_of(lambda: sweep(out), kill_at=line + 1))
        left.append({"code": wait(pid), **state(out)})
        assert wait(forked(lambda out=out: sweep(out))) == 0
    return left


def two_at_once(folder: Path) -> list[int]:
    """Six pairs of sweeps on one directory each, both computing everything at the same time."""
    codes = []
    for trial in range(6):
        out = folder / f"pair{trial}"
        pids = [forked(lambda out=out: sweep(out)) for _ in range(2)]
        codes += [wait(pid) for pid in pids]
    return codes


def full_disk(folder: Path) -> str:
    """No file may grow beyond 100 bytes: every write ends as on a full disk, for root too."""
    read, write = os.pipe()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            sweep(folder / "full")
        except OSError as error:
            os.write(write, str(error).encode())

    assert wait(forked(work)) == 0
    os.close(write)
    with os.fdopen(read) as pipe:
        return pipe.read()


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    # Editing the checkout while the tests run must not make files differ; test_sweep.py tests
    # `commit`. Here, not above: pytest imports this file too, looking for doctests.
    computing.commit = lambda: "0000000"  # type: ignore[assignment]
    rng = random.Random(0)
    report = {
        "clock": killed_by_clock(folder, rng),
        "line": killed_at_a_line(folder, rng),
        "pairs": two_at_once(folder),
        "full": full_disk(folder),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
