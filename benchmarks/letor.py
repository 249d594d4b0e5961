"""How fast is `load_letor`? Time as a ratio to scikit-learn's own reader on the same file.

python -m benchmarks.letor
"""

import os
import tempfile
from functools import partial
from pathlib import Path

import torch
from sklearn.datasets import load_svmlight_file

from benchmarks import _timing
from experiments import yahoo_files
from experiments.stand_in import yahoo_like
from fairpg_lite.data import RankingDataset, load_letor, save_letor
from fairpg_lite.data.mslr import mslr_raw

REPEATS = 5


def reader_row(name: str, dataset: RankingDataset, suffix: str, directory: Path) -> str:
    """Both readers in turn, so that a busy machine slows both; medians and their ratio."""
    file = directory / f"{name.replace(' ', '_')}.txt{suffix}"
    save_letor(dataset, file)
    readers = {
        "ours": partial(load_letor, file, n_features=dataset.n_features),
        "scikit-learn": partial(load_svmlight_file, str(file), query_id=True),
    }
    spent = _timing.interleaved(readers, REPEATS)
    ours = spent["ours"]
    theirs = spent["scikit-learn"]
    return (
        f"{name + suffix:<26}{dataset.n_documents:>10,}{ours:>10.2f}{theirs:>14.2f}"
        f"{ours / theirs:>8.2f}"
    )


def cache_row(n_queries: int, directory: Path) -> str:
    """First and second load of a directory laid out as Yahoo's, filled with the stand-in."""
    for part in ("train", "valid", "test"):
        stand_in = yahoo_like(n_queries, part=part)
        save_letor(stand_in, directory / f"set1.{part}.txt")
        yahoo_files.PUBLISHED_COUNTS[part] = (n_queries, stand_in.n_documents)
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    first = _timing.seconds(partial(yahoo_files.yahoo, directory))
    second = _timing.seconds(partial(yahoo_files.yahoo, directory))
    return f"yahoo(): first load {first:.2f} s, from the cache {second:.3f} s"


def main() -> None:
    """Print the table."""
    print(f"{'file':<26}{'documents':>10}{'ours (s)':>10}{'sklearn (s)':>14}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        train = mslr_raw("train").to(torch.float32)
        for suffix in ("", ".gz", ".bz2"):
            print(reader_row("MSLR sample", train, suffix, directory))
        for n_queries in (100, 800):
            stand_in = yahoo_like(n_queries)
            print(reader_row(f"stand-in {n_queries} queries", stand_in, "", directory))
    with tempfile.TemporaryDirectory() as name:
        print(cache_row(300, Path(name)))
    for n_queries in (1000, 19_944):
        seconds = _timing.seconds(partial(yahoo_like, n_queries))
        print(f"yahoo_like({n_queries}): {seconds:.2f} s")


if __name__ == "__main__":
    main()
