"""`fairpg-lite sweep`: from LETOR files to the trade-off curve, one model per lambda and seed."""

import argparse
import io

from fairpg_lite._files import write_whole
from fairpg_lite._tradeoff import tradeoff
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli._data import FORMAT, training_config, training_data
from fairpg_lite.cli._options import JUDGING, TRAINING, add, add_verbosity, path
from fairpg_lite.cli.evaluate import NAMES, judging
from fairpg_lite.figures import palette_png, plot_tradeoff, style

_DESCRIPTION = """\
Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
disparity. DIR gets table.csv (a row for each run), tradeoff.png and tradeoff.svg (means over
seeds with 95 % intervals) and the models, for evaluate and rank. Killed at any moment, the same
command goes on where it was; more values of --lam, or more --seeds, are added."""
_EXAMPLES = f"""\
examples:
  fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
  fairpg-lite sweep train.txt --test test.txt --disparity individual --lam 0 1 10 --seeds 10 \\
      --jobs 4 --method exact --out sweep/
  fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 \\
      --scheduler tcp://host:8786 --out sweep/

{FORMAT}"""


def add_parser(subparsers: cli.Subparsers) -> None:
    parser = subparsers.add_parser(
        "sweep",
        usage="%(prog)s TRAIN [TRAIN ...] --test TEST --lam X [X ...] --out DIR [options]",
        help="the trade-off curve: models at several lambdas and seeds",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "train", type=path, nargs="+", metavar="TRAIN", help="LETOR files to train on"
    )
    add(parser, "--test", "--out", required=True)
    add(parser, "--lam", required=True, nargs="+")
    add(parser, "--seeds", "--jobs", "--scheduler", "--name", "--force", *JUDGING)
    add(parser, *TRAINING, "--test-groups")
    add_verbosity(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    fair = any(lam > 0 for lam in args.lam)
    config = training_config(args, fair, lam=0.0)
    prepare, data = training_data(args, fair, "test", "valid")
    out = cli.prepare_out(args.out)
    table = tradeoff(
        data["train"],
        data["test"],
        list(dict.fromkeys(args.lam)),
        args.seeds,
        out=out,
        valid=data.get("valid"),
        config=config,
        hidden=None if args.model == "linear" else args.hidden or 32,
        judge=judging(args),
        prepare=prepare,
        name=args.name,
        n_jobs=args.jobs,
        scheduler=args.scheduler,
        force=args.force,
        progress=cli.bars(args),
    )
    measure = {"group": "d_group", "gap": "group_gap"}.get(args.disparity, "d_ind")
    with style():
        figure = plot_tradeoff(table, x=measure).figure
        for kind, about in (("png", {}), ("svg", {"Date": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, metadata=about)
            content = picture.getvalue()
            write_whole(
                out / f"tradeoff.{kind}", palette_png(content) if kind == "png" else content
            )
    print(f"{'lambda':>8}{'NDCG':>10}{NAMES[measure]:>15}   means over {args.seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", measure]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
    cli.say(args, f"{len(table)} runs: table.csv, tradeoff.png, tradeoff.svg and models in {out}")
    return cli.DONE
