"""Peak memory of training on the full-size stand-in, as a multiple of its data.

python -m benchmarks.memory
"""

import json
import subprocess
import sys

from benchmarks import _timing

COMMAND = "python -m benchmarks.memory"
QUERIES = 19_944

PROBE = """
import json, resource, sys, torch
from fairpg_lite import LinearScorer, TrainConfig, fit, yahoo_like
torch.set_num_threads(1)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
data = yahoo_like({queries}, seed=0)
made = peak()
config = TrainConfig(method="{method}", disparity="individual", lam=1.0, batch_size=64, epochs=1)
fit(LinearScorer(data.n_features), data, config, progress=False)
size = sum(x.nbytes for x in (data.features, data.relevance, data.offsets))
print(json.dumps({{"before": before, "made": made, "trained": peak(), "data": size}}))
"""


def main() -> None:
    """One fresh process per method: the peak of a process never goes down."""
    rows = {}
    for method in ("sample", "exact"):
        code = PROBE.format(queries=QUERIES, method=method)
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        row = json.loads(out.stdout)
        row["ratio"] = (row["trained"] - row["before"]) / row["data"]
        rows[method] = row
        print(
            f"{method}: {row['data'] / 1e9:.2f} GB of data, peak {row['ratio']:.2f} times that "
            "above the bare process"
        )
    _timing.store("memory", COMMAND, queries=QUERIES, rows=rows)


if __name__ == "__main__":
    main()
