"""Run every method of one of the paper's experiments at the paper's settings.

Each run (a method, a lambda, a seed) is a file of its own below OUT, so a stopped reproduction goes
on where it was. When all are there they become one table, table.csv (what made it: table.json), and
a summary of it, summary.md. All of them name the data.

  synthetic  Figure 1: group fairness on simulated queries
  german     Figure 3: group fairness on German Credit
  yahoo      Table 1 and Figure 2: needs Yahoo's files (--data), or take --stand-in
  mslr       the same protocol on an open sample of MSLR-WEB10K

examples:
  python -m experiments synthetic --quick
  python -m experiments german --jobs 2 --seeds 5 --out runs/german
  python -m experiments yahoo --data ~/yahoo/set1 --jobs 8
  python -m experiments yahoo --stand-in --quick

Minutes on one core: synthetic 10, german 4, mslr 16, the stand-in 60; with --quick less than one.
The same call again adds what is missing; --force computes everything anew.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import REPRODUCTIONS, reproduction, summary
from fairpg_lite._files import probe
from fairpg_lite.cli import options as cli
from fairpg_lite.cli import run_command
from fairpg_lite.sweeps.records import collect
from fairpg_lite.sweeps.running import run_cells

PROGRAM = "python -m experiments"
ROOT = Path(__file__).resolve().parents[2]
QUICK = "QUICK VERSION, few and small runs: it shows that the path works, the numbers mean nothing."


def make_parser() -> argparse.ArgumentParser:
    parser = cli.Parser(prog=PROGRAM, description=__doc__)
    parser.add_argument("experiment", choices=REPRODUCTIONS, help="which one")
    where = "where results go (default: results/EXPERIMENT[-stand-in][-quick])"
    cli.add(parser, "--out", help=where)
    cli.add(parser, "--seeds", default=None, help="runs per setting (default: as published)")
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=cli.path, help="yahoo: the directory of Yahoo's files")
    source.add_argument("--stand-in", action="store_true", help="yahoo: artificial data instead")
    cli.add(parser, "--jobs", "--scheduler", "--cluster-patience")
    parser.add_argument("--force", action="store_true", help="compute everything anew")
    cli.add(parser, "--quiet")
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one reproduction; returns the exit code."""
    return run_command(make_parser(), argv)


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, write table and summary."""
    module, options = reproduction(args.experiment), {"seeds": args.seeds, "quick": args.quick}
    if args.experiment == "yahoo":
        options |= {"data": args.data, "stand_in": args.stand_in}
    elif args.data or args.stand_in:
        raise cli.UsageError("--data and --stand-in belong to `yahoo`.")
    kind = "-stand-in" * args.stand_in + "-quick" * args.quick
    # As seen from here, so that nothing stored names this machine's directories.
    default = os.path.relpath(ROOT / "results" / f"{args.experiment}{kind}")
    # Finished results are no obstacle: a second run continues the first.
    out = probe(args.out or default)
    cells = module.plan(**options)
    cli.say(args, f"{args.experiment}: {len(cells)} cells, in {out}")
    how = {"n_jobs": args.jobs, "scheduler": args.scheduler, "patience": args.cluster_patience}
    how |= {"force": args.force, "progress": cli.bars(args)}
    records = run_cells(cells, out, **how)  # warns of cells that failed
    done = summary.finished(records)
    if done:
        data = module.DATA if isinstance(module.DATA, str) else module.DATA(done)
        about = {"command": _command(args), "data": f"{QUICK} {data}" if args.quick else data}
        columns = getattr(module, "COLUMNS", summary.MAIN_COLUMNS)
        print(collect(out, **about, **_added(args, out)))
        print(summary.write_summary(records, out, columns, **about))
    return cli.DONE if len(done) == len(records) else cli.FAILED


def _added(args: argparse.Namespace, out: Path) -> dict[str, str]:
    """What the sidecar says of numbers that were added to earlier runs; --force replaces those."""
    sidecar = out / "table.json"
    stored = {} if args.force or not sidecar.exists() else json.loads(sidecar.read_text("utf-8"))
    return {"added": stored["added"]} if "added" in stored else {}


def _command(args: argparse.Namespace) -> str:
    """The call as far as it decides the numbers; where files lie on this machine does not."""
    words = {
        f"--seeds {args.seeds}": args.seeds,
        "--quick": args.quick,
        "--data PATH": args.data,
        "--stand-in": args.stand_in,
    }
    return " ".join([PROGRAM, args.experiment, *(word for word, given in words.items() if given)])


if __name__ == "__main__":
    sys.exit(main())
