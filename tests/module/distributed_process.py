"""One of several processes that train together: rank, world, init file, where to leave the results.

Does the jobs it reads from stdin, one after the other. Run by tests/module/test_distributed.py.
"""

import json
import sys

import torch
from torch import distributed

from fairpg_lite import LinearScorer, TrainConfig, fit, fit_to_budget, synthetic


def work(rank, world, job):
    data = synthetic(n_queries=job.pop("queries"), seed=0).to(dtype=torch.float64)
    shard = data.shard(rank, world)
    valid = synthetic(n_queries=10, seed=1) if job.pop("valid", False) else None
    # Each begins elsewhere: the first one's weights count.
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)
    checkpoint, budget = job.pop("checkpoint", None), job.pop("budget", None)
    config, extra = TrainConfig(**job), {}
    try:
        if budget is not None:
            result = fit_to_budget(scorer, shard, budget, config, progress=False)
            history, extra = result.history, {"lam": result.lam, "disparity": result.disparity}
        else:
            history = fit(scorer, shard, config, valid, progress=False, checkpoint=checkpoint)
    except ValueError as error:
        return {"error": str(error)}
    return {"weights": scorer.linear.weight[0].tolist(), **vars(history), **extra}


if __name__ == "__main__":
    rank, world, init, out = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    distributed.init_process_group(
        "gloo", init_method=f"file://{init}", rank=rank, world_size=world
    )
    answers = [work(rank, world, job) for job in json.load(sys.stdin)]
    with open(out, "w", encoding="utf-8") as stream:
        json.dump(answers, stream)
    distributed.destroy_process_group()
