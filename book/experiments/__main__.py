"""The paper's experiments, from data to table and figure.

`make reproduce NAME=synthetic` calls this: `python -m experiments synthetic` in book/.
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

from experiments import REPRODUCTIONS, reproduction
from fairpg_lite._files import write_whole
from fairpg_lite.cli import run_command
from fairpg_lite.cli._common import (
    DONE,
    FAILED,
    CliError,
    Parser,
    UsageError,
    add_verbosity,
    bars,
    number,
    prepare_out,
    say,
)

_DESCRIPTION = """\
Run every method of one of the paper's experiments at the paper's settings. Each run (a method, a
lambda, a seed) is a file of its own below OUT, so a stopped reproduction goes on where it was. When
all are there they become one table, table.csv (what made it: table.json), and then come summary.md,
figure.png and figure.svg. All of them name the data.

  synthetic  Figure 1: group fairness on simulated queries
  german     Figure 3: group fairness on German Credit
  yahoo      Table 1 and Figure 2: needs Yahoo's files (--data), or take --stand-in
  mslr       the same protocol on an open sample of MSLR-WEB10K"""
_EXAMPLES = """\
examples:
  python -m experiments synthetic --quick
  python -m experiments synthetic --jobs 2
  python -m experiments german --jobs 2 --seeds 5 --out runs/german
  python -m experiments yahoo --data ~/yahoo/set1 --jobs 8
  python -m experiments yahoo --stand-in --quick

time: synthetic and german take about 20 minutes each on one core and mslr 15, half of that with
--jobs 2 (added up from the stored cells of a busy machine); with --quick each is done within half a
minute.
The same call again adds what is missing; --force computes everything anew."""
PROGRAM = "python -m experiments"
ROOT = Path(__file__).resolve().parents[2]
QUICK = "QUICK VERSION, few and small runs: it shows that the path works, the numbers mean nothing."


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog=PROGRAM, description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("experiment", choices=list(REPRODUCTIONS), help="which one")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where results go (default: results/EXPERIMENT[-stand-in][-quick])",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=number(int, 1), default=1, help="processes (default: 1)"
    )
    parser.add_argument(
        "--seeds", metavar="N", type=number(int, 1), help="runs per setting (default: as published)"
    )
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    parser.add_argument("--data", metavar="PATH", help="yahoo: the directory of Yahoo's files")
    parser.add_argument(
        "--stand-in", action="store_true", help="yahoo: artificial data of the same shape instead"
    )
    parser.add_argument(
        "--epochs",
        metavar="N",
        type=number(int, 1),
        help="yahoo, mslr: passes over the training queries (default: as published)",
    )
    parser.add_argument("--scheduler", metavar="ADDR", help="a Dask cluster, tcp://host:8786")
    parser.add_argument(
        "--patience",
        metavar="S",
        type=number(float, 0),
        default=300.0,
        help="seconds to wait for a worker of the cluster (default: 300)",
    )
    parser.add_argument("--force", action="store_true", help="compute everything anew")
    add_verbosity(parser)
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one reproduction; returns the exit code."""
    return run_command(make_parser(), argv)


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, write table and figure."""
    _check(args)
    out = Path(args.out or _default_out(args))
    # Finished results are no obstacle: a second run continues the first.
    prepare_out(out)
    if args.force:
        # A half-trained model of an earlier run must not be continued.
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
    module = reproduction(args.experiment)
    cells = module.plan(seeds=args.seeds, quick=args.quick, **_options(args, module, out))
    say(args, f"{args.experiment}: {len(cells)} cells, in {out}")
    records = _run_cells(args, cells, out)
    return _report(args, module, records, out)


def _default_out(args: argparse.Namespace) -> Path:
    """A directory for each kind of run, so that none meets another's cells."""
    stand_in, quick = "-stand-in" if args.stand_in else "", "-quick" if args.quick else ""
    out = ROOT / "results" / f"{args.experiment}{stand_in}{quick}"
    # As seen from here: what is printed and stored must not name this machine's directories.
    return Path(os.path.relpath(out))


