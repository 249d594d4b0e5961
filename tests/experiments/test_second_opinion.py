"""Every verdict once more, by an outsider: stored tables, the written protocol, pandas and SciPy.

The functions of this file use nothing of `experiments`; what they need to know stands in chapter 13
("The protocol" and "How a verdict is made") and in the docstring of `experiments.protocol`. Only
the tests at the end ask the board, to compare.
"""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]


# The stored tables


@cache
def table(directory):
    """A row for each run, indexed by experiment, lambda and seed."""
    stored = pd.read_csv(ROOT / "results" / directory / "table.csv")
    for column in stored.columns:
        if stored[column].astype(str).str.startswith("[").any():
            stored[column] = stored[column].map(json.loads, na_action="ignore")
    return stored.set_index(["experiment", "lam", "seed"]).sort_index()


@cache
def about(directory):
    return json.loads((ROOT / "results" / directory / "table.json").read_text("utf-8"))


def shared(directory, experiment):
    """n_test / n_train where persons are split anew, else 0."""
    problem = about(directory)["experiments"][experiment].get("problem", {})
    return 200 / 800 if problem.get("redrawn") else 0.0


def lams(directory, experiment):
    return sorted(table(directory).loc[experiment].index.unique("lam"))


def column(directory, experiment, lam, name):
    """One number for each seed."""
    return table(directory).loc[(experiment, float(lam)), name]


# A number, its error, its p-value


class Measured:
    """A mean over repetitions and its error, with the region of the claim."""

    def __init__(self, values, rho=0.0, *, above=-math.inf, below=math.inf):
        values = np.asarray(values, float)
        self.value = values.mean()
        self.freedom = len(values) - 1
        self.error = values.std(ddof=1) * math.sqrt(1 / len(values) + rho)
        self.region = (above, below)

    @property
    def inside(self):
        return self.region[0] < self.value < self.region[1]

    @property
    def p(self):
        """Of the edge that was crossed, or, inside the region, the larger one of both edges."""
        p_values = []
        for edge in self.region:
            crossed = (self.value - edge) * (1 if edge == self.region[0] else -1) <= 0
            if math.isfinite(edge) and (self.inside or crossed):
                t = (self.value - edge) / self.error if self.error else math.inf
                p_values.append(2 * stats.t.sf(abs(t), self.freedom))
        return max(p_values)


def ratio(numerator, denominator, rho=0.0, **region):
    """The ratio of two means; its error by linearising it."""
    a, b = np.asarray(numerator, float), np.asarray(denominator, float)
    centre = a.mean() / b.mean()
    return Measured(centre + (a - centre * b) / b.mean(), rho, **region)


def outcomes(checks):
    """Yes, no or open for each check, by Holm's levels for all of them."""
    found = ["open"] * len(checks)
    by_p = sorted(range(len(checks)), key=lambda k: checks[k].p)
    for rank, k in enumerate(by_p):
        if checks[k].p > 0.05 / (len(checks) - rank):
            break
        found[k] = "yes" if checks[k].inside else "no"
    return found


def verdict(found):
    if all(word == "missing" for word in found):
        return "cannot be tested here"
    if all(word == "yes" for word in found):
        return "holds"
    if all(word == "no" for word in found):
        return "does not hold"
    return "holds in part" if {"yes", "no"} <= set(found) else "cannot be told"


# NDCG at equal disparity

CHANCES = np.arange(21) / 20
SHARES = (0.75, 0.5, 0.25)


def lines_of(run, uniform_ndcg):
    """NDCG and D_group along each form that a run has."""
    found = []
    for form in ("", "sorted_"):
        if isinstance(run.get(f"{form}lottery_d_group"), list):
            ndcg = (1 - CHANCES) * run[f"{form}ndcg"] + CHANCES * uniform_ndcg
            found.append(
                (ndcg, np.array([run[f"{form}d_group"], *run[f"{form}lottery_d_group"], 0]))
            )
    if isinstance(run.get("temperature_ndcg"), list):
        both = []
        for name in ("ndcg", "d_group"):
            cold, warm = run[f"temperature_{name}"][:2], run[f"temperature_{name}"][2:]
            both.append(np.array([*cold, run[name], *warm]))
        found.append(tuple(both))
    return found


