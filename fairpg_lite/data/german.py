"""German Credit as a ranking task (section 4.3 of the paper)."""

import json
from collections.abc import Sequence

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.resources import read_resource

# Of `german_credit`.
CHOICES = {"attributes": (20, 9), "group": ("sex", "age")}
CHOICES |= {"ratio": ("exact", "weights"), "split": ("random", "rows")}


def german_rows() -> list[list[str]]:
    """The 1000 rows of the original file, 21 codes each; the last is 1 (good) or 2 (bad)."""
    return [line.split() for line in read_resource("german.data").decode("ascii").splitlines()]


def encode(
    rows: Sequence[Sequence[str]], attributes: int, seen: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Features (len(rows), d) and their names: numbers standardised by the rows `seen`, or one-hot.

    `german_codes.json` has, for 20 and for 9 attributes, the name and the column of each and what
    its codes mean (null: a number).
    """
    blocks, names = [], []
    for name, place, meaning in json.loads(read_resource("german_codes.json"))[f"{attributes}"]:
        values = [row[place] for row in rows]
        if meaning is None:
            numbers = np.array(values, dtype=np.float64)[:, None]
            blocks.append((numbers - numbers[seen].mean()) / numbers[seen].std())
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
    """`(train, test)`: sets of `n_docs` persons, relevance 1 = creditworthy (chapter 12).

    Appendix B.2: the 1000 persons are divided 800/200, and a query draws from one side. Numbers are
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

    >>> german_credit()[0]
    RankingDataset(500 queries, 5000 documents, 61 features, groups 0/1)
    """
    given = {"attributes": attributes, "group": group, "ratio": ratio, "split": split}
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise ValueError(f"german_credit: {name} is {value!r}; choose one of {CHOICES[name]}.")
    if n_docs < 1 or (ratio == "exact" and (n_docs % 5 or n_docs > 50)):
        raise ValueError(f"german_credit: n_docs is {n_docs}; give 5, 10, … 50 for an exact ratio.")
    seed, rows = _check.seed("german_credit: seed", seed), german_rows()
    order = np.arange(len(rows))
    if split == "random":
        order = np.random.default_rng([seed, 0]).permutation(len(rows))
    sides = np.sort(order[:800]), np.sort(order[800:])
    features, names = encode(rows, attributes, sides[0])
    good = np.array([row[20] == "1" for row in rows])
    in_group = np.array([row[8] in ("A92", "A95") for row in rows])
    if group == "age":
        in_group = np.array([int(row[12]) <= 25 for row in rows])
    parts = []
    for k, (side, count) in enumerate(zip(sides, (n_train, n_test), strict=True), start=1):
        draw = np.random.default_rng([seed, k])
        if ratio == "weights":
            weights = np.where(good[side], 0.2, 0.8)
            drawn = draw.choice(side, size=count * n_docs, p=weights / weights.sum())
        else:
            kinds = (side[~good[side]], n_docs // 5 * 4), (side[good[side]], n_docs // 5)
            queries = []
            for _ in range(count):
                persons = [draw.choice(kind, size, replace=False) for kind, size in kinds]
                # Shuffled, or the order of the documents would give the relevance away to ties.
                queries.append(draw.permutation(np.concatenate(persons)))
            drawn = np.concatenate(queries)
        parts.append(
            RankingDataset(
                torch.from_numpy(features[drawn]).to(dtype or torch.get_default_dtype()),
                torch.from_numpy(good[drawn]),
                torch.arange(0, len(drawn) + 1, n_docs),
                groups=torch.from_numpy(in_group[drawn]),
                document_ids=torch.from_numpy(drawn),
                info={"name": "German Credit", "seed": seed, **given, "feature_names": names},
            )
        )
    return parts[0], parts[1]
