"""Files that are there whole or not at all: the one way this project writes them.

A file is written beside its target under a name of its own and then renamed, so a reader never sees
half of it, two writers never share a temporary file, and a full disk or a kill leaves the old file.
"""

import os
import secrets
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

# Names of our own say which process of which machine is writing, so that the next writer can tell a
# leftover from a file still being written, on a shared disk too.
_MACHINE = f"{zlib.crc32(socket.gethostname().encode()):08x}"


def own_name(stem: str, suffix: str) -> str:
    """A file name that no other writer, and no earlier version, has."""
    return f"{stem}.{_MACHINE}-{os.getpid()}-{secrets.token_hex(4)}{suffix}"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes ``path`` when the block ends without an error.

    An `OSError` that names no file gets the name of ``path``.
    """
    target = Path(path)
    clear_leftovers(target)
    temporary = target.with_name(own_name(f".{target.name}", ".part"))
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        if error.filename in (None, str(temporary)) and error.strerror:
            raise type(error)(error.errno, error.strerror, str(target)) from error
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whole or not at all; makes the folder, returns the path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as temporary, open(temporary, "xb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())  # the rename must not reach the disk before the content
    return target


def probe(folder: str | Path) -> Path:
    """The folder, in which a file can be written; two may try it at the same moment."""
    write_whole(Path(folder) / ".probe", "").unlink(missing_ok=True)
    return Path(folder)


def clear_leftovers(path: str | Path) -> None:
    """Remove what writers of ``path`` on this machine left behind when they were killed."""
    target = Path(path)
    for trace in target.parent.glob(f".{escape(target.name)}.{_MACHINE}-*-*.part"):
        with suppress(OSError, ValueError):  # a name that is not ours, or what another has removed
            if not _runs(int(trace.name.split("-")[-2])):
                trace.unlink()


def _runs(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except OSError as error:  # another user's process is there, too
        return not isinstance(error, ProcessLookupError)
    return True


@contextmanager
def refusing(what: str, remedy: str) -> Iterator[None]:
    """Reading what a stranger may have written: whatever fails is one error that says so."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what} is damaged: {why}; {remedy}.") from error
