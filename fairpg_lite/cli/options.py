"""The options that commands share, and how their values are read."""

import argparse
import importlib
import math
import sys
from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from fairpg_lite._check import SEED_LIMIT
from fairpg_lite.cli.output import WRONG_CALL, UsageError
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Disparity
from fairpg_lite.exposure import position_bias
from fairpg_lite.measures import DEFAULT_MEASURES, DISPARITIES, MEASURES
from fairpg_lite.training.config import TrainConfig

#: Options that are fields of `TrainConfig`, which has their defaults and refuses wrong values.
SETTINGS = {
    "lam": "weight of the disparity",
    "disparity": "; ".join(f"{name} is {MEASURES[name].label}" for name in DISPARITIES)
    + "; MODULE:FUNCTION is one of your own, in a Python file of this directory",
    "utility": "ndcg or dcg",
    "gain": "of a grade in NDCG: exponential (2^grade - 1), linear or binary",
    "merit": "of a grade: identity, square or sqrt",
    "method": "of the gradient: sample, as in the paper, or exact",
    "samples": "rankings drawn per query",
    "baseline": "what is subtracted from a reward: mean, loo (leave one out) or none",
    "pooled": "whether the disparity is one of each query, or of all together: query, item (the "
    "sums of each document, known by the name in its #docid comment) or dataset",
    "epochs": "passes over the queries",
    "batch_size": "queries per update",
    "lr": "learning rate",
    "entropy": "weight of the entropy regulariser",
    "patience": "stop after so many epochs without a better objective on --valid",
    "seed": "fixes initial weights, order and draws",
}
#: A file has one relevance for each document, and no draws of it.
MEASURES_OF_A_FILE = [name for name, row in MEASURES.items() if "posterior" not in row.needs]
_DEFAULTS = {field.name: field.default for field in fields(TrainConfig)}


class Parser(argparse.ArgumentParser):
    """argparse with help as we lay it out, and a wrong call answered in one line."""

    def __init__(self, **options: Any):
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # one that works today may be ambiguous tomorrow
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """End with one line."""
        self.exit(WRONG_CALL, f"{self.prog}: {message} (see {self.prog} --help)\n")


def whole_number(text: str, least: int = 0) -> int:
    """An argparse type: a whole number of at least `least`, below the limit of seeds."""
    if not text.isdecimal() or not least <= int(text) < SEED_LIMIT:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number, {least} to 2^61 - 1")
    return int(text)


count = partial(whole_number, least=1)


def file_name(text: str) -> str:
    """An argparse type: the name of a file or directory. An empty one would mean `.`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="say nothing but results and errors"
    )


def add_n_features(parser: argparse.ArgumentParser) -> None:
    """Add --n-features, of every command that reads LETOR files."""
    parser.add_argument(
        "--n-features",
        type=count,
        metavar="X",
        help="number of features, for sparse files that may lack the last",
    )


def add_training_data(parser: argparse.ArgumentParser) -> None:
    """Add what says which data to train on, and how to prepare them."""
    parser.add_argument(
        "train", type=file_name, nargs="+", metavar="TRAIN", help="LETOR files to train on"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--group-feature",
        type=whole_number,
        metavar="X",
        help="id of the feature that holds the groups",
    )
    source.add_argument(
        "--groups",
        type=file_name,
        metavar="X",
        help="group labels: a text file, one line per document of the file",
    )
    parser.add_argument(
        "--group-threshold",
        type=float,
        metavar="X",
        help="group 1 is where it is above; else a group per value",
    )
    parser.add_argument(
        "--valid", type=file_name, metavar="X", help="LETOR file to choose the best epoch by"
    )
    for part, name in (("valid", "validation"), ("test", "test")):
        parser.add_argument(
            f"--{part}-groups", type=file_name, metavar="X", help=f"the same for the {name} file"
        )
    add_n_features(parser)
    parser.add_argument(
        "--normalize",
        choices=("none", "minmax"),
        default="none",
        help="scale features to [0, 1] within each query (default %(default)s)",
    )


def add_results(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add where results go, --out, and --overwrite.

    Args:
        parser: That of the command.
        default: What is taken without --out, in words; None demands it.
    """
    words = "directory for the results"
    if default is not None:
        words += f" (default: {default})"
    parser.add_argument("--out", type=file_name, required=default is None, metavar="X", help=words)
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")


def add_scorer(parser: argparse.ArgumentParser) -> None:
    """Add what is trained."""
    parser.add_argument(
        "--hidden",
        type=count,
        metavar="X",
        help="units of a hidden layer; without it, the scorer is linear",
    )


def add_setting(parser: Any, name: str, help_text: str | None = None) -> None:
    """Add a field of `TrainConfig`, with its default."""
    default = _DEFAULTS[name]
    text = help_text or SETTINGS[name]
    if default is not None:
        text += " (default %(default)s)"
    parser.add_argument(
        f"--{name.replace('_', '-')}",
        type=type(default) if isinstance(default, str | float) else whole_number,
        default=default,
        metavar="X",
        help=text,
    )


def add_evaluation(parser: argparse.ArgumentParser) -> None:
    """Add how a policy is judged."""
    parser.add_argument(
        "--undefined",
        choices=("0", "1", "skip"),
        default="1",
        help="what NDCG counts for a query with nothing relevant; skip leaves queries out of each "
        "measure that has no answer there (default %(default)s)",
    )


def undefined_values(args: argparse.Namespace) -> str | dict[str, float]:
    """What `evaluate` is told by --undefined."""
    if args.undefined == "skip":
        return "skip"
    value = float(args.undefined)
    return {"ndcg": value, "ndcg_at_k": value}