def _check(args: argparse.Namespace) -> None:
    if args.experiment != "yahoo":
        for name, given in (("--data", args.data is not None), ("--stand-in", args.stand_in)):
            if given:
                raise UsageError(
                    f"{name} belongs to `yahoo`; {args.experiment} brings its own data."
                )
    if args.epochs is not None and args.experiment not in ("yahoo", "mslr"):
        raise UsageError("--epochs belongs to `yahoo` and `mslr`.")
    if args.data is not None and args.stand_in:
        raise UsageError("--data and --stand-in exclude each other: real files or the stand-in.")


def _options(args: argparse.Namespace, module: ModuleType, out: Path) -> dict[str, Any]:
    """What this experiment's plan can use beyond seeds and quick."""
    offered = {"data": args.data, "stand_in": args.stand_in, "checkpoints": out / "checkpoints"}
    offered["epochs"] = args.epochs
    known = inspect.signature(module.plan).parameters
    return {name: value for name, value in offered.items() if name in known}


def _run_cells(args: argparse.Namespace, cells: list[Any], out: Path) -> list[dict[str, Any]]:
    from fairpg_lite.sweep import run_cells

    with warnings.catch_warnings():
        # Failed cells are listed by `_report`, all of them.
        warnings.filterwarnings("ignore", message="sweep: .* cells failed")
        return run_cells(
            cells,
            out,
            n_jobs=args.jobs,
            scheduler=args.scheduler,
            patience=args.patience,
            force=args.force,
            progress=bars(args),
            description=args.experiment,
        )


def _report(
    args: argparse.Namespace, module: ModuleType, records: list[dict[str, Any]], out: Path
) -> int:
    from experiments.summary import finished, provenance_line, write_figure, write_summary
    from fairpg_lite.sweep import collect

    failed = [record for record in records if record["status"] != "done"]
    done = finished(records)
    if not done:
        raise CliError(_list_failed(failed, len(records)))
    data = module.DATA if isinstance(module.DATA, str) else module.DATA(done)
    if args.quick:
        data = f"{QUICK} {data}"
    about = {"command": _command(args), "data": data}
    written = [collect(out, **about, **_added(args, out))]
    written.append(write_summary(records, out, **about, columns=getattr(module, "COLUMNS", None)))
    if hasattr(module, "table"):
        text = f"{QUICK}\n\n" if args.quick else ""
        text += f"{module.table_text(module.table(done))}\nMade by: {about['command']}\n"
        written.append(write_whole(out / "table_1.md", text))
    if not failed:
        # What a killed run left of its trainings belongs to no cell now.
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        caption = f"Data: {data} Made by: {provenance_line(done, about['command'])}"
        written += write_figure(module.figure(done), out, caption=caption)
    say(args, f"data: {data}", more=True)
    for path in written:
        print(path)
    if failed:
        # An error, so --quiet does not silence it; and a figure of other cells would mislead.
        print(_list_failed(failed, len(records)), file=sys.stderr)
        for name in ("figure.png", "figure.svg"):
            (out / name).unlink(missing_ok=True)
    return FAILED if failed else DONE


def _added(args: argparse.Namespace, out: Path) -> dict[str, str]:
    """What the sidecar says of numbers that were added to earlier runs; --force replaces those."""
    sidecar = out / "table.json"
    if args.force or not sidecar.exists():
        return {}
    stored = json.loads(sidecar.read_text("utf-8"))
    return {"added": stored["added"]} if "added" in stored else {}


def _command(args: argparse.Namespace) -> str:
    """The call as far as it decides the numbers; where files lie on this machine does not."""
    words = [PROGRAM, args.experiment]
    words += [f"--seeds {args.seeds}"] if args.seeds is not None else []
    words += ["--quick"] if args.quick else []
    words += ["--data PATH"] if args.data is not None else []
    words += ["--stand-in"] if args.stand_in else []
    words += [f"--epochs {args.epochs}"] if args.epochs is not None else []
    return " ".join(words)


def _list_failed(failed: list[dict[str, Any]], count: int) -> str:
    lines = [f"{len(failed)} of {count} cells failed (no figure; run again to retry them):"]
    for cell in failed:
        error = cell["error"]
        where = f"{cell['method']}, lambda {cell['lam']:g}, seed {cell['seed']}"
        lines.append(f"  {where}: {error['type']}: {error['message']}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
