"""`fairpg-lite rank`."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from fairpg_lite._files import whole_file
from fairpg_lite.cli import options
from fairpg_lite.cli.output import UsageError
from fairpg_lite.cli.reading import read_for
from fairpg_lite.data import RankingDataset
from fairpg_lite.models import load_model
from fairpg_lite.models.model_file import SavedModel
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import eval_mode

HELP = """\
Rankings of a LETOR file's documents, drawn from a model's policy.

It is the draws that are fair in expectation. The same --seed gives the same rankings: use a
new one whenever people are to see new draws. --mode writes the one most probable ranking instead,
which is another policy: a sorted list.

examples:
  fairpg-lite rank model/ test.txt --samples 3 --seed 7 > rankings.jsonl
  fairpg-lite rank model/ test.txt --samples 3 --k 10 --format trec --output run.txt
  fairpg-lite rank model/ test.txt --mode --format trec --output sorted.txt

output: on each line a ranking, best first, {"query": 7, "sample": 0, "ranking": [2, 0, 1]}, or
  runs as trec_eval reads them, one for each draw: run.0.txt, run.1.txt and so on. Documents
  have the names that comments give them (#docid = NAME), otherwise numbers from 0 within
  their query, in the order of the file. The fifth column of a run is the model's score for
  --mode, unless two scores of a query are equal: trec_eval would order these by name. For
  them and for draws, which no score explains, it counts down to 1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "model", type=options.file_name, metavar="MODEL", help="directory made by fit"
    )
    parser.add_argument("file", type=options.file_name, metavar="FILE", help="LETOR file")
    parser.add_argument(
        "--format",
        choices=("jsonl", "trec"),
        default="jsonl",
        help="see above (default %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=options.file_name,
        metavar="X",
        help="file for the rankings instead of stdout",
    )
    options.add_n_features(parser)
    parser.add_argument(
        "--samples",
        type=options.count,
        default=1,
        metavar="X",
        help="rankings drawn per query (default %(default)s)",
    )
    parser.add_argument(
        "--k", type=options.count, metavar="X", help="the first k documents of each ranking"
    )
    parser.add_argument(
        "--mode", action="store_true", help="the most probable ranking, instead of draws"
    )
    options.add_setting(parser, "seed", "of the draws")


def run(args: argparse.Namespace) -> None:
    """Draw rankings, and write them."""
    if args.mode and args.samples > 1:
        raise UsageError("--mode writes one ranking; leave out --samples.")
    files = _output_files(args)
    model = load_model(args.model)
    _refuse_other_policies(args.model, model)
    dataset = read_for(args, model)
    generator = torch.Generator().manual_seed(args.seed)
    query_names = np.asarray(dataset.query_ids).tolist()
    with ExitStack() as stack:
        streams: list[TextIO] = []
        for file in files:
            part = stack.enter_context(whole_file(file))
            streams.append(stack.enter_context(open(part, "x", encoding="utf-8")))
        if not streams:
            streams.append(sys.stdout)
        queries = zip(query_names, dataset, _document_names(dataset), strict=True)
        for query_name, query, names in queries:
            with eval_mode(model.scorer):
                policy = PlackettLuce(model.scorer(query.features))
            for sample, ranking in enumerate(_rankings(policy, args, generator)):
                ranked_names = [names[i] for i in ranking]
                scores = _scores_to_write(policy, ranking, args.mode)
                line = _formatted(args.format, query_name, sample, ranked_names, scores)
                streams[sample % len(streams)].write(line)


def _refuse_other_policies(path: str, model: SavedModel) -> None:
    """Refuse a model whose policy is a function, which its file names and does not hold."""
    training = model.meta.get("training") or {}
    policy = training.get("policy")
    if policy is not None:
        raise ValueError(
            f"{path} was trained with policy={policy}, a function that a model file cannot hold; "
            "rank in Python, where the function is: policy(model.scorer(features), None)."
        )


def _output_files(args: argparse.Namespace) -> list[Path]:
    """The files to write; none for stdout."""
    if args.format == "trec" and args.samples > 1:
        if args.output is None:
            raise UsageError("several draws are several TREC runs; give --output FILE.")
        file = Path(args.output)
        return [file.with_suffix(f".{draw}{file.suffix}") for draw in range(args.samples)]
    return [] if args.output is None else [Path(args.output)]


def _document_names(dataset: RankingDataset) -> Iterator[list[str | int]]:
    """The names of each query's documents: those of the file, or numbers within the query."""
    start = 0
    for length in dataset.lengths.tolist():
        names: list[str | int] = list(range(length))
        if dataset.documents is not None:
            given = dataset.documents[start : start + length]
            names = [name or number for number, name in enumerate(given)]
        yield names
        start += length


def _rankings(
    policy: PlackettLuce, args: argparse.Namespace, generator: torch.Generator
) -> list[list[int]]:
    """The rankings of one query that are to be written."""
    n = policy.scores.shape[-1]
    places = None if args.k is None else min(args.k, n)
    if args.mode:
        rankings = policy.mode[None, :places]
    else:
        rankings = policy.sample((args.samples,), generator, k=places)
    return [list(ranking) for ranking in rankings.tolist()]


def _scores_to_write(policy: PlackettLuce, ranking: list[int], mode: bool) -> list[str]:
    """The fifth column of a TREC run, which must fall with the rank: trec_eval goes by it."""
    if mode:
        scores = policy.scores.double()[ranking]
        if bool((scores[1:] < scores[:-1]).all()):
            return [repr(score) for score in scores.tolist()]
    return [str(len(ranking) - position) for position in range(len(ranking))]


def _formatted(kind: str, query: Any, sample: int, ranking: list[Any], scores: list[str]) -> str:
    """One ranking as it is written."""
    if kind == "jsonl":
        return json.dumps({"query": query, "sample": sample, "ranking": ranking}) + "\n"
    # query Q0 document rank score run
    run_name = f"fairpg_lite.{sample}"
    lines = []
    for position, (name, score) in enumerate(zip(ranking, scores, strict=True), 1):
        lines.append(f"{query} Q0 {name} {position} {score} {run_name}\n")
    return "".join(lines)
