"""`fairpg-lite rank`: rankings of a LETOR file's documents, drawn from a saved model's policy."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import IO

import torch
from torch import Tensor

from fairpg_lite._progress import progress_bar
from fairpg_lite.cli._common import (
    DONE,
    Subparsers,
    UsageError,
    add_verbosity,
    bars,
    number,
    writing,
)
from fairpg_lite.cli._data import FORMAT, add_reading, read_for_model
from fairpg_lite.policy import PlackettLuce

_DESCRIPTION = """\
Rank the documents of every query of a LETOR file: rankings drawn from the model's policy, or
the most probable one. It is the draws that are fair in expectation; the most probable ranking
is what a ranker without chance would show. The same --seed gives the same rankings: use a new
one whenever people are to see new draws."""
_EXAMPLES = f"""\
examples:
  fairpg-lite rank model/ test.txt --samples 3 --seed 7 --output rankings.jsonl
  fairpg-lite rank model/ test.txt --most-probable --format tsv | head

{FORMAT}
  (grades are read but not used here; put 0 where none is known)
output: documents are numbered from 0 within their query, in the order of the file.
  jsonl  one ranking per line, best document first; "sample" is null for --most-probable:
         {{"query": 7, "sample": 0, "ranking": [2, 0, 1]}}
  tsv    a header, then one line per document: query, sample (empty for --most-probable),
         position (from 1), document"""

# Keys drawn at a time: a million rankings of a long list must not be held at once.
_KEYS = 1 << 20


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "rank",
        help="rankings of a LETOR file's documents",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("model", metavar="MODEL", help="directory written by fairpg-lite fit")
    parser.add_argument("file", metavar="FILE", help="LETOR file")
    parser.add_argument(
        "--samples", type=number(int, 1), metavar="N", help="rankings per query (default 1)"
    )
    parser.add_argument("--seed", type=number(int, 0), metavar="N", help="of the draws (default 0)")
    parser.add_argument(
        "--most-probable", action="store_true", help="the most probable ranking, without chance"
    )
    parser.add_argument(
        "--format", choices=("jsonl", "tsv"), default="jsonl", help="see below (default jsonl)"
    )
    parser.add_argument("--output", metavar="FILE", help="write there, not to stdout")
    parser.add_argument("--force", action="store_true", help="replace an existing output file")
    add_reading(parser)
    add_verbosity(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.most_probable and (args.samples is not None or args.seed is not None):
        raise UsageError("--most-probable draws nothing: leave out --samples and --seed.")
    model, dataset = read_for_model(args)
    generator = None
    if not args.most_probable:
        generator = torch.Generator().manual_seed(args.seed or 0)
    target = nullcontext(sys.stdout) if args.output is None else writing(args.output, args.force)
    # A bar amid the rankings on the same terminal would garble both.
    show = bars(args) and not (args.output is None and sys.stdout.isatty())
    with target as stream, progress_bar("ranking", len(dataset), "query", show) as bar:
        if args.format == "tsv":
            stream.write("query\tsample\tposition\tdocument\n")
        for qid, query in zip(dataset.query_ids.tolist(), dataset, strict=True):
            with torch.no_grad():
                policy = PlackettLuce(model.scorer(query.features))
            _write(stream, args.format, qid, _rankings(policy, args.samples or 1, generator))
            bar.update(1)
    return DONE


def _rankings(
    policy: PlackettLuce, samples: int, generator: torch.Generator | None
) -> Iterator[tuple[int | None, list[int]]]:
    """The number of each draw and the documents it ranks, best first."""
    if generator is None:
        yield None, policy.mode.tolist()
        return
    step = max(1, _KEYS // policy.scores.shape[-1])
    for start in range(0, samples, step):
        block: Tensor = policy.sample((min(step, samples - start),), generator)
        yield from enumerate(block.tolist(), start)


def _write(
    stream: IO[str], kind: str, qid: int, rankings: Iterator[tuple[int | None, list[int]]]
) -> None:
    for sample, ranking in rankings:
        if kind == "jsonl":
            stream.write(json.dumps({"query": qid, "sample": sample, "ranking": ranking}) + "\n")
            continue
        label = "" if sample is None else sample
        for position, document in enumerate(ranking, 1):
            stream.write(f"{qid}\t{label}\t{position}\t{document}\n")
