"""The command line: `fairpg-lite fit | evaluate | rank | sweep`.

Exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted.
"""

import argparse
import inspect
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from fairpg_lite._version import __version__
from fairpg_lite.cli import train, use
from fairpg_lite.cli._common import DONE, FAILED, INTERRUPTED, WRONG_CALL, Parser, UsageError, add

_DESCRIPTION = """\
Fair rankings from the command line: train a Fair-PG-Rank policy on LETOR/SVMlight files,
evaluate it, rank with it, or draw the trade-off between utility and fairness. Each command has
examples: fairpg-lite COMMAND --help"""
_FORMAT = """\
files: LETOR/SVMlight text, plain or compressed (.gz, .bz2, .xz), one document per line:
  <grade> qid:<query> <feature id>:<value> ... [# comment]"""
_COMMANDS = {
    train.fit: train.fit_options,
    use.evaluate: use.evaluate_options,
    use.rank: use.rank_options,
    train.sweep: train.sweep_options,
}


def make_parser() -> argparse.ArgumentParser:
    """A command is a function, whose docstring is its help."""
    codes = "exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted"
    parser = Parser(prog="fairpg-lite", description=_DESCRIPTION, epilog=codes)
    parser.add_argument("--version", action="version", version=f"fairpg-lite {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command, add_options in _COMMANDS.items():
        text = inspect.getdoc(command) or ""
        inner = subparsers.add_parser(
            command.__name__, help=text.partition("\n")[0], description=text, epilog=_FORMAT
        )
        add_options(inner)
        add(inner, "--quiet")
        inner.set_defaults(run=command)
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
        return code
    except BrokenPipeError:  # `| head` has read enough: no fault, so nothing is said
        # What is still buffered would raise again when Python closes stdout.
        with open(os.devnull, "w") as nothing, suppress(OSError, ValueError):
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, ImportError, ArithmeticError, OSError, RuntimeError) as error:
        # The module's own errors name function, input and way out; others are bugs, for Python.
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return WRONG_CALL if isinstance(error, UsageError) else FAILED
