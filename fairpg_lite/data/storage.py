"""Saving a dataset as a directory of .npy files: memory-mappable, without pickle, all or nothing.

The directory holds features.npy, relevance.npy, offsets.npy, query_ids.npy, groups.npy and
document_ids.npy (the last two where present) and meta.json with the format's name and version,
the shape, type and CRC-32 of every array, and the dataset's `info`.
"""

import json
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from fairpg_lite.data.dataset import RankingDataset

FORMAT, VERSION = "fairpg_lite.RankingDataset", 1
REQUIRED = ("features", "relevance", "offsets", "query_ids")
OPTIONAL = ("groups", "document_ids")


def _checksum(array: np.ndarray) -> int:
    crc = 0
    flat = array.reshape(-1)
    for start in range(0, len(flat), 1 << 20):  # in blocks: a memory map is read, never held
        crc = zlib.crc32(flat[start : start + (1 << 20)].tobytes(), crc)
    return crc


def save_dataset(dataset: "RankingDataset", path: str | Path, overwrite: bool = False) -> None:
    """Write `dataset` to the directory `path`; see the module's docstring for the format."""
    target = Path(path)
    if target.exists() and not (overwrite and _is_ours(target)):
        raise FileExistsError(
            f"RankingDataset.save: {target} exists"
            + ("; overwrite=True replaces it." if _is_ours(target) else " and is not a dataset.")
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(dataset, temporary)
        _swap(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    try:
        return json.loads((path / "meta.json").read_text("utf-8"))["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write(dataset: "RankingDataset", directory: Path) -> None:
    arrays = {}
    for name in REQUIRED + OPTIONAL:
        values = getattr(dataset, name)
        if values is not None:
            array = values.detach().cpu().numpy()
            np.save(directory / f"{name}.npy", array, allow_pickle=False)
            crc = _checksum(array)
            arrays[name] = {"shape": array.shape, "dtype": array.dtype.str, "crc32": crc}
    meta = {"format": FORMAT, "version": VERSION, "arrays": arrays, "info": dataset.info}
    (directory / "meta.json").write_text(json.dumps(meta, indent=1) + "\n", "utf-8")


def _swap(temporary: Path, target: Path) -> None:
    """Put the finished directory in place; an older one steps aside first."""
    if not target.exists():
        os.replace(temporary, target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    try:
        os.replace(target, aside / "old")
        os.replace(temporary, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def load_dataset(path: str | Path, mmap: bool, verify: bool | None) -> dict[str, Any]:
    """The arguments of RankingDataset as stored at `path`."""
    directory = Path(path)
    meta = _read_meta(directory)
    arrays = {
        name: torch.from_numpy(_read_array(directory, name, entry, mmap, verify))
        for name, entry in meta["arrays"].items()
    }
    return {**arrays, "info": meta["info"]}


def _read_meta(directory: Path) -> dict[str, Any]:
    if not directory.is_dir():
        raise FileNotFoundError(f"RankingDataset.load: no directory {directory}.")
    if not _is_ours(directory):
        raise ValueError(
            f"RankingDataset.load: {directory} was not written by RankingDataset.save "
            f"(no meta.json that names {FORMAT})."
        )
    meta = json.loads((directory / "meta.json").read_text("utf-8"))
    version, names = meta.get("version"), set(meta.get("arrays", ()))
    if version != VERSION:
        raise ValueError(
            f"RankingDataset.load: {directory} has format version {version}, this fairpg_lite "
            f"reads version {VERSION}; install the fairpg_lite that wrote it, or a newer one."
        )
    entries = [meta["arrays"][name] for name in names]
    complete = all(
        isinstance(entry, dict) and {"shape", "dtype", "crc32"} <= set(entry) for entry in entries
    )
    if not complete or not set(REQUIRED) <= names <= {*REQUIRED, *OPTIONAL} or "info" not in meta:
        raise ValueError(f"RankingDataset.load: {directory / 'meta.json'} is damaged.")
    return meta


def _read_array(
    directory: Path, name: str, entry: dict[str, Any], mmap: bool, verify: bool | None
) -> np.ndarray:
    file = directory / f"{name}.npy"
    mapped = (
        mmap and name == "features" and 0 not in entry["shape"]
    )  # nothing to map in an empty one
    try:
        # "c" (copy on write): torch needs a writable array, and the file stays untouched.
        array = np.load(file, mmap_mode="c" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"RankingDataset.load: {file} is missing or damaged ({error}).") from error
    found = (list(array.shape), array.dtype.str)
    if found != (entry["shape"], entry["dtype"]):
        raise ValueError(
            f"RankingDataset.load: {file} holds {found[1]} {found[0]}, meta.json says "
            f"{entry['dtype']} {entry['shape']}; the directory is damaged."
        )
    if (verify or (verify is None and not mapped)) and _checksum(array) != entry["crc32"]:
        raise ValueError(f"RankingDataset.load: {file} does not have the checksum of meta.json.")
    return array
