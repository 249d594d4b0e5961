"""Convert the original data files to what `fairpg_lite/_data` holds, with checksums.

    python tools/make_data.py SOURCE

SOURCE must hold german.data (Statlog German Credit, the original file) and
mslr_web10k_fold1_{train,test}_5k.txt.xz (the first 5,000 lines of MSLR-WEB10K Fold 1, train and
test). Where they come from: fairpg_lite/_data/README.md.
"""

import hashlib
import io
import lzma
import sys
from pathlib import Path

import numpy as np
import torch

from fairpg_lite.data.letor import load_letor

GERMAN_SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
CUT_QUERIES = {"train": 631, "test": 643}  # the last query of each file lacks documents


def convert_german(source: Path, target: Path) -> Path:
    """The original bytes, as they are."""
    content = (source / "german.data").read_bytes()
    if hashlib.sha256(content).hexdigest() != GERMAN_SHA256:
        raise ValueError(f"{source / 'german.data'} is not the original file.")
    out = target / "german.data"
    out.write_bytes(content)
    return out


def convert_mslr(source: Path, target: Path, part: str) -> Path:
    """Text to arrays without the cut query; feature-major, which compresses best."""
    dataset = load_letor(source / f"mslr_web10k_fold1_{part}_5k.txt.xz", dtype=torch.float64)
    if int(dataset.query_ids[-1]) != CUT_QUERIES[part]:
        raise ValueError(f"the last query of {part} is {int(dataset.query_ids[-1])}.")
    whole = dataset[:-1]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        features=np.ascontiguousarray(whole.features.numpy().T),
        relevance=whole.relevance.numpy().astype(np.uint8),
        offsets=whole.offsets.numpy(),
        query_ids=np.array(whole.query_ids.tolist()),
    )
    out = target / f"mslr_web10k_fold1_{part}.npz.xz"
    out.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    return out


def main(source: Path, target: Path) -> None:
    written = [convert_german(source, target)]
    written += [convert_mslr(source, target, part) for part in ("train", "test")]
    written.append(target / "german_codes.json")  # written by hand
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in written]
    (target / "SHA256SUMS").write_text("".join(sums), "ascii")
    for file in written:
        print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(__file__).parent.parent / "fairpg_lite" / "_data")
