"""What every command shares: options, errors in one line, messages, where results may be written.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, NoReturn

from fairpg_lite._check import SEED_LIMIT
from fairpg_lite._files import whole_file
from fairpg_lite.config import TrainConfig
from fairpg_lite.disparity import MERITS
from fairpg_lite.objective import GROUP_DISPARITIES, LINEAR_UTILITIES, SAMPLED_UTILITIES
from fairpg_lite.preparation import NORMALIZATIONS

DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130
INFINITY = float("inf")
#: Said at the end of every command's help.
FORMAT = """\
files: LETOR/SVMlight text, plain or compressed (.gz, .bz2, .xz), one document per line:
  <grade> qid:<query> <feature id>:<value> ... [# comment]"""


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
    """The directory `--out`, seen to be writable before hours are spent; not made yet if absent.

    Whoever writes there makes it, so that what is refused later leaves no empty directory.
    """
    out = Path(name)
    if out.exists() and not out.is_dir():
        raise CliError(f"{out} is a file; --out must name a directory, new or existing.")
    absent = [path for path in (out, *out.parents) if not path.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CliError(f"cannot write to {out}: {error.strerror or error}.") from error
    finally:
        for path in absent:
            with suppress(OSError):  # it was not made, or another writes there already
                path.rmdir()
    return out


@contextmanager
def writing(name: str | Path, force: bool) -> Iterator[IO[str]]:
    """A text file that appears at `name` when it is complete; an old one needs `force`."""
    target = Path(name)
    if target.is_dir():
        raise CliError(f"{target} is a directory; name a file to write.")
    if target.exists() and not target.is_file():  # /dev/null, a named pipe: nothing to rename
        with target.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    if target.exists() and not force:
        raise CliError(f"{target} exists; pass --force to replace it, or name another file.")
    with whole_file(target) as part, part.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


class Parser(argparse.ArgumentParser):
    """argparse with help as we lay it out, and a wrong call answered in one line."""

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # An abbreviation that works today may be ambiguous tomorrow.
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_CALL, f"{self.prog}: {message} (see {self.prog} --help)\n")


def number(
    kind: type[int] | type[float], least: float, above: bool = False
) -> Callable[[str], Any]:
    """An argparse type: a finite `kind` of at least `least`, or strictly `above` it."""

    def parse(text: str) -> Any:
        word = "a whole number" if kind is int else "a number"
        bound = f" {'above' if above else 'of at least'} {least:g}" if least > -INFINITY else ""
        try:
            value = kind(text)
            fits = abs(value) < INFINITY and (value > least if above else value >= least)
        except ValueError:
            fits = False
        if not fits:
            raise argparse.ArgumentTypeError(f"{text!r} is not {word}{bound}")
        if kind is int and value >= SEED_LIMIT:
            raise argparse.ArgumentTypeError(f"{text} is too large; give less than 2^61")
        return value

    return parse


def path(text: str) -> str:
    """An argparse type: the name of a file or directory. An empty one would mean `.`."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


COUNT, WHOLE = number(int, 1), number(int, 0)
WEIGHT, ABOVE, REAL = number(float, 0), number(float, 0, above=True), number(float, -INFINITY)

#: Argument: (a type, the choices, or bool for a switch; the default; what it does).
OPTIONS: dict[str, tuple[Any, Any, str]] = {
    "train": (path, None, "LETOR files to train on"),
    "model": (path, None, "directory made by fit"),
    "file": (path, None, "LETOR file"),
    # where results go
    "--out": (path, None, "directory for the results"),
    "--output": (path, None, "write there, not to stdout"),
    "--force": (bool, None, "replace what is there"),
    "--quiet": (bool, None, "say nothing but errors"),
    "--verbose": (bool, None, "say more; show an error's traceback"),
    # reading
    "--valid": (path, None, "LETOR file to choose the best epoch by"),
    "--test": (path, None, "LETOR file to judge on"),
    "--n-features": (COUNT, None, "number of features, for sparse files whose last ones may not "
                     "occur; without it, the largest id in the file"),
    "--allow-cut": (bool, None, "accept a last line without its end, the sign of a cut file"),
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
    # model and training; the defaults are TrainConfig's
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
    "--seed": (WHOLE, ..., "fixes initial weights, order and draws"),
    # fairness
    "--lam": (WEIGHT, ..., "weight of the disparity"),
    "--budget": (WEIGHT, None, "find the least lambda whose disparity on TRAIN, or on "
                 "--valid, is at most that"),
    # judging
    "--k": (COUNT, None, "cut-off of NDCG@k and ERR"),
    "--undefined": (("0", "1", "skip"), "1", "NDCG of a query with nothing relevant; skip leaves "
                    "out of each mean the queries where it has no answer (D_group counts 0 else)"),
    "--max-grade": (ABOVE, None, "top of the grade scale, for ERR; without it, the highest grade "
                    "in the file, at least 1"),
    "--json": (bool, None, "print JSON, not a table"),
    "--per-query": (path, None, "write each query's values to that CSV file, too"),
    # ranking
    "--most-probable": (bool, None, "the most probable ranking, without chance"),
    "--format": (("jsonl", "tsv", "trec"), "jsonl", "see below"),
    # sweeping
    "--seeds": (COUNT, 5, "runs at each lambda"),
    "--jobs": (COUNT, 1, "processes on this machine"),
    "--scheduler": (path, None, "address of a Dask cluster to use instead"),
    "--cluster-patience": (WEIGHT, 300.0, "seconds it may be without a worker"),
    "--name": (path, "Fair-PG-Rank", "what the method is called in table and picture"),
}  # fmt: skip

_DEFAULTS = {field.name: field.default for field in fields(TrainConfig)}
#: The options that are fields of TrainConfig and have its defaults.
SETTINGS = tuple(n[2:].replace("-", "_") for n, row in OPTIONS.items() if row[1] is ...)
READING = ("--n-features", "--allow-cut")
JUDGING = ("--k", "--undefined", "--max-grade")
TRAINING = (
    *READING, "--groups", "--valid-groups", "--group-feature", "--group-threshold",
    "--drop-group-feature", "--normalize", "--zero-based", "--dtype", "--valid", "--model",
    "--hidden", "--disparity",
    *(f"--{name.replace('_', '-')}" for name in SETTINGS if name not in ("lam", "seed")),
)  # fmt: skip


def add(parser: Any, *names: str, **changes: Any) -> None:
    """Give `parser` some of `OPTIONS`; `changes` are for argparse."""
    for name in names:
        kind, default, text = OPTIONS[name]
        if kind is bool:
            short = {"--quiet": ["-q"], "--verbose": ["-v"]}.get(name, [])
            parser.add_argument(*short, name, action="store_true", help=text)
            continue
        how = {"choices": kind} if isinstance(kind, tuple) else {"type": kind, "metavar": "X"}
        if not name.startswith("-"):
            how |= {"metavar": name.upper(), "help": text}
        else:
            default = _DEFAULTS[name[2:].replace("-", "_")] if default is ... else default
            default = changes.get("default", default)
            told = "" if default is None else f" (default {default})"
            how |= {"default": default, "help": text + told}
        parser.add_argument(name, **{**how, **changes})


def add_verbosity(parser: Any) -> None:
    add(parser.add_mutually_exclusive_group(), "--quiet", "--verbose")
