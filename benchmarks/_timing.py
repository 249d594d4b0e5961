"""Interleaved timing: what is compared is run in turn, so that a busy machine slows all alike."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

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
        "commit": _commit(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def _commit() -> str:
    def git(*words: str) -> str:
        command = ["git", *words]
        return subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True).stdout

    try:
        name = git("describe", "--always").strip()
        # Results themselves may differ from the commit; nothing else may.
        changed = git("status", "--porcelain", "-uno", "--", ":/", ":(exclude)results").strip()
    except FileNotFoundError:
        return "unknown (no git here)"
    return (name or "unknown (not a git checkout)") + ("-dirty" if changed else "")


def store(name: str, command: str, **content: Any) -> None:
    """Write ``results/name.json`` with its provenance."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**provenance(command), **content}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def save_figure(figure: Any, name: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=120, metadata={"Software": None})
