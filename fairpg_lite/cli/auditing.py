"""`fairpg-lite audit`."""

import argparse
import shlex
import sys
from pathlib import Path

from torch import Tensor

from fairpg_lite.auditing import Audit, audit
from fairpg_lite.auditing.measuring import PositionBias
from fairpg_lite.auditing.reading import ORDERS
from fairpg_lite.auditing.words import summary
from fairpg_lite.cli import options
from fairpg_lite.cli.output import UsageError, say, shows_progress
from fairpg_lite.relevance import GAINS, MERITS

HELP = """\
A report on lists that were shown: who gets attention, and who merits it. No model is needed.

examples:
  fairpg-lite audit run.txt --qrels qrels.txt --groups groups.csv --out report
  fairpg-lite audit draws.jsonl --qrels qrels.txt --groups groups.csv --k 10 --out report
  fairpg-lite audit run.*.txt --qrels qrels.txt --groups groups.csv --out report

One run is what everybody is shown; several, or several draws in a JSON file, are draws of a
ranker that varies its lists. Then each disparity has two ends that hold the true one between
them on average.

runs: TREC, "query Q0 document rank score tag" on each line, or JSON lines as rank writes them
qrels: "query 0 document grade" on each line
groups: "document group" or "query document group" on each line, or a table FILE.csv that begins
  with document,group or query,document,group
output: report.html, one page that prints on two sheets, and report.json with every number"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "runs", type=options.file_name, nargs="+", metavar="RUN", help="what was shown; see above"
    )
    for name, meaning in (("qrels", "grades of documents"), ("groups", "groups of documents")):
        parser.add_argument(
            f"--{name}", type=options.file_name, required=True, metavar="X", help=meaning
        )
    parser.add_argument(
        "--out", type=options.file_name, required=True, metavar="X", help="directory of the report"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a report that is there")
    options.add_position_bias(parser, "log2")
    parser.add_argument(
        "--k", type=options.count, metavar="X", help="nobody looks below position X"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="rank",
        help="what orders a TREC run; score is trec_eval's (default %(default)s)",
    )
    parser.add_argument(
        "--merit", choices=list(MERITS), default="identity", help=options.SETTINGS["merit"]
    )
    parser.add_argument(
        "--gain", choices=list(GAINS), default="linear", help=options.SETTINGS["gain"]
    )


def run(args: argparse.Namespace) -> None:
    """Read, measure, and write the report."""
    page = Path(args.out) / "report.html"
    if page.exists() and not args.overwrite:
        raise UsageError(f"{page} is there already; give --overwrite to replace it.")
    found = audit(
        args.runs,
        args.qrels,
        args.groups,
        position_bias=_position_bias(args.position_bias),
        k=args.k,
        merit=args.merit,
        gain=args.gain,
        order=args.order,
        command=_command(args.runs),
        progress=shows_progress(args),
    )
    found.save(args.out)
    _print_summary(found)
    say(args, f"wrote {page} and {page.with_suffix('.json')}")


def _position_bias(text: str | None) -> PositionBias:
    """The position bias that is asked for: a function of the number of positions, or a file's."""
    if text is None:
        return None
    if Path(text).exists():
        return options.position_bias_of(text, 1)

    def make(n: int) -> Tensor:
        bias = options.position_bias_of(text, n)
        assert bias is not None
        return bias

    make(1)  # refuses a wrong name before anything is read
    return make


def _command(runs: list[str]) -> str:
    """The words of the shell, with the program's plain name; of many runs first and last."""
    words = sys.argv[1:]
    if len(runs) > 3:
        start = words.index(runs[0])
        words = [*words[:start], runs[0], "…", runs[-1], *words[start + len(runs) :]]
    return " ".join(
        ["fairpg-lite", *(word if word == "…" else shlex.quote(word) for word in words)]
    )


def _print_summary(found: Audit) -> None:
    for sentence in summary(found):
        print(sentence)
