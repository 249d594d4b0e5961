"""Utility and disparity of a model on a LETOR file, or of two.

Of one model: the stochastic policy, and the one ranking that is most probable under it (documents
by score). Of two: what differs between their policies. All measures are means over queries and
exact.

examples:
  fairpg-lite evaluate model/ test.txt
  fairpg-lite evaluate model/ test.txt --k 10 --undefined skip --json
  fairpg-lite evaluate model/ test.txt --per-query measures.csv
  fairpg-lite evaluate fair/ plain/ test.txt                 two models, query by query

measures: NDCG and NDCG@k, ERR (at k as well), average rank of what is relevant, D_ind, D_group
  and the gap between groups in both directions (absent without groups). Exposure: 1/log2(1 +
  position). The column "queries" counts those where a measure has an answer of its own: most
  have none where nothing is relevant, D_group none where a group or its merit is absent.
"""

import argparse
import csv
import json
from math import isnan, nan
from typing import Any

import numpy as np

from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import read_for
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.evaluation import MEASURES, Evaluation
from fairpg_lite.models import load_model
from fairpg_lite.relevance import MERITS

USAGE = None
NAMES = {
    "ndcg": "NDCG",
    "ndcg_at_k": "NDCG@k",
    "err": "ERR",
    "average_rank": "average rank",
    "d_ind": "D_ind",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
}


def judging(args: argparse.Namespace) -> dict[str, Any]:
    """How a model is judged, for `fairpg_lite.evaluate`."""
    skip = args.undefined == "skip"
    how = {name: getattr(args, name) for name in ("k", "max_grade", "merit", "gain")}
    how["undefined"] = nan if skip else float(args.undefined)
    return how | {"undefined_disparity": nan if skip else 0.0}


def add_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "model", nargs="+", help="directory made by fit; one or two")
    cli.add(parser, "file", *cli.JUDGING, "--json", "--per-query", "--force", "--seed", "--groups")
    cli.add(parser, *cli.READING)
    cli.add(parser, "--samples", "--merit", "--gain", default=None)


def run(args: argparse.Namespace) -> int:
    if len(args.model) > 2:
        raise cli.UsageError("evaluate compares two models at most.")
    models = [load_model(name) for name in args.model]
    for name, known in (("merit", tuple(MERITS)), ("gain", ("exponential", "linear"))):
        first = (models[0].meta.get("training") or {}).get(name, known[0])
        setattr(args, name, getattr(args, name) or first)
        if getattr(args, name) not in known:
            raise cli.CliError(f"the model has a {name} of its own ({first}); give --{name}.")
    data = [read_for(args, model, args.groups) for model in models]
    if data[0].groups is None and models[0].prepare.groups_given:
        cli.say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    how = judging(args) | {"samples": args.samples, "seed": args.seed}
    results = {"policy": evaluate(models[0].scorer, data[0], **how)}
    if len(models) == 2:
        results["other"] = evaluate(models[1].scorer, data[1], **how)
    else:
        results["ranking"] = evaluate(models[0].scorer, data[0], deterministic=True, **how)
    if args.per_query is not None:
        _write_queries(args, data[0], results)
    found = _found(args, data[0], results)
    if args.json:  # which has no NaN
        found = json.loads(json.dumps(found), parse_constant=lambda _: None)
    print(json.dumps(found, indent=1) if args.json else _table(found))
    return cli.DONE


def _found(
    args: argparse.Namespace, dataset: RankingDataset, results: dict[str, Evaluation]
) -> dict[str, Any]:
    """All that is printed, as JSON or as a table."""
    found: dict[str, Any] = {"queries": len(dataset), "documents": dataset.n_documents}
    found |= {name: getattr(args, name) for name in ("file", "k", "undefined", "merit", "gain")}
    policy = results["policy"]
    found |= {"models": args.model, "counted": policy.defined}
    for name, result in results.items():
        found[name] = {measure: getattr(result, measure) for measure in MEASURES}
    found["interval"] = {measure: policy.interval(measure) for measure in MEASURES}
    if "other" in results:
        found["difference"] = {m: policy.compare(results["other"], m)._asdict() for m in MEASURES}
    return found


def _table(found: dict[str, Any]) -> str:
    """Of one model its policy and its most probable ranking, of two the difference as well."""
    two, models, k = "other" in found, found["models"], found["k"]
    columns: dict[str, tuple[int, dict[str, Any]]]  # head: width, value of each measure
    if two:
        less = found["difference"]
        columns = {
            "A": (10, found["policy"]),
            "B": (10, found["other"]),
            "A - B": (10, {m: d["mean"] for m, d in less.items()}),
            "95 % interval": (20, {m: (d["low"], d["high"]) for m, d in less.items()}),
            "p": (8, {m: _p_value(d["p_value"]) for m, d in less.items()}),
        }
    else:
        columns = {"policy": (10, found["policy"]), "95 % interval": (20, found["interval"])}
        columns["most probable"] = (15, found["ranking"])
    columns["queries"] = (9, {m: f"{count:,}" for m, count in found["counted"].items()})
    at = "" if k is None else f"@{k}"
    names = NAMES | {"ndcg_at_k": f"NDCG{at}", "err": f"ERR{at}"}
    shown = [m for m in MEASURES if m != "ndcg_at_k" or k is not None]
    rest = f"count {found['undefined']} in NDCG, 0 in ERR and disparity"
    rest = "are left out of NDCG and D_group" if found["undefined"] == "skip" else rest
    gain = {"exponential": "2^grade - 1", "linear": "the grade"}[found["gain"]]
    return "\n".join([
        f"{f'A = {models[0]} and B = {models[1]}' if two else models[0]} on {found['file']}: "
        f"{found['queries']:,} queries, {found['documents']:,} documents",
        "",
        f"{'':14}" + "".join(f"{head:>{width}}" for head, (width, _) in columns.items()),
        *(f"{names[m]:14}" + "".join(f"{_shown(v[m]):>{w}}" for w, v in columns.values())
          for m in shown),
        "",
        f"Gain: {gain}. Queries without an answer {rest} (--undefined {found['undefined']}).",
        "Intervals: bootstrap over queries" + ("; p: sign flips." if two else "."),
    ])  # fmt: skip


def _p_value(p: float) -> str:
    return "<.001" if p < 0.001 else "-" if isnan(p) else f"{p:.3f}"


def _shown(value: Any) -> str:
    """A number, or the two ends of an interval; what is not defined is a dash."""
    if isinstance(value, str):
        return value
    ends = value if isinstance(value, tuple) else (value,)
    return "-" if isnan(ends[0]) else " to ".join(f"{end:.4f}" for end in ends)


def _write_queries(
    args: argparse.Namespace, dataset: RankingDataset, results: dict[str, Evaluation]
) -> None:
    """One row per query in the file's order; a measure that is undefined there is left empty."""
    columns = {"query": np.asarray(dataset.query_ids).tolist()}
    columns["documents"] = dataset.lengths.tolist()
    for name, result in results.items():
        for measure in MEASURES:
            values = result.per_query[measure].tolist()
            columns[f"{name}_{measure}"] = ["" if isnan(v) else repr(v) for v in values]
    with cli.writing(args.per_query, args.force) as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerows([columns, *zip(*columns.values(), strict=True)])
