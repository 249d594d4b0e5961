"""What every command shares: its options, its messages, and where it may write.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from math import inf, nan
from pathlib import Path
from typing import IO, Any, NoReturn

from fairpg_lite._check import SEED_LIMIT
from fairpg_lite._files import whole_file
from fairpg_lite.config import TrainConfig
from fairpg_lite.objective import GROUP_DISPARITIES, LINEAR_UTILITIES, SAMPLED_UTILITIES
from fairpg_lite.preparation import NORMALIZATIONS
from fairpg_lite.relevance import MERITS

DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


class CliError(Exception):
    """Something the user can mend: shown as one line on stderr, exit code 1."""

    code = FAILED


class UsageError(CliError):
    """A call that cannot be meant, found after parsing: exit code 2, as argparse's own."""

    code = WRONG_CALL


def say(args: argparse.Namespace, text: str, more: bool = False) -> None:
    """One message on stderr: not with `--quiet`, and if it is `more`, with `--verbose` only."""
    if args.verbose if more else not args.quiet:
        print(text, file=sys.stderr, flush=True)


def bars(args: argparse.Namespace) -> bool:
    """Whether to draw progress bars: on a terminal only, and not with `--quiet`."""
    return not args.quiet and sys.stderr is not None and sys.stderr.isatty()


