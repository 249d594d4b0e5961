"""Sphinx extension: a search that leads to the chapter which explains the word.

Sphinx ranks names of functions first, so that "exposure" led to code and "D_group" nowhere near the
chapter that defines it. Words that readers type become main entries of the index, on the chapter
about them; the search puts those first. And the summary of a hit, which is cut from the page's
text, loses tooltips and raw TeX (book/_static/search.js). Over file:// there is no summary: a
browser forbids to fetch one, and complains for each.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

#: What readers type -> the chapter where it is explained.
EXPLAINED = {
    "01_ten_candidates": "position bias, merit",
    "02_utility_and_erm": "utility, NDCG, DCG, frontier, lambda, ERM",
    "03_plackett_luce": "Plackett-Luce, temperature, Gumbel, policy",
    "04_exposure": "exposure, exponential race",
    "05_merit_and_disparity": "D_group, D_ind, disparity, fairness, demographic parity",
    "06_policy_gradient": "REINFORCE, policy gradient, log-derivative trick, PG-Rank, entropy",
    "07_fair_pg_rank": "Fair-PG-Rank, training",
    "08_variance": "variance reduction, baseline, bias, control variate, leave-one-out",
    "09_synthetic": "DELTR, linear programme, synthetic data, lottery",
    "10_pg_rank": "Yahoo, MSLR, RankSVM, LambdaRank",
    "11_individual_fairness": "individual fairness",
    "12_german_credit": "German Credit, group fairness",
    "13_scoreboard": "scoreboard, reproducibility, claims",
    "14_beyond": "budget, audit, amortised fairness",
    "15_cluster": "cluster, Dask, parallel, sweep",
}
NO_SUMMARIES = (
    "if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;"
)


class MainEntries(SphinxTransform):
    """Puts a chapter's words into the index, before Sphinx collects it."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        words = EXPLAINED.get(self.env.docname.removeprefix("book/"), "")
        title = next(iter(self.document.findall(nodes.section)), None)
        if not words or title is None:
            return
        entries = [("single", word, title["ids"][0], "main", None) for word in words.split(", ")]
        title.insert(1, addnodes.index(entries=entries))


def keep_entries(app: Sphinx, env: BuildEnvironment) -> None:
    """Sphinx forgets entries of pages that a later build finds unchanged; these come back."""
    for chapter, words in EXPLAINED.items():
        if f"book/{chapter}" in env.found_docs:
            entries = [(word, "", "main") for word in words.split(", ")]
            env._search_index_index_entries.setdefault(f"book/{chapter}", entries)


def add_script(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if page == "search":
        app.add_js_file(None, body=NO_SUMMARIES)
        app.add_js_file("search.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_transform(MainEntries)
    app.connect("env-updated", keep_entries)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
