"""The decorator `kernel`: Numba's compiler, and a cache on disk that notices every edit here.

Compiling takes about twenty seconds, so the machine code is kept on disk. Numba's own cache
compiles a function again when the file that defines it has changed, but not when a function that it
calls from another file has; it would then run stale machine code. The key of our cache is therefore
explicit: the types of the arguments, the processor, and a hash of all sources in this folder.

So the folder has two rules. A kernel uses functions, constants and named tuples of this folder
only. And a kernel is known by its place in a file: a function that makes kernels, such as
`batches.batch_loop`, is compiled for one choice of its arguments.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache

#: Of fast arithmetic, what leaves infinity and NaN as they are: sums in any order, fused
#: multiplication and addition, no sign of zero.
FASTMATH = {"reassoc", "contract", "nsz"}


def hash_of_sources(folder: Path) -> str:
    """SHA-256 of the names and contents of the Python files in ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = hash_of_sources(Path(__file__).parent)


class FolderCache(FunctionCache):
    """Numba's cache of one function, with `SOURCES` in the key of every entry."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """The key of the machine code for arguments of the types ``sig``."""
        return sig, codegen.magic_tuple(), SOURCES


def kernel(function: Callable[..., Any]) -> Any:
    """The compiled form of ``function``, cached on disk until a file of this folder changes."""
    compiled = njit(nogil=True, error_model="numpy", fastmath=FASTMATH)(function)
    if not config.DISABLE_JIT:  # else it is the Python function itself
        compiled._cache = FolderCache(function)
    return compiled
