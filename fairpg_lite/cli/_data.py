"""Reading LETOR files as the commands do: options, labels from a side file, plain words."""

import argparse
from pathlib import Path
from typing import Any

import torch

from fairpg_lite.cli._common import CliError, bars, number, say_more
from fairpg_lite.data import LetorError, RankingDataset, load_letor
from fairpg_lite.models import SavedModel, load_model

#: Said at the end of every command's help.
FORMAT = """\
files: LETOR/SVMlight text, plain or compressed (.gz, .bz2, .xz), one document per line:
  <grade> qid:<query> <feature id>:<value> ... [# comment]"""

# What load_letor advises in Python, in the words of the command line.
_OPTIONS = {
    "pass require_final_newline=False": "pass --allow-cut",
    "pass zero_based=True": "pass --zero-based",
    "pass dtype=torch.float64": "pass --dtype float64 when fitting",
    "pass n_features": "pass --n-features",
    "beyond n_features": "beyond --n-features",
}


def add_reading(parser: argparse.ArgumentParser) -> Any:
    """Options on how to read a file; returns their group, for more of them."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--n-features",
        type=number(int, 1),
        metavar="N",
        help="number of features, for sparse files whose last ones may not occur; "
        "without it, the largest id in the file",
    )
    group.add_argument(
        "--allow-cut",
        action="store_true",
        help="accept a last line without a line end, the usual sign of a cut file",
    )
    return group


def add_groups_file(group: Any, option: str = "--groups", of: str = "the file") -> None:
    group.add_argument(
        option, metavar="FILE", help=f"group labels of {of}: a text file, one line per document"
    )


def read(
    args: argparse.Namespace,
    path: str,
    groups: str | None = None,
    *,
    zero_based: bool,
    dtype: torch.dtype,
) -> RankingDataset:
    """The documents of `path`, with the labels in the file `groups`."""
    _see(path)
    try:
        dataset = load_letor(
            path,
            n_features=args.n_features,
            dtype=dtype,
            zero_based=zero_based,
            require_final_newline=not args.allow_cut,
            progress=bars(args),
        )
    except LetorError as error:
        text = str(error)
        for python, option in _OPTIONS.items():
            text = text.replace(python, option)
        raise CliError(text) from error
    if groups is not None:
        dataset = _labelled(dataset, path, groups)
    say_more(args, f"{path}: {dataset}")
    return dataset


def _see(path: str) -> None:
    if Path(path).is_dir():
        raise CliError(f"{path} is a directory; name a LETOR file.")
    if not Path(path).exists():
        raise CliError(f"{path}: there is no such file.")


def _labelled(dataset: RankingDataset, path: str, file: str) -> RankingDataset:
    """Labels become 0, 1, … in sorted order; they are listed in the order of the file's lines."""
    _see(file)
    try:
        labels = [line.strip() for line in Path(file).read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise CliError(f"{file} is not UTF-8 text; give one group label per line.") from error
    if len(labels) != dataset.n_documents:
        raise CliError(
            f"{file} holds {len(labels):,} labels, {path} has {dataset.n_documents:,} documents; "
            "give one label per document, in the order of the file."
        )
    if "" in labels:
        raise CliError(f"{file}, line {labels.index('') + 1}: the label is empty.")
    names = {label: index for index, label in enumerate(sorted(set(labels)))}
    groups = torch.tensor([names[label] for label in labels])
    if dataset.document_ids is not None:  # scattered queries were gathered
        groups = groups[dataset.document_ids]
    return dataset.replace(groups=groups)


def read_for_model(
    args: argparse.Namespace, groups: str | None = None
) -> tuple[SavedModel, RankingDataset]:
    """The model in `args.model` and the documents of `args.file` as it is to see them."""
    try:
        model = load_model(args.model)
    except (ValueError, FileNotFoundError) as error:
        raise CliError(str(error).removeprefix("load_model: ")) from error
    dtype = next(model.scorer.parameters()).dtype
    zero_based = model.prepare.zero_based
    raw = read(args, args.file, groups, zero_based=zero_based, dtype=dtype)
    return model, model.prepare(raw)
