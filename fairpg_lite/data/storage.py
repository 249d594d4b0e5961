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

FORMAT, VERSION, META = "fairpg_lite.RankingDataset", 2, "meta.json"
REQUIRED = {"features", "relevance", "offsets", "query_ids"}
OPTIONAL = {"groups", "document_ids", "documents"}


def save_arrays(
    fields: Mapping[str, Any], info: dict[str, Any], path: str | Path, overwrite: bool
) -> None:
    """Write a dataset's fields to the directory `path`; see the module for the format."""
    target = Path(path)
    if target.exists():
        ours = _read_meta(target) is not None
        if not (overwrite and ours):
            way_out = "; overwrite=True replaces it." if ours else " and is not a dataset."
            raise FileExistsError(f"RankingDataset.save: {target} exists{way_out}")
    with whole_directory(target, index=META) as directory:
        arrays = {}
        for name, values in fields.items():
            if isinstance(values, Tensor):
                array = np.ascontiguousarray(values.detach().cpu().numpy())
            elif values is not None:
                array = np.frombuffer("".join(f"{line}\n" for line in values).encode(), np.uint8)
            else:
                continue
            file, kind = own_name(name, ".npy"), {"shape": array.shape, "dtype": array.dtype.str}
            np.save(directory / file, array, allow_pickle=False)
            arrays[name] = {"file": file, **kind, "crc32": zlib.crc32(array.data)}
        meta = {"format": FORMAT, "version": VERSION, "arrays": arrays, "info": info}
        (directory / META).write_text(json.dumps(meta, indent=1) + "\n", "utf-8")


def load_arrays(path: str | Path, mmap: bool) -> dict[str, Any]:
    """The arguments of RankingDataset as stored at `path`."""
    directory = Path(path)
    if not directory.is_dir():
        raise FileNotFoundError(f"RankingDataset.load: no directory {directory}.")
    while True:
        meta = _read_meta(directory)
        if meta is None:
            problem = f"was not written by RankingDataset.save (no {META} that names {FORMAT})"
        elif meta.get("version") not in (1, VERSION):
            problem = f"has format version {meta.get('version')}; install a newer fairpg_lite"
        else:
            try:
                if not REQUIRED <= set(meta["arrays"]) <= REQUIRED | OPTIONAL:
                    raise ValueError(f"it has the arrays {list(meta['arrays'])}")
                arrays = {
                    name: _read_array(directory, name, entry, mmap and name == "features")
                    for name, entry in meta["arrays"].items()
                }
                return {**arrays, "info": dict(meta["info"])}
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                if _read_meta(directory) != meta:  # it was replaced while we read it
                    continue
                problem = f"is damaged: {error!r}"
        raise ValueError(f"RankingDataset.load: {directory} {problem}.")


def _read_meta(directory: Path) -> dict[str, Any] | None:
    """meta.json, if it is one of ours."""
    try:
        meta = json.loads((directory / META).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return meta if isinstance(meta, dict) and meta.get("format") == FORMAT else None


def _read_array(directory: Path, name: str, entry: dict[str, Any], mapped: bool) -> Any:
    """One array; the sizes in meta.json, in the header and of the file agree before it is read."""
    file = directory / Path(str(entry.get("file", f"{name}.npy"))).name  # never another directory
    with file.open("rb") as stream:
        shape, by_column, dtype = npy_header(stream)
        start, size = stream.tell(), file.stat().st_size
    said = {"shape": list(shape), "dtype": dtype.str}
    if size != start + math.prod(shape) * dtype.itemsize or not said.items() <= entry.items():
        raise ValueError(f"{file} holds {size:,} bytes of {said}, {META} says otherwise")
    # "c", copy on write: torch needs a writable array, the file stays untouched.
    array: np.ndarray = np.memmap(file, dtype, "c", start, shape, "F" if by_column else "C")
    if not mapped:
        array = np.array(array)
        if zlib.crc32(np.ascontiguousarray(array).data) != entry["crc32"]:
            raise ValueError(f"{file} does not have the checksum of {META}")
    if dtype == np.uint8 and name in ("documents", "query_ids"):
        return array.tobytes().decode().split("\n")[:-1]
    return torch.from_numpy(array)
