"""`fairpg-lite evaluate`: a saved model's utility and disparity on a LETOR file."""

import argparse
import csv
import json
import math
from typing import Any

from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import FORMAT, query_names, read_for, read_model
from fairpg_lite.cli._options import JUDGING, READING, add, add_verbosity, path
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import MERITS
from fairpg_lite.evaluate import evaluate
from fairpg_lite.evaluation import MEASURES, Evaluation

_DESCRIPTION = """\
Evaluate a model on a LETOR file: the stochastic policy, and the one ranking that is most
probable under it (documents by score); or two models, with what differs between their policies.
All measures are means over queries and exact."""
_EXAMPLES = f"""\
examples:
  fairpg-lite evaluate model/ test.txt
  fairpg-lite evaluate model/ test.txt --k 10 --undefined skip --json
  fairpg-lite evaluate model/ test.txt --per-query measures.csv
  fairpg-lite evaluate fair/ plain/ test.txt                 two models, query by query

{FORMAT}
measures: NDCG and NDCG@k, ERR (at k as well), average rank of what is relevant, D_ind, D_group
  and the gap between groups in both directions (absent without groups). Exposure: 1/log2(1 +
  position). The column "queries" counts those where a measure has an answer of its own: most
  have none where nothing is relevant, D_group none where a group or its merit is absent."""

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
    if args.undefined == "skip":
        undefined = {"undefined": math.nan, "undefined_disparity": math.nan}
    else:
        undefined = {"undefined": float(args.undefined), "undefined_disparity": 0.0}
    return {name: getattr(args, name) for name in ("k", "max_grade", "merit", "gain")} | undefined


def add_parser(subparsers: cli.Subparsers) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="utility and disparity of a model on a LETOR file, or of two",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "models", nargs="+", type=path, metavar="MODEL", help="directory made by fit; one or two"
    )
    parser.add_argument("file", type=path, metavar="FILE", help="LETOR file")
    add(parser, *JUDGING, "--json", "--per-query", "--force", "--seed", "--groups", *READING)
    add(parser, "--samples", "--merit", "--gain", default=None)
    add_verbosity(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if len(args.models) > 2:
        raise cli.UsageError("evaluate compares two models at most.")
    models = [read_model(name) for name in args.models]
    for name, known in (("merit", tuple(MERITS)), ("gain", ("exponential", "linear"))):
        first = (models[0].meta.get("training") or {}).get(name, known[0])
        setattr(args, name, getattr(args, name) or first)
        if getattr(args, name) not in known:
            raise cli.CliError(f"the model has a {name} of its own ({first}); give --{name}.")
    data = [read_for(args, model, args.groups) for model in models]
    if data[0].groups is None and models[0].prepare.groups_given:
        cli.say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    how = judging(args) | {"samples": args.samples, "seed": args.seed}
    found = [
        evaluate(model.scorer, dataset, **how) for model, dataset in zip(models, data, strict=True)
    ]
    if len(found) == 1:
        found.append(evaluate(models[0].scorer, data[0], deterministic=True, **how))
    results = dict(zip(("policy", "ranking" if len(models) == 1 else "other"), found, strict=True))
    if args.per_query is not None:
        _write_queries(args, data[0], results)
    print((_json if args.json else _table)(args, data[0], results))
    return cli.DONE


Results = dict[str, Evaluation]


def _json(args: argparse.Namespace, dataset: RankingDataset, results: Results) -> str:
    """NaN, which JSON lacks, is null."""
    record: dict[str, Any] = {"queries": len(dataset), "documents": dataset.n_documents}
    for name in ("models", "file", "k", "undefined", "merit", "gain"):
        record[name] = getattr(args, name)
    policy = results["policy"]
    record["counted"] = policy.defined
    for name, result in results.items():
        record[name] = {measure: getattr(result, measure) for measure in MEASURES}
    record["interval"] = {measure: policy.interval(measure) for measure in MEASURES}
    if "other" in results:
        record["difference"] = {m: policy.compare(results["other"], m)._asdict() for m in MEASURES}
    return json.dumps(_without_nan(record), indent=1, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return None if value != value else value


def _table(args: argparse.Namespace, dataset: RankingDataset, results: Results) -> str:
    """Of one model its policy and its most probable ranking, of two the difference as well."""
    policy, second = results.values()
    two = "other" in results
    who = f"A = {args.models[0]} and B = {args.models[1]}" if two else args.models[0]
    lines = [f"{who} on {args.file}: {len(dataset):,} queries, {dataset.n_documents:,} documents"]
    heads = ["A", "B", "A - B", "95 % interval", "p"] if two else ["policy", "95 % interval"]
    heads += ["queries"] if two else ["most probable", "queries"]
    widths = [10, 10, 10, 20, 8, 9] if two else [10, 20, 15, 9]
    lines += ["", f"{'':14}" + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True))]
    for measure in MEASURES:
        if measure == "ndcg_at_k" and args.k is None:
            continue
        name = NAMES[measure].replace("@k", f"@{args.k}")
        name += f"@{args.k}" if measure == "err" and args.k is not None else ""
        cells: list[Any] = [getattr(policy, measure), getattr(second, measure)]
        if two:
            less = policy.compare(second, measure)
            cells += [
                less.mean,
                (less.low, less.high),
                f"{less.p_value:.3f}" if less.p_value >= 0.001 else "<.001",
            ]
        else:
            cells.insert(1, policy.interval(measure))
        texts = [*map(_cell, cells), f"{policy.defined[measure]:,}"]
        lines.append(
            f"{name:14}" + "".join(f"{t:>{w}}" for t, w in zip(texts, widths, strict=True))
        )
    rest = f"count {args.undefined} in NDCG, 0 in ERR and disparity"
    rest = "are left out of NDCG and D_group" if args.undefined == "skip" else rest
    gain = {"exponential": "2^grade - 1", "linear": "the grade"}[args.gain]
    lines += ["", f"Gain: {gain}. Queries without an answer {rest} (--undefined {args.undefined})."]
    lines.append("Intervals: bootstrap over queries" + ("; p: sign flips." if two else "."))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return "-" if math.isnan(value[0]) else f"{value[0]:.4f} to {value[1]:.4f}"
    return value if isinstance(value, str) else "-" if math.isnan(value) else f"{value:.4f}"


def _write_queries(args: argparse.Namespace, dataset: RankingDataset, results: Results) -> None:
    """One row per query in the file's order; a measure that is undefined there is left empty."""
    columns = {
        f"{name}_{measure}": result.per_query[measure].tolist()
        for name, result in results.items()
        for measure in MEASURES
    }
    with cli.writing(args.per_query, args.force) as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["query", "documents", *columns])
        names, lengths = query_names(dataset), dataset.lengths.tolist()
        for qid, length, *values in zip(names, lengths, *columns.values(), strict=True):
            table.writerow([qid, length, *["" if math.isnan(v) else repr(v) for v in values]])
