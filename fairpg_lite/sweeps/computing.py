"""One run, in surroundings that are the same in every process and on every machine."""

import inspect
import random
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fairpg_lite.sweeps.cells import Cell, Experiment
from fairpg_lite.sweeps.provenance import commit, versions
from fairpg_lite.sweeps.records import Record
from fairpg_lite.sweeps.settings import as_json

# A Dask worker may have several threads, and all that `same_world` sets belongs to the process.
_ONE_AT_A_TIME = threading.RLock()


class Outcome(NamedTuple):
    """What a run leaves: it is computed anywhere, and stored by the process that asked for it."""

    record: Record
    """Status, result or error, seconds, and the versions and the commit that made it."""
    files: dict[str, bytes]
    """What the experiment wrote into its folder, by name."""


def compute(cell: Cell, dtype: torch.dtype) -> Outcome:
    """Run one cell in the caller's number format; an error that it ends with is its outcome."""
    record: Record
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        try:
            with same_world(cell.seed, dtype):
                result, files = _run(cell)
            record = {"status": "done", "result": as_json("result", result)}
        except (Exception, SystemExit) as error:
            record = {"status": "failed", "error": _described(error)}
            files = {}
        seconds = round(time.perf_counter() - start, 6)
    record |= {"seconds": seconds, "versions": versions(), "commit": commit()}
    return Outcome(record, files)


def _run(cell: Cell) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The result of a cell, and the files that its experiment wrote."""
    experiment: Any = cell.experiment
    files = {}
    if _writes_files(experiment):
        with tempfile.TemporaryDirectory() as folder:
            result = experiment(cell.lam, cell.seed, out=folder)
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    else:
        result = experiment(cell.lam, cell.seed)
    if not isinstance(result, dict):
        raise TypeError(f"{experiment.name} returned {result!r}; return a dictionary.")
    return result, files


def _writes_files(experiment: Experiment) -> bool:
    """Whether an experiment takes a folder to write to."""
    return "out" in inspect.signature(experiment.__call__).parameters


def _described(error: BaseException) -> dict[str, Any]:
    """An error as it is stored, without this machine's directories."""
    frames = traceback.extract_tb(error.__traceback__)
    experiment_frames = frames[2:]  # from the experiment on: `compute` and `_run` are ours
    lines = []
    for frame in experiment_frames:
        lines.append(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}")
    return {"type": type(error).__name__, "message": str(error), "traceback": lines}


@contextmanager
def same_world(seed: int, dtype: torch.dtype) -> Iterator[None]:
    """The same surroundings in every process: one thread, one number format, seeded streams.

    The number of threads changes the order of sums and hence the last digits. The global random
    streams are for the experiment that forgets to pass a generator. All is put back afterwards.
    """
    with torch.random.fork_rng(devices=[]), ExitStack() as afterwards:
        afterwards.callback(torch.set_num_threads, torch.get_num_threads())
        afterwards.callback(torch.set_default_dtype, torch.get_default_dtype())
        afterwards.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        afterwards.callback(random.setstate, random.getstate())
        torch.set_num_threads(1)
        torch.set_default_dtype(dtype)
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        yield
