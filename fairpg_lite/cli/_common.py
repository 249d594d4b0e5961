"""What every command shares: errors in one line, messages, where results may be written.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fairpg_lite._files import whole_file
from fairpg_lite.cli._options import WRONG_CALL

DONE, FAILED, INTERRUPTED = 0, 1, 130

Subparsers = Any  # argparse gives the type of `add_subparsers()` no public name


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
