"""`fairpg-lite evaluate`."""

import argparse
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite.cli import options
from fairpg_lite.cli.output import UsageError, say
from fairpg_lite.cli.reading import items_by_name, read_for
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import INTERVALS, Evaluation, evaluate
from fairpg_lite.measures import MEASURES
from fairpg_lite.models import SavedModel, load_model
from fairpg_lite.pooling import POOLS

HELP = """\
Utility and disparity of a model on a LETOR file, or of two.

Of one model: the stochastic policy, and the one ranking that is most probable under it
(documents by score). Of two: what differs between their policies. All measures are means over
queries and exact, but for AP of the policy, which is a mean over 1,000 drawn rankings.

examples:
  fairpg-lite evaluate model/ test.txt --k 10 --undefined skip
  fairpg-lite evaluate model/ test.txt --measures ndcg d_group
  fairpg-lite evaluate fair/ plain/ test.txt                 two models, query by query

Gain, merit, position bias, cut-off and pooling are those of the training, unless there is a
--gain, a --position-bias, a --k or a --pooled. The column "queries" counts those where a measure
has an answer of its own: most have none where nothing is relevant, D_group none where a group or
its merit is absent.

Where the same document is in many queries, by the name in its comment "#docid = NAME", an interval
over queries is too narrow: it says what other queries of the same documents would change.
--interval documents widens it by what other documents would."""
_GAINS = {"exponential": "2^grade - 1", "linear": "the grade", "binary": "1 for any grade above 0"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "model",
        type=options.file_name,
        nargs="+",
        metavar="MODEL",
        help="directory made by fit; one or two",
    )
    parser.add_argument("file", type=options.file_name, metavar="FILE", help="LETOR file")
    parser.add_argument(
        "--measures",
        nargs="+",
        choices=options.MEASURES_OF_A_FILE,
        metavar="X",
        help=f"which to compute, of {', '.join(options.MEASURES_OF_A_FILE)} (default: the paper's)",
    )
    options.add_evaluation(parser)
    options.add_position_bias(parser, "that of the training")
    options.add_cut_off(parser, "that of the training")
    parser.add_argument(
        "--pooled",
        choices=POOLS,
        help=f"{options.SETTINGS['pooled']} (default that of the training)",
    )
    options.add_max_grade(parser)
    parser.add_argument(
        "--groups",
        type=options.file_name,
        metavar="X",
        help="group labels: a text file, one line per document of the file",
    )
    options.add_n_features(parser)
    parser.add_argument(
        "--interval",
        choices=list(INTERVALS),
        default="queries",
        help="what would be drawn again (default: queries)",
    )
    parser.add_argument("--gain", choices=list(_GAINS), help=options.SETTINGS["gain"])


def run(args: argparse.Namespace) -> None:
    """Judge one model, or compare two."""
    if len(args.model) > 2:
        raise UsageError("evaluate compares two models at most.")
    models = [load_model(name) for name in args.model]
    data = [_with_items(read_for(args, model, args.groups)) for model in models]
    if data[0].groups is None and models[0].prepare.groups_given:
        say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    highest = float(data[0].relevance.max())
    if args.max_grade is not None and args.max_grade < highest:
        raise UsageError(
            f"--max-grade is {args.max_grade:g}, and {args.file} has a grade of {highest:g}; give "
            "the top of the scale."
        )
    trained = models[0].meta.get("training") or {}
    if args.measures is None:
        args.measures = options.measures_for(data[0].groups is not None, trained.get("disparity"))
    gain = args.gain or trained.get("gain", "exponential")
    merit = trained.get("merit", "identity")
    args.bias = _position_bias(args, trained, data)
    args.k = options.cut_off_of(args.bias)
    args.pooled = args.pooled or trained.get("pooled", "query")
    if args.pooled == "item":
        data = [items_by_name(args.file, dataset) for dataset in data]
    policy = _judged(args, models[0], data[0], gain, merit)
    if len(models) == 1:
        mode = _judged(args, models[0], data[0], gain, merit, deterministic=True)
        title = args.model[0]
        columns = _columns_of_one(policy, mode, args.interval)
        footer = f"Intervals: {_about_intervals(args, policy)}."
    else:
        other = _judged(args, models[1], data[1], gain, merit)
        title = f"A = {args.model[0]} and B = {args.model[1]}"
        columns = _columns_of_two(policy, other, args.interval)
        p_value = "sign flips" if args.interval == "queries" else "normal distribution"
        footer = f"Intervals: {_about_intervals(args, policy)}; p: {p_value}."
    columns[f"{'queries':>9}"] = [f"{policy.defined[name]:,}" for name in policy.means]
    print(f"{title} on {args.file}: {len(data[0]):,} queries, {data[0].n_documents:,} documents\n")
    _print_table(_labels(policy, args.k), columns)
    print(f"\nGain: {_GAINS[gain]}. {_about_undefined(args)}")
    print(footer)


