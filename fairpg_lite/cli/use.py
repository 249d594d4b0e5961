"""The commands that use a model: `evaluate` and `rank`."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import repeat
from math import isnan, nan
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from fairpg_lite._files import whole_file
from fairpg_lite.cli import _common as cli
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import MEASURES
from fairpg_lite.evaluate import evaluate as judge
from fairpg_lite.models import SavedModel, load_model
from fairpg_lite.policy import PlackettLuce

NAMES = {
    "ndcg": "NDCG",
    "ndcg_at_k": "NDCG@k",
    "err": "ERR",
    "average_rank": "average rank",
    "d_ind": "D_ind",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
}
_GAINS = {"exponential": "2^grade - 1", "linear": "the grade", "binary": "1 for any grade above 0"}


def judging(args: argparse.Namespace, gain: str, merit: str) -> dict[str, Any]:
    """How a model is judged, for `fairpg_lite.evaluate`."""
    skip = args.undefined == "skip"
    how = {"k": args.k, "gain": gain, "merit": merit}
    how |= {"undefined": nan if skip else float(args.undefined)}
    return how | {"undefined_disparity": nan if skip else 0.0}


def _read_for(args: argparse.Namespace, model: SavedModel, labels: str | None) -> RankingDataset:
    """The documents of `args.file` as `model` is to see them."""
    dtype = next(model.scorer.parameters()).dtype
    return model.prepare(cli.read(args, [args.file], labels, dtype=dtype))


def evaluate_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "model", nargs="+", help="directory made by fit; one or two")
    cli.add(parser, "file", "--k", "--undefined", "--groups", "--n-features")
    cli.add(parser, "--gain", default=None)


def evaluate(args: argparse.Namespace) -> int:
    """Utility and disparity of a model on a LETOR file, or of two.

    Of one model: the stochastic policy, and the one ranking that is most probable under it
    (documents by score). Of two: what differs between their policies. All measures are means over
    queries and exact.

    examples:
      fairpg-lite evaluate model/ test.txt --k 10 --undefined skip
      fairpg-lite evaluate fair/ plain/ test.txt                 two models, query by query

    Gain and merit are those of the training, unless there is a --gain. The column "queries" counts
    those where a measure has an answer of its own: most have none where nothing is relevant,
    D_group none where a group or its merit is absent.
    """
    if len(args.model) > 2:
        raise cli.UsageError("evaluate compares two models at most.")
    models = [load_model(name) for name in args.model]
    trained = models[0].meta.get("training") or {}
    gain, merit = args.gain or trained.get("gain", "exponential"), trained.get("merit", "identity")
    data = [_read_for(args, model, args.groups) for model in models]
    if data[0].groups is None and models[0].prepare.groups_given:
        cli.say(args, "the training's groups came from a file; give --groups FILE for D_group.")
    how = judging(args, gain, merit)
    policy = judge(models[0].scorer, data[0], **how)
    shown = [m for m in MEASURES if m != "ndcg_at_k" or args.k is not None]
    if len(models) == 2:
        other = judge(models[1].scorer, data[1], **how)
        less = [policy.compare(other, m) for m in shown]
        title = f"A = {args.model[0]} and B = {args.model[1]}"
        columns = {
            f"{'A':>10}": [_shown(getattr(policy, m)) for m in shown],
            f"{'B':>10}": [_shown(getattr(other, m)) for m in shown],
            f"{'A - B':>10}": [_shown(d.mean) for d in less],
            f"{'95 % interval':>20}": [_shown(d.low, d.high) for d in less],
            f"{'p':>8}": [_shown(d.p_value) for d in less],
        }
    else:
        best, title = judge(models[0].scorer, data[0], deterministic=True, **how), args.model[0]
        columns = {
            f"{'policy':>10}": [_shown(getattr(policy, m)) for m in shown],
            f"{'95 % interval':>20}": [_shown(*policy.interval(m)) for m in shown],
            f"{'most probable':>15}": [_shown(getattr(best, m)) for m in shown],
        }
    columns[f"{'queries':>9}"] = [f"{policy.defined[m]:,}" for m in shown]
    print(f"{title} on {args.file}: {len(data[0]):,} queries, {data[0].n_documents:,} documents\n")
    print(f"{'':14}" + "".join(columns))
    at = "" if args.k is None else f"@{args.k}"
    names = NAMES | {"ndcg_at_k": f"NDCG{at}", "err": f"ERR{at}"}
    for measure, *row in zip(shown, *columns.values(), strict=True):
        cells = [value.rjust(len(head)) for value, head in zip(row, columns, strict=True)]
        print(f"{names[measure]:14}" + "".join(cells))
    rest = f"count {args.undefined} in NDCG, 0 in ERR and disparity"
    rest = "are left out of NDCG and D_group" if args.undefined == "skip" else rest
    foot = f"Gain: {_GAINS[gain]}. Queries without an answer {rest} (--undefined {args.undefined})."
    print(f"\n{foot}")
    print("Intervals: bootstrap over queries" + ("; p: sign flips." if len(models) > 1 else "."))
    return cli.DONE


def _shown(*values: float) -> str:
    """A number, or the two ends of an interval; what is not defined is a dash."""
    return "-" if isnan(values[0]) else " to ".join(f"{value:.4f}" for value in values)


def rank_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "model", "file", "--format", "--output", "--n-features")
    cli.add(parser, "--samples", default=1, type=cli.COUNT)
    cli.add(parser, "--seed", type=cli.WHOLE, help="of the draws")


def rank(args: argparse.Namespace) -> int:
    """Rankings of a LETOR file's documents, drawn from a model's policy.

    It is the draws that are fair in expectation. The same --seed gives the same rankings: use a
    new one whenever people are to see new draws.

    examples:
      fairpg-lite rank model/ test.txt --samples 3 --seed 7 > rankings.jsonl
      fairpg-lite rank model/ test.txt --samples 3 --format trec --output run.txt

    output: on each line a ranking, best first, {"query": 7, "sample": 0, "ranking": [2, 0, 1]}, or
      runs as trec_eval reads them, one for each draw: run.0.txt, run.1.txt and so on. Documents
      have the names that comments give them (#docid = NAME), otherwise numbers from 0 within
      their query, in the order of the file.
    """
    files = [] if args.output is None else [Path(args.output)]
    if args.format == "trec" and args.samples > 1:
        if not files:
            raise cli.UsageError("several draws are several TREC runs; give --output FILE.")
        files = [files[0].with_suffix(f".{i}{files[0].suffix}") for i in range(args.samples)]
    model = load_model(args.model)
    dataset = _read_for(args, model, None)
    generator = torch.Generator().manual_seed(args.seed)
    queries = np.asarray(dataset.query_ids).tolist()
    given = repeat("") if dataset.documents is None else iter(dataset.documents)
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(file)) for file in files]
        opened = [stack.enter_context(open(part, "x", encoding="utf-8")) for part in parts]
        streams: Sequence[TextIO] = opened or [sys.stdout]
        for qid, query in zip(queries, dataset, strict=True):
            names = [name or i for i, name in zip(range(len(query.relevance)), given, strict=False)]
            with torch.no_grad():
                policy = PlackettLuce(model.scorer(query.features))
            for sample, ranking in enumerate(policy.sample((args.samples,), generator).tolist()):
                text = _text(args.format, qid, sample, [names[i] for i in ranking])
                streams[sample % len(streams)].write(text)
    return cli.DONE


def _text(kind: str, qid: Any, sample: int, ranking: list[Any]) -> str:
    """One ranking as it is written."""
    if kind == "jsonl":
        return json.dumps({"query": qid, "sample": sample, "ranking": ranking}) + "\n"
    # query Q0 document rank score run; trec_eval goes by the score, so it falls with the rank.
    run, n = f"fairpg_lite.{sample}", len(ranking)
    return "".join(f"{qid} Q0 {name} {i + 1} {n - i} {run}\n" for i, name in enumerate(ranking))
