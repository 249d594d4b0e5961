"""The paper's synthetic set, German Credit as a ranking task, and a sample of MSLR-WEB10K."""

import hashlib
import io
import json
import lzma
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset

# Of `german_credit`.
CHOICES = {"attributes": (20, 9), "group": ("sex", "age")}
CHOICES |= {"ratio": ("exact", "weights"), "split": ("random", "rows")}


@cache
def read_resource(name: str) -> bytes:
    """The bytes of `fairpg_lite/_data/<name>`, checked against SHA256SUMS; read once."""
    folder = files("fairpg_lite") / "_data"
    content = (folder / name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if f"{found}  {name}\n" not in (folder / "SHA256SUMS").read_text("ascii"):
        wrong = f"fairpg_lite/_data/{name} has sha256 {found}, which SHA256SUMS does not list"
        raise ValueError(f"{wrong}: it was changed or damaged; reinstall fairpg-lite.")
    return content


def synthetic(
    n_queries: int = 100,
    n_docs: int = 10,
    seed: int = 0,
    clip: float = 5.0,
    minority: float = 0.2,
    *,
    dtype: torch.dtype | None = None,
) -> RankingDataset:
    """Two features, one of them hidden for the minority group (chapters 7 and 9).

    Every document is in G1 with probability `minority`; x1 and x2 are uniform on (0, 3), its
    relevance is x1 + x2 clipped to [0, clip], and only then is x2 replaced by 0 for G1. features
    (n_queries * n_docs, 2) are (x1, x2). The authors' notebook clips at 4 where the paper, in
    section 4.2, says 5.

    One generator gives first the draws for membership, then those for (x1, x2), in float64: the
    same seed with another `clip`, `minority` or `dtype` (torch's default) keeps the same draws.

    >>> synthetic()
    RankingDataset(100 queries, 1000 documents, 2 features, groups 0/1)
    """
    if n_queries < 1 or n_docs < 1 or not 0 <= minority <= 1 or not clip > 0:
        given = f"{n_queries} queries of {n_docs}, minority {minority}, clip {clip}"
        raise ValueError(f"synthetic: {given}; give 1 or more, a share in [0, 1], a clip above 0.")
    generator = torch.Generator().manual_seed(_check.seed("synthetic: seed", seed))
    n = n_queries * n_docs
    groups = (torch.rand(n, generator=generator, dtype=torch.float64) < minority).long()
    x = 3 * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    relevance = x.sum(1).clamp(0.0, clip)
    x[groups == 1, 1] = 0.0
    return RankingDataset(
        x.to(dtype or torch.get_default_dtype()),
        relevance,
        torch.arange(0, n + 1, n_docs),
        groups=groups,
        info={"name": "synthetic", "seed": seed, "clip": clip, "minority": minority},
    )


def mslr_sample(dtype: torch.dtype | None = None) -> tuple[RankingDataset, RankingDataset]:
    """`(train, test)`: the first 42 + 42 queries of MSLR-WEB10K, Fold 1 (chapters 2 and 10).

    136 features, each brought to [0, 1] within its query, and grades 0 to 4. Data: Qin & Liu,
    "Introducing LETOR 4.0 Datasets", arXiv:1306.2597, CC BY 4.0.

    >>> mslr_sample()[0]
    RankingDataset(42 queries, 4955 documents, 136 features, no groups)
    """
    dtype = dtype or torch.get_default_dtype()
    train, test = (mslr_raw(part).normalize().to(dtype) for part in ("train", "test"))
    return train, test


def mslr_raw(part: str) -> RankingDataset:
    """The "train" or "test" queries of the sample, with the values of Microsoft's text."""
    content = lzma.decompress(read_resource(f"mslr_web10k_fold1_{part}.npz.xz"))
    info = {"name": f"MSLR-WEB10K Fold 1, {part}, first 42 queries"}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        # Stored with the documents of a feature side by side, which compresses to half the size.
        features, *rest = (arrays[name] for name in ("features", "relevance", "offsets"))
        features = torch.from_numpy(np.ascontiguousarray(features.T))
        return RankingDataset(features, *rest, query_ids=arrays["query_ids"], info=info)


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