def highest(line, budget):
    """The highest NDCG on a polygonal line where D_group is at most the budget."""
    best = -1000.0
    ndcg, d = line
    for k in range(len(d) - 1):
        ends = [0.0, 1.0]
        if (d[k] - budget) * (d[k + 1] - budget) < 0:
            ends.append((budget - d[k]) / (d[k + 1] - d[k]))
        for t in ends:
            if d[k] + t * (d[k + 1] - d[k]) <= budget + 1e-15:
                best = max(best, ndcg[k] + t * (ndcg[k + 1] - ndcg[k]))
    return best


def reached(directory, experiment, uniform, budgets, wanted):
    """NDCG by seed, lambda and form chosen by the mean of the other seeds."""
    settings = {}
    for lam in filter(wanted, lams(directory, experiment)):
        for seed, run in table(directory).loc[(experiment, lam)].iterrows():
            ndcg = column(directory, uniform, 0, "ndcg")[seed]
            for form, line in enumerate(lines_of(run, ndcg)):
                settings.setdefault((lam, form), {})[seed] = highest(line, budgets[seed])
    tried = pd.DataFrame(settings)
    assert not tried.isna().any(axis=None)
    return pd.Series({s: tried.loc[s, tried.drop(index=s).mean().idxmax()] for s in tried.index})


def lead(directory, mine, theirs, variant, share, *, budget_of=None, above=0.0, below=math.inf):
    """NDCG of one (experiment, lambdas) minus that of another, at equal D_group."""
    experiment, figure = budget_of or (mine[0], "d_group")
    budgets = share * column(directory, experiment, 0, figure)
    uniform = f"uniform-{variant}"
    first, second = (reached(directory, *(m[0], uniform, budgets, m[1])) for m in (mine, theirs))
    rho = shared(directory, mine[0])
    return Measured(first - second, rho, above=above, below=below)


def anything(lam):
    return True


def positive(lam):
    return lam > 0


def zero(lam):
    return lam == 0


# The claims


def difference(directory, first, second, **region):
    """A number of (experiment, lambda, name) minus another."""
    return Measured(
        column(directory, *first) - column(directory, *second),
        shared(directory, first[0]),
        **region,
    )


def share_left(directory, experiment, name, lam=None, **region):
    """A number at a lambda, the last by default, as a share of lambda 0."""
    last = lams(directory, experiment)[-1] if lam is None else lam
    after, before = (column(directory, experiment, x, name) for x in (last, 0))
    return ratio(after, before, shared(directory, experiment), **region)


def trades_off(directory, variant):
    fair = f"fair_pg_rank-sample-{variant}"
    leads = [lead(directory, (fair, positive), (fair, zero), variant, s) for s in SHARES]
    return [share_left(directory, fair, "d_group", 25, below=0.5), *leads]


def better(directory, variant, *rivals):
    fair = (f"fair_pg_rank-sample-{variant}", anything)
    return [
        lead(directory, fair, (f"{rival}-{variant}", anything), variant, s)
        for rival in rivals
        for s in SHARES
    ]


def fails(variant, method):
    experiment = f"{method}-{variant}"
    tried = pd.DataFrame(
        {x: column("german", experiment, x, "d_group") for x in lams("german", experiment) if x > 0}
    )
    lowest = [tried.loc[s, tried.drop(index=s).mean().idxmin()] for s in tried.index]
    start = column("german", experiment, 0, "d_group")
    saved = lead(
        "german", (experiment, positive), (experiment, zero), variant, 0.5,
        budget_of=(experiment, "sorted_d_group"), above=-math.inf, below=0.0,
    )  # fmt: skip
    return [ratio(lowest, start, shared("german", experiment), above=0.5), saved]


