"""A dataset as bytes: its file, its checksum, and what of it is sent to another process.

The file begins with the features as NumPy writes them (`numpy.load` reads them alone), so that they
can be memory-mapped; all other arrays follow, as torch writes them. It is opened once, so a file
that is replaced meanwhile cannot be read half and half.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._files import whole_file

FORMAT = "fairpg_lite.RankingDataset 1"


def write(path: str | os.PathLike[str], fields: Mapping[str, Any], info: dict[str, Any]) -> None:
    """Write the arrays of a dataset to one file, whole or not at all."""
    features = np.ascontiguousarray(fields["features"].numpy(force=True))
    others = {name: _plain(values) for name, values in fields.items() if name != "features"}
    second_part = io.BytesIO()
    torch.save([FORMAT, digest(others), others, info], second_part)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        header = np.lib.format.header_data_from_array_1_0(features)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(features.data)
        file.write(second_part.getbuffer())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays in a file of `write`, features memory-mapped, and its `info`.

    What is mapped is not read, so the checksum is of all other arrays.
    """
    with open(path, "rb") as file:
        try:
            features = _mapped(file)
            stored = torch.load(io.BytesIO(file.read()), map_location="cpu", weights_only=True)
            written_format, expected, others, info = stored
        except Exception as error:  # a damaged file makes NumPy and torch raise a dozen kinds
            raise damaged(path, error) from error
    if written_format != FORMAT:
        raise ValueError(
            f"RankingDataset.load: {path} has the format {written_format!r}, and this version of "
            f"fairpg-lite reads {FORMAT!r}; write it again with RankingDataset.save."
        )
    try:
        checksum = digest(others)
    except (TypeError, AttributeError) as error:
        raise damaged(path, error) from error
    if checksum != expected:
        raise ValueError(
            f"RankingDataset.load: {path} is damaged: its checksum is {checksum}, and {expected} "
            "was written; write it again with RankingDataset.save."
        )
    return {"features": features, **others}, info


def damaged(path: str | os.PathLike[str], error: Exception) -> ValueError:
    """Return the error for a file that cannot be read as one of `write`."""
    return ValueError(
        f"RankingDataset.load: {path} is damaged, or no file of RankingDataset.save "
        f"({type(error).__name__}: {error})."
    )


def digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the names, types, shapes and values of all arrays."""
    checksum = hashlib.sha256()
    for name, values in fields.items():
        if isinstance(values, Tensor):
            array = np.ascontiguousarray(values.numpy(force=True))
            checksum.update(f"{name} {array.dtype} {array.shape};".encode())
            checksum.update(array.data)
        elif isinstance(values, Mapping):
            named = {f"{name} {column}": values[column] for column in sorted(values)}
            checksum.update(digest(named).encode())
        elif values is not None:
            checksum.update(f"{name} {json.dumps(list(values))};".encode())
    return checksum.hexdigest()


def compact(values: Any) -> Any:
    """Return a view as a copy of its own: torch stores all the memory behind a view."""
    if isinstance(values, Tensor) and values.untyped_storage().nbytes() > values.nbytes:
        return values.clone()
    if isinstance(values, dict):
        return {name: compact(value) for name, value in values.items()}
    return values


def _plain(values: Any) -> Any:
    """Return an array as `torch.load(weights_only=True)` reads it: a tensor, or a list of texts."""
    return values.tolist() if isinstance(values, np.ndarray) else compact(values)


def _mapped(file: BinaryIO) -> Tensor:
    """Return the array at the beginning of `file`, memory-mapped, and go to its end.

    Writing to the tensor changes memory only.
    """
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"the features are in version {version} of NumPy's format, not (1, 0)")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if is_fortran or dtype.kind != "f":
        raise ValueError(f"the features are {dtype}, not floating-point rows")
    begin = file.tell()
    array = np.memmap(file, dtype, mode="c", offset=begin, shape=shape)
    file.seek(begin + array.nbytes)
    return torch.from_numpy(array)
