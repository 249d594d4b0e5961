"""The command line: `fairpg-lite fit | evaluate | rank | sweep`.

Exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted.
"""

import argparse
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from fairpg_lite._version import __version__
from fairpg_lite.cli import commands
from fairpg_lite.cli import options as cli

_DESCRIPTION = """\
Fair rankings from the command line: train a Fair-PG-Rank policy on LETOR/SVMlight files,
evaluate it, rank with it, or draw the trade-off between utility and fairness. Each command has
examples: fairpg-lite COMMAND --help"""
_FORMAT = """\
files: LETOR/SVMlight text, plain or compressed (.gz, .bz2, .xz), one document per line:
  <grade> qid:<query> <feature id>:<value> ... [# comment]"""


def make_parser() -> argparse.ArgumentParser:
    """The commands and their options; a command's help is its function's docstring."""
    codes = "exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted"
    parser = cli.Parser(prog="fairpg-lite", description=_DESCRIPTION, epilog=codes)
    parser.add_argument("--version", action="version", version=f"fairpg-lite {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(run: Callable[[argparse.Namespace], int | None]) -> argparse.ArgumentParser:
        text = inspect.getdoc(run) or ""
        first = text.partition("\n")[0]
        inner = subparsers.add_parser(run.__name__, help=first, description=text, epilog=_FORMAT)
        inner.set_defaults(run=run)
        cli.add(inner, "--quiet")
        return inner

    fit, sweep = command(commands.fit), command(commands.sweep)
    for training in (fit, sweep):
        cli.add(training, "train", nargs="+")
        cli.add(training, "--out", required=True)
        cli.add(training.add_mutually_exclusive_group(), "--group-feature", "--groups")
        cli.add(training, "--group-threshold", "--valid", "--valid-groups", "--n-features")
        cli.add(training, "--normalize", "--hidden", "--force", "--test-groups")
        settings = [f"--{name.replace('_', '-')}" for name in cli.SETTINGS]
        cli.add(training, *(name for name in settings if name not in ("--lam", "--seed")))
    cli.add(fit, "--seed")
    cli.add(fit.add_mutually_exclusive_group(), "--lam", "--budget")
    cli.add(fit, "--test", help="LETOR file whose disparity a --budget reports, too")
    cli.add(sweep, "--test", required=True)
    cli.add(sweep, "--lam", required=True, nargs="+", default=None)
    cli.add(sweep, "--k", "--undefined", "--seeds", "--jobs", "--scheduler", "--cluster-patience")
    evaluate, rank = command(commands.evaluate), command(commands.rank)
    cli.add(evaluate, "model", nargs="+", help="directory made by fit; one or two")
    cli.add(evaluate, "file", "--k", "--undefined", "--groups", "--n-features")
    cli.add(evaluate, "--gain", default=None)
    cli.add(rank, "model", "file", "--format", "--output", "--n-features")
    cli.add(rank, "--samples", default=1, type=cli.COUNT)
    cli.add(rank, "--seed", help="of the draws")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    return run_command(make_parser(), argv)


def run_command(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Parse, run ``args.run``, and answer failures with a message and an exit code."""
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a wrong call: argparse has spoken
        return int(stop.code or 0)
    try:
        code = args.run(args)
        sys.stdout.flush()  # here, where a reader that has gone away can still be noticed
        return code or cli.DONE
    except BrokenPipeError:  # `| head` has read enough: no fault, so nothing is said
        # What is still buffered would raise again when Python closes stdout.
        with open(os.devnull, "w") as nothing, suppress(OSError, ValueError):
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        return cli.DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return cli.INTERRUPTED
    except (ValueError, ImportError, ArithmeticError, OSError, RuntimeError) as error:
        # The module's own errors name function, input and way out; others are bugs, for Python.
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return cli.WRONG_CALL if isinstance(error, cli.UsageError) else cli.FAILED
