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
from pathlib import Path

# Temporary names say which process of which machine is writing, so that the next writer can tell a
# leftover from a file still being written, on a shared disk too.
_MACHINE = f"{zlib.crc32(socket.gethostname().encode()):08x}"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes ``path`` when the block ends without an error.

    An `OSError` that names no file gets the name of ``path``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     print((Path(folder) / "a.txt").read_text(), len(list(Path(folder).iterdir())))
    all of it 1
    """
    target = Path(path)
    clear_leftovers(target)
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}.part")
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


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whole or not at all; makes the folder, returns the path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return target


def clear_leftovers(path: str | Path) -> None:
    """Remove what writers of ``path`` left behind when they were killed."""
    target = Path(path)
    prefix = _prefix(target)
    with suppress(OSError):
        for trace in target.parent.iterdir():
            name = trace.name
            if name.startswith(prefix) and name.endswith(".part") and not _writing(name, prefix):
                trace.unlink(missing_ok=True)


def _prefix(target: Path) -> str:
    return f".{target.name}.{_MACHINE}-"


def _writing(name: str, prefix: str) -> bool:
    """Whether the process that made this temporary file is still there."""
    number = name.removeprefix(prefix).split("-")[0]
    if not number.isdigit():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process: there
        return True
    return True
