"""Interleaved timing: what is compared is run in turn, so that a busy machine slows all alike."""

import json
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch

from fairpg_lite import _records

RESULTS = Path(__file__).parent / "results"


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(work: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each function over ``repeats`` rounds; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(repeats + 1):
        for name, function in work.items():
            spent = seconds(function)
            if round_number:
                times[name].append(spent)
    return {name: median(spent) for name, spent in times.items()}


def provenance(command: str) -> dict[str, Any]:
    """Where a result file comes from."""
    return {
        "command": command,
        "commit": _records.commit(),
        **_records.versions(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def store(name: str, command: str, **content: Any) -> None:
    """Write ``results/name.json`` with its provenance."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**provenance(command), **content}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")
