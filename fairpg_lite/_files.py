"""Files that are there whole or not at all: the one way this project writes them.

A file is written beside its target under a name of its own and then renamed, so a reader never sees
half of it, two writers never share a temporary file, and a full disk or a kill leaves the old file.
A directory is replaced by renaming one file in it, the index, which names the others.
"""

import os
import re
import secrets
import shutil
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

# Names of our own say which process of which machine is writing, so that the next writer can tell a
# leftover from a file still being written, on a shared disk too.
_MACHINE = f"{zlib.crc32(socket.gethostname().encode()):08x}"
_OWN = re.compile(r"\.([0-9a-f]{8})-([0-9]+)-[0-9a-f]{8}\.[a-z]+$")
_replacing = threading.Lock()


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes ``path`` when the block ends without an error."""
    with _beside(Path(path)) as temporary:
        yield temporary
        os.replace(temporary, path)


@contextmanager
def whole_directory(path: str | Path, index: str) -> Iterator[Path]:
    """A temporary directory to fill, which becomes ``path`` when the block ends without an error.

    The file ``index`` names all the others, and those have names from `own_name`. So an older
    directory at ``path`` is replaced in one step, the renaming of the index; what the old index
    named is removed afterwards. A reader that finds a file missing reads the index again.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _beside(target) as temporary:
        temporary.mkdir()
        yield temporary
        try:
            temporary.rename(target)
            return
        except OSError:
            if not target.is_dir():
                raise
        with _replacing:
            before = (target / index).read_text("utf-8")
            # The index last: from then on the new version counts.
            for file in sorted(temporary.iterdir(), key=lambda file: file.name == index):
                os.replace(file, target / file.name)
            after = (target / index).read_text("utf-8")
            for file in target.iterdir():
                replaced = _OWN.search(file.name) is not None and file.name in before
                if (replaced or _left_over(file.name)) and file.name not in after:
                    _remove(file)  # Windows keeps a file that somebody has mapped: next time


def own_name(stem: str, suffix: str) -> str:
    """A file name that no other writer, and no earlier version, has."""
    return f"{stem}.{_MACHINE}-{os.getpid()}-{secrets.token_hex(4)}{suffix}"


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A path of our own beside ``target``, gone afterwards; errors without a file get its name."""
    clear_leftovers(target)
    temporary = target.with_name(own_name(f".{target.name}", ".part"))
    try:
        yield temporary
    except OSError as error:
        if error.filename in (None, str(temporary)) and error.strerror:
            raise type(error)(error.errno, error.strerror, str(target)) from error
        raise
    finally:
        _remove(temporary)


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whole or not at all; makes the folder, returns the path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as temporary, open(temporary, "xb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())  # the rename must not reach the disk before the content
    return target


def clear_leftovers(path: str | Path) -> None:
    """Remove what writers of ``path`` left behind when they were killed."""
    target = Path(path)
    with suppress(OSError):
        for trace in target.parent.iterdir():
            own = trace.name.startswith(f".{target.name}.") and trace.name.endswith(".part")
            if own and _left_over(trace.name):
                _remove(trace)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _left_over(name: str) -> bool:
    """Whether this is a name of ours whose writer, on this machine, is no more."""
    found = _OWN.search(name)
    if found is None or found[1] != _MACHINE:
        return False
    try:
        os.kill(int(found[2]), 0)
    except OSError as error:  # another user's process is there, too
        return isinstance(error, ProcessLookupError)
    return False


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, column order and type of an array in .npy format, before anything is allocated.

    What is no array of plain numbers (objects need pickle) is a ValueError.
    """
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("an unusual version")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # a header is Python text to NumPy, so damage has many names
        raise ValueError("no .npy array of a plain type, or its header is damaged") from error
    if dtype.kind not in "fiub" or dtype.itemsize > 8 or any(size < 0 for size in shape):
        raise ValueError(f"an array of type {dtype} and shape {shape}, not of plain numbers")
    return shape, by_column, dtype
