"""A Dask cluster as a place to compute.

The workers need this package and the libraries in the versions of this process; modules of an
experiment that no installation brings are sent to them.
"""

import importlib
import importlib.util
import pickle
import shutil
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
from distributed.diagnostics.plugin import UploadFile

from fairpg_lite._extras import require
from fairpg_lite.sweeps.cells import Cell
from fairpg_lite.sweeps.provenance import versions
from fairpg_lite.sweeps.settings import first_difference

#: Seconds that a scheduler may take to answer.
CONNECT_SECONDS = 15.0
#: Seconds without a worker before a warning.
WARN_SECONDS = 10.0
# Tells this process from all others, on this machine and elsewhere.
_PROCESS = uuid.uuid4().hex


@contextmanager
def connected(scheduler: str, cells: Iterable[Cell], timeout: float) -> Iterator["Cluster"]:
    """The cluster at ``scheduler``, ready to run ``cells``."""
    try:
        # A client of our own: closing it makes the cluster forget what is still queued.
        client = require("distributed", "cluster").Client(
            scheduler, set_as_default=False, timeout=CONNECT_SECONDS
        )
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"sweep: no Dask scheduler answers at {scheduler!r} ({error}); start one with `dask "
            "scheduler`, or leave `scheduler` out to use this machine. What is finished is stored."
        ) from error
    with client:
        cluster = Cluster(client, scheduler, timeout)
        cluster.await_worker()
        cluster.demand_same_versions()
        cluster.send(modules_to_send(cells))
        yield cluster


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that is connected."""

    client: Any
    """A Dask client."""
    scheduler: str
    """Its address."""
    timeout: float
    """Seconds that it may be without a worker."""

    def submit(self, function: Any, *arguments: Any) -> "Future[Any]":
        """Have ``function(*arguments)`` computed by a worker."""
        # Packed, because a scheduler opens what it can read, and has no need of our packages.
        packed = cloudpickle.dumps(partial(function, *arguments))
        executor = self.client.get_executor(pure=False)
        future: Future[Any] = executor.submit(lambda job: pickle.loads(job)(), packed)
        return future

    def await_worker(self) -> None:
        """Return when there is a worker; warns of waiting, and gives up in the end."""
        if self._has_worker(min(WARN_SECONDS, self.timeout)):
            return
        lack = (
            f"sweep: the Dask cluster at {self.scheduler} has no worker; start one with "
            f"`dask worker {self.scheduler}`, where this Python's packages are installed."
        )
        if self.timeout > WARN_SECONDS:
            warnings.warn(
                f"{lack} Waiting for it, {self.timeout:g} s in all.", RuntimeWarning, stacklevel=2
            )
            if self._has_worker(self.timeout - WARN_SECONDS):
                return
        raise ConnectionError(
            f"{lack} Given up after {self.timeout:g} s (`timeout`); what is finished is stored."
        )

    def demand_same_versions(self) -> None:
        """Refuse workers that would compute with other versions than this process."""
        for worker, answer in self.client.run(versions, on_error="return").items():
            if isinstance(answer, OSError):  # it has just gone
                continue
            if isinstance(answer, BaseException):
                raise ValueError(
                    f"sweep: worker {worker} of {self.scheduler} cannot import fairpg_lite "
                    f"({type(answer).__name__}: {answer}); install the same versions everywhere "
                    "and start it anew."
                )
            self.demand_versions(f"worker {worker}", answer)

    def demand_versions(self, worker: str, found: dict[str, str]) -> None:
        """Refuse what a worker of other versions has computed, or would compute."""
        difference = first_difference(found, versions())
        if difference:
            raise ValueError(
                f"sweep: {worker} of {self.scheduler} runs other versions than this process: "
                f"{difference}; install the same versions everywhere and start it anew."
            )

    def send(self, modules: Iterable[str]) -> None:
        """Send modules and packages to all workers, those that join later included."""
        if _PROCESS in self.client.run(_process, on_error="ignore").values():
            return  # the workers are threads of this process, which has them
        for name in modules:
            with tempfile.TemporaryDirectory() as folder:
                file = _packed(name, Path(folder))
                # Of an earlier sweep, perhaps, and changed since.
                self.client.run(_forget, name, on_error="ignore")
                self.client.register_plugin(UploadFile(str(file)), name=f"fairpg_lite {name}")

    def _has_worker(self, seconds: float) -> bool:
        """Whether there is a worker within so many seconds."""
        try:
            if not self.client.nthreads():
                self.client.wait_for_workers(1, timeout=max(seconds, 1e-3))
        except TimeoutError:
            return False
        except (OSError, AttributeError):  # the scheduler is gone, which the cells will tell
            return True
        return True


def modules_to_send(cells: Iterable[Cell]) -> list[str]:
    """The modules and packages that the cells need and that no installation brings."""
    names = set()
    for experiment in {id(cell.experiment): cell.experiment for cell in cells}.values():
        for module in _modules_of(experiment):
            names.add(module.partition(".")[0])
    names -= {"__main__", "fairpg_lite", *sys.stdlib_module_names}
    return sorted(name for name in names if not _is_installed(name))


def _modules_of(value: Any) -> Iterator[str]:
    """The modules in which the classes and functions of an experiment's settings are defined."""
    yield (value if hasattr(value, "__qualname__") else type(value)).__module__
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _modules_of(getattr(value, field.name))
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _modules_of(item)


def _is_installed(name: str) -> bool:
    """Whether a module lies where packages are installed."""
    spec = importlib.util.find_spec(name)
    return spec is None or "-packages" in str(spec.origin)


def _packed(name: str, folder: Path) -> Path:
    """A module's file, or an archive of a package."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin)
    if spec.submodule_search_locations is None:
        return file
    return Path(shutil.make_archive(str(folder / name), "zip", file.parent.parent, name))


def _forget(package: str) -> None:
    """Make a worker import a package anew."""
    for name in list(sys.modules):
        if name.partition(".")[0] == package:
            del sys.modules[name]


def _process() -> str:
    """What tells a worker's process from this one."""
    return _PROCESS
