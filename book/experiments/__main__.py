"""Run every method of one of the paper's experiments at the paper's settings.

Each run (a method, a lambda, a seed) is a file of its own below OUT, so a stopped reproduction goes
on where it was. When all are there they become one table, table.csv (what made it: table.json), and
then come summary.md, figure.png and figure.svg. All of them name the data.

  synthetic  Figure 1: group fairness on simulated queries
  german     Figure 3: group fairness on German Credit
  yahoo      Table 1 and Figure 2: needs Yahoo's files (--data), or take --stand-in
  mslr       the same protocol on an open sample of MSLR-WEB10K

examples:
  python -m experiments synthetic --quick
  python -m experiments german --jobs 2 --seeds 5 --out runs/german
  python -m experiments yahoo --data ~/yahoo/set1 --jobs 8
  python -m experiments yahoo --stand-in --quick

time on one core: synthetic 10 minutes, german 4, mslr 16, the stand-in about an hour, half of that
with --jobs 2 (from the stored cells that were compiled); with --quick each is done within half a
minute.
The same call again adds what is missing; --force computes everything anew.
"""

import argparse
import inspect
import json
import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments import REPRODUCTIONS, reproduction, summary
from fairpg_lite._files import write_whole
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli import run_command
from fairpg_lite.sweep import collect, run_cells

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
    cli.add(parser, "--epochs", default=None, help="yahoo, mslr: passes over the training queries")
    cli.add(parser, "--jobs", "--scheduler")
    patience = "seconds the cluster may be without a worker (default: 300)"
    parser.add_argument("--patience", metavar="X", type=cli.WEIGHT, default=300.0, help=patience)
    parser.add_argument("--force", action="store_true", help="compute everything anew")
    cli.add_verbosity(parser)
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one reproduction; returns the exit code."""
    return run_command(make_parser(), argv)


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, write table and figure."""
    module = reproduction(args.experiment)
    chosen = {"stand_in": args.stand_in, "data": args.data, "epochs": args.epochs}
    known = inspect.signature(module.plan).parameters
    options = {"seeds": args.seeds, "quick": args.quick}
    for name, value in chosen.items():
        if value and name not in known:
            owner = "`yahoo` and `mslr`" if name == "epochs" else "`yahoo`"
            raise cli.UsageError(f"--{name.replace('_', '-')} belongs to {owner}.")
        options |= {name: value} if value else {}
    # Finished results are no obstacle: a second run continues the first.
    out = cli.prepare_out(args.out or _default_out(args))
    if args.force:
        # A half-trained model of an earlier run must not be continued.
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
    if "checkpoints" in known:
        options["checkpoints"] = out / "checkpoints"
    cells = module.plan(**options)
    cli.say(args, f"{args.experiment}: {len(cells)} cells, in {out}")
    how = {"n_jobs": args.jobs, "scheduler": args.scheduler, "patience": args.patience}
    how |= {"force": args.force, "progress": cli.bars(args), "description": args.experiment}
    with warnings.catch_warnings():
        # Failed cells are listed by `_report`, all of them.
        warnings.filterwarnings("ignore", message="sweep: .* cells failed")
        records = run_cells(cells, out, **how)
    return _report(args, module, records, out)


def _default_out(args: argparse.Namespace) -> Path:
    """A directory for each kind of run, so that none meets another's cells."""
    stand_in, quick = "-stand-in" if args.stand_in else "", "-quick" if args.quick else ""
    out = ROOT / "results" / f"{args.experiment}{stand_in}{quick}"
    # As seen from here: what is printed and stored must not name this machine's directories.
    return Path(os.path.relpath(out))


def _report(
    args: argparse.Namespace, module: ModuleType, records: list[dict[str, Any]], out: Path
) -> int:
    done = summary.finished(records)
    failed = [record for record in records if record["status"] != "done"]
    listed = [f"{len(failed)} of {len(records)} cells failed (no figure; run again to retry them):"]
    for cell in failed:
        where = f"{cell['method']}, lambda {cell['lam']:g}, seed {cell['seed']}"
        listed.append(f"  {where}: {cell['error']['type']}: {cell['error']['message']}")
    if not done:
        raise cli.CliError("\n".join(listed))
    data = module.DATA if isinstance(module.DATA, str) else module.DATA(done)
    data = f"{QUICK} {data}" if args.quick else data
    about = {"command": _command(args), "data": data}
    columns = getattr(module, "COLUMNS", summary.MAIN_COLUMNS)
    written = [collect(out, **about, **_added(args, out))]
    written.append(summary.write_summary(records, out, columns=columns, **about))
    if hasattr(module, "table"):
        text = f"{QUICK}\n\n" * args.quick + module.table_text(module.table(done))
        written.append(write_whole(out / "table_1.md", f"{text}\nMade by: {about['command']}\n"))
    if not failed:
        # What a killed run left of its trainings belongs to no cell now.
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        caption = f"Data: {data} Made by: {summary.provenance_line(done, about['command'])}"
        written += summary.write_figure(module.figure(done), out, caption)
    cli.say(args, f"data: {data}", more=True)
    print(*written, sep="\n")
    if failed:
        # An error, so --quiet does not silence it; and a figure of other cells would mislead.
        print(*listed, sep="\n", file=sys.stderr)
        for name in ("figure.png", "figure.svg"):
            (out / name).unlink(missing_ok=True)
    return cli.FAILED if failed else cli.DONE


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
        f"--epochs {args.epochs}": args.epochs,
    }
    return " ".join([PROGRAM, args.experiment, *(word for word, given in words.items() if given)])


if __name__ == "__main__":
    sys.exit(main())
