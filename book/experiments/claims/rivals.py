"""What decides the claims about better ways to the gradient (Section 4.1; chapter 8).

``benchmarks.rivals.training`` stored courses of training, on a stand-in of Yahoo's shape and on
German Credit. The order of *rankers* on the stand-in was put in by design, that of ways to the
gradient of one ranker was not.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.claims.quantities import Point, difference
from experiments.claims.verdicts import Beside, Check, Checks

#: What `experiments.claims.load_results` calls these runs, and where they lie beside ``results``.
NAME = "rivals"
FILE = Path("benchmarks", "results", "rivals_training.json")
PAPER = "REINFORCE, mean"
TO_GO = "reward-to-go, leave-one-out"
PL_RANK = "PL-Rank-3"
#: Lists per query of all three.
LISTS = 10
#: Updates after which a course is early, and at its end.
EARLY = 500
LAST = 4800
DATA = ("stand-in", "German Credit")
MODELS = ("linear", "network")


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The stored courses for NDCG alone, as cells.

    Args:
        path: The file of the benchmark.

    Returns:
        A cell for each way, data set, model and seed, with NDCG on the test queries after `EARLY`
        and `LAST` updates, and after `LAST` at the rate that nobody chose, where that was run.
    """
    stored = json.loads(path.read_text("utf-8"))
    early = stored["looks"].index(EARLY)
    last = stored["looks"].index(LAST)
    return list(_cells(stored["cells"], early, last))


def _cells(stored: list[dict[str, Any]], early: int, last: int) -> Iterator[dict[str, Any]]:
    for each in stored:
        if each["lam"] > 0 or each["samples"] != LISTS:
            continue
        # The persons of German Credit are split anew for every seed.
        is_split = each["data"] == "German Credit"
        problem = {"class": "GermanData", "redrawn": True} if is_split else {"class": "yahoo_like"}
        for place, course in enumerate(each["courses"]):
            result = {"early": course["utility"][early], "ndcg": course["utility"][last]}
            if each["untuned"]:
                result["untuned"] = each["untuned"][place]
            yield {
                "experiment": experiment(each["data"], each["model"], each["way"]),
                "lam": 0.0,
                "seed": course["seed"],
                "status": "done",
                "config": {"problem": problem},
                "result": result,
            }


def experiment(data: str, model: str, way: str) -> str:
    """The name of the cells of one way."""
    return f"{way}, {model}, {data}"


def is_ahead(
    words: str, data: str, model: str, first: tuple[str, str], second: tuple[str, str]
) -> Check:
    """NDCG of one way must be above that of another.

    Args:
        words: What is measured.
        data: One of `DATA`.
        model: One of `MODELS`.
        first: The way that must be ahead, and what is read of its course.
        second: The other.
    """
    points = [Point(experiment(data, model, way), figure) for way, figure in (first, second)]
    return Check(f"{words}, {data}, {model}", difference(*points), low=0.0)


def boosts() -> Checks:
    """Tuning, and a technique of variance control."""
    checks = []
    for data in DATA:
        for model in MODELS:
            paper = (PAPER, "ndcg")
            words = "NDCG gained by tuning"
            checks.append(is_ahead(words, data, model, paper, (PAPER, "untuned")))
            words = "NDCG gained by variance control"
            checks.append(is_ahead(words, data, model, (TO_GO, "ndcg"), paper))
    return tuple(checks)


def learns_more() -> Checks:
    """PL-Rank is ahead early and in the end."""
    checks = []
    for data in DATA:
        for model in MODELS:
            for figure, words in (("early", EARLY), ("ndcg", LAST)):
                label = f"NDCG minus the paper's after {words:,} updates"
                checks.append(is_ahead(label, data, model, (PL_RANK, figure), (PAPER, figure)))
    return tuple(checks)


#: What decides, by claim.
CHECKS: dict[str, Checks] = {"V1": boosts(), "V2": learns_more()}
#: The authors' code has neither.
CODED: dict[str, tuple[str, Checks]] = {}
#: Nothing stands beside.
BESIDE: dict[str, list[Beside]] = {}
