"""`fairpg-lite sweep`."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairpg_lite._files import whole_file
from fairpg_lite.cli import options
from fairpg_lite.cli.output import UsageError, say, shows_progress
from fairpg_lite.cli.reading import read_parts
from fairpg_lite.figures import plot_tradeoff, style
from fairpg_lite.measures import DISPARITIES, MEASURES
from fairpg_lite.sweeps import tradeoff

if TYPE_CHECKING:
    import pandas as pd

HELP = """\
The trade-off curve: models at several lambdas and seeds.

Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
disparity. The directory gets table.csv (a row for each run), tradeoff.png and tradeoff.svg
(means over seeds with 95 % intervals), such a picture for each of --measures, and the models.
Killed at any moment, the same command goes on where it was; more values of --lam, or more
--seeds, are added.

examples:
  fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
  fairpg-lite sweep ... --disparity mine:shortfall --measures d_ind parity --out sweep/
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
    options.add_cut_off(parser, "none")
    parser.add_argument(
        "--measures",
        nargs="+",
        choices=options.MEASURES_OF_A_FILE,
        default=[],
        metavar="X",
        help="more columns of the table, each with a picture of its own, of "
        f"{', '.join(options.MEASURES_OF_A_FILE)}",
    )
    parser.add_argument(
        "--seeds",
        type=options.count,
        default=5,
        metavar="X",
        help="runs at each lambda (default %(default)s)",
    )
    options.add_places(parser)


def run(args: argparse.Namespace) -> None:
    """Train, judge, draw, and print the means."""
    config = options.settings_of(args, lam=0.0)
    if config.disparity not in DISPARITIES and not callable(config.disparity):
        raise UsageError(f"--disparity is {args.disparity}; choose from {', '.join(DISPARITIES)}.")
    is_charged = any(lam > 0 for lam in args.lam)
    prepare, data = read_parts(args, ("test", "valid"), is_charged)
    longest = options.longest_list(data.values())
    bias = options.cut_bias_of(args.position_bias, args.k, longest)
    config = replace(config, position_bias=bias)
    measures = options.measures_for(data["test"].groups is not None, args.disparity)
    measures += [name for name in args.measures if name not in measures]
    trained = args.disparity if args.disparity in measures else "d_ind"
    if callable(config.disparity):
        _, _, trained = args.disparity.partition(":")
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
    _draw(table, trained, Path(args.out) / "tradeoff")
    for name in args.measures:
        _draw(table, name, Path(args.out) / f"tradeoff_{name}")
    _print_means(table, trained, args.seeds)
    say(args, f"{len(table)} runs: table, pictures and models in {args.out}")


def _draw(table: "pd.DataFrame", x: str, path: Path) -> None:
    """Write NDCG against a measure as PNG and SVG."""
    from matplotlib.figure import Figure

    with style():
        figure = plot_tradeoff(table, x=x).figure
        assert isinstance(figure, Figure)
        # Without date and version, the same table is the same file.
        for kind, unstamped in (("png", {"Software": None}), ("svg", {"Date": None})):
            with whole_file(path.with_name(f"{path.name}.{kind}")) as picture:
                figure.savefig(picture, format=kind, metadata=unstamped)


def _print_means(table: "pd.DataFrame", x: str, seeds: int) -> None:
    """Print lambda, NDCG and a measure, means over seeds."""
    label = MEASURES[x].label if x in MEASURES else x
    print(f"{'lambda':>8}{'NDCG':>10}{label:>15}   means over {seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", x]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
