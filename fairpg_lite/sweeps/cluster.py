"""A Dask cluster as an executor, looked at before it works and while it does (chapter 15).

The workers need this package, in the same versions; the code of an experiment that is not installed
is sent with the job. Functions inside functions travel by value: a worker that lacks this package
can still answer them.
"""

import hashlib
import importlib.util
import logging
import pickle
import pkgutil
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import cloudpickle
from distributed import Client

from fairpg_lite.sweeps.records import Cell, versions

# Seconds a scheduler may take to answer, and seconds without a worker before a warning.
ANSWER, WARN_AFTER = 15.0, 10.0


@contextmanager
def on_cluster(
    scheduler: str, cells: Iterable[Cell], patience: float
) -> Iterator[tuple[Callable[..., Future], Callable[[], None]]]:
    """How to submit work to the cluster, and what to call while nothing arrives."""
    # Packages of the experiments that no installation brings go with the job.
    names = {type(cell.experiment).__module__.partition(".")[0] for cell in cells}
    specs = {name: importlib.util.find_spec(name) for name in names - {"__main__", "fairpg_lite"}}
    packages = sorted(n for n, s in specs.items() if s and "-packages" not in f"{s.origin}")
    try:
        _knock(scheduler)
        # A client of our own: closing it makes the cluster forget what is still queued.
        client = Client(scheduler, set_as_default=False, timeout=ANSWER)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"sweep: no Dask scheduler answers at {scheduler!r} ({error}); start one with `dask "
            "scheduler`, or leave `scheduler` out to use this machine. What is finished is stored."
        ) from error
    with ExitStack() as stack:
        # Without the tracebacks of every attempt to reach a scheduler that is gone: we say it once.
        log = logging.getLogger("distributed.client")
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        stack.enter_context(client)
        watch = Watch(client, scheduler, patience)
        here = _agree(watch, packages)
        executor = client.get_executor(pure=False)

        def submit(*work: Any) -> Future:
            # Packed: the scheduler opens what it can read, and has no need of these packages.
            packed = cloudpickle.dumps(partial(alike, here, packages, *work))
            return executor.submit(lambda job: pickle.loads(job)(), packed)

        yield submit, watch


def _knock(scheduler: str) -> None:
    """Dask's own client waits for minutes where nobody answers; a scheduler speaks first."""
    scheme, _, place = scheduler.rpartition("://")
    if scheme in ("", "tcp"):
        host, _, port = place.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=ANSWER) as line:
            if not line.recv(1):
                raise ConnectionError("it hung up")


@dataclass
class Watch:
    """Called while nothing arrives: warns of a cluster without workers, and gives it up."""

    client: Client
    scheduler: str
    patience: float
    since: float | None = field(default_factory=lambda: time.monotonic())
    warned: bool = False

    def __call__(self, lack: str | None = None) -> None:
        """Look for workers; or, with a ``lack`` that was seen, count it on whoever has come."""
        try:
            if lack is None and self.client.nthreads():
                self.since = None
                return
        except (OSError, TimeoutError, AttributeError):  # Dask's client has lost its `scheduler`
            return  # it is gone, which the cells will tell
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        said = (
            f"sweep: for {now - self.since:.0f} s the Dask cluster at {self.scheduler} "
            f"{lack or 'has no worker'}; start one with `dask worker {self.scheduler}`, where this "
            "Python's packages are installed. What is finished is stored."
        )
        if now - self.since >= self.patience:
            raise ConnectionError(f"{said} Given up after {self.patience:g} s (`patience`).")
        if now - self.since >= WARN_AFTER and not self.warned:
            self.warned = True
            warnings.warn(f"{said} Waiting for it.", RuntimeWarning, stacklevel=2)


def _agree(watch: Watch, packages: list[str]) -> dict[str, str]:
    """What all workers run; refuses those that differ: a mixture would have no meaning."""
    here, found = identity(packages), _ask(watch, packages)
    for name in packages:
        code = f"{name} source"
        if any(answer.get(code) != here[code] for answer in found.values()):
            _send(watch.client, name)
    found = _ask(watch, packages)
    watch.since = None
    rows = [f"{'':20}  " + "  ".join([*found, "here"])]
    for name, ours in here.items():
        theirs = [answer.get(name, "missing") for answer in found.values()]
        rows += [f"{name:20}  " + "  ".join([*theirs, ours])] if {*theirs} != {ours} else []
    if len(rows) > 1:
        raise ValueError(
            f"sweep: the workers of {watch.scheduler} do not run what runs here; install the same "
            "versions everywhere and start them anew.\n" + "\n".join(rows)
        )
    return here


def _ask(watch: Watch, packages: list[str]) -> dict[str, dict[str, str]]:
    """What every worker runs, by its address; waits until there is one, and all answer."""

    def ask() -> dict[str, str]:
        try:
            from fairpg_lite.sweeps.cluster import identity

            return identity(packages)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return {"python": sys.version.split()[0], "fairpg_lite": said}

    while True:
        found = watch.client.run(ask, on_error="return")
        silent = [worker for worker, answer in found.items() if isinstance(answer, BaseException)]
        if found and not silent:
            return found
        watch(f"has a worker that does not answer ({silent[0]})" if silent else "has no worker")
        time.sleep(0.2)


def _send(client: Client, package: str) -> None:
    """The package as an archive on every worker's path, those that join later included."""

    def forget() -> None:
        from fairpg_lite.sweeps.cluster import source_hash

        source_hash.cache_clear()
        for name in [n for n in sys.modules if n.partition(".")[0] == package]:
            del sys.modules[name]

    with TemporaryDirectory() as folder:
        archive = Path(folder) / f"{package}.zip"
        with ZipFile(archive, "w") as packed:
            for name, content in sources(package):
                packed.writestr(name, content)
        client.run(forget, on_error="ignore")
        client.upload_file(str(archive))


def alike(here: dict[str, str], packages: list[str], work: Callable[..., Any], *given: Any) -> Any:
    """``work(*given)``, unless this is a worker that came later with other versions."""
    if identity(packages) != here:
        raise RuntimeError("a worker with other versions has joined the cluster")
    return work(*given)


def identity(packages: Iterable[str] = ()) -> dict[str, str]:
    """What must agree between machines that share a sweep: versions, and the code to the letter."""
    found = dict(versions())
    for name in ("fairpg_lite", *packages):
        found[f"{name} source"] = "missing"
        with suppress(ImportError):
            found[f"{name} source"] = source_hash(name)
    return found


@lru_cache
def source_hash(package: str) -> str:
    """A short hash over the Python files of ``package``, the same wherever they lie."""
    told = hashlib.sha256()
    for name, content in sorted(sources(package)):
        told.update(f"{name} {len(content)}\n".encode() + content)
    return told.hexdigest()[:12]


def sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every Python file of a package or module, from a folder or an archive."""
    names = [package]
    for name in names:
        spec: Any = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        inside = spec.submodule_search_locations
        names += [f"{name}.{module.name}" for module in pkgutil.iter_modules(inside or [])]
        file = name.replace(".", "/") + (".py" if inside is None else "/__init__.py")
        yield file, spec.loader.get_data(spec.origin)
