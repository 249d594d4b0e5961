"""What people call a stored method, such as "deltr-reversed-clip4" or "rank_svm" (Part III)."""

#: Methods in words, in the order of the tables.
READINGS = {
    "fair_pg_rank-sample": "Fair-PG-Rank",
    "fair_pg_rank-exact": "Fair-PG-Rank, exact gradient",
    "post_processing-definition": "post-processing (definition)",
    "post_processing-authors": "post-processing (with the factor)",
    "deltr-one_sided": "DELTR (its own one-sided penalty)",
    "deltr-two_sided": "DELTR (two-sided, as in the text)",
    "deltr-reversed": "DELTR (authors' reversed side)",
    "uniform": "uniform policy",
    "fixed-0": "x₁ alone, not learned",
    "fixed-0.25": "x₁ and a quarter of x₂, not learned",
    "fair_pg_rank-linear-entropy0": "Fair-PG-Rank, linear, γ = 0",
    "fair_pg_rank-linear-entropy1": "Fair-PG-Rank, linear, γ = 1",
    "fair_pg_rank-neural-entropy0": "Fair-PG-Rank, network, γ = 0",
    "fair_pg_rank-neural-entropy1": "Fair-PG-Rank, network, γ = 1",
    "rank_svm": "RankSVM",
    "gbdt": "GBDT (regression)",
    "lambdamart": "LambdaMART",
}
#: The same for the data of the group-fairness experiments.
VARIANTS = {
    "clip5": "relevance clipped at 5 (text)",
    "clip4": "relevance clipped at 4 (authors' run)",
    "sex": "sex as recorded, same queries for every seed",
    "sex-redrawn": "sex as recorded, queries redrawn for every seed",
    "sex-text-redrawn": "sex as recorded, 20 attributes and 8:2 as in the text, queries redrawn",
    "age": "age 25 or younger, same queries for every seed",
}


def split_name(name: str) -> tuple[str, str]:
    """The method's and the data's part of a stored name; there may be no data's part.

    >>> split_name("post_processing-authors-sex-redrawn"), split_name("rank_svm")
    (('post_processing-authors', 'sex-redrawn'), ('rank_svm', ''))
    """
    known = [key for key in READINGS if name == key or name.startswith(key + "-")]
    method = known[0] if known else name
    return method, name.removeprefix(method).lstrip("-")


def reading(name: str) -> str:
    """The method of a stored name in words, as figures and tables print it."""
    method, _ = split_name(name)
    return READINGS.get(method, method)


def place(name: str) -> tuple[int, str, int, str]:
    """A key to sort by: its data, then its method, each in the order above, unknown ones last."""
    method, data = split_name(name)
    variants, methods = [*VARIANTS, data], [*READINGS, method]
    return variants.index(data), data, methods.index(method), method
