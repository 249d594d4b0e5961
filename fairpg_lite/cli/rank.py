"""Rankings of a LETOR file's documents.

For every query: rankings drawn from the model's policy, or the most probable one. It is the draws
that are fair in expectation; the most probable ranking is what a ranker without chance would show.
The same --seed gives the same rankings: use a new one whenever people are to see new draws.

examples:
  fairpg-lite rank model/ test.txt --samples 3 --seed 7 --output rankings.jsonl
  fairpg-lite rank model/ test.txt --samples 3 --format trec --output run.txt
  fairpg-lite rank model/ test.txt --most-probable --format tsv | head

output: documents have the names that comments give them (#docid = NAME), otherwise numbers from
  0 within their query, in the order of the file. Grades are read but not used: 0 will do.
  jsonl  one ranking per line, best document first; "sample" is null for --most-probable:
         {"query": 7, "sample": 0, "ranking": [2, 0, 1]}
  tsv    a header, then one line per document: query, sample (empty for --most-probable),
         position (from 1), document
  trec   a run, as trec_eval, pytrec_eval and ir_measures read it. N draws are N runs, each in
         its file: --output run.txt --samples 2 writes run.0.txt and run.1.txt
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite._extras import progress_bar
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import read_for
from fairpg_lite.models import load_model
from fairpg_lite.policy import PlackettLuce

USAGE = None
# Keys drawn at a time: a million rankings of a long list must not be held at once.
_KEYS = 1 << 20


def add_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "model", "file")
    cli.add(parser, "--samples", "--seed", default=None)
    cli.add(parser, "--most-probable", "--format", "--output", "--force", *cli.READING)


def run(args: argparse.Namespace) -> int:
    if args.most_probable and (args.samples is not None or args.seed is not None):
        raise cli.UsageError("--most-probable draws nothing: leave out --samples and --seed.")
    samples = args.samples or 1
    files = [] if args.output is None else [Path(args.output)]
    if args.format == "trec" and samples > 1:
        if not files:
            raise cli.UsageError("several draws are several TREC runs; give --output FILE.")
        files = [files[0].with_suffix(f".{i}{files[0].suffix}") for i in range(samples)]
    model = load_model(args.model)
    dataset = read_for(args, model)
    generator = None if args.most_probable else torch.Generator().manual_seed(args.seed or 0)
    queries, given = np.asarray(dataset.query_ids).tolist(), iter(dataset.documents or repeat(""))
    # A bar amid the rankings on the same terminal would garble both.
    show = cli.bars(args) and not (args.output is None and sys.stdout.isatty())
    with ExitStack() as stack, progress_bar("ranking", len(dataset), "query", show) as bar:
        streams = [stack.enter_context(cli.writing(file, args.force)) for file in files]
        streams = streams or [sys.stdout]
        if args.format == "tsv":
            streams[0].write("query\tsample\tposition\tdocument\n")
        for qid, query in zip(queries, dataset, strict=True):
            count = range(len(query.relevance))
            names = [name or i for i, name in zip(count, given, strict=False)]
            with torch.no_grad():
                policy = PlackettLuce(model.scorer(query.features))
            for sample, ranking in _rankings(policy, samples, generator):
                stream = streams[sample or 0] if len(streams) > 1 else streams[0]
                stream.write(_text(args.format, qid, sample, [names[i] for i in ranking]))
            bar.update(1)
    return cli.DONE


def _rankings(
    policy: PlackettLuce, samples: int, generator: torch.Generator | None
) -> Iterator[tuple[int | None, list[int]]]:
    """The number of each draw and the documents it ranks, best first."""
    if generator is None:
        yield None, policy.mode.tolist()
        return
    step = max(1, _KEYS // policy.scores.shape[-1])
    for start in range(0, samples, step):
        block = policy.sample((min(step, samples - start),), generator)
        yield from enumerate(block.tolist(), start)


def _text(kind: str, qid: Any, sample: int | None, ranking: list[Any]) -> str:
    """One ranking as it is written."""
    if kind == "jsonl":
        return json.dumps({"query": qid, "sample": sample, "ranking": ranking}) + "\n"
    if kind == "tsv":
        label = "" if sample is None else sample
        return "".join(f"{qid}\t{label}\t{i}\t{name}\n" for i, name in enumerate(ranking, 1))
    # query Q0 document rank score run; trec_eval goes by the score, so it falls with the rank.
    run, n = "fairpg_lite" if sample is None else f"fairpg_lite.{sample}", len(ranking)
    return "".join(f"{qid} Q0 {name} {i + 1} {n - i} {run}\n" for i, name in enumerate(ranking))
