"""Saving a dataset as a directory: memory-mappable, without pickle, all or nothing.

meta.json names the format and its version, a .npy file for every array with its shape, type and
CRC-32, and the dataset's `info`. Texts (document names, query ids that are no numbers) are stored
as the bytes of their UTF-8 lines. Every save writes files with names of their own and then renames
meta.json into place: that is the moment from which the new version counts.
"""

import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._files import npy_header, own_name, whole_directory

FORMAT, VERSION = "fairpg_lite.RankingDataset", 2
META = "meta.json"
REQUIRED = {"features", "relevance", "offsets", "query_ids"}
OPTIONAL = {"groups", "document_ids", "documents"}


def save_arrays(
    fields: Mapping[str, Any], info: dict[str, Any], path: str | Path, overwrite: bool
) -> None:
    """Write a dataset's fields to the directory `path`; see the module for the format."""
    target = Path(path)
    if target.exists():
        ours = _read_json(target) is not None
        if not (overwrite and ours):
            way_out = "; overwrite=True replaces it." if ours else " and is not a dataset."
            raise FileExistsError(f"RankingDataset.save: {target} exists{way_out}")
    with whole_directory(target, index=META) as directory:
        arrays = {}
        for name, values in fields.items():
            if values is not None:
                array, file = _as_array(name, values), own_name(name, ".npy")
                np.save(directory / file, array, allow_pickle=False)
                kind = {"shape": array.shape, "dtype": array.dtype.str}
                arrays[name] = {"file": file, **kind, "crc32": _checksum(array)}
        meta = {"format": FORMAT, "version": VERSION, "arrays": arrays, "info": info}
        (directory / META).write_text(json.dumps(meta, indent=1) + "\n", "utf-8")


def _as_array(name: str, values: Any) -> np.ndarray:
    if isinstance(values, Tensor):
        if values.dtype not in (torch.float32, torch.float64, torch.float16, torch.int64):
            raise TypeError(
                f"RankingDataset.save: {name} is {values.dtype}; use .to(torch.float32)."
            )
        return np.ascontiguousarray(values.detach().cpu().numpy())
    return np.frombuffer("".join(f"{line}\n" for line in values).encode(), np.uint8)


def _checksum(array: np.ndarray) -> int:
    crc, flat = 0, array.reshape(-1)
    for start in range(0, len(flat), 1 << 20):  # in blocks: a memory map is read, never held
        crc = zlib.crc32(flat[start : start + (1 << 20)].tobytes(), crc)
    return crc


def load_arrays(path: str | Path, mmap: bool, verify: bool | None) -> dict[str, Any]:
    """The arguments of RankingDataset as stored at `path`."""
    directory = Path(path)
    while True:
        meta = _read_meta(directory)
        try:
            arrays = {
                name: _read_array(directory, name, entry, mmap, verify)
                for name, entry in meta["arrays"].items()
            }
            return {**arrays, "info": meta["info"]}
        except ValueError:
            if _read_json(directory) == meta:  # else it was replaced while we read it
                raise


def _read_json(directory: Path) -> dict[str, Any] | None:
    """meta.json, if it is one of ours."""
    try:
        meta = json.loads((directory / META).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return meta if isinstance(meta, dict) and meta.get("format") == FORMAT else None


def _read_meta(directory: Path) -> dict[str, Any]:
    if not directory.is_dir():
        raise FileNotFoundError(f"RankingDataset.load: no directory {directory}.")
    meta = _read_json(directory)
    if meta is None:
        raise ValueError(
            f"RankingDataset.load: {directory} was not written by RankingDataset.save "
            f"(no {META} that names {FORMAT})."
        )
    if meta.get("version") not in (1, VERSION):
        raise ValueError(
            f"RankingDataset.load: {directory} has format version {meta.get('version')}, this "
            f"fairpg_lite reads up to {VERSION}; install the fairpg_lite that wrote it, or a newer."
        )
    arrays = meta.get("arrays")
    if not (
        isinstance(arrays, dict)
        and isinstance(meta.get("info"), dict)
        and set(arrays) >= REQUIRED
        and set(arrays) <= REQUIRED | OPTIONAL
        and all(
            isinstance(e, dict) and {"shape", "dtype", "crc32"} <= set(e) for e in arrays.values()
        )
    ):
        raise ValueError(f"RankingDataset.load: {directory / META} is damaged.")
    return meta


def _read_array(
    directory: Path, name: str, entry: dict[str, Any], mmap: bool, verify: bool | None
) -> Any:
    """One array; the sizes in meta.json, in the header and of the file agree before it is read."""
    file = directory / Path(str(entry.get("file", f"{name}.npy"))).name  # never another directory
    try:
        with file.open("rb") as stream:
            shape, by_column, dtype = npy_header(stream)
            if (list(shape), dtype.str) != (entry["shape"], entry["dtype"]):
                raise ValueError(f"it holds {dtype} {list(shape)}, {META} says otherwise")
            start, size = stream.tell(), file.stat().st_size
            if size != start + math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{size:,} bytes are not what its shape {shape} needs")
            mapped = (
                mmap and name == "features" and 0 not in shape
            )  # nothing to map in an empty one
            order: Any = "F" if by_column else "C"
            array: np.ndarray
            if mapped:  # "c", copy on write: torch needs a writable array, the file stays untouched
                array = np.memmap(stream, dtype, "c", start, shape, order)
            else:
                array = np.fromfile(stream, dtype).reshape(shape, order=order)
            if (verify or (verify is None and not mapped)) and _checksum(array) != entry["crc32"]:
                raise ValueError(f"it does not have the checksum of {META}")
            text = dtype == np.uint8 and name in ("documents", "query_ids")
            return array.tobytes().decode().split("\n")[:-1] if text else torch.from_numpy(array)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"RankingDataset.load: {file} is missing or damaged: {error}.") from error
