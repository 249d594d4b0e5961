"""The example report of the book: `python tools/example_report.py` makes both of its pages anew.

A LambdaMART of LightGBM is trained on the shipped sample of MSLR-WEB10K. It shows the first twenty
documents of each test query, which is audited (before). Then its scores are divided by a
temperature and lists are drawn (after). The temperature is chosen on validation queries.
Groups are small and large sites: whether SiteRank, feature 131, is above the median of the training
documents; a higher value is taken for a larger site.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from fairpg_lite import PlackettLuce, RankingDataset  # noqa: E402
from fairpg_lite.auditing import ShownLists, audit_policies  # noqa: E402
from fairpg_lite.cli import main as fairpg_lite  # noqa: E402
from fairpg_lite.data.mslr import mslr_raw  # noqa: E402

PAGES = ROOT / "book" / "_static" / "example_report"
NUMBERS = ROOT / "results" / "audit-example"
SITE_RANK = 130  # feature 131, counted from 0
TRAINING_QUERIES = 30  # of 42; the others validate
DEPTH = 20
DRAWS = 50
TEMPERATURES = (0.25, 0.5, 1.0, 2.0)
COMMANDS = {
    "before": "run.txt --qrels qrels.txt --groups groups.csv --out before",
    "after": "draws.jsonl --qrels qrels.txt --groups groups.csv --out after",
}


def with_sites(data: RankingDataset, threshold: float) -> RankingDataset:
    """The queries with small and large sites as groups, and a name for each document."""
    names = []
    for query, length in zip(data.query_ids.tolist(), data.lengths.tolist(), strict=True):
        names += [f"{query}-{number}" for number in range(length)]
    return data.replace(
        groups=(data.features[:, SITE_RANK] > threshold).long(),
        documents=names,
        info={"group_names": ["small sites", "large sites"]},
    )


def trained(train: RankingDataset, valid: RankingDataset) -> Any:
    """A LambdaMART that stops when the validation queries say so."""
    import lightgbm

    def as_lightgbm(data: RankingDataset, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            data.features.numpy(),
            label=data.relevance.numpy(),
            group=data.lengths.numpy(),
            reference=reference,
        )

    settings = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "seed": 0,
        "num_threads": 1,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
    }
    first = as_lightgbm(train)
    stop = lightgbm.early_stopping(30, verbose=False)
    return lightgbm.train(
        settings, first, 300, valid_sets=[as_lightgbm(valid, first)], callbacks=[stop]
    )


def shown(scores: Tensor, temperature: float | None, generator: torch.Generator) -> list[list[int]]:
    """The first places: of the sorted list, or of lists that are drawn at a temperature."""
    if temperature is None:
        return [PlackettLuce(scores).mode[:DEPTH].tolist()]
    policy = PlackettLuce(scores / temperature)
    drawn = policy.sample((DRAWS,), generator, k=min(DEPTH, len(scores)))
    return [ranking.tolist() for ranking in drawn]


def all_shown(
    booster: Any, data: RankingDataset, temperature: float | None, seed: int
) -> list[list[list[int]]]:
    """The lists of each query."""
    scores = torch.from_numpy(booster.predict(data.features.numpy()))
    generator = torch.Generator().manual_seed(seed)
    by_query = scores.split(data.lengths.tolist())
    return [shown(query_scores, temperature, generator) for query_scores in by_query]


def disparity(booster: Any, data: RankingDataset, temperature: float | None) -> float:
    """D_group of what is shown."""
    lists = all_shown(booster, data, temperature, seed=1)
    policies = [
        ShownLists(query_lists, length)
        for query_lists, length in zip(lists, data.lengths.tolist(), strict=True)
    ]
    return audit_policies(policies, data).measures["d_group"].value


def chosen_temperature(booster: Any, valid: RankingDataset) -> float:
    """The least temperature that halves D_group on the validation queries."""
    wanted = 0.5 * disparity(booster, valid, None)
    for temperature in TEMPERATURES:
        if disparity(booster, valid, temperature) <= wanted:
            return temperature
    raise RuntimeError(f"example_report: no temperature up to {TEMPERATURES[-1]} halves D_group.")


def write_inputs(booster: Any, test: RankingDataset, temperature: float) -> None:
    """The run, the draws, the judgements and the groups, in the current folder."""
    sorted_lists = all_shown(booster, test, None, seed=0)
    drawn_lists = all_shown(booster, test, temperature, seed=0)
    start = 0
    with (
        open("run.txt", "w") as run,
        open("draws.jsonl", "w") as draws,
        open("qrels.txt", "w") as qrels,
        open("groups.csv", "w", newline="") as groups,
    ):
        group_table = csv.writer(groups)
        group_table.writerow(["document", "group"])
        for number, (query_id, query) in enumerate(zip(test.query_ids.tolist(), test, strict=True)):
            assert query.groups is not None
            names = test.documents[start : start + len(query.relevance)].tolist()
            start += len(names)
            for rank, document in enumerate(sorted_lists[number][0], 1):
                run.write(f"{query_id} Q0 {names[document]} {rank} {DEPTH - rank} lambdamart\n")
            for draw, ranking in enumerate(drawn_lists[number]):
                record = {
                    "query": query_id,
                    "sample": draw,
                    "ranking": [names[document] for document in ranking],
                }
                draws.write(json.dumps(record) + "\n")
            grades = zip(names, query.relevance.tolist(), query.groups.tolist(), strict=True)
            for name, grade, group in grades:
                qrels.write(f"{query_id} 0 {name} {grade:g}\n")
                group_table.writerow([name, test.info["group_names"][group]])


def make(folder: Path) -> float:
    """Train, rank and audit in a folder; the temperature that was chosen."""
    raw = mslr_raw("train")
    threshold = float(raw.features[:, SITE_RANK].median())
    train = with_sites(raw[:TRAINING_QUERIES], threshold)
    valid = with_sites(raw[TRAINING_QUERIES:], threshold)
    test = with_sites(mslr_raw("test"), threshold)
    booster = trained(train, valid)
    temperature = chosen_temperature(booster, valid)
    with chdir(folder):
        write_inputs(booster, test, temperature)
        for words in COMMANDS.values():
            call = ["audit", *words.split(), "--quiet"]
            sys.argv = ["fairpg-lite", *call[:-1]]  # what the report says it was made by
            if fairpg_lite(call) != 0:
                raise RuntimeError(f"example_report: fairpg-lite {' '.join(call)} failed.")
    return temperature


def main() -> int:
    """Make both pages, and store them with their numbers."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        temperature = make(folder)
        for part in COMMANDS:
            PAGES.mkdir(parents=True, exist_ok=True)
            NUMBERS.mkdir(parents=True, exist_ok=True)
            os.replace(folder / part / "report.html", PAGES / f"{part}.html")
            numbers = json.loads((folder / part / "report.json").read_text(encoding="utf-8"))
            numbers["made_by"] = "python tools/example_report.py"
            numbers["temperature"] = None if part == "before" else temperature
            text = json.dumps(numbers, indent=1, ensure_ascii=False)
            (NUMBERS / f"{part}.json").write_text(text + "\n", encoding="utf-8")
    print(f"temperature {temperature:g}; wrote {PAGES} and {NUMBERS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
