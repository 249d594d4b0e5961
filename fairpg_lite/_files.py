"""Files that are there whole or not at all: the one way this project writes them.

A file is written beside its target under a name of its own and then renamed, so a reader never sees
half of it, two writers never share a temporary file, and a full disk or a kill leaves the old file.
Nothing here depends on the system: it is the same on Linux, macOS and Windows.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

# A temporary file that nobody has written to for so many seconds has lost its writer.
_ABANDONED_AFTER = 3600.0
# A lock is held for the second that it takes to write a table; one so old has lost its holder.
_LOCK_EXPIRES_AFTER = 30.0


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes ``path`` when the block ends without an error.

    An `OSError` that names no file gets the name of ``path``.
    """
    target = Path(path)
    _clear_abandoned(target)
    temporary = temporary_path(target)
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.filename in (None, str(temporary)) and error.strerror:
            raise type(error)(error.errno, error.strerror, str(target)) from error
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def temporary_path(target: Path) -> Path:
    """A path beside ``target`` that no other writer has."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whole or not at all; makes the folder, returns the path."""
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as temporary, open(temporary, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # the rename must not reach the disk before the content
    return target


def probe(folder: str | Path) -> Path:
    """The folder, in which a file can be written; two may try it at the same moment."""
    write_whole(Path(folder) / ".probe", "").unlink(missing_ok=True)
    return Path(folder)


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """A block that one process at a time can be in, for the same folder."""
    lock = Path(folder) / ".lock"
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            if _age(lock) > _LOCK_EXPIRES_AFTER:
                lock.unlink(missing_ok=True)
            else:
                time.sleep(0.05)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


@contextmanager
def refusing(what: str, remedy: str) -> Iterator[None]:
    """Reading what a stranger may have written: whatever fails is one error that says so."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what} is damaged: {why}; {remedy}.") from error


def _clear_abandoned(target: Path) -> None:
    """Remove what writers of ``target`` left behind when they were killed long ago."""
    for temporary in target.parent.glob(f".{escape(target.name)}.*.part"):
        if _age(temporary) > _ABANDONED_AFTER:
            with suppress(OSError):
                temporary.unlink()


def _age(path: Path) -> float:
    """Seconds since a file was last written to; zero if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
