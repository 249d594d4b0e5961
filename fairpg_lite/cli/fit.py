"""`fairpg-lite fit`: train a policy on LETOR files, and leave a model directory."""

import argparse
import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fairpg_lite.budget import BudgetResult, fit_to_budget
from fairpg_lite.cli._common import (
    DONE,
    INFINITY,
    INTERRUPTED,
    CliError,
    Subparsers,
    UsageError,
    add_verbosity,
    bars,
    check_out,
    number,
    prepare_out,
    say,
)
from fairpg_lite.cli._data import FORMAT, add_groups_file, add_reading, read
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import MERITS
from fairpg_lite.history import History
from fairpg_lite.models import data_notes, save_model
from fairpg_lite.objective import LINEAR_UTILITIES, SAMPLED_UTILITIES
from fairpg_lite.preparation import NORMALIZATIONS, Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.train import fit

_DESCRIPTION = """\
Train a stochastic ranking policy that maximises utility less lambda times disparity
(Fair-PG-Rank), and write it to a directory: model.json says in plain text how it was made and
holds the weights. A killed training continues when the same command is given again
(but not with --budget, whose search starts afresh)."""
_EXAMPLES = f"""\
examples:
  fairpg-lite fit train.txt --out model/                                    plain PG-Rank
  fairpg-lite fit train.txt --valid valid.txt --patience 5 --group-feature 5 --lam 1 --out model/
  fairpg-lite fit train.txt --disparity individual --lam 10 --method exact --out model/
  fairpg-lite fit train.txt --groups labels.txt --budget 0.01 --method exact --out model/

{FORMAT}
groups: from a feature (--group-feature, above --group-threshold or one group per value), or
  from a file with one label per document (--groups); needed for --disparity group."""

#: Options that are fields of TrainConfig: (field, argparse settings); defaults are the field's.
_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("utility", {"choices": LINEAR_UTILITIES + SAMPLED_UTILITIES, "help": "what users gain"}),
    ("merit", {"choices": tuple(MERITS), "help": "merit as a function of the grade"}),
    ("method", {"choices": ("sample", "exact"), "help": "the paper's gradient, or the exact one"}),
    ("samples", {"type": number(int, 1), "help": "rankings drawn per query by method sample"}),
    ("epochs", {"type": number(int, 1), "help": "passes over the queries"}),
    ("batch_size", {"type": number(int, 1), "help": "queries per update"}),
    ("optimizer", {"choices": ("adam", "sgd"), "help": "optimiser"}),
    ("lr", {"type": number(float, 0, above=True), "help": "learning rate"}),
    ("lr_decay", {"type": number(float, 0, above=True), "help": "its factor after an epoch"}),
    ("weight_decay", {"type": number(float, 0), "help": "L2 penalty"}),
    ("entropy", {"type": number(float, 0), "help": "weight of the entropy regulariser"}),
    ("entropy_decay", {"type": number(float, 0), "help": "its factor after an epoch"}),
    ("patience", {"type": number(int, 1), "help": "stop after so many epochs without a better "
                  "objective on --valid"}),
    ("seed", {"type": number(int, 0), "help": "fixes initial weights, order and draws"}),
)  # fmt: skip


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "fit",
        usage="%(prog)s TRAIN --out DIR [options]",
        help="train a policy on LETOR files",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("train", metavar="TRAIN", help="LETOR file to train on")
    parser.add_argument("--valid", metavar="FILE", help="LETOR file to choose the best epoch by")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for the model")
    parser.add_argument("--force", action="store_true", help="replace a model that is there")
    add_verbosity(parser)
    aim = parser.add_argument_group("fairness")
    weight = aim.add_mutually_exclusive_group()
    weight.add_argument(
        "--lam", type=number(float, 0), default=0.0, help="weight of the disparity (default 0)"
    )
    weight.add_argument(
        "--budget",
        type=number(float, 0),
        metavar="DELTA",
        help="find the least lambda whose disparity on TRAIN is at most DELTA",
    )
    aim.add_argument(
        "--disparity",
        choices=("group", "individual", "none"),
        default="group",
        help="between groups or between documents (default group)",
    )
    _add_reading(parser)
    _add_training(parser)
    parser.set_defaults(run=run)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = add_reading(parser)
    group.add_argument(
        "--group-feature",
        type=number(int, 0),
        metavar="ID",
        help="the feature that holds the groups",
    )
    group.add_argument(
        "--group-threshold",
        type=number(float, -INFINITY),
        metavar="X",
        help="group 1 is where it is above X, group 0 the rest; without it, one group per value",
    )
    group.add_argument(
        "--drop-group-feature", action="store_true", help="hide that feature from the scorer"
    )
    add_groups_file(group, "--groups", "TRAIN")
    add_groups_file(group, "--valid-groups", "the validation file")
    group.add_argument(
        "--normalize",
        choices=NORMALIZATIONS,
        default="none",
        help="scale features: to [0, 1] within each query, or to mean 0 and deviation 1 over "
        "TRAIN (default none)",
    )
    group.add_argument("--zero-based", action="store_true", help="feature ids begin at 0")
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="number format (default float32)",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model and training")
    group.add_argument(
        "--model",
        choices=("linear", "neural"),
        default="linear",
        help="one weight per feature, or one hidden layer (default linear)",
    )
    group.add_argument(
        "--hidden", type=number(int, 1), metavar="N", help="units of that layer (default 32)"
    )
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    for name, settings in _SETTINGS:
        default = defaults[name]
        text = settings["help"] + ("" if default is None else f" (default {default})")
        metavar = {} if "choices" in settings else {"metavar": "N"}
        group.add_argument(
            f"--{name.replace('_', '-')}",
            default=default,
            **{**settings, **metavar, "help": text},
        )