def alike(experiment):
    """How far a run is from the mean of the others where it is farthest."""
    checks = []
    for name in ("ndcg", "d_group"):
        runs = pd.DataFrame(
            {x: column("german", experiment, x, name) for x in lams("german", experiment)}
        )
        moved = runs.mean().max() - runs.mean().min()
        far = [(runs.loc[s] - runs.drop(index=s).mean()).abs().max() / moved for s in runs.index]
        checks.append(Measured(far, below=0.1))
    return checks


def believed_gone(experiment):
    gone = column("german", experiment, 0.2, "unfair_on_estimates") == 0
    return [Measured(gone, shared("german", experiment), above=0.5)]


FAIR = "fair_pg_rank-sample-clip5"
PROGRAMME, PROGRAMME_CODE = "post_processing-definition", "post_processing-authors"
DELTR, DELTR_CODE = "deltr-text", "deltr-code"


def in_halves(name):
    pairs = ((5, 0), (25, 5))
    return [difference("synthetic", (FAIR, b, name), (FAIR, a, name), below=0) for b, a in pairs]


def of_theta(function, lam):
    return function(
        column("synthetic", FAIR, lam, "theta1"), column("synthetic", FAIR, lam, "theta2")
    )


def angle(lam):
    return of_theta(lambda x, y: np.degrees(np.arctan2(y, x)), lam)


def length(lam):
    return of_theta(np.hypot, lam)


def misled(method):
    experiment = f"{method}-clip5"
    return [
        share_left("synthetic", experiment, "d_group_estimated", below=0.1),
        share_left("synthetic", experiment, "d_group", above=0.5),
    ]


def less_fair(method):
    experiment = f"{method}-clip5"
    last = lams("synthetic", experiment)[-1]
    ends = ((experiment, last, "d_group"), (experiment, 0, "d_group"))
    return [difference("synthetic", *ends, above=0)]


def little_effect(method):
    names = ("sorted_d_group", "d_group")
    return [share_left("synthetic", f"{method}-clip5", n, above=0.75, below=1.25) for n in names]


def unfair_by_x2():
    checks = []
    for use in ("0.25", "1"):
        experiment = f"fixed-{use}-clip5"
        checks.append(Measured(column("synthetic", experiment, 0, "exposure_ratio"), below=1))
        alone = ("fixed-0-clip5", 0, "d_group")
        checks.append(difference("synthetic", (experiment, 0, "d_group"), alone, above=0))
    return checks


def other_side():
    def ahead(experiment):
        gap, d = (column("synthetic", experiment, 0, name) for name in ("group_gap", "d_group"))
        return gap - d

    random_lists, least = ahead("uniform-clip5"), ahead("ideal-group-clip5")
    return [
        ratio(random_lists - ahead(experiment), random_lists - least, above=0.5)
        for experiment in ("ideal-relevance-clip5", FAIR)
    ]


def direction_and_length():
    learned = [(FAIR, 25, name) for name in ("ndcg", "d_group")]
    sharp = [(FAIR, 25, f"sorted_{name}") for name in ("ndcg", "d_group")]
    unturned = [(FAIR, 0, f"sorted_{name}") for name in ("ndcg", "d_group")]
    pairs = [*zip(learned, sharp, strict=True), *zip(sharp, unturned, strict=True)]
    return [difference("synthetic", first, second, below=0) for first, second in pairs]


def lucky_twins():
    """The lead after 10 rounds and after 40, which are the fourth and the sixth that are stored."""
    checks = []
    for estimate in ("rate", "weighted"):
        for place in (3, 5):
            fair, plain = (
                table("rich-get-richer")
                .loc[f"{ranker}-{estimate}", "leads"]
                .map(lambda x, k=place: x[k])
                for ranker in ("fair_pg_rank", "pg_rank")
            )
            gap = fair.groupby("seed").mean() - plain.groupby("seed").mean()
            checks.append(Measured(gap, below=0))
    return checks