def add_cut_off(parser: argparse.ArgumentParser, default: str) -> None:
    """Add --k; `default` says in words what is taken without it."""
    parser.add_argument(
        "--k",
        type=count,
        metavar="X",
        help="nobody looks below position X: cuts exposure, and with it NDCG and every disparity, "
        f"and ERR, AP and RR (default {default})",
    )


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add where the runs of a sweep are computed: --jobs, --scheduler and --timeout."""
    parser.add_argument(
        "--jobs",
        type=count,
        default=1,
        metavar="X",
        help="processes on this machine (default %(default)s)",
    )
    parser.add_argument(
        "--scheduler",
        type=file_name,
        metavar="X",
        help="address of a Dask cluster to use instead",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="X",
        help="seconds the cluster may be without a worker (default %(default)s)",
    )


def add_position_bias(parser: argparse.ArgumentParser, default: str) -> None:
    """Add --position-bias; `default` says in words what is taken without it."""
    parser.add_argument(
        "--position-bias",
        type=file_name,
        metavar="X",
        help="attention to position j: log2 is 1/log2(1+j), reciprocal is 1/j, geometric:P is "
        f"P^(j-1), and a FILE has one number per line, from position 1 on (default {default})",
    )


def add_max_grade(parser: argparse.ArgumentParser) -> None:
    """Add --max-grade."""
    parser.add_argument(
        "--max-grade",
        type=float,
        metavar="X",
        help="top of the scale of grades, for ERR (default: the highest grade of the file)",
    )


def cut_bias_of(text: str | None, k: int | None, n: int) -> Tensor | None:
    """The position bias of n positions that --position-bias and --k make; None is log2, uncut."""
    if k is None:
        return position_bias_of(text, n)
    bias = position_bias_of(text or "log2", n)
    assert bias is not None
    return cut_off(bias, k)


def cut_off(bias: Tensor, k: int) -> Tensor:
    """A position bias ``(n,)`` of a reader who looks at the first k positions."""
    bias = bias.clone()
    bias[k:] = 0.0
    return bias


def cut_off_of(bias: Tensor | None) -> int | None:
    """The last position that anybody looks at, if a position bias ends with zeros; else None."""
    if bias is None or bias[-1] > 0 or not bool((bias > 0).any()):
        return None
    return 1 + int(bias.nonzero().max())


def position_bias_of(text: str | None, n: int) -> Tensor | None:
    """The position bias of n positions that --position-bias names; None is not given."""
    if text is None:
        return None
    kind, _, decay = text.partition(":")
    if text in ("log2", "reciprocal"):
        return position_bias(n, text)
    if kind == "geometric":
        return position_bias(n, "geometric", decay=_decay(decay))
    if not Path(text).exists():
        raise UsageError(
            f"--position-bias is {text}; choose log2, reciprocal or geometric:P, or name a file "
            "that exists."
        )
    return _bias_in_file(text, n)


def _decay(text: str) -> float:
    """The P of geometric:P."""
    try:
        decay = float(text)
    except ValueError:
        decay = math.nan
    if not 0.0 < decay <= 1.0:
        raise UsageError(
            f"--position-bias is geometric:{text}; give a factor above 0 and at most 1, such as "
            "geometric:0.8."
        )
    return decay


def _bias_in_file(path: str, n: int) -> Tensor:
    """The numbers of a file, one on each line, for n positions at least."""
    values = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        try:
            value = float(line)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise ValueError(
                f"{path}, line {number}: {line.strip()!r} is not a position bias: a finite "
                "number, zero or more."
            )
        values.append(value)
    if len(values) < n:
        raise ValueError(
            f"{path} has {len(values)} lines, the longest list has {n} documents; give a line for "
            "each position, 0 where nobody looks."
        )
    return torch.tensor(values)


def longest_list(datasets: Iterable[RankingDataset]) -> int:
    """The number of documents of the longest query."""
    return max(int(dataset.lengths.max()) for dataset in datasets)


def settings_of(args: argparse.Namespace, **changes: Any) -> TrainConfig:
    """The settings of a training; what cannot be meant is a wrong call."""
    if args.patience is not None and args.valid is None:
        raise UsageError("--patience is for validation; give --valid FILE.")
    values = {name: getattr(args, name) for name in SETTINGS if hasattr(args, name)}
    values["disparity"] = disparity_named(args.disparity)
    if args.baseline == "none":
        values["baseline"] = None
    try:
        return TrainConfig(**values | changes)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("TrainConfig: ")) from error


def disparity_named(text: str) -> str | Disparity:
    """The function of MODULE:FUNCTION; any other name is itself."""
    module_name, colon, function_name = text.partition(":")
    if not colon:
        return text
    # A console script looks for modules beside itself and not in the current directory.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(
            f"--disparity is {text}, and there is no module {module_name!r} ({error}); name a "
            "Python file of this directory without its .py."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(
            f"--disparity is {text}, and {module_name} has no function {function_name!r}."
        )
    disparity: Disparity = function
    return disparity


def measures_for(has_groups: bool, trained_disparity: object = None) -> list[str]:
    """The measures of the paper, and the disparity of the training, as far as the data allow."""
    wanted = list(DEFAULT_MEASURES)
    if isinstance(trained_disparity, str) and trained_disparity in MEASURES:
        wanted.append(trained_disparity)
    names = []
    for name in dict.fromkeys(wanted):
        measure = MEASURES[name]
        if "groups" in measure.needs and not has_groups:
            continue
        if name == "ndcg_at_k":  # a cut-off is one of the position bias, and so of NDCG
            continue
        names.append(name)
    return names
