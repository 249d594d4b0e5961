"""What every command shares: errors in one line, quiet and verbose, where results may be written.

Results go to stdout and everything else to stderr, so that `fairpg-lite … | tool` sees data only.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

INFINITY = float("inf")
DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130

#: Files that a finished command leaves in its `--out`; one of them there needs `--force`.
RESULTS = ("model.json", "summary.csv", "summary.md", "figure.png", "figure.svg")

Subparsers = Any  # argparse gives the type of `add_subparsers()` no public name


class CliError(Exception):
    """Something the user can mend: shown as one line on stderr, exit code 1."""

    code = FAILED


class UsageError(CliError):
    """A call that cannot be meant, found after parsing: exit code 2, as argparse's own."""

    code = WRONG_CALL


class Parser(argparse.ArgumentParser):
    """argparse with help as we lay it out, and a wrong call answered in one line."""

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # An abbreviation that works today may be ambiguous tomorrow.
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_CALL, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """`-q/--quiet` and `-v/--verbose`, as `args.quiet` and `args.verbose`."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    either.add_argument(
        "-v", "--verbose", action="store_true", help="say more; show an error's traceback"
    )


def say(args: argparse.Namespace, text: str) -> None:
    """One message on stderr, unless `--quiet`."""
    if not getattr(args, "quiet", False):
        print(text, file=sys.stderr, flush=True)


def say_more(args: argparse.Namespace, text: str) -> None:
    """One message on stderr, with `--verbose` only."""
    if getattr(args, "verbose", False):
        print(text, file=sys.stderr, flush=True)


def bars(args: argparse.Namespace) -> bool:
    """Whether to draw progress bars: on a terminal only, and not with `--quiet`."""
    return _terminal(sys.stderr) and not getattr(args, "quiet", False)


def paint(text: str, style: str, stream: Any = None) -> str:
    """`text` in "bold" or "red" where `stream` (stdout) is a terminal; see no-color.org."""
    stream = stream or sys.stdout
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not _terminal(stream):
        return text
    return f"\x1b[{ {'bold': '1', 'red': '1;31'}[style] }m{text}\x1b[0m"


def _terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # None under pythonw, or closed
        return False


def check_out(path: str | Path, force: bool, results: Sequence[str] = RESULTS) -> Path:
    """See that results may go to the directory `path`, before hours are spent on them."""
    out = Path(path)
    if out.exists() and not out.is_dir():
        raise CliError(f"{out} is a file; --out must name a directory, new or existing.")
    found = [name for name in results if (out / name).exists()]
    if found and not force:
        raise CliError(
            f"{out} already holds {', '.join(found)}; pass --force to replace it, "
            "or choose another --out."
        )
    return out


def prepare_out(path: str | Path, force: bool, results: Sequence[str] = RESULTS) -> Path:
    """The directory `path`, made if absent, known to be writable and free of old `results`.

    `results` are the file names that count as a finished result; with `force` they may be there.
    Nothing is deleted: a new result replaces an old one when it is complete.
    """
    out = check_out(path, force, results)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CliError(f"cannot write to {out}: {error.strerror or error}.") from error
    return out


@contextmanager
def writing(path: str | Path, force: bool) -> Iterator[IO[str]]:
    """A text file that appears at `path` when it is complete; an old one needs `force`."""
    target = Path(path)
    if target.is_dir():
        raise CliError(f"{target} is a directory; name a file to write.")
    if target.exists() and not target.is_file():  # /dev/null, a named pipe: nothing to rename
        with target.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    if target.exists() and not force:
        raise CliError(f"{target} exists; pass --force to replace it, or name another file.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


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
        return value

    return parse