@cache
def courses(data, model, way):
    """A row for each seed: NDCG after 500 updates and after 4,800, and after these untuned."""
    stored = json.loads((ROOT / "benchmarks/results/rivals_training.json").read_text("utf-8"))
    (found,) = (
        cell
        for cell in stored["cells"]
        if (cell["data"], cell["model"], cell["way"]) == (data, model, way)
        and cell["lam"] == 0
        and cell["samples"] == 10
    )
    early, last = stored["looks"].index(500), stored["looks"].index(4800)
    rows = {c["seed"]: (c["utility"][early], c["utility"][last]) for c in found["courses"]}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["early", "last"])
    if found["untuned"]:
        frame["untuned"] = found["untuned"]
    return frame


def of_gradients(*pairs):
    """One way's NDCG minus another's, on both data sets with both models."""
    checks = []
    for data, rho in (("stand-in", 0.0), ("German Credit", 200 / 800)):
        for model in ("linear", "network"):
            for (first, a), (second, b) in pairs:
                gain = courses(data, model, first)[a] - courses(data, model, second)[b]
                checks.append(Measured(gain, rho, above=0))
    return checks


PAPER = "REINFORCE, mean"
TEXT, CODE = "sex-text", "sex-code"
#: What decides by the text, and by the code where that differs.
CLAIMS = {
    "R1": (lucky_twins, None),
    "V1": (
        lambda: of_gradients(
            ((PAPER, "last"), (PAPER, "untuned")),
            (("reward-to-go, leave-one-out", "last"), (PAPER, "last")),
        ),
        None,
    ),
    "V2": (
        lambda: of_gradients(
            (("PL-Rank-3", "early"), (PAPER, "early")), (("PL-Rank-3", "last"), (PAPER, "last"))
        ),
        None,
    ),
    "S1": (lambda: [Measured(angle(0), above=40, below=50)], None),
    "S2": (lambda: [Measured(length(b) - length(a), below=0) for a, b in ((0, 5), (5, 25))], None),
    "S3": (
        lambda: [
            *(Measured(angle(b) - angle(a), below=0) for a, b in ((0, 5), (5, 25))),
            Measured(angle(25), below=26.565),
        ],
        None,
    ),
    "S4": (direction_and_length, None),
    "S5": (lambda: in_halves("d_group"), None),
    "S6": (lambda: trades_off("synthetic", "clip5"), None),
    "S7": (
        lambda: [
            Measured(angle(25) - angle(0), below=0),
            Measured(
                column("synthetic", FAIR, 25, "sorted_exposure_ratio"), above=0.95, below=1.05
            ),
            share_left("synthetic", FAIR, "sorted_d_group", 25, below=0.5),
        ],
        None,
    ),
    "S8": (lambda: misled(PROGRAMME), lambda: misled(PROGRAMME_CODE)),
    "S9": (lambda: less_fair(PROGRAMME), lambda: less_fair(PROGRAMME_CODE)),
    "S10": (lambda: little_effect(DELTR), lambda: little_effect(DELTR_CODE)),
    "S11": (
        lambda: better("synthetic", "clip5", DELTR),
        lambda: better("synthetic", "clip5", DELTR_CODE),
    ),
    "S12": (
        lambda: better("synthetic", "clip5", PROGRAMME),
        lambda: better("synthetic", "clip5", PROGRAMME_CODE),
    ),
    "S13": (unfair_by_x2, None),
    "S14": (other_side, None),
    "G1": (lambda: trades_off("german", TEXT), lambda: trades_off("german", CODE)),
    "G2": (
        lambda: alike("fair_pg_rank-sample-sex-text-fixed"),
        lambda: alike("fair_pg_rank-sample-sex"),
    ),
    "G3": (lambda: fails(TEXT, PROGRAMME), lambda: fails(CODE, PROGRAMME_CODE)),
    "G4": (lambda: fails(TEXT, DELTR), lambda: fails(CODE, DELTR_CODE)),
    "G5": (
        lambda: better("german", TEXT, PROGRAMME, DELTR),
        lambda: better("german", CODE, PROGRAMME_CODE, DELTR_CODE),
    ),
    "G6": (
        lambda: believed_gone(f"{PROGRAMME}-{TEXT}"),
        lambda: believed_gone(f"{PROGRAMME_CODE}-{CODE}"),
    ),
    "G7": (
        lambda: [share_left("german", f"{PROGRAMME}-{TEXT}", "d_group", above=0.05)],
        lambda: [share_left("german", f"{PROGRAMME_CODE}-{CODE}", "d_group", above=0.05)],
    ),
}
#: About Yahoo's data, of which there is no table.
UNTESTED = ("T1", "T3", "T4", "T5", "F1", "F2", "F3")
#: What sums up what.
SUMS = {
    "A1": ("S5", "S6", "F1", "F2", "G1"),
    "A2": ("S3", "S8"),
    "A3": ("T1", "T3", "T4", "S7", "F1", "F2", "G1"),
    "A4": ("S6", "S12", "G1", "G3", "G4", "G5"),
}
AS_OUTCOMES = {
    "holds": ["yes"],
    "does not hold": ["no"],
    "holds in part": ["yes", "no"],
    "cannot be told": ["open"],
    "cannot be tested here": ["missing"],
}


