"""German Credit as a ranking task (the paper's appendix, "German Credit Dataset")."""

import json
from collections.abc import Callable, Sequence

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.sets import read_resource

N_TRAIN_PERSONS, AGE_CUT = 800, 25
CHOICES = {
    "attributes": (20, 9),
    "group": ("sex", "age"),
    "ratio": ("exact", "weights"),
    "split": ("random", "rows"),
}


def german_rows() -> list[list[str]]:
    """The 1000 rows of the original file, 21 codes each; the last is 1 (good) or 2 (bad)."""
    return [line.split() for line in read_resource("german.data").decode("ascii").splitlines()]


def encode(
    rows: Sequence[Sequence[str]], attributes: int, scale: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, list[str]]:
    """Features (len(rows), d) and their names: numbers through `scale`, categories one-hot.

    `german_codes.json` names the 20 columns, whose levels are the codes that occur, and for the
    nine gives name, column and what the codes mean (None: a number).
    """
    table = json.loads(read_resource("german_codes.json"))
    columns = table["nine"]
    if attributes == 20:
        codes = [
            sorted(set(column), key=lambda c: (len(c), c)) for column in zip(*rows, strict=True)
        ]
        columns = [
            (name, place, None if found[0].isdigit() else {code: code for code in found})
            for place, (name, found) in enumerate(zip(table["twenty"], codes, strict=False))
        ]
    blocks, names = [], []
    for name, place, meaning in columns:
        values = [row[place] for row in rows]
        if meaning is None:
            blocks.append(scale(np.array(values, dtype=np.float64))[:, None])
            names.append(name)
        else:
            levels = list(dict.fromkeys(meaning.values()))
            blocks.append(np.eye(len(levels))[[levels.index(meaning[value]) for value in values]])
            names += [f"{name}={level}" for level in levels]
    return np.concatenate(blocks, axis=1), names


def german_credit(
    seed: int = 0,
    *,
    attributes: int = 20,
    group: str = "sex",
    ratio: str = "exact",
    split: str = "random",
    n_train: int = 500,
    n_test: int = 100,
    n_docs: int = 10,
    dtype: torch.dtype | None = None,
) -> tuple[RankingDataset, RankingDataset]:
    """`(train, test)`: candidate sets of `n_docs` persons, relevance 1 = creditworthy.

    The 1000 persons are divided 800/200, and every query draws from one side only. Numbers are
    standardised by the 800 training persons (by the authors: by all 1000), categories are one-hot.
    `document_ids` is each person's row (from 0), `info["feature_names"]` names the features.

    Args:
        attributes: 20, all of the file, or 9, those of the re-release that the authors used.
        group: "sex" (1 = female, codes A92 and A95) or "age" (1 = 25 or younger).
        ratio: "exact", the paper's four non-creditworthy persons for one creditworthy, nobody
            twice; or "weights", as in the authors' notebook: with replacement, weight .8 if not
            creditworthy and .2 if creditworthy, which makes some 37 % relevant.
        split: "random" by `seed`, or "rows": the first 800 rows and the last 200, as the authors.

    Sex is disputed in this file: the corrected code table (Groemping 2019, "South German
    Credit", UCI 573) reads A92 as "female non-single or male single". Check what you conclude
    with `group="age"`. Data: Hofmann 1994, doi 10.24432/C5NC77, CC BY 4.0, unchanged.

    Chapter 12; appendix B.2 of the paper.

    >>> train, test = german_credit()
    >>> train
    RankingDataset(500 queries, 5000 documents, 61 features, groups 0/1)
    >>> train[0].relevance.sum()
    tensor(2.)
    """
    given = {"attributes": attributes, "group": group, "ratio": ratio, "split": split}
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise ValueError(f"german_credit: {name} is {value!r}; choose one of {CHOICES[name]}.")
    if n_docs < 1 or (ratio == "exact" and n_docs % 5):
        raise ValueError(
            f"german_credit: n_docs is {n_docs}; with ratio='exact' it must be a multiple of 5."
        )
    seed, rows = _check.seed("german_credit: seed", seed), german_rows()
    order = np.arange(len(rows))
    if split == "random":
        order = np.random.default_rng([seed, 0]).permutation(len(rows))
    sides = np.sort(order[:N_TRAIN_PERSONS]), np.sort(order[N_TRAIN_PERSONS:])

    def scale(values: np.ndarray) -> np.ndarray:
        seen = values[sides[0]]
        return (values - seen.mean()) / seen.std()

    features, names = encode(rows, attributes, scale)
    creditworthy = np.array([row[20] == "1" for row in rows])
    if group == "sex":
        member = np.array([row[8] in ("A92", "A95") for row in rows])
    else:
        member = np.array([int(row[12]) <= AGE_CUT for row in rows])
    info = {"name": "German Credit", "seed": seed, **given, "feature_names": names}
    info["group"] = group if group == "sex" else f"age <= {AGE_CUT}"
    parts = []
    for k, (side, count) in enumerate(zip(sides, (n_train, n_test), strict=True), start=1):
        generator = np.random.default_rng([seed, k])
        if ratio == "exact":
            drawn = _draw(generator, side, creditworthy, count, n_docs)
        else:
            weights = np.where(creditworthy[side], 0.2, 0.8)
            drawn = generator.choice(side, size=count * n_docs, p=weights / weights.sum())
        parts.append(
            RankingDataset(
                torch.from_numpy(features[drawn]).to(dtype or torch.get_default_dtype()),
                torch.from_numpy(creditworthy[drawn]),
                torch.arange(0, len(drawn) + 1, n_docs),
                groups=torch.from_numpy(member[drawn]),
                document_ids=torch.from_numpy(drawn),
                info=info,
            )
        )
    return parts[0], parts[1]


def _draw(
    generator: np.random.Generator, side: np.ndarray, good: np.ndarray, count: int, n_docs: int
) -> np.ndarray:
    """The persons of `count` queries of the exact ratio, one after another (count * n_docs,)."""
    bad, good = side[~good[side]], side[good[side]]
    few, many = n_docs // 5, 4 * n_docs // 5
    if many > len(bad):
        raise ValueError(
            f"german_credit: n_docs is {n_docs}, which needs {many} non-creditworthy persons per "
            f"query; one side of the split has {len(bad)}."
        )
    queries = []
    for _ in range(count):
        drawn = [generator.choice(bad, many, replace=False)]
        drawn.append(generator.choice(good, few, replace=False))
        # Shuffled, or the order of the documents would give the relevance away to ties.
        queries.append(generator.permutation(np.concatenate(drawn)))
    return np.concatenate(queries)
