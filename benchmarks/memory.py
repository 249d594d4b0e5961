"""Peak memory of training on the full-size stand-in, made in memory or mapped from a file.

python -m benchmarks.memory

The peak is that of the whole process, PyTorch included; the mark is the data and 500 MB.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import _timing

COMMAND = "python -m benchmarks.memory"
QUERIES = 19_944
SPARE = 500_000_000

MAKE = """
import sys
from experiments.stand_in import yahoo_like
yahoo_like(int(sys.argv[1]), seed=0).save(sys.argv[2])
"""
PROBE = """
import json, sys, torch
from benchmarks._timing import peak_memory
from experiments.stand_in import yahoo_like
from fairpg_lite import LinearScorer, RankingDataset, TrainConfig, fit
torch.set_num_threads(1)
queries, path, method, way = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "compiled"
data = RankingDataset.load(path) if path else yahoo_like(queries, seed=0)
config = TrainConfig(
    method=method, disparity="d_ind", lam=1.0, batch_size=64, epochs=1, compiled=way
)
fit(LinearScorer(data.n_features), data, config, progress=False)
size = sum(x.nbytes for x in (data.features, data.relevance, data.offsets))
print(json.dumps({"data": size, "peak": peak_memory()}))
"""


def probe(path: str, method: str, way: str) -> dict:
    """One fresh process: the peak of a process never goes down."""
    command = [sys.executable, "-c", PROBE, str(QUERIES), path, method, way]
    row = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {**row, "above": row["peak"] - row["data"]}


def main() -> None:
    """Both methods, both ways, in memory and from a file."""
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        path = str(Path(place, "yahoo-like"))
        subprocess.run([sys.executable, "-c", MAKE, str(QUERIES), path], check=True)
        for kind, where in (("in memory", ""), ("mapped", path)):
            for way in ("compiled", "autograd"):
                for method in ("sample", "exact"):
                    row = probe(where, method, way)
                    rows[f"{kind}, {way}, {method}"] = row
                    print(
                        f"{kind}, {way}, {method}: {row['data'] / 1e9:.2f} GB of data, the "
                        f"process {row['above'] / 1e6:.0f} MB above that at its peak",
                        flush=True,
                    )
    over = [name for name, row in rows.items() if "mapped" in name and row["above"] > SPARE]
    print(f"over the mark of {SPARE / 1e6:.0f} MB: {', '.join(over) or 'none'}")
    _timing.store("memory", COMMAND, queries=QUERIES, spare=SPARE, rows=rows)


if __name__ == "__main__":
    main()