def run(args: argparse.Namespace) -> int:
    config = _config(args)
    out = check_out(args.out, args.force)
    train, valid, prepare = _data(args)
    scorer = _scorer(args, prepare.n_scored)
    prepare_out(out, args.force)
    notes: dict[str, Any] = {"train": data_notes(train)}
    if valid is not None:
        notes["valid"] = data_notes(valid)
    result = None
    if args.budget is None:
        history = _train(args, out, scorer, (train, valid), prepare, config)
        if history.stopped == "interrupted":
            say(args, f"interrupted after {len(history)} epochs; the same command continues.")
            return INTERRUPTED
    else:
        result = fit_to_budget(scorer, train, args.budget, config, progress=bars(args))
        history, notes["budget"] = result.history, _budget_notes(result)
        config = TrainConfig(**{**config.__dict__, "lam": result.lam})
    save_model(
        scorer,
        out,
        prepare=prepare,
        config=config,
        history=history,
        notes=notes,
        overwrite=args.force,
    )
    for old in out.glob("checkpoint-*.pt*"):
        old.unlink()
    return _report(args, out, history, result)


def _config(args: argparse.Namespace) -> TrainConfig:
    """The settings of the run; what cannot be meant is a wrong call."""
    if args.patience is not None and args.valid is None:
        raise UsageError("--patience watches a validation set; give --valid FILE.")
    if args.valid_groups is not None and args.valid is None:
        raise UsageError("--valid-groups labels a validation set; give --valid FILE.")
    if args.budget is not None and args.valid is not None:
        raise UsageError("--budget measures on TRAIN and takes no --valid.")
    if args.hidden is not None and args.model != "neural":
        raise UsageError("--hidden belongs to --model neural.")
    if args.group_feature is None and (args.drop_group_feature or args.group_threshold is not None):
        raise UsageError(
            "--group-threshold and --drop-group-feature say what to do with --group-feature ID; "
            "give it."
        )
    if args.group_feature is not None and args.groups is not None:
        raise UsageError("--group-feature and --groups both name the groups; give one.")
    wanted = args.lam > 0 or args.budget is not None
    if wanted and args.disparity == "none":
        raise UsageError("--disparity none leaves nothing to weigh or bound.")
    if wanted and args.disparity == "group" and args.group_feature is None and args.groups is None:
        raise UsageError(
            "--disparity group needs groups: --group-feature ID or --groups FILE; "
            "or choose --disparity individual."
        )
    settings = {name: getattr(args, name) for name, _ in _SETTINGS}
    disparity = None if args.disparity == "none" else args.disparity
    try:
        return TrainConfig(lam=args.lam, disparity=disparity, **settings)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("TrainConfig: ")) from error


