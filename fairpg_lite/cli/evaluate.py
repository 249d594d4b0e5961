"""`fairpg-lite evaluate`: a saved model's utility and disparity on a LETOR file."""

import argparse
import csv
import json
import math
from typing import Any

from fairpg_lite.cli._common import (
    DONE,
    CliError,
    Subparsers,
    add_verbosity,
    number,
    paint,
    say,
    writing,
)
from fairpg_lite.cli._data import FORMAT, add_groups_file, add_reading, read_for_model
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import MERITS
from fairpg_lite.evaluate import FIGURES, Evaluation, evaluate
from fairpg_lite.models import SavedModel

_DESCRIPTION = """\
Evaluate a model on a LETOR file: the stochastic policy, and the one ranking that is most
probable under it (documents by score). All figures are means over queries and exact, except the
policy's ERR, a mean over sampled rankings."""
_EXAMPLES = f"""\
examples:
  fairpg-lite evaluate model/ test.txt
  fairpg-lite evaluate model/ test.txt --k 10 --json
  fairpg-lite evaluate model/ test.txt --per-query figures.csv

{FORMAT}
figures: NDCG and NDCG@k with gain 2^grade - 1 (1 for a query with nothing relevant), ERR (at k
  as well), average rank of what is relevant (such queries left out), D_ind, D_group (0 for a
  query that lacks a group or its merit; absent without groups). Exposure: 1/log2(1 + position)."""

_NAMES = {
    "ndcg": "NDCG",
    "ndcg_at_k": "NDCG@k",
    "err": "ERR",
    "average_rank": "average rank",
    "d_ind": "D_ind",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
}


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="utility and disparity of a model on a LETOR file",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("model", metavar="MODEL", help="directory written by fairpg-lite fit")
    parser.add_argument("file", metavar="FILE", help="LETOR file")
    parser.add_argument("--k", type=number(int, 1), metavar="N", help="cut-off of NDCG@k and ERR")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    parser.add_argument("--per-query", metavar="CSV", help="write each query's figures there, too")
    parser.add_argument("--force", action="store_true", help="replace an existing CSV file")
    parser.add_argument(
        "--merit", choices=tuple(MERITS), help="merit of a grade (default: as in training)"
    )
    parser.add_argument(
        "--max-grade",
        type=number(float, 0, above=True),
        metavar="G",
        help="top of the grade scale, for ERR (default: the highest grade in FILE, at least 1)",
    )
    parser.add_argument(
        "--samples", type=number(int, 1), default=100, metavar="N", help="for ERR (default 100)"
    )
    parser.add_argument(
        "--seed", type=number(int, 0), default=0, metavar="N", help="of those (default 0)"
    )
    add_groups_file(add_reading(parser), "--groups", "FILE")
    add_verbosity(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    model, dataset = read_for_model(args, args.groups)
    if dataset.groups is None and model.prepare.groups_given:
        say(args, "the training's groups came from a file; give --groups FILE for D_group here.")
    options: dict[str, Any] = {
        "merit": args.merit or _merit(model),
        "max_grade": args.max_grade,
        "samples": args.samples,
        "seed": args.seed,
    }
    results = {
        "policy": evaluate(model.scorer, dataset, args.k, **options),
        "ranking": evaluate(model.scorer, dataset, args.k, deterministic=True, **options),
    }
    if args.per_query is not None:
        _write_queries(args, dataset, results)
    print(_json(args, dataset, results) if args.json else _table(args, dataset, results))
    return DONE


def _merit(model: SavedModel) -> str:
    name = (model.meta.get("training") or {}).get("merit", "identity")
    if name not in MERITS:
        raise CliError(f"the model was trained with a merit of its own ({name}); give --merit.")
    return name


def _json(args: argparse.Namespace, dataset: RankingDataset, results: dict[str, Evaluation]) -> str:
    """NaN, which JSON lacks, is null; `counted` says how many queries a mean is over."""
    record: dict[str, Any] = {
        "model": str(args.model),
        "file": str(args.file),
        "queries": len(dataset),
        "documents": dataset.n_documents,
        "k": args.k,
    }
    for name, result in results.items():
        figures = {figure: getattr(result, figure) for figure in FIGURES}
        record[name] = {f: None if math.isnan(v) else v for f, v in figures.items()}
    record["counted"] = {
        figure: int((~results["policy"].per_query[figure].isnan()).sum()) for figure in FIGURES
    }
    return json.dumps(record, indent=1, allow_nan=False)


def _table(
    args: argparse.Namespace, dataset: RankingDataset, results: dict[str, Evaluation]
) -> str:
    head = (
        f"{args.model} on {args.file}: {len(dataset):,} queries, {dataset.n_documents:,} documents"
    )
    lines = [head, "", paint(f"{'':14}{'policy':>10}{'most probable ranking':>24}", "bold")]
    for figure in FIGURES:
        if figure == "ndcg_at_k" and args.k is None:
            continue
        name = _NAMES[figure].replace("@k", f"@{args.k}")
        if figure == "err" and args.k is not None:
            name += f"@{args.k}"
        values = [getattr(result, figure) for result in results.values()]
        cells = ["-" if math.isnan(value) else f"{value:.4f}" for value in values]
        lines.append(f"{name:14}{cells[0]:>10}{cells[1]:>24}")
    return "\n".join(lines)


def _write_queries(
    args: argparse.Namespace, dataset: RankingDataset, results: dict[str, Evaluation]
) -> None:
    """One row per query in the file's order; a figure that is undefined there is left empty."""
    columns = {
        f"{name}_{figure}": result.per_query[figure].tolist()
        for name, result in results.items()
        for figure in FIGURES
    }
    with writing(args.per_query, args.force) as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["query", "documents", *columns])
        ids, lengths = dataset.query_ids.tolist(), dataset.lengths.tolist()
        for qid, length, *values in zip(ids, lengths, *columns.values(), strict=True):
            table.writerow([qid, length, *["" if math.isnan(v) else repr(v) for v in values]])
