"""The commands that train: `fit`, one model, and `sweep`, the trade-off over lambda."""

import argparse
import hashlib
import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fairpg_lite import train as training
from fairpg_lite._files import clear_leftovers, probe, write_whole
from fairpg_lite.budget import fit_to_budget
from fairpg_lite.cli import _common as cli
from fairpg_lite.cli.use import NAMES, judging
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.figures import plot_tradeoff, style, tradeoff
from fairpg_lite.models import Preparation, load_model, save_model
from fairpg_lite.objective import GROUP_DISPARITIES


def _training_options(parser: argparse.ArgumentParser) -> None:
    cli.add(parser, "train", nargs="+")
    cli.add(parser, "--out", required=True)
    cli.add(parser.add_mutually_exclusive_group(), "--group-feature", "--groups")
    cli.add(parser, "--group-threshold", "--valid", "--valid-groups", "--n-features")
    cli.add(parser, "--normalize", "--hidden", "--force")
    settings = [f"--{name.replace('_', '-')}" for name in cli.SETTINGS]
    cli.add(parser, *(name for name in settings if name not in ("--lam", "--seed")))


def _config(args: argparse.Namespace, **changes: Any) -> TrainConfig:
    """The settings of a run; what cannot be meant is a wrong call."""
    if args.patience is not None and args.valid is None:
        raise cli.UsageError("--patience is for validation; give --valid FILE.")
    settings = {name: getattr(args, name) for name in cli.SETTINGS if hasattr(args, name)}
    try:
        return TrainConfig(**settings | changes)
    except ValueError as error:
        raise cli.UsageError(str(error).removeprefix("TrainConfig: ")) from error


def _data(
    args: argparse.Namespace, fair: bool, *parts: str
) -> tuple[Preparation, dict[str, RankingDataset]]:
    """TRAIN and some of "valid" and "test" as the scorer is to see them; how they were prepared."""
    train = cli.read(args, args.train, args.groups)
    names = ("normalize", "group_feature", "group_threshold")
    prepare = Preparation.learn(train, **{name: getattr(args, name) for name in names})
    data = {"train": prepare(train)}
    groups = data["train"].groups
    by_group = fair and args.disparity in GROUP_DISPARITIES
    if by_group and (groups is None or len(groups.unique()) < 2):
        raise cli.UsageError(
            f"--disparity {args.disparity} needs documents of two groups in {args.train[0]}: give "
            "--group-feature ID or --groups FILE, or --disparity individual."
        )
    for part in parts:
        if (file := getattr(args, part)) is not None:
            labels = getattr(args, f"{part}_groups")
            data[part] = prepare(cli.read(args, [file], labels))
            if groups is not None and data[part].groups is None:
                raise cli.UsageError(f"--groups are of TRAIN; give --{part}-groups FILE, too.")
    return prepare, data


def fit_options(parser: argparse.ArgumentParser) -> None:
    _training_options(parser)
    cli.add(parser, "--seed")
    cli.add(parser.add_mutually_exclusive_group(), "--lam", "--budget")
    cli.add(parser, "--test", help="LETOR file whose disparity a --budget reports, too")
    cli.add(parser, "--test-groups")


def fit(args: argparse.Namespace) -> int:
    """Train a policy on LETOR files, and leave a model directory.

    The policy maximises utility less lambda times disparity (Fair-PG-Rank). The directory gets
    model.json, which says in plain text how the model was made and holds the weights. A killed
    training continues when the same command is given again (with --budget it starts afresh).

    examples:
      fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --lam 1 --out model/
      fairpg-lite fit train.txt --disparity individual --lam 10 --method exact --out model/
      fairpg-lite fit train.txt --valid valid.txt --group-feature 5 --budget 0.01 --out model/
    """
    config = _config(args)
    if args.budget is None and args.test is not None:
        raise cli.UsageError("--test reports on a --budget; judge a model by fairpg-lite evaluate.")
    prepare, data = _data(args, args.lam > 0 or args.budget is not None, "valid", "test")
    scorer = training.new_scorer(data["train"], args.hidden, args.seed)
    asked = [config.to_dict(), asdict(prepare), str(scorer), args.budget]
    asked += [dataset.fingerprint() for dataset in data.values()]
    notes: dict[str, Any] = {part: str(dataset) for part, dataset in data.items()}
    notes["run"] = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    out = Path(args.out)
    checkpoint = out / "checkpoint.pt"
    if not args.force and _finished(out, notes["run"]):
        _clear(out)
        cli.say(args, f"{out} holds the model of this very command; there is nothing to do.")
        return cli.DONE
    probe(out)  # before hours are spent
    if args.force:
        checkpoint.unlink(missing_ok=True)
    how: dict[str, Any] = {"progress": cli.bars(args), "valid": data.get("valid")}
    if args.budget is None:
        history = training.fit(scorer, data["train"], config, checkpoint=checkpoint, **how)
        if history.stopped == "interrupted":
            cli.say(args, f"interrupted after {len(history)} epochs; the same command continues.")
            return cli.INTERRUPTED
    else:
        found = fit_to_budget(scorer, data["train"], args.budget, config, **how)
        history, config = found.history, replace(config, lam=found.lam)
        parts = {}
        for part, queries in data.items():
            _, parts[part] = training.objective_on(scorer, queries, config)
        names = ("delta", "lam", "utility", "disparity", "message")
        notes["budget"] = {name: getattr(found, name) for name in names} | {"found": parts}
        told = ", ".join(f"{value:.3g} on {part}" for part, value in parts.items())
        over = parts.get("test", 0.0) > args.budget >= found.disparity
        told += f", at lambda {found.lam:g}: {found.message}"
        told += "; it does not carry over to test" if over else ""
        cli.say(args, f"disparity {told}")
    made: dict[str, Any] = {"prepare": prepare, "config": config, "notes": notes}
    save_model(scorer, out, history=history, overwrite=args.force, **made)
    _clear(out)
    cli.say(args, f"training: {history}\nmodel written to {out}")
    if args.budget is not None and found.disparity > args.budget:
        raise ValueError(f"the model in {out} is over budget: {found.message}.")
    return cli.DONE


