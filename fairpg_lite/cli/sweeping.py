"""`fairpg-lite sweep`."""

import argparse
from dataclasses import replace
from pathlib import Path

from fairpg_lite._files import whole_file
from fairpg_lite.cli import options
from fairpg_lite.cli.output import UsageError, say, shows_progress
from fairpg_lite.cli.reading import read_parts
from fairpg_lite.figures import plot_tradeoff, style
from fairpg_lite.measures import DISPARITIES, MEASURES
from fairpg_lite.sweeps import tradeoff

HELP = """\
The trade-off curve: models at several lambdas and seeds.

Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
disparity. The directory gets table.csv (a row for each run), tradeoff.png and tradeoff.svg
(means over seeds with 95 % intervals) and the models. Killed at any moment, the same command
goes on where it was; more values of --lam, or more --seeds, are added.

examples:
  fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
  fairpg-lite sweep ... --scheduler tcp://host:8786 --out sweep/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    options.add_training_data(parser)
    options.add_results(parser)
    options.add_scorer(parser)
    for name in options.SETTINGS:
        if name not in ("lam", "seed"):
            options.add_setting(parser, name)
    parser.add_argument(
        "--test",
        type=options.file_name,
        required=True,
        metavar="X",
        help="LETOR file to judge on",
    )
    parser.add_argument(
        "--lam", type=float, nargs="+", required=True, metavar="X", help="weights of the disparity"
    )
    options.add_evaluation(parser)
    options.add_position_bias(parser, "log2")
    parser.add_argument(
        "--seeds",
        type=options.count,
        default=5,
        metavar="X",
        help="runs at each lambda (default %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=options.count,
        default=1,
        metavar="X",
        help="processes on this machine (default %(default)s)",
    )
    parser.add_argument(
        "--scheduler",
        type=options.file_name,
        metavar="X",
        help="address of a Dask cluster to use instead",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="X",
        help="seconds the cluster may be without a worker (default %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    """Train, judge, draw, and print the means."""
    config = options.settings_of(args, lam=0.0)
    if config.disparity not in DISPARITIES:
        raise UsageError(f"--disparity is {args.disparity}; choose from {', '.join(DISPARITIES)}.")
    is_charged = any(lam > 0 for lam in args.lam)
    prepare, data = read_parts(args, ("test", "valid"), is_charged)
    longest = options.longest_list(data.values())
    config = replace(config, position_bias=options.position_bias_of(args.position_bias, longest))
    measures = options.measures_for(
        data["test"].groups is not None, args.k is not None, args.disparity
    )
    table = tradeoff(
        data["train"],
        data["test"],
        list(dict.fromkeys(args.lam)),
        args.seeds,
        out=args.out,
        valid=data.get("valid"),
        config=config,
        hidden=args.hidden,
        evaluate_options={
            "measures": measures,
            "k": args.k,
            "gain": args.gain,
            "merit": args.merit,
            "undefined": options.undefined_values(args),
        },
        prepare=prepare,
        jobs=args.jobs,
        scheduler=args.scheduler,
        timeout=args.timeout,
        overwrite=args.overwrite,
        progress=shows_progress(args),
    )
    x = args.disparity if args.disparity in measures else "d_ind"
    with style():
        figure = plot_tradeoff(table, x=x).get_figure(root=True)
        assert figure is not None
        # Without date and version, the same table is the same file.
        for kind, unstamped in (("png", {"Software": None}), ("svg", {"Date": None})):
            with whole_file(Path(args.out) / f"tradeoff.{kind}") as picture:
                figure.savefig(picture, format=kind, metadata=unstamped)
    print(f"{'lambda':>8}{'NDCG':>10}{MEASURES[x].label:>15}   means over {args.seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", x]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
    say(args, f"{len(table)} runs: table, pictures and models in {args.out}")
