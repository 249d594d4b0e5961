"""The trade-off curve: models at several lambdas and seeds.

Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
disparity. DIR gets table.csv (a row for each run), tradeoff.png and tradeoff.svg (means over
seeds with 95 % intervals) and the models, for evaluate and rank. Killed at any moment, the same
command goes on where it was; more values of --lam, or more --seeds, are added.

examples:
  fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
  fairpg-lite sweep train.txt --test test.txt --disparity individual --lam 0 1 --jobs 4 --out s/
  fairpg-lite sweep ... --scheduler tcp://host:8786 --out sweep/
"""

import argparse
import io

from fairpg_lite._files import write_whole
from fairpg_lite._tradeoff import tradeoff
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import hidden_units, training_config, training_data
from fairpg_lite.cli.evaluate import NAMES, judging
from fairpg_lite.figures import plot_tradeoff, style

USAGE = "%(prog)s TRAIN [TRAIN ...] --test TEST --lam X [X ...] --out DIR [options]"


def add_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "train", nargs="+")
    cli.add(parser, "--test", "--out", required=True)
    cli.add(parser, "--lam", required=True, nargs="+", default=None)
    cli.add(parser, "--seeds", "--jobs", "--scheduler", "--cluster-patience", "--name", "--force")
    cli.add(parser, *cli.JUDGING, *cli.TRAINING)


def run(args: argparse.Namespace) -> int:
    fair = any(lam > 0 for lam in args.lam)
    config = training_config(args, fair, lam=0.0)
    prepare, data = training_data(args, fair, "test", "valid")
    out = cli.prepare_out(args.out)
    table = tradeoff(
        data["train"],
        data["test"],
        dict.fromkeys(args.lam),
        args.seeds,
        out=out,
        valid=data.get("valid"),
        config=config,
        hidden=hidden_units(args),
        judge=judging(args),
        prepare=prepare,
        name=args.name,
        n_jobs=args.jobs,
        scheduler=args.scheduler,
        patience=args.cluster_patience,
        force=args.force,
        progress=cli.bars(args),
    )
    measure = {"group": "d_group", "gap": "group_gap"}.get(args.disparity, "d_ind")
    with style():
        figure = plot_tradeoff(table, x=measure).figure
        # Without date and version, the same table is the same file.
        for kind, unstamped in (("png", {"Software": None}), ("svg", {"Date": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, metadata=unstamped)
            write_whole(out / f"tradeoff.{kind}", picture.getvalue())
    print(f"{'lambda':>8}{'NDCG':>10}{NAMES[measure]:>15}   means over {args.seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", measure]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
    cli.say(args, f"{len(table)} runs: table.csv, tradeoff.png, tradeoff.svg and models in {out}")
    return cli.DONE