def prepare_out(name: str | Path) -> Path:
    """The directory `--out`, refused before hours are spent; whoever writes there makes it."""
    out = Path(name)
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise CliError(f"{there} is a file; --out must name a directory, new or existing.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CliError(f"cannot write to {out}: {there} is read-only for this user.")
    return out


@contextmanager
def writing(name: str | Path, force: bool) -> Iterator[IO[str]]:
    """A text file that appears at `name` when it is complete; an old one needs `force`."""
    target = Path(name)
    text: dict[str, Any] = {"mode": "w", "encoding": "utf-8", "newline": "\n"}
    if target.is_dir():
        raise CliError(f"{target} is a directory; name a file to write.")
    if target.is_file() and not force:
        raise CliError(f"{target} exists; pass --force to replace it, or name another file.")
    if target.exists() and not target.is_file():  # /dev/null, a named pipe: nothing to rename
        with target.open(**text) as stream:
            yield stream
        return
    with whole_file(target) as part, part.open(**text) as stream:
        yield stream


class Parser(argparse.ArgumentParser):
    """argparse with help as we lay it out, and a wrong call answered in one line."""

    def __init__(self, *args: Any, **how: Any):
        # An abbreviation that works today may be ambiguous tomorrow.
        how |= {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(*args, **how)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_CALL, f"{self.prog}: {message} (see {self.prog} --help)\n")


def number(kind: type, least: float, above: bool = False) -> Callable[[str], Any]:
    """An argparse type: a finite `kind` of at least `least`, or strictly `above` it."""
    bound = f" {'above' if above else 'of at least'} {least:g}" if least > -inf else ""
    wanted = ("a whole number" if kind is int else "a number") + bound

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = nan
        if not (least < value < inf or (value == least and not above)):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        if kind is int and value >= SEED_LIMIT:
            raise argparse.ArgumentTypeError(f"{text} is too large; give less than 2^61")
        return value

    return parse


def path(text: str) -> str:
    """An argparse type: the name of a file or directory. An empty one would mean `.`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


COUNT, WHOLE, WEIGHT = number(int, 1), number(int, 0), number(float, 0)
ABOVE, REAL = number(float, 0, above=True), number(float, -inf, above=True)

# Arguments: (a type, the choices, or bool for a switch; the default, ... for that of TrainConfig;
# what it does).
Rows = dict[str, tuple[Any, Any, str]]
READING: Rows = {
    "--n-features": (COUNT, None, "number of features, for sparse files whose last ones may not "
                     "occur; without it, the largest id in the file"),
    "--allow-cut": (bool, None, "accept a last line without its end, the sign of a cut file"),
}  # fmt: skip
TRAINING: Rows = READING | {
    "--valid": (path, None, "LETOR file to choose the best epoch by"),
    "--groups": (path, None, "group labels: a text file, one line per document of the file"),
    "--valid-groups": (path, None, "the same for the validation file"),
    "--test-groups": (path, None, "the same for the test file"),
    "--group-feature": (WHOLE, None, "id of the feature that holds the groups"),
    "--group-threshold": (REAL, None, "group 1 is where it is above that, group 0 the rest; "
                          "without it, one group per value"),
    "--drop-group-feature": (bool, None, "hide that feature from the scorer"),
    "--normalize": (NORMALIZATIONS, "none", "scale features to [0, 1] within each query, or to "
                    "mean 0 and deviation 1 over TRAIN"),
    "--zero-based": (bool, None, "feature ids begin at 0"),
    "--dtype": (("float32", "float64"), "float32", "number format"),
    "--model": (("linear", "neural"), "linear", "a weight per feature, or one hidden layer"),
    "--hidden": (COUNT, None, "units of that layer (default 32)"),
    "--disparity": ((*GROUP_DISPARITIES, "individual", "none"), "group", "D_group, the gap between "
                    "groups in both directions, or D_ind"),
    "--utility": (LINEAR_UTILITIES + SAMPLED_UTILITIES, ..., "what users gain"),
    "--gain": (("exponential", "linear"), ..., "of a grade in NDCG: 2^grade - 1, or itself"),
    "--merit": (tuple(MERITS), ..., "merit as a function of the grade"),
    "--method": (("sample", "exact"), ..., "the paper's gradient, or the exact one"),
    "--samples": (COUNT, ..., "rankings drawn per query"),
    "--epochs": (COUNT, ..., "passes over the queries"),
    "--batch-size": (COUNT, ..., "queries per update"),
    "--optimizer": (("adam", "sgd"), ..., "optimiser"),
    "--lr": (ABOVE, ..., "learning rate"),
    "--lr-decay": (ABOVE, ..., "its factor after an epoch"),
    "--weight-decay": (WEIGHT, ..., "L2 penalty"),
    "--entropy": (WEIGHT, ..., "weight of the entropy regulariser"),
    "--entropy-decay": (WEIGHT, ..., "its factor after an epoch"),
    "--patience": (COUNT, ..., "stop after so many epochs without a better objective on --valid"),
}  # fmt: skip
JUDGING: Rows = {
    "--k": (COUNT, None, "cut-off of NDCG@k and ERR"),
    "--undefined": (("0", "1", "skip"), "1", "NDCG of a query with nothing relevant; skip leaves "
                    "out of each mean the queries where it has no answer (D_group counts 0 else)"),
    "--max-grade": (ABOVE, None, "top of the grade scale, for ERR; without it, the highest grade "
                    "in the file, at least 1"),
}  # fmt: skip
OPTIONS: Rows = TRAINING | JUDGING | {
    "train": (path, None, "LETOR files to train on"),
    "model": (path, None, "directory made by fit"),
    "file": (path, None, "LETOR file"),
    "--test": (path, None, "LETOR file to judge on"),
    "--lam": (WEIGHT, ..., "weight of the disparity"),
    "--budget": (WEIGHT, None, "find the least lambda whose disparity on TRAIN, or on "
                 "--valid, is at most that"),
    "--seed": (WHOLE, ..., "fixes initial weights, order and draws"),
    "--out": (path, None, "directory for the results"),
    "--output": (path, None, "write there, not to stdout"),
    "--force": (bool, None, "replace what is there"),
    "--json": (bool, None, "print JSON, not a table"),
    "--per-query": (path, None, "write each query's values to that CSV file, too"),
    "--most-probable": (bool, None, "the most probable ranking, without chance"),
    "--format": (("jsonl", "tsv", "trec"), "jsonl", "see above"),
    "--seeds": (COUNT, 5, "runs at each lambda"),
    "--jobs": (COUNT, 1, "processes on this machine"),
    "--scheduler": (path, None, "address of a Dask cluster to use instead"),
    "--cluster-patience": (WEIGHT, 300.0, "seconds it may be without a worker"),
    "--name": (path, "Fair-PG-Rank", "what the method is called in table and picture"),
}  # fmt: skip
#: The options that are fields of TrainConfig, by the field's name, and their defaults.
SETTINGS = {
    field.name: field.default
    for field in fields(TrainConfig)
    if OPTIONS.get(f"--{field.name.replace('_', '-')}", (None, None))[1] is ...
}


def add(parser: Any, *names: str, **changes: Any) -> None:
    """Give `parser` some of `OPTIONS`; `changes` are for argparse."""
    for name in names:
        kind, default, text = OPTIONS[name]
        if kind is bool:
            parser.add_argument(name, action="store_true", help=text)
            continue
        default = SETTINGS[name[2:].replace("-", "_")] if default is ... else default
        default = changes.get("default", default)
        metavar = "X" if name.startswith("-") else name.upper()
        how = {"choices": kind} if isinstance(kind, tuple) else {"type": kind, "metavar": metavar}
        text += "" if default is None else " (default %(default)s)"
        parser.add_argument(name, **{**how, "default": default, "help": text, **changes})


def add_verbosity(parser: Any) -> None:
    either = parser.add_mutually_exclusive_group()
    either.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    more = "say more; show an error's traceback"
    either.add_argument("-v", "--verbose", action="store_true", help=more)
