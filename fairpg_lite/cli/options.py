"""What the commands share: options, messages, and how they read and judge.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import sys
from dataclasses import fields
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from fairpg_lite._check import SEED_LIMIT
from fairpg_lite.data import LetorError, RankingDataset, load_letor
from fairpg_lite.training.config import TrainConfig

DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


class UsageError(ValueError):
    """A call that cannot be meant, found after parsing: exit code 2, as argparse's own."""


class Parser(argparse.ArgumentParser):
    """argparse with help as we lay it out, and a wrong call answered in one line."""

    def __init__(self, *args: Any, **how: Any):
        # An abbreviation that works today may be ambiguous tomorrow.
        how |= {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(*args, **how)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_CALL, f"{self.prog}: {message} (see {self.prog} --help)\n")


def whole(text: str, least: int = 0) -> int:
    """An argparse type: a whole number of at least `least`, below the limit of seeds."""
    if not text.isdecimal() or not least <= int(text) < SEED_LIMIT:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number, {least} to 2^61 - 1")
    return int(text)


def path(text: str) -> str:
    """An argparse type: the name of a file or directory. An empty one would mean `.`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


COUNT = partial(whole, least=1)
# Arguments: a type (or the choices, or bool for a switch), a default, what it does.
OPTIONS: dict[str, tuple[Any, Any, str]] = {
    "train": (path, None, "LETOR files to train on"),
    "model": (path, None, "directory made by fit"),
    "file": (path, None, "LETOR file"),
    "--valid": (path, None, "LETOR file to choose the best epoch by"),
    "--test": (path, None, "LETOR file to judge on"),
    "--groups": (path, None, "group labels: a text file, one line per document of the file"),
    "--valid-groups": (path, None, "the same for the validation file"),
    "--test-groups": (path, None, "the same for the test file"),
    "--group-feature": (whole, None, "id of the feature that holds the groups"),
    "--group-threshold": (float, None, "group 1 is where it is above; else a group per value"),
    "--n-features": (COUNT, None, "number of features, for sparse files that may lack the last"),
    "--normalize": (("none", "minmax"), "none", "scale features to [0, 1] within each query"),
    "--hidden": (COUNT, None, "units of a hidden layer; without it, the scorer is linear"),
    "--budget": (float, None, "find the least lambda with no more disparity on --valid or TRAIN"),
    "--k": (COUNT, None, "cut-off of NDCG@k and ERR"),
    "--undefined": (("0", "1", "skip"), "1", "NDCG of a query with nothing relevant; skip leaves "
                    "such queries out, and those without D_group, which is 0 there otherwise"),
    "--format": (("jsonl", "trec"), "jsonl", "see above"),
    "--output": (path, None, "file for the rankings instead of stdout"),
    "--seeds": (COUNT, 5, "runs at each lambda"),
    "--jobs": (COUNT, 1, "processes on this machine"),
    "--scheduler": (path, None, "address of a Dask cluster to use instead"),
    "--cluster-patience": (float, 300.0, "seconds it may be without a worker"),
    "--out": (path, None, "directory for the results"),
    "--force": (bool, None, "replace what is there"),
    "--quiet": (bool, None, "say nothing but results and errors"),
}  # fmt: skip
# Those that are fields of TrainConfig, which has their defaults and refuses what cannot be.
SETTINGS = {
    "lam": "weight of the disparity",
    "disparity": "group (D_group), gap (between groups, in both directions) or individual (D_ind)",
    "utility": "ndcg or dcg",
    "gain": "of a grade in NDCG: exponential (2^grade - 1), linear or binary",
    "merit": "of a grade: identity, square or sqrt",
    "method": "of the gradient: sample, as in the paper, or exact",
    "samples": "rankings drawn per query",
    "epochs": "passes over the queries",
    "batch_size": "queries per update",
    "lr": "learning rate",
    "entropy": "weight of the entropy regulariser",
    "patience": "stop after so many epochs without a better objective on --valid",
    "seed": "fixes initial weights, order and draws",
}
for _field in fields(TrainConfig):
    if _field.name in SETTINGS:
        _name = f"--{_field.name.replace('_', '-')}"
        _kind = type(_field.default) if isinstance(_field.default, str | float) else whole
        OPTIONS[_name] = (_kind, _field.default, SETTINGS[_field.name])


def add(parser: Any, *names: str, **changes: Any) -> None:
    """Give `parser` some of `OPTIONS`; `changes` are for argparse."""
    for name in names:
        kind, default, text = OPTIONS[name]
        if kind is bool:
            short = ["-q"] if name == "--quiet" else []
            parser.add_argument(*short, name, action="store_true", help=text)
            continue
        how: dict[str, Any] = {"help": text, "default": default, "choices": kind}
        if not isinstance(kind, tuple):
            metavar = "X" if name.startswith("-") else name.upper()
            how |= {"choices": None, "type": kind, "metavar": metavar}
        how |= changes
        how["help"] += "" if how["default"] is None else " (default %(default)s)"
        parser.add_argument(name, **how)


def say(args: argparse.Namespace, text: str) -> None:
    """One message on stderr, unless `--quiet`."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


def bars(args: argparse.Namespace) -> bool:
    """Whether to draw progress bars: on a terminal only, and not with `--quiet`."""
    return not args.quiet and sys.stderr is not None and sys.stderr.isatty()


def judging(args: argparse.Namespace, gain: str, merit: str) -> dict[str, Any]:
    """How a model is judged, for `fairpg_lite.evaluate`."""
    skip = args.undefined == "skip"
    how = {"k": args.k, "gain": gain, "merit": merit}
    how |= {"undefined": nan if skip else float(args.undefined)}
    return how | {"undefined_disparity": nan if skip else 0.0}


def read(
    args: argparse.Namespace, files: list[str], labels: str | None, **how: Any
) -> RankingDataset:
    """The documents of all `files`, with the groups in the file `labels`, one on each line."""
    try:
        dataset = load_letor(files, n_features=args.n_features, **how)
    except LetorError as error:  # what it advises in Python, in the words of the command line
        raise ValueError(str(error).replace("n_features", "--n-features")) from error
    if labels is None:
        return dataset
    names = [line.strip() for line in Path(labels).read_text("utf-8").splitlines()]
    if len(names) != dataset.n_documents or "" in names:
        raise ValueError(
            f"{labels} holds {len(names):,} labels ({names.count('')} of them empty), "
            f"{' + '.join(files)} has {dataset.n_documents:,} documents; give one label for each, "
            "in the order of the file."
        )
    groups = torch.from_numpy(np.unique(names, return_inverse=True)[1])
    return dataset.replace(groups=groups[dataset.document_ids])
