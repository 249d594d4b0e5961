"""What people call a method: figures and tables say it in one place."""

_READINGS = {
    "fair_pg_rank-sample": "Fair-PG-Rank",
    "fair_pg_rank-exact": "Fair-PG-Rank, exact gradient",
    "post_processing-definition": "post-processing (definition)",
    "post_processing-authors": "post-processing (authors' scaling)",
    "deltr-one_sided": "DELTR (its own one-sided penalty)",
    "deltr-two_sided": "DELTR (two-sided, as in the text)",
    "deltr-reversed": "DELTR (authors' reversed side)",
    "uniform": "uniform policy",
    "fixed-0": "x₁ alone, not learned",
    "fixed-0.25": "x₁ and a quarter of x₂, not learned",
    "fair_pg_rank-linear-entropy0": "Fair-PG-Rank, linear, γ = 0",
    "fair_pg_rank-linear-entropy1": "Fair-PG-Rank, linear, γ = 1",
    "fair_pg_rank-neural-entropy0": "Fair-PG-Rank, neural, γ = 0",
    "fair_pg_rank-neural-entropy1": "Fair-PG-Rank, neural, γ = 1",
    "rank_svm": "RankSVM",
    "gbdt": "GBDT (regression)",
    "lambdamart": "LambdaMART",
}

_VARIANTS = {
    "clip5": "relevance clipped at 5 (text)",
    "clip4": "relevance clipped at 4 (authors' run)",
    "sex": "sex as recorded, same queries for every seed",
    "sex-redrawn": "sex as recorded, queries redrawn for every seed",
    "sex-text-redrawn": "sex as recorded, 20 attributes and 8:2 as in the text, queries redrawn",
    "age": "age 25 or younger, same queries for every seed",
}


def method_key(method_name: str) -> str:
    """The method's part of a stored name, without that of the data.

    >>> method_key("post_processing-authors-sex-redrawn")
    'post_processing-authors'
    """
    for key in _READINGS:
        if method_name == key or method_name.startswith(key + "-"):
            return key
    return method_name


def problem_key(method_name: str) -> str:
    """The data's part of a stored name; empty if there is none.

    >>> problem_key("post_processing-authors-sex-redrawn")
    'sex-redrawn'
    """
    return method_name[len(method_key(method_name)) :].lstrip("-")


def rank(method_name: str) -> int:
    """The method's place in a table: the paper's own first, unknown ones last."""
    keys = list(_READINGS)
    key = method_key(method_name)
    return keys.index(key) if key in keys else len(keys)


def problem_rank(method_name: str) -> int:
    """The data's place among the tables, unknown ones last."""
    keys = list(_VARIANTS)
    key = problem_key(method_name)
    return keys.index(key) if key in keys else len(keys)


def reading(method_name: str) -> str:
    """A stored method name in words, as figures and tables print it. Chapters 9 and 12.

    >>> reading("post_processing-definition-clip5")
    'post-processing (definition)'
    >>> reading("rank_svm")
    'RankSVM'
    """
    key = method_key(method_name)
    return _READINGS.get(key, key.replace("_", " "))


def variant(method_name: str) -> str:
    """The data's part of a stored name in words.

    >>> variant("deltr-reversed-clip4")
    "relevance clipped at 4 (authors' run)"
    """
    key = problem_key(method_name)
    return _VARIANTS.get(key, key)
