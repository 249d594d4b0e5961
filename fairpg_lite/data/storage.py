"""A dataset as one file: memory-mappable, without pickle, and replaced in one step.

The format is that of safetensors, which others read as well: eight bytes with the length of a JSON
header, the header, and the arrays one after another. Its metadata name our format and version, the
CRC-32 of each array and the dataset's `info`. Texts are stored as the bytes of their UTF-8 lines.
"""

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._files import whole_file

FORMAT, VERSION, ABOUT = "fairpg_lite.RankingDataset", "3", "__metadata__"
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "|u1"}
REQUIRED = {ABOUT, "features", "relevance", "offsets", "query_ids"}
OPTIONAL = {"groups", "document_ids", "documents"}


def save_arrays(
    fields: Mapping[str, Any], info: dict[str, Any], path: str | Path, overwrite: bool
) -> None:
    """Write a dataset's fields to the file `path`, whole or not at all."""
    target = Path(path)
    if target.exists():
        ours = False
        if target.is_file():
            with target.open("rb") as file:
                ours = _header(file) is not None
        if not (overwrite and ours):
            way_out = "; overwrite=True replaces it." if ours else " and is not a dataset."
            raise FileExistsError(f"RankingDataset.save: {target} exists{way_out}")
    about, arrays, end = {"format": FORMAT, "version": VERSION, "info": json.dumps(info)}, [], 0
    header: dict[str, Any] = {ABOUT: about}
    for name, values in fields.items():
        if isinstance(values, Tensor):
            array = np.ascontiguousarray(values.detach().cpu().numpy())
        elif values is not None:
            array = np.frombuffer("".join(f"{line}\n" for line in values).encode(), np.uint8)
        else:
            continue
        kind = next(kind for kind, dtype in DTYPES.items() if dtype == array.dtype.str)
        places = [end, end := end + array.nbytes]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": places}
        about[f"crc32 of {name}"] = str(zlib.crc32(array.data))
        arrays.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)  # so that the features, which come first, are aligned
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays:
            file.write(array.data)


def load_arrays(path: str | Path, mmap: bool) -> dict[str, Any]:
    """The arguments of RankingDataset as stored at `path`."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"RankingDataset.load: no file {path}.")
    with open(path, "rb") as file:  # one opening: a file that is replaced meanwhile stays whole
        header = _header(file)
        if header is None:
            problem = f"was not written by RankingDataset.save (no header that names {FORMAT})"
        elif header[ABOUT].get("version") != VERSION:
            problem = f"has format version {header[ABOUT].get('version')}; install its fairpg_lite"
        else:
            try:
                if not REQUIRED <= set(header) <= REQUIRED | OPTIONAL:
                    raise ValueError(f"it has the arrays {list(header)[1:]}")
                about, start = header.pop(ABOUT), file.tell()
                arrays = {
                    name: _read_array(file, start, name, entry, about, mmap)
                    for name, entry in header.items()
                }
                return {**arrays, "info": dict(json.loads(about["info"]))}
            except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
                problem = f"is damaged: {error!r}"
    raise ValueError(f"RankingDataset.load: {path} {problem}.")


def _header(file: IO[bytes]) -> dict[str, Any] | None:
    """The header, if it is one of ours; nothing is read on the word of a stranger's length."""
    length = int.from_bytes(file.read(8), "little")
    if length > os.fstat(file.fileno()).st_size - 8:
        return None
    try:
        header = json.loads(file.read(length))
        return header if header[ABOUT]["format"] == FORMAT else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _read_array(
    file: IO[bytes], start: int, name: str, entry: Any, about: Mapping[str, str], mmap: bool
) -> Any:
    """One array; what the header says of its size agrees with the file before it is read."""
    kind, shape, (begin, end) = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    dtype, size = np.dtype(kind), os.fstat(file.fileno()).st_size
    whole = all(type(n) is int and n >= 0 for n in (*shape, begin))
    if not whole or end - begin != math.prod(shape) * dtype.itemsize or start + end > size:
        raise ValueError(f"{entry} is not what the file holds")
    array = np.empty(shape, dtype)
    if begin < end:  # "c", copy on write: torch needs a writable array, the file stays untouched
        array = np.memmap(file, dtype, "c", start + begin, tuple(shape))
    if not (mmap and name == "features"):
        array = np.array(array)
        if str(zlib.crc32(array.data)) != about[f"crc32 of {name}"]:
            raise ValueError(f"{name} does not have the checksum of the header")
    if dtype == np.uint8 and name in ("documents", "query_ids"):
        return array.tobytes().decode().split("\n")[:-1]
    return torch.from_numpy(array)
