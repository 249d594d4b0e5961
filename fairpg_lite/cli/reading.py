"""LETOR files, with groups from a side file, as the commands read them."""

import argparse
from pathlib import Path

import numpy as np
import torch

from fairpg_lite.cli.output import UsageError
from fairpg_lite.data import LetorError, RankingDataset, load_letor
from fairpg_lite.measures import MEASURES
from fairpg_lite.models import Preparation, SavedModel


def read(
    args: argparse.Namespace,
    files: list[str],
    label_file: str | None,
    dtype: torch.dtype = torch.float32,
) -> RankingDataset:
    """The documents of all `files`, with the groups of `label_file`, one on each line."""
    try:
        dataset = load_letor(files, n_features=args.n_features, dtype=dtype)
    except LetorError as error:  # what it advises in Python, in the words of the command line
        raise ValueError(str(error).replace("n_features", "--n-features")) from error
    if label_file is None:
        return dataset
    labels = [line.strip() for line in Path(label_file).read_text("utf-8").splitlines()]
    if len(labels) != dataset.n_documents:
        raise ValueError(
            f"{label_file} holds {len(labels):,} labels, {' + '.join(files)} has "
            f"{dataset.n_documents:,} documents; give one label for each, in the order of the file."
        )
    if "" in labels:
        raise ValueError(
            f"{label_file}: line {labels.index('') + 1} is empty; give a label for each document."
        )
    groups = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    return dataset.replace(groups=groups[dataset.document_ids])


def read_for(
    args: argparse.Namespace, model: SavedModel, label_file: str | None = None
) -> RankingDataset:
    """The documents of FILE as `model` is to see them."""
    dtype = next(model.scorer.parameters()).dtype
    return _prepared(model.prepare, read(args, [args.file], label_file, dtype))


def read_parts(
    args: argparse.Namespace, parts: tuple[str, ...], is_charged: bool
) -> tuple[Preparation, dict[str, RankingDataset]]:
    """TRAIN and some of "valid" and "test" as the scorer is to see them, and their preparation.

    `is_charged` says that the training has a price on disparity, and so needs groups for some.
    """
    train = read(args, args.train, args.groups)
    try:
        prepare = Preparation.learn(
            train,
            normalize=args.normalize,
            group_feature=args.group_feature,
            group_threshold=args.group_threshold,
        )
    except ValueError as error:
        raise ValueError(_in_options(str(error))) from error
    data = {"train": _prepared(prepare, train)}
    if is_charged:
        _demand_two_groups(args, data["train"])
    for part in parts:
        file = getattr(args, part)
        if file is None:
            continue
        raw = read(args, [file], getattr(args, f"{part}_groups"))
        data[part] = _prepared(prepare, raw)
        if data["train"].groups is not None and data[part].groups is None:
            raise UsageError(f"--groups are of TRAIN; give --{part}-groups FILE, too.")
    if args.pooled == "item":
        data = {part: items_by_name(part, dataset) for part, dataset in data.items()}
    return prepare, data


def items_by_name(file: str, dataset: RankingDataset) -> RankingDataset:
    """The dataset with an id for each name: documents of one name are the same item."""
    if dataset.documents is None or "" in dataset.documents:
        raise UsageError(
            f"--pooled item adds up documents of the same name, and {file} has some without; give "
            "each line a comment #docid = NAME, or choose --pooled dataset."
        )
    ids = np.unique(dataset.documents.astype(str), return_inverse=True)[1]
    return dataset.replace(document_ids=torch.from_numpy(ids))


def _prepared(prepare: Preparation, dataset: RankingDataset) -> RankingDataset:
    try:
        return prepare(dataset)
    except ValueError as error:
        raise ValueError(_in_options(str(error))) from error


def _in_options(message: str) -> str:
    """What the module advises in Python, in the words of the command line."""
    for name in ("group_threshold", "group_feature", "n_features"):
        message = message.replace(f"{name}=", f"--{name.replace('_', '-')} ")
        message = message.replace(name, f"--{name.replace('_', '-')}")
    return message


def _demand_two_groups(args: argparse.Namespace, train: RankingDataset) -> None:
    if args.disparity not in MEASURES or "groups" not in MEASURES[args.disparity].needs:
        return
    if train.groups is None or len(train.groups.unique()) < 2:
        raise UsageError(
            f"--disparity {args.disparity} needs documents of two groups in {args.train[0]}: give "
            "--group-feature ID or --groups FILE, or --disparity d_ind."
        )
