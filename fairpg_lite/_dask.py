"""joblib's Dask backend, made to survive what happens on a cluster (chapter 15).

Two gaps in it matter here. When Dask gives a task up (its workers died once too often, or cannot
import the experiment) joblib is never told and waits for ever; when a task is cancelled (the
scheduler went away) joblib takes the exception for the result. Both become `Lost`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client
from joblib._dask import DaskDistributedBackend

from fairpg_lite._workers import Lost

PATIENCE = 60
"""Seconds to wait for the first worker, and for the scheduler to answer."""


class LossTellingBackend(DaskDistributedBackend):
    """Hands a lost task over as `Lost` instead of waiting for it or breaking off the others."""

    def submit(self, func: Any, callback: Callable[[Any], Any] | None = None) -> Any:
        job = super().submit(func, callback)

        def tell(done: Any) -> None:
            error = done.exception()
            if error is not None and callback is not None:
                callback(error)

        job.add_done_callback(tell)
        return job

    def retrieve_result_callback(self, out: Any) -> Any:
        if isinstance(out, BaseException):
            return [Lost(f"{type(out).__name__}: {out}")]  # a batch of one
        return super().retrieve_result_callback(out)


def backend(client: Client) -> LossTellingBackend:
    return LossTellingBackend(client=client, wait_for_workers_timeout=PATIENCE)


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of our own: closing it makes the cluster forget what is still queued."""
    try:
        client = Client(scheduler, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"sweep: no Dask scheduler answers at {scheduler!r} ({error}); start one with "
            "`dask scheduler`, or leave `scheduler` out to use this machine."
        ) from error
    with client:
        yield client