def second_opinion(claim):
    """The verdict on a claim, by this file alone."""
    if claim in UNTESTED:
        return "cannot be tested here"
    if claim in SUMS:
        parts = [AS_OUTCOMES[second_opinion(part)] for part in SUMS[claim]]
        return verdict([word for part in parts for word in part])
    return verdict(outcomes(CLAIMS[claim][0]()))


# Compared with the board


@pytest.fixture(scope="module")
def board():
    from experiments.claims import CLAIMS as ALL
    from experiments.claims import judge_all, load_results

    return {judged.claim.id: judged for judged in judge_all(ALL, load_results(ROOT / "results"))}


def agrees(checks, findings):
    """Number by number: value, error, p-value and outcome."""
    assert len(checks) == len(findings)
    for check, found, word in zip(checks, findings, outcomes(checks), strict=True):
        assert check.value == pytest.approx(found.estimate.value, rel=1e-9, abs=1e-12)
        assert check.error == pytest.approx(found.estimate.error, rel=1e-9, abs=1e-12)
        assert check.freedom == found.estimate.freedom
        assert check.region == (found.check.low, found.check.high)
        assert check.p == pytest.approx(found.p, rel=1e-6, abs=1e-12)
        assert word == found.outcome


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_an_outsider_gets_every_deciding_number(claim, board):
    by_text, by_code = CLAIMS[claim]
    agrees(by_text(), board[claim].findings)
    assert bool(by_code) == bool(board[claim].coded)
    if by_code:
        agrees(by_code(), board[claim].coded)
        assert verdict(outcomes(by_code())) == board[claim].coded_verdict


@pytest.mark.slow
def test_an_outsider_gets_every_verdict(board):
    assert set(board) == {*CLAIMS, *UNTESTED, *SUMS}
    waiting = {*UNTESTED, *SUMS} if (ROOT / "results" / "yahoo").exists() else set()
    for claim in set(board) - waiting:
        assert second_opinion(claim) == board[claim].verdict, claim


def test_the_second_opinion_needs_nothing_of_ours():
    """Above the comparison nothing of the book or of the package is imported."""
    text = Path(__file__).read_text("utf-8").split("# Compared with the board")[0]
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "experiments" in line or "fairpg_lite" in line]
