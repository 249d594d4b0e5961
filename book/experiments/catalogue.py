"""What the experiments are called: every method and every version of the data, written once.

A stored run has the name of its experiment, such as "deltr-code-clip4". `Method.on` makes that
name and `identify` finds it again in a table of all names; no other file puts a name together or
takes one apart. The order of `METHODS` and `VARIANTS` is that of the tables.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

Setting = TypeVar("Setting", bound=Hashable)
Named = TypeVar("Named")


@dataclass(frozen=True)
class Variant:
    """One version of the data of the group-fairness experiments."""

    name: str
    """Its part of a stored name."""
    label: str
    """What a table for people calls it."""


@dataclass(frozen=True)
class Method:
    """A way to rank, with the name that its results are stored by and the look it has in figures.

    >>> DELTR_CODE.on(CLIPPED_AT_4)
    'deltr-code-clip4'
    """

    name: str
    """Its part of a stored name, or all of it where the data have one version only."""
    label: str
    """What a table or a legend calls it."""
    colour: str = "grey"
    """A name in `fairpg_lite.figures.PALETTE`."""
    marker: str = "o"
    """One of matplotlib's markers."""

    def on(self, variant: Variant) -> str:
        """The stored name of this method's experiment on one version of the data."""
        return f"{self.name}-{variant.name}"


# The data of the group-fairness experiments
CLIPPED_AT_5 = Variant("clip5", "relevance clipped at 5 (text)")
CLIPPED_AT_4 = Variant("clip4", "relevance clipped at 4 (authors' run)")
STARTED_WIDE = Variant("clip5-wide", "clipped at 5, started in ±.707 (authors' code)")
SEX_TEXT = Variant("sex-text", "sex as recorded, 20 attributes and 8:2 (text), persons redrawn")
SEX_CODE = Variant("sex-code", "sex as recorded, 9 attributes and weights (code), persons redrawn")
AGE_TEXT = Variant("age-text", "age 25 or younger, 20 attributes and 8:2, persons redrawn")
AGE_CODE = Variant("age-code", "age 25 or younger, 9 attributes and weights, persons redrawn")
SEX_TEXT_FIXED = Variant("sex-text-fixed", "sex as recorded, text, the same queries for every run")
SEX = Variant("sex", "sex as recorded, authors' persons, the same queries for every run")
VARIANTS = (
    CLIPPED_AT_5,
    STARTED_WIDE,
    CLIPPED_AT_4,
    SEX_TEXT,
    SEX_CODE,
    AGE_TEXT,
    AGE_CODE,
    SEX_TEXT_FIXED,
    SEX,
)

# Group fairness. Blue and orange belong to the groups in every figure, so no method has them.
FAIR_PG_RANK = Method("fair_pg_rank-sample", "Fair-PG-Rank", "green", "o")
FAIR_PG_RANK_EXACT = Method("fair_pg_rank-exact", "Fair-PG-Rank, exact gradient", "green", "s")
POST_PROCESSING = Method("post_processing-definition", "post-processing (definition)", "sky", "s")
POST_PROCESSING_WITH_FACTOR = Method(
    "post_processing-authors", "post-processing (with the factor)", "amber", "D"
)
POST_PROCESSING_INTERCEPT = Method(
    "post_processing-intercept", "post-processing (estimates with an intercept)", "sky", "p"
)
DELTR = Method("deltr-text", "DELTR (text: two-sided, SGD)", "pink", "^")
DELTR_CODE = Method("deltr-code", "DELTR (code: reversed, Adam)", "pink", "v")
DELTR_OPTIMUM = Method("deltr-two_sided", "DELTR (two-sided, to its optimum)", "pink", "<")
DELTR_ONE_SIDED = Method("deltr-one_sided", "DELTR (its own penalty, to its optimum)", "pink", ">")
UNIFORM = Method("uniform", "uniform policy")
X1_ALONE = Method("fixed-0", "x₁ alone, not learned")
X1_AND_SOME_X2 = Method("fixed-0.25", "x₁ and a quarter of x₂, not learned")
X1_AND_X2 = Method("fixed-1", "x₁ and x₂ alike, not learned")
BY_RELEVANCE = Method("ideal-relevance", "sorted by true relevance")
BETTER_GROUP_FIRST = Method("ideal-group", "the group with more merit on top")
# Rankers, of Table 1 and Figure 2
LINEAR_PG_RANK = Method("fair_pg_rank-linear-entropy0", "Fair-PG-Rank, linear, γ = 0")
LINEAR_PG_RANK_ENTROPY = Method("fair_pg_rank-linear-entropy1", "Fair-PG-Rank, linear, γ = 1")
NETWORK_PG_RANK = Method("fair_pg_rank-neural-entropy0", "Fair-PG-Rank, network, γ = 0")
NETWORK_PG_RANK_ENTROPY = Method("fair_pg_rank-neural-entropy1", "Fair-PG-Rank, network, γ = 1")
RANK_SVM = Method("rank_svm", "RankSVM")
GBDT = Method("gbdt", "GBDT (regression)")
LAMBDAMART = Method("lambdamart", "LambdaMART")
METHODS = (
    FAIR_PG_RANK,
    FAIR_PG_RANK_EXACT,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    POST_PROCESSING_INTERCEPT,
    DELTR,
    DELTR_CODE,
    DELTR_OPTIMUM,
    DELTR_ONE_SIDED,
    UNIFORM,
    X1_ALONE,
    X1_AND_SOME_X2,
    X1_AND_X2,
    BY_RELEVANCE,
    BETTER_GROUP_FIRST,
    LINEAR_PG_RANK,
    LINEAR_PG_RANK_ENTROPY,
    NETWORK_PG_RANK,
    NETWORK_PG_RANK_ENTROPY,
    RANK_SVM,
    GBDT,
    LAMBDAMART,
)


class Identity(NamedTuple):
    """What the name of an experiment stands for."""

    method: Method
    variant: Variant | None
    """None where the data have one version only."""


def identify(experiment: str) -> Identity:
    """Find the method and the data of a stored name.

    Args:
        experiment: The name of an experiment, as in the column ``experiment`` of a table.

    Returns:
        What it stands for. A name that is not in the catalogue is a method of that name.

    >>> identify("post_processing-authors-sex-code").variant.label
    'sex as recorded, 9 attributes and weights (code), persons redrawn'
    >>> identify("rank_svm").method.label
    'RankSVM'
    """
    unknown = Identity(Method(experiment, experiment), None)
    return _IDENTITIES.get(experiment, unknown)


def in_order(experiment: str) -> tuple[int, int, str]:
    """A key that sorts stored names as tables do: by data, then by method, unknown ones last."""
    method, variant = identify(experiment)
    variant_place = len(VARIANTS) if variant is None else VARIANTS.index(variant)
    method_place = METHODS.index(method) if method in METHODS else len(METHODS)
    return variant_place, method_place, experiment


def named(table: Mapping[Setting, Named], setting: Setting) -> Named:
    """The row of ``table`` for a setting, or an error that says where its name belongs."""
    if setting not in table:
        known = ", ".join(repr(key) for key in table)
        raise ValueError(
            f"an experiment with the setting {setting!r} has no name; choose from {known}, "
            "or name it in book/experiments/catalogue.py."
        )
    return table[setting]


_IDENTITIES = {method.name: Identity(method, None) for method in METHODS}
for _variant in VARIANTS:
    for _method in METHODS:
        _IDENTITIES[_method.on(_variant)] = Identity(_method, _variant)
