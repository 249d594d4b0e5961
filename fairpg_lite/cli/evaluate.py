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
probable under it (documents by score). All measures are means over queries and exact, except the
policy's ERR, a mean over sampled rankings."""
_EXAMPLES = f"""\
examples:
  fairpg-lite evaluate model/ test.txt
  fairpg-lite evaluate model/ test.txt --k 10 --undefined skip --json
  fairpg-lite evaluate model/ test.txt --per-query measures.csv

{FORMAT}
measures: NDCG and NDCG@k, ERR (at k as well), average rank of what is relevant, D_ind, D_group
  and the gap between groups in both directions (absent without groups). Exposure: 1/log2(1 +
  position). The column "queries" counts those where a measure has an answer: NDCG and average
  rank have none where nothing is relevant, D_group none where a group or its merit is absent."""

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
    return {"k": args.k, "max_grade": args.max_grade, "merit": args.merit, **undefined}


def add_parser(subparsers: cli.Subparsers) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="utility and disparity of a model on a LETOR file",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("model", type=path, metavar="MODEL", help="directory made by fit")
    parser.add_argument("file", type=path, metavar="FILE", help="LETOR file")
    add(parser, *JUDGING, "--json", "--per-query", "--force", "--seed", "--groups", *READING)
    add(parser, "--samples", default=None)
    add(parser, "--merit", default=None)
    add_verbosity(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    model = read_model(args.model)
    args.merit = args.merit or (model.meta.get("training") or {}).get("merit", "identity")
    if args.merit not in MERITS:
        raise cli.CliError(f"the model has a merit of its own ({args.merit}); give --merit.")
    dataset = read_for(args, model, args.groups)
    if dataset.groups is None and model.prepare.groups_given:
        cli.say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    how = judging(args) | {"samples": args.samples, "seed": args.seed}
    policy = evaluate(model.scorer, dataset, **how)
    ranking = evaluate(model.scorer, dataset, deterministic=True, **how)
    # Whether a measure has an answer depends on the query alone.
    how |= {"undefined": math.nan, "undefined_disparity": math.nan}
    answers = evaluate(model.scorer, dataset, deterministic=True, **how).per_query
    counted = {name: int((~answers[name].isnan()).sum()) for name in MEASURES}
    results = {"policy": policy, "ranking": ranking}
    if args.per_query is not None:
        _write_queries(args, dataset, results)
    print((_json if args.json else _table)(args, dataset, results, counted))
    return cli.DONE


Results = dict[str, Evaluation]


def _json(
    args: argparse.Namespace, dataset: RankingDataset, results: Results, counted: dict[str, int]
) -> str:
    """NaN, which JSON lacks, is null."""
    record: dict[str, Any] = {name: getattr(args, name) for name in ("model", "file", "k")}
    record |= {"queries": len(dataset), "documents": dataset.n_documents}
    record |= {"undefined": args.undefined, "merit": args.merit, "counted": counted}
    for name, result in results.items():
        values = {measure: getattr(result, measure) for measure in MEASURES}
        record[name] = {m: None if math.isnan(value) else value for m, value in values.items()}
    return json.dumps(record, indent=1, allow_nan=False)


def _table(
    args: argparse.Namespace, dataset: RankingDataset, results: Results, counted: dict[str, int]
) -> str:
    size = f"{len(dataset):,} queries, {dataset.n_documents:,} documents"
    lines = [f"{args.model} on {args.file}: {size}", ""]
    lines.append(f"{'':14}{'policy':>10}{'most probable ranking':>24}{'queries':>10}")
    for measure in MEASURES:
        if measure == "ndcg_at_k" and args.k is None:
            continue
        name = NAMES[measure].replace("@k", f"@{args.k}")
        if measure == "err" and args.k is not None:
            name += f"@{args.k}"
        values = [getattr(result, measure) for result in results.values()]
        cells = ["-" if math.isnan(value) else f"{value:.4f}" for value in values]
        lines.append(f"{name:14}{cells[0]:>10}{cells[1]:>24}{counted[measure]:>10,}")
    rest = f"count {args.undefined} in NDCG and 0 in D_group"
    if args.undefined == "skip":
        rest = "are left out"
    lines += ["", f"Queries without an answer {rest} (--undefined {args.undefined})."]
    return "\n".join(lines)


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
