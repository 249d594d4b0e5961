"""What the commands say and how they end.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import sys

# Exit codes.
DONE = 0
FAILED = 1
WRONG_CALL = 2
INTERRUPTED = 130


class UsageError(ValueError):
    """A call that cannot be meant, found after parsing: exit code 2, as argparse's own."""


def say(args: argparse.Namespace, text: str) -> None:
    """Print one message on stderr, unless `--quiet`."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


def shows_progress(args: argparse.Namespace) -> bool:
    """Whether to draw progress bars: on a terminal only, and not with `--quiet`."""
    return not args.quiet and sys.stderr is not None and sys.stderr.isatty()
