"""From LETOR files and options to what a scorer sees, in plain words where something is amiss."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite.cli._common import SETTINGS, CliError, UsageError, bars, say
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import LetorError, RankingDataset, load_letor
from fairpg_lite.models import SavedModel
from fairpg_lite.objective import GROUP_DISPARITIES
from fairpg_lite.preparation import Preparation

# What load_letor advises in Python, in the words of the command line.
_ADVICE = {
    "pass require_final_newline=False": "pass --allow-cut",
    "pass zero_based=True": "pass --zero-based",
    "pass dtype=torch.float64": "pass --dtype float64 when fitting",
    "pass n_features": "pass --n-features",
    "beyond n_features": "beyond --n-features",
}


def read(
    args: argparse.Namespace, files: list[str], labels: str | None, **how: Any
) -> RankingDataset:
    """The documents of all `files`, with the groups in the file `labels`."""
    how |= {"n_features": args.n_features, "require_final_newline": not args.allow_cut}
    try:
        dataset = load_letor(files, progress=bars(args), **how)
    except LetorError as error:
        text = str(error)
        for python, option in _ADVICE.items():
            text = text.replace(python, option)
        raise CliError(text) from error
    if labels is not None:
        dataset = _labelled(dataset, " + ".join(files), labels)
    say(args, f"{' + '.join(files)}: {dataset}", more=True)
    return dataset


def _labelled(dataset: RankingDataset, name: str, file: str) -> RankingDataset:
    """Labels become 0, 1, … in sorted order; they are listed in the order of the file's lines."""
    lines = Path(file).read_text("utf-8", errors="replace").splitlines()
    labels = [line.strip() for line in lines]
    if len(labels) != dataset.n_documents:
        raise CliError(
            f"{file} holds {len(labels):,} labels, {name} has {dataset.n_documents:,} documents; "
            "give one label per document, in the order of the file."
        )
    if "" in labels:
        raise CliError(f"{file}, line {labels.index('') + 1}: the label is empty.")
    groups = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    if dataset.document_ids is not None:  # scattered queries were gathered
        groups = groups[dataset.document_ids]
    return dataset.replace(groups=groups)


def read_for(
    args: argparse.Namespace, model: SavedModel, labels: str | None = None
) -> RankingDataset:
    """The documents of `args.file` as `model` is to see them."""
    how = {"zero_based": model.prepare.zero_based, "dtype": next(model.scorer.parameters()).dtype}
    return model.prepare(read(args, [args.file], labels, **how))


def training_config(args: argparse.Namespace, fair: bool, **changes: Any) -> TrainConfig:
    """The settings of a run, which is to be `fair` or not; what cannot be meant is a wrong call."""
    by_feature, by_file = args.group_feature is not None, args.groups is not None
    on_feature = args.drop_group_feature or args.group_threshold is not None
    by_group = fair and args.disparity in GROUP_DISPARITIES
    validated = args.patience is not None or args.valid_groups is not None
    mistakes = {
        "--patience and --valid-groups are for validation; give --valid FILE.": (
            validated and args.valid is None
        ),
        "--hidden belongs to --model neural.": args.hidden and args.model != "neural",
        "--group-threshold and --drop-group-feature need --group-feature ID.": (
            on_feature and not by_feature
        ),
        "--group-feature and --groups both name the groups; give one.": by_feature and by_file,
        "--disparity none leaves nothing to weigh or bound.": fair and args.disparity == "none",
        f"--disparity {args.disparity} needs groups: --group-feature ID or --groups FILE; or "
        "choose --disparity individual.": by_group and not (by_feature or by_file),
    }
    for text, made in mistakes.items():
        if made:
            raise UsageError(text)
    settings = {name: getattr(args, name) for name in SETTINGS if hasattr(args, name)} | changes
    settings["disparity"] = None if args.disparity == "none" else args.disparity
    try:
        return TrainConfig(**settings)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("TrainConfig: ")) from error


def training_data(
    args: argparse.Namespace, fair: bool, *parts: str
) -> tuple[Preparation, dict[str, RankingDataset]]:
    """TRAIN and some of "valid" and "test" as the scorer is to see them; how they were prepared."""
    how = {"zero_based": args.zero_based, "dtype": getattr(torch, args.dtype)}
    train, name = read(args, args.train, args.groups, **how), " + ".join(args.train)
    names = ("normalize", "zero_based", "group_feature", "group_threshold", "drop_group_feature")
    prepare = Preparation.learn(train, **{name: getattr(args, name) for name in names})
    data = {"train": prepare(train)}
    groups = data["train"].groups
    if prepare.n_scored == 0:
        raise CliError(f"{name}: no feature is left to score by.")
    by_group = fair and args.disparity in GROUP_DISPARITIES
    if by_group and groups is not None and len(groups.unique()) < 2:
        raise CliError(f"{name}: all documents are in one group; D_group needs two.")
    for part in parts:
        if (file := getattr(args, part)) is not None:
            data[part] = prepare(read(args, [file], getattr(args, f"{part}_groups"), **how))
            if groups is not None and data[part].groups is None:
                raise UsageError(f"TRAIN has labels from a file; give --{part}-groups FILE, too.")
    return prepare, data


def hidden_units(args: argparse.Namespace) -> int | None:
    return (args.hidden or 32) if args.model == "neural" else None
