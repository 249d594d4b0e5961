"""From LETOR files to what a scorer sees, in plain words where something is amiss."""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairpg_lite.cli._common import SETTINGS, CliError, UsageError, bars, say
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import LetorError, RankingDataset, load_letor
from fairpg_lite.models import SavedModel, load_model
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
    args: argparse.Namespace, files: str | list[str], labels: str | None, **how: Any
) -> RankingDataset:
    """The documents of one file or several, with the groups in the file `labels`."""
    files = [files] if isinstance(files, str) else files
    name = " + ".join(files)
    for file in files:
        _must_be_file(file)
    how |= {"n_features": args.n_features, "require_final_newline": not args.allow_cut}
    try:
        dataset = load_letor(files, progress=bars(args), **how)
    except LetorError as error:
        text = str(error)
        for python, option in _ADVICE.items():
            text = text.replace(python, option)
        raise CliError(text) from error
    if labels is not None:
        dataset = _labelled(dataset, name, labels)
    say(args, f"{name}: {dataset}", more=True)
    return dataset


def _must_be_file(name: str) -> None:
    if Path(name).is_dir():
        raise CliError(f"{name} is a directory; name a LETOR file.")
    if not Path(name).exists():
        raise CliError(f"{name}: there is no such file.")


def _labelled(dataset: RankingDataset, name: str, file: str) -> RankingDataset:
    """Labels become 0, 1, … in sorted order; they are listed in the order of the file's lines."""
    _must_be_file(file)
    try:
        labels = [line.strip() for line in Path(file).read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise CliError(f"{file} is not UTF-8 text; give one group label per line.") from error
    if len(labels) != dataset.n_documents:
        raise CliError(
            f"{file} holds {len(labels):,} labels, {name} has {dataset.n_documents:,} documents; "
            "give one label per document, in the order of the file."
        )
    if "" in labels:
        raise CliError(f"{file}, line {labels.index('') + 1}: the label is empty.")
    numbers = {label: index for index, label in enumerate(sorted(set(labels)))}
    groups = torch.tensor([numbers[label] for label in labels])
    if dataset.document_ids is not None:  # scattered queries were gathered
        groups = groups[dataset.document_ids]
    return dataset.replace(groups=groups)


def read_model(name: str) -> SavedModel:
    try:
        return load_model(name)
    except (ValueError, FileNotFoundError) as error:
        raise CliError(str(error).removeprefix("load_model: ")) from error


def read_for(
    args: argparse.Namespace, model: SavedModel, labels: str | None = None
) -> RankingDataset:
    """The documents of `args.file` as `model` is to see them."""
    how = {"zero_based": model.prepare.zero_based, "dtype": next(model.scorer.parameters()).dtype}
    return model.prepare(read(args, args.file, labels, **how))


def query_names(dataset: RankingDataset) -> list[Any]:
    ids: Any = dataset.query_ids
    return ids.tolist() if isinstance(ids, Tensor) else list(ids)


def training_config(args: argparse.Namespace, fair: bool, **changes: Any) -> TrainConfig:
    """The settings of a run, which is to be `fair` or not; what cannot be meant is a wrong call."""
    for option in ("patience", "valid_groups"):
        if getattr(args, option) is not None and args.valid is None:
            raise UsageError(f"--{option.replace('_', '-')} is for validation; give --valid FILE.")
    if args.hidden is not None and args.model != "neural":
        raise UsageError("--hidden belongs to --model neural.")
    if args.group_feature is None and (args.drop_group_feature or args.group_threshold is not None):
        raise UsageError(
            "--group-threshold and --drop-group-feature say what to do with --group-feature ID; "
            "give it."
        )
    if args.group_feature is not None and args.groups is not None:
        raise UsageError("--group-feature and --groups both name the groups; give one.")
    if fair and args.disparity == "none":
        raise UsageError("--disparity none leaves nothing to weigh or bound.")
    grouped = args.group_feature is not None or args.groups is not None
    if fair and args.disparity in GROUP_DISPARITIES and not grouped:
        raise UsageError(
            f"--disparity {args.disparity} needs groups: --group-feature ID or --groups FILE; "
            "or choose --disparity individual."
        )
    settings = {name: getattr(args, name) for name in SETTINGS if hasattr(args, name)} | changes
    disparity = None if args.disparity == "none" else args.disparity
    try:
        return TrainConfig(**{**settings, "disparity": disparity})
    except ValueError as error:
        raise UsageError(str(error).removeprefix("TrainConfig: ")) from error


def hidden_units(args: argparse.Namespace) -> int | None:
    return (args.hidden or 32) if args.model == "neural" else None


def training_data(
    args: argparse.Namespace, fair: bool, *parts: str
) -> tuple[Preparation, dict[str, RankingDataset]]:
    """TRAIN and some of "valid" and "test" as the scorer is to see them; how they were prepared."""
    how = {"zero_based": args.zero_based, "dtype": getattr(torch, args.dtype)}
    train = read(args, args.train, args.groups, **how)
    names = ("normalize", "zero_based", "group_feature", "group_threshold", "drop_group_feature")
    prepare = Preparation.learn(train, **{name: getattr(args, name) for name in names})
    data = {"train": prepare(train)}
    groups = data["train"].groups
    if prepare.n_scored == 0:
        raise CliError(f"{' + '.join(args.train)}: no feature is left to score by.")
    by_group = fair and args.disparity in GROUP_DISPARITIES
    if by_group and groups is not None and len(groups.unique()) < 2:
        name = " + ".join(args.train)
        raise CliError(f"{name}: all documents are in one group; D_group needs two.")
    for part in parts:
        if (file := getattr(args, part)) is not None:
            data[part] = prepare(read(args, file, getattr(args, f"{part}_groups"), **how))
            if groups is not None and data[part].groups is None:
                raise UsageError(f"TRAIN has labels from a file; give --{part}-groups FILE, too.")
    return prepare, data
