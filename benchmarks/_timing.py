"""Interleaved timing: what is compared is run in turn, so that a busy machine slows all alike."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from fairpg_lite.sweeps.provenance import commit, versions

RESULTS = Path(__file__).parent / "results"


def seconds(
    function: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    start = clock()
    function()
    return clock() - start


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many endless loops beside this process."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def peak_memory() -> int:
    """The most bytes that this process has held."""
    if sys.platform == "linux":  # getrusage would remember the program that started this one
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0])
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def interleaved(
    work: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each function over ``repeats`` rounds; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(repeats + 1):
        for name, function in work.items():
            spent = seconds(function, clock)
            if round_number:
                times[name].append(spent)
    return {name: median(spent) for name, spent in times.items()}


def provenance(command: str) -> dict[str, Any]:
    """Where a result file comes from."""
    return {
        "command": command,
        "commit": commit(),
        **versions(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def store(name: str, command: str, **content: Any) -> None:
    """Write ``results/name.json`` with its provenance."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**provenance(command), **content}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def store_table(name: str, command: str, rows: list[dict[str, Any]], **content: Any) -> None:
    """Write ``results/name.json`` with its provenance and many rows that have the same keys."""
    RESULTS.mkdir(exist_ok=True)
    text = table_text({**provenance(command), **content}, rows)
    (RESULTS / f"{name}.json").write_text(text)


def table_text(content: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """JSON in which the keys of the rows stand once, as ``columns``, and each row is one line."""
    columns = list(rows[0])
    head = json.dumps({**content, "columns": columns}, indent=1).removesuffix("\n}")
    lines = [json.dumps([row[column] for column in columns], separators=(",", ":")) for row in rows]
    return head + ',\n "rows": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def table_rows(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a file that `store_table` wrote."""
    return [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
