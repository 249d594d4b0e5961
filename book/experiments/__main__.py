"""Run every method of one of the paper's experiments at the paper's settings.

Each run (a method, a lambda, a seed) is a file of its own below OUT, so a stopped reproduction goes
on where it was. When all are there they become one table, table.csv (what made it: table.json), and
a summary of it, summary.md. All of them name the data.

  synthetic  Figure 1: group fairness on simulated queries
  german     Figure 3: group fairness on German Credit
  yahoo      Table 1 and Figure 2: needs Yahoo's files (--data), or take --stand-in
  mslr       the same on an open sample of MSLR-WEB10K, its test queries as given
  mslr-splits  the same sample, all queries split anew in every repetition
  rich-get-richer   clicks feed estimates, estimates feed rankings (chapter 17)
  from-clicks       Fair-PG-Rank trained on clicks alone (chapter 17)

examples:
  python -m experiments synthetic --quick
  python -m experiments german --jobs 2 --seeds 5 --out runs/german
  python -m experiments yahoo --data ~/yahoo/set1 --jobs 8
  python -m experiments yahoo --stand-in --quick

Minutes on one core: synthetic 10, german 4, mslr 16, the stand-in 60; with --quick less than one.
The same call again adds what is missing; --overwrite computes everything anew.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import REPRODUCTIONS, protocol, reproduction
from experiments.cells import completed
from experiments.summary import write_summary
from fairpg_lite.cli import options, run_command
from fairpg_lite.cli.output import DONE, FAILED, INTERRUPTED, UsageError, say, shows_progress
from fairpg_lite.sweeps import collect, run_cells

PROGRAM = "python -m experiments"
ROOT = Path(__file__).resolve().parents[2]
QUICK = "QUICK VERSION, few and small runs: it shows that the path works, the numbers mean nothing."


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = options.Parser(prog=PROGRAM, description=__doc__)
    parser.add_argument("experiment", choices=REPRODUCTIONS, help="which one")
    options.add_results(parser, "results/EXPERIMENT[-stand-in][-quick]")
    parser.add_argument(
        "--seeds",
        type=options.count,
        metavar="X",
        help="runs per setting (default: as published)",
    )
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--data",
        type=options.file_name,
        metavar="X",
        help="yahoo: the directory of Yahoo's files",
    )
    source.add_argument("--stand-in", action="store_true", help="yahoo: artificial data instead")
    options.add_places(parser)
    options.add_quiet(parser)
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one reproduction; returns the exit code."""
    return run_command(make_parser(), argv)


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, write table and summary."""
    is_yahoo = args.experiment == "yahoo"
    if not is_yahoo and (args.data or args.stand_in):
        raise UsageError("--data and --stand-in belong to `yahoo`.")
    out = Path(args.out or _default_out(args))
    if not args.overwrite:
        _refuse_earlier_table(out)
    out.mkdir(parents=True, exist_ok=True)
    module = reproduction(args.experiment)
    plan_options: dict[str, Any] = {"seeds": args.seeds, "quick": args.quick}
    if is_yahoo:
        plan_options |= {"data": args.data, "stand_in": args.stand_in}
    cells = module.plan(**plan_options)
    say(args, f"{args.experiment}: {len(cells)} cells, in {out}")
    try:
        records = run_cells(  # warns of cells that failed
            cells,
            out,
            jobs=args.jobs,
            scheduler=args.scheduler,
            timeout=args.timeout,
            overwrite=args.overwrite,
            progress=shows_progress(args),
        )
    except KeyboardInterrupt:
        print(
            f"{PROGRAM}: interrupted; the finished cells are kept in {out}, and the same call "
            "adds the others.",
            file=sys.stderr,
        )
        return INTERRUPTED
    done = completed(records)
    if done:
        data = module.describe_data(done)
        about = {"command": _command(args), "data": f"{QUICK} {data}" if args.quick else data}
        print(collect(out, about={"protocol": protocol.VERSION, **about}))
        print(write_summary(records, out, about, module.COLUMNS))
    return DONE if len(done) == len(records) else FAILED


def _default_out(args: argparse.Namespace) -> str:
    """A folder of the repository's results, as seen from here: nothing stored names this machine's
    directories.
    """
    name = args.experiment
    if args.stand_in:
        name += "-stand-in"
    if args.quick:
        name += "-quick"
    return os.path.relpath(ROOT / "results" / name)


def _refuse_earlier_table(out: Path) -> None:
    """Runs of two protocols must not end in one table."""
    try:
        protocol.refuse_earlier(out)
    except protocol.EarlierProtocolError as earlier:
        raise UsageError(str(earlier)) from None


def _command(args: argparse.Namespace) -> str:
    """The call as far as it decides the numbers; where files lie on this machine does not."""
    words = [PROGRAM, args.experiment]
    if args.seeds:
        words.append(f"--seeds {args.seeds}")
    if args.quick:
        words.append("--quick")
    if args.data:
        words.append("--data PATH")
    if args.stand_in:
        words.append("--stand-in")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
