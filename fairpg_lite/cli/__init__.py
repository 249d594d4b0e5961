"""The command line: `fairpg-lite fit | sweep | evaluate | rank | audit`.

Each command is a file with its help, its options and what it does. Exit codes: 0 done, 1 failed,
2 wrong call, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from fairpg_lite._version import __version__
from fairpg_lite.cli import auditing, evaluating, fitting, ranking, sweeping
from fairpg_lite.cli.options import Parser, add_quiet
from fairpg_lite.cli.output import DONE, FAILED, INTERRUPTED, WRONG_CALL, UsageError

COMMANDS = {
    "fit": fitting,
    "sweep": sweeping,
    "evaluate": evaluating,
    "rank": ranking,
    "audit": auditing,
}
_DESCRIPTION = """\
Fair rankings from the command line: train a Fair-PG-Rank policy on LETOR/SVMlight files,
evaluate it, rank with it, draw the trade-off between utility and fairness, or audit lists that
any ranker has shown. Each command has examples: fairpg-lite COMMAND --help"""
_FORMAT = """\
files: LETOR/SVMlight text, plain or compressed (.gz, .bz2, .xz), one document per line:
  <grade> qid:<query> <feature id>:<value> ... [# comment]"""
_EXIT_CODES = "exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted"


def make_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = Parser(prog="fairpg-lite", description=_DESCRIPTION, epilog=_EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"fairpg-lite {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        first_line = command.HELP.partition("\n")[0]
        inner = subparsers.add_parser(
            name,
            help=first_line,
            description=command.HELP,
            epilog=None if command is auditing else _FORMAT,  # it reads no LETOR files
        )
        add_quiet(inner)
        command.add_arguments(inner)
        inner.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The words after the program's name; None takes them from the shell.

    Returns:
        The exit code.
    """
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
        return code or DONE
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