def _judged(
    args: argparse.Namespace,
    model: SavedModel,
    dataset: RankingDataset,
    gain: str,
    merit: str,
    deterministic: bool = False,
) -> Evaluation:
    return evaluate(
        model.scorer,
        dataset,
        args.measures,
        k=args.k,
        deterministic=deterministic,
        undefined=options.undefined_values(args),
        merit=merit,
        gain=gain,
        max_grade=args.max_grade,
        position_bias=args.bias,
        pooled=args.pooled,
    )


def _with_items(dataset: RankingDataset) -> RankingDataset:
    """The dataset with one id for all documents of one name; a document without a name has its own.

    In a file, ids are the numbers of its lines.
    """
    if dataset.documents is None:
        return dataset
    names = np.asarray(dataset.documents)
    _, number = np.unique(names, return_inverse=True)
    nameless = names == ""
    number[nameless] = len(names) + np.arange(int(nameless.sum()))
    return dataset.replace(document_ids=torch.from_numpy(number))


def _about_intervals(args: argparse.Namespace, evaluation: Evaluation) -> str:
    """What the intervals are over, and what they leave out."""
    if args.interval == "documents":
        return "bootstrap over queries, widened by what shared documents add"
    if evaluation.has_shared_documents:
        return (
            "bootstrap over queries, which share documents: too narrow for other documents "
            "(--interval documents)"
        )
    return "bootstrap over queries"


def _position_bias(
    args: argparse.Namespace, trained: Mapping[str, Any], data: Sequence[RankingDataset]
) -> Tensor | None:
    """The position bias that is asked for, or else that of the training; None is log2, uncut."""
    longest = options.longest_list(data)
    values = trained.get("position_bias")
    if args.position_bias is not None or values is None:
        return options.cut_bias_of(args.position_bias, args.k, longest)
    bias = torch.tensor(values)
    if len(bias) < longest and bias[-1] == 0:  # nobody looks there, nor further below
        bias = torch.nn.functional.pad(bias, (0, longest - len(bias)))
    if len(bias) < longest:
        raise UsageError(
            f"the training's position bias has {len(values)} positions, the longest list of "
            f"{args.file} has {longest} documents; give --position-bias."
        )
    last = options.cut_off_of(bias)
    if args.k is None:
        return bias
    if last is not None and args.k > last:
        raise UsageError(
            f"--k is {args.k}, and the training's position bias ends at position {last}; give "
            "--position-bias, too."
        )
    return options.cut_off(bias, args.k)


def _columns_of_one(policy: Evaluation, mode: Evaluation, over: str) -> dict[str, list[str]]:
    """The columns, by their heads, which are as wide as the columns."""
    names = list(policy.means)
    intervals = [policy.interval(name, over) for name in names]
    return {
        f"{'policy':>10}": [_number(policy.means[name]) for name in names],
        f"{'95 % interval':>20}": [_interval(low, high) for low, high in intervals],
        f"{'most probable':>15}": [_number(mode.means[name]) for name in names],
    }


def _columns_of_two(first: Evaluation, second: Evaluation, over: str) -> dict[str, list[str]]:
    """The columns, by their heads, which are as wide as the columns."""
    names = list(first.means)
    differences = [first.compare(second, name, over) for name in names]
    return {
        f"{'A':>10}": [_number(first.means[name]) for name in names],
        f"{'B':>10}": [_number(second.means[name]) for name in names],
        f"{'A - B':>10}": [_number(difference.mean) for difference in differences],
        f"{'95 % interval':>20}": [_interval(d.low, d.high) for d in differences],
        f"{'p':>8}": [_number(difference.p_value) for difference in differences],
    }


def _labels(evaluation: Evaluation, k: int | None) -> list[str]:
    """What people call the measures, with their cut-off."""
    labels = []
    for name in evaluation.means:
        label = "NDCG" if name == "ndcg_at_k" else MEASURES[name].label
        is_cut = k is not None and name != "average_rank"
        labels.append(f"{label}@{k}" if is_cut else label)
    return labels


def _print_table(labels: list[str], columns: dict[str, list[str]]) -> None:
    width = max(14, *(len(label) + 1 for label in labels))
    print(" " * width + "".join(columns))
    for row, label in enumerate(labels):
        cells = [values[row].rjust(len(head)) for head, values in columns.items()]
        print(label.ljust(width) + "".join(cells))


def _about_undefined(args: argparse.Namespace) -> str:
    if args.undefined == "skip":
        rule = "are left out of each mean"
    else:
        rule = f"count {args.undefined} in NDCG, 0 in ERR and disparity, nothing in average rank"
    return f"Queries without an answer {rule} (--undefined {args.undefined})."


def _number(value: float) -> str:
    return "-" if isnan(value) else f"{value:.4f}"


def _interval(low: float, high: float) -> str:
    return "-" if isnan(low) else f"{low:.4f} to {high:.4f}"