def _finished(out: Path, run: str) -> bool:
    """Whether `out` holds the model of this run; another's is not to be touched."""
    if not (out / "model.json").exists():
        return False
    try:
        theirs = (load_model(out).meta.get("notes") or {}).get("run")
    except ValueError:
        theirs = None
    if theirs != run:
        raise ValueError(f"{out} holds another model.json; give --force to replace it.")
    return True


def _clear(out: Path) -> None:
    """Remove what a training needs only while it lasts, and what a killed one left."""
    for name in ("checkpoint.pt", "model.json"):
        clear_leftovers(out / name)
    (out / "checkpoint.pt").unlink(missing_ok=True)


def sweep_options(parser: argparse.ArgumentParser) -> None:
    _training_options(parser)
    cli.add(parser, "--test", required=True)
    cli.add(parser, "--lam", required=True, nargs="+", default=None)
    cli.add(parser, "--test-groups", "--k", "--undefined")
    cli.add(parser, "--seeds", "--jobs", "--scheduler", "--cluster-patience")


def sweep(args: argparse.Namespace) -> int:
    """The trade-off curve: models at several lambdas and seeds.

    Train a policy at every lambda and seed on TRAIN, judge each on TEST, and draw utility against
    disparity. The directory gets table.csv (a row for each run), tradeoff.png and tradeoff.svg
    (means over seeds with 95 % intervals) and the models. Killed at any moment, the same command
    goes on where it was; more values of --lam, or more --seeds, are added.

    examples:
      fairpg-lite sweep train.txt --test test.txt --group-feature 5 --lam 0 1 10 100 --out sweep/
      fairpg-lite sweep ... --scheduler tcp://host:8786 --out sweep/
    """
    config = _config(args, lam=0.0)
    prepare, data = _data(args, any(lam > 0 for lam in args.lam), "test", "valid")
    how: dict[str, Any] = {"n_jobs": args.jobs, "scheduler": args.scheduler, "force": args.force}
    how |= {"patience": args.cluster_patience, "progress": cli.bars(args)}
    how |= {"valid": data.get("valid"), "judge": judging(args, args.gain, args.merit)}
    how |= {"config": config, "hidden": args.hidden, "prepare": prepare}
    lams = dict.fromkeys(args.lam)
    table = tradeoff(data["train"], data["test"], lams, args.seeds, out=args.out, **how)
    measure = {"group": "d_group", "gap": "group_gap"}.get(args.disparity, "d_ind")
    with style():
        figure = plot_tradeoff(table, x=measure).figure
        # Without date and version, the same table is the same file.
        for kind, unstamped in (("png", {"Software": None}), ("svg", {"Date": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, metadata=unstamped)
            write_whole(Path(args.out) / f"tradeoff.{kind}", picture.getvalue())
    print(f"{'lambda':>8}{'NDCG':>10}{NAMES[measure]:>15}   means over {args.seeds} seeds")
    for lam, utility, disparity in table.groupby("lam")[["ndcg", measure]].mean().itertuples():
        print(f"{lam:8g}{utility:10.4f}{disparity:15.4f}")
    cli.say(args, f"{len(table)} runs: table, pictures and models in {args.out}")
    return cli.DONE