def _data(
    args: argparse.Namespace,
) -> tuple[RankingDataset, RankingDataset | None, Preparation]:
    how = {"zero_based": args.zero_based, "dtype": getattr(torch, args.dtype)}
    train = read(args, args.train, args.groups, **how)
    prepare = Preparation.learn(
        train,
        normalize=args.normalize,
        zero_based=args.zero_based,
        group_feature=args.group_feature,
        group_threshold=args.group_threshold,
        drop_group_feature=args.drop_group_feature,
    )
    train, valid = prepare(train), None
    if prepare.n_scored == 0:
        raise CliError(f"{args.train}: no feature is left to score by.")
    if args.valid is not None:
        valid = prepare(read(args, args.valid, args.valid_groups, **how))
        if train.groups is not None and valid.groups is None:
            raise UsageError("TRAIN has labels from a file; give --valid-groups FILE as well.")
    if (args.lam > 0 or args.budget is not None) and args.disparity == "group":
        assert train.groups is not None
        if len(train.groups.unique()) < 2:
            raise CliError(f"{args.train}: all documents are in one group; D_group needs two.")
    return train, valid, prepare


def _scorer(args: argparse.Namespace, n_features: int) -> nn.Module:
    generator = torch.Generator().manual_seed(args.seed)
    dtype = getattr(torch, args.dtype)
    if args.model == "linear":
        return LinearScorer(n_features, generator=generator, dtype=dtype)
    return MLPScorer(n_features, args.hidden or 32, generator=generator, dtype=dtype)


def _train(
    args: argparse.Namespace,
    out: Path,
    scorer: nn.Module,
    data: tuple[RankingDataset, RankingDataset | None],
    prepare: Preparation,
    config: TrainConfig,
) -> History:
    """`fit`, with a checkpoint that only the same run on the same data can continue."""
    checkpoint = out / f"checkpoint-{_fingerprint(scorer, data, prepare, config)}.pt"
    others = [path for path in out.glob("checkpoint-*.pt") if path != checkpoint]
    if others and not args.force:
        raise CliError(
            f"{out} holds the unfinished training of another run (other data or settings); give "
            "that run's command to finish it, or --force to drop it."
        )
    for path in others:
        path.unlink()
    if checkpoint.exists():
        say(args, f"continuing the training in {out}")
    return fit(scorer, data[0], config, data[1], progress=bars(args), checkpoint=checkpoint)


def _fingerprint(
    scorer: nn.Module,
    data: tuple[RankingDataset, RankingDataset | None],
    prepare: Preparation,
    config: TrainConfig,
) -> str:
    """Of everything that the training depends on but the number of epochs, which may grow."""
    digest = hashlib.sha256()
    settings = {**config.to_dict(), "epochs": None}
    digest.update(json.dumps([settings, prepare.to_dict(), str(scorer)]).encode())
    for dataset in data:
        if dataset is not None:
            for values in (dataset.features, dataset.relevance, dataset.offsets, dataset.groups):
                digest.update(b"none" if values is None else values.contiguous().numpy().data)
    return digest.hexdigest()[:12]


def _budget_notes(result: BudgetResult) -> dict[str, Any]:
    names = ("delta", "lam", "utility", "disparity", "converged", "message")
    return {name: getattr(result, name) for name in names}


def _report(
    args: argparse.Namespace, out: Path, history: History, result: BudgetResult | None
) -> int:
    say(args, f"training: {history}")
    say(args, f"model written to {out}")
    if result is None:
        return DONE
    text = (
        f"budget {result.delta:g}: disparity {result.disparity:.3g} at lambda {result.lam:g}; "
        f"{result.message}"
    )
    if result.disparity > result.delta:
        raise CliError(text + f"; the model in {out} is over budget.")
    say(args, text)
    return DONE
