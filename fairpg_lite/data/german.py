"""German Credit as a ranking task (section 4.3 of the paper)."""

import json
from collections.abc import Sequence

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.resources import read_resource

TRAINING_PERSONS = 800  # of the 1000 in the file
# Of the 200 persons on the test side some 60 are not creditworthy, and a query with an exact ratio
# draws four fifths of its persons from them, nobody twice.
MAX_DOCS = 50
# Columns of the file, from 0.
SEX = 8
AGE = 12
CREDIT = 20


def german_rows() -> list[list[str]]:
    """Return the 1000 rows of the original file, 21 codes each; the last is 1 (good) or 2 (bad)."""
    return [line.split() for line in read_resource("german.data").decode("ascii").splitlines()]


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
    """Draw queries of `n_docs` persons; relevance 1 is creditworthy, 0 is not (chapter 12).

    As in appendix B.2 of the paper the 1000 persons are divided 800 to 200, and a query draws from
    one side only. Numbers are standardised by the 800 training persons (by the authors: by all
    1000), categories are one-hot.

    Sex is disputed in this file: the corrected code table (Groemping 2019, "South German
    Credit", UCI 573) reads A92 as "female non-single or male single". Check what you conclude
    with `group="age"`. Data: Hofmann 1994, doi 10.24432/C5NC77, CC BY 4.0, unchanged.

    Args:
        seed: Decides who is on which side and who is drawn.
        attributes: 20, all of the file, or 9, those of the re-release that the authors used.
        group: "sex" (1 = female, codes A92 and A95) or "age" (1 = 25 or younger).
        ratio: "exact", the paper's four non-creditworthy persons for one creditworthy, nobody
            twice in a query; or "weights", as in the authors' notebook: with replacement, weight
            .8 if not creditworthy and .2 if creditworthy, which makes some 37 % relevant.
        split: "random" by `seed`, or "rows": the first 800 rows and the last 200, as the authors.
        n_train: The number of training queries.
        n_test: The number of test queries.
        n_docs: The number of persons in a query; 5, 10, … 50 with an exact ratio.
        dtype: The dtype of features and relevance; None is torch's default.

    Returns:
        The pair `(train, test)`: no person is in both. `document_ids` is each person's row of the
        file (from 0), `info["feature_names"]` names the features.

    >>> train, test = german_credit()
    >>> train
    RankingDataset(500 queries, 5000 documents, 61 features, groups 0/1)
    """
    _choose("attributes", attributes, (20, 9))
    _choose("group", group, ("sex", "age"))
    _choose("ratio", ratio, ("exact", "weights"))
    _choose("split", split, ("random", "rows"))
    _refuse_sizes(n_train, n_test, n_docs, ratio)
    seed = _check.seed("german_credit: seed", seed)

    rows = german_rows()
    order = np.arange(len(rows))
    if split == "random":
        order = np.random.default_rng([seed, 0]).permutation(len(rows))
    train_side = np.sort(order[:TRAINING_PERSONS])
    test_side = np.sort(order[TRAINING_PERSONS:])
    features, names = encode(rows, attributes, train_side)
    is_good = np.array([row[CREDIT] == "1" for row in rows])
    in_group = _in_group(rows, group)
    info = {"name": "German Credit", "seed": seed, "attributes": attributes, "group": group}
    info |= {"ratio": ratio, "split": split, "feature_names": names}
    if dtype is None:
        dtype = torch.get_default_dtype()

    def dataset(side: np.ndarray, n_queries: int, stream: int) -> RankingDataset:
        generator = np.random.default_rng([seed, stream])
        draw = _draw_by_weight if ratio == "weights" else _draw_exactly
        persons = draw(side, is_good, n_queries, n_docs, generator)
        return RankingDataset(
            torch.from_numpy(features[persons]).to(dtype),
            torch.from_numpy(is_good[persons]),
            torch.arange(0, len(persons) + 1, n_docs),
            groups=torch.from_numpy(in_group[persons]),
            document_ids=torch.from_numpy(persons),
            info=dict(info),
        )

    return dataset(train_side, n_train, stream=1), dataset(test_side, n_test, stream=2)


def encode(
    rows: Sequence[Sequence[str]], attributes: int, training_rows: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the features `(len(rows), d)` of 20 or 9 attributes, and their names.

    Numbers are standardised by the `training_rows`, categories are one-hot.
    """
    # For each attribute its name, its column, and what its codes mean (null: it is a number).
    codes = json.loads(read_resource("german_codes.json"))[f"{attributes}"]
    blocks: list[np.ndarray] = []
    names: list[str] = []
    for name, column, meaning in codes:
        values = [row[column] for row in rows]
        if meaning is None:
            numbers = np.array(values, dtype=np.float64)[:, None]
            seen = numbers[training_rows]
            blocks.append((numbers - seen.mean()) / seen.std())
            names.append(name)
        else:
            levels = list(dict.fromkeys(meaning.values()))
            level_of_row = [levels.index(meaning[value]) for value in values]
            blocks.append(np.eye(len(levels))[level_of_row])
            names += [f"{name}={level}" for level in levels]
    return np.concatenate(blocks, axis=1), names


def _choose(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"german_credit: {name} is {value!r}; choose one of {choices}.")


def _refuse_sizes(n_train: int, n_test: int, n_docs: int, ratio: str) -> None:
    """Refuse numbers of queries and persons that cannot be drawn."""
    for name, size in (("n_train", n_train), ("n_test", n_test), ("n_docs", n_docs)):
        if size < 1:
            raise ValueError(f"german_credit: {name} is {size}; give 1 or more.")
    if ratio == "weights":
        return
    if n_docs % 5:
        raise ValueError(
            f"german_credit: n_docs is {n_docs}; with ratio='exact' one person in five is "
            "creditworthy, so give a multiple of 5 (or ratio='weights')."
        )
    if n_docs > MAX_DOCS:
        raise ValueError(
            f"german_credit: n_docs is {n_docs}; with ratio='exact' nobody is drawn twice, and "
            f"there are persons for {MAX_DOCS} at most (or give ratio='weights')."
        )


def _in_group(rows: Sequence[Sequence[str]], group: str) -> np.ndarray:
    """Return whether each person is in group 1."""
    if group == "age":
        return np.array([int(row[AGE]) <= 25 for row in rows])
    return np.array([row[SEX] in ("A92", "A95") for row in rows])


def _draw_by_weight(
    side: np.ndarray,
    is_good: np.ndarray,
    n_queries: int,
    n_docs: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return the persons of all queries, drawn from `side` with replacement as the authors do."""
    weights = np.where(is_good[side], 0.2, 0.8)
    return generator.choice(side, size=n_queries * n_docs, p=weights / weights.sum())


def _draw_exactly(
    side: np.ndarray,
    is_good: np.ndarray,
    n_queries: int,
    n_docs: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return the persons of all queries, four of five not creditworthy and nobody twice in one."""
    good = side[is_good[side]]
    bad = side[~is_good[side]]
    n_good = n_docs // 5
    queries = []
    for _ in range(n_queries):
        chosen_bad = generator.choice(bad, 4 * n_good, replace=False)
        chosen_good = generator.choice(good, n_good, replace=False)
        persons = np.concatenate([chosen_bad, chosen_good])
        # Shuffled, or the order of the documents would give the relevance away to ties.
        queries.append(generator.permutation(persons))
    return np.concatenate(queries)
