"""Processes that each hold a part of the queries train as one process that holds them all."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from fairpg_lite import LinearScorer, TrainConfig, evaluate, synthetic

ROOT = Path(__file__).resolve().parents[2]


SETTINGS = {"lam": 5.0, "method": "exact", "lr": 0.1, "epochs": 3, "batch_size": 4}
SAMPLED = {**SETTINGS, "method": "sample", "queries": 16, "valid": True}
BUDGET = {**SETTINGS, "epochs": 4, "batch_size": 8, "queries": 16, "lam": 0.0, "budget": 0.002}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of two processes found in each job, [job][process]; they start once for all."""
    folder = tmp_path_factory.mktemp("together")
    jobs = [
        *({**SETTINGS, "queries": queries} for queries in (16, 17, 21)),
        SAMPLED,
        BUDGET,
        {**SAMPLED, "checkpoint": str(folder / "kept")},
    ]
    names, processes = [folder / f"out-{rank}" for rank in range(2)], []
    for rank, name in enumerate(names):
        script = str(ROOT / "tests" / "module" / "distributed_process.py")
        command = [sys.executable, script, str(rank), "2", str(folder / "init"), str(name)]
        processes.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE))
        processes[-1].stdin.write(json.dumps(jobs).encode())
        processes[-1].stdin.close()
    assert [process.wait() for process in processes] == [0, 0]
    assert not (folder / "kept").exists()
    return list(zip(*(json.loads(name.read_text()) for name in names), strict=True))


def joined(queries, world=2):
    """One process by hand: the shards' batches joined, the mean over their queries, Adam."""
    data = synthetic(n_queries=queries, seed=0).to(dtype=torch.float64)
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    config = TrainConfig(**SETTINGS)
    optimizer = torch.optim.Adam(scorer.parameters(), config.lr)
    bounds = [k * queries // world for k in range(world + 1)]
    shards = [data[a:b] for a, b in pairwise(bounds)]
    orders = [torch.Generator().manual_seed(0) for _ in shards]
    utility = []
    for _ in range(config.epochs):
        parts = [
            list(shard.batches(config.batch_size, True, order))
            for shard, order in zip(shards, orders, strict=True)
        ]
        seen = []
        for k in range(max(map(len, parts))):
            optimizer.zero_grad()
            now = [part[k] for part in parts if k < len(part)]
            terms = [config.terms(scorer(batch.features), batch) for batch in now]
            objective = torch.cat([config.total(term) for term in terms])
            (-objective.mean()).backward()
            optimizer.step()
            seen += [term.utility.detach() for term in terms]
        utility.append(float(torch.cat(seen).mean()))
    return scorer, utility


@pytest.mark.parametrize(("job", "queries"), [(0, 16), (1, 17), (2, 21)])
def test_two_processes_train_like_one_with_the_batches_joined(found, job, queries):
    """17 queries: two batches in one process, three in the other; 21: last batches of 2 and 3."""
    scorer, utility = joined(queries)
    one, two = found[job]
    assert one["weights"] == two["weights"]
    assert one["weights"] == pytest.approx(scorer.linear.weight[0].tolist(), rel=1e-9)
    assert one["utility"] == two["utility"] == pytest.approx(utility, rel=1e-12)


def test_validation_decides_for_all(found):
    """Each process draws its own rankings, and all keep the same epoch."""
    one, other = found[3]
    for name in ("weights", "kept", "utility", "valid_utility"):
        assert one[name] == other[name]


def test_a_budget_is_that_of_all_queries(found):
    one, two = found[4]
    assert (one["lam"], one["weights"]) == (two["lam"], two["weights"])
    scorer = LinearScorer(2, dtype=torch.float64)
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.tensor([one["weights"]], dtype=torch.float64))
    data = synthetic(n_queries=16, seed=0).to(dtype=torch.float64)
    whole = evaluate(scorer, data).d_group
    assert one["disparity"] == two["disparity"] == pytest.approx(whole, abs=1e-5)


def test_a_checkpoint_is_refused(found):
    assert all(
        "checkpoint= is not supported in distributed" in answer["error"] for answer in found[5]
    )


@pytest.mark.slow
def test_torchrun_prints_what_chapter_18_says(tmp_path):
    """The chapter's script, by its command; two processes may print into each other's lines."""
    text = (ROOT / "book" / "18_cluster.md").read_text()
    script, command, shown = (
        re.search(rf"```{kind}\n({start}.*?)```", text, flags=re.DOTALL)[1]
        for kind, start in (("python", ""), ("bash", "torchrun"), ("text", ""))
    )
    (tmp_path / "together.py").write_text(script)
    program, *words = command.split()
    assert program == "torchrun"
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert all(line in result.stdout for line in shown.splitlines())
    assert len(result.stdout.replace("\n", "")) == len(shown.replace("\n", ""))  # nothing else
