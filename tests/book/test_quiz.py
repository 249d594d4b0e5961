"""The numbers in the quizzes are true, and a question that is put wrongly fails the build."""

import csv
import json
import math
import re
import statistics

import numpy as np
import pytest
import torch

import fairpg_lite as fpg
from experiments.claims import Check, Estimate, decide
from experiments.claims.quantities import ahead
from experiments.claims.verdicts import look
from fairpg_lite.sweeps import load_cells
from tools.check_chapters import ROOT

PAGES = sorted((ROOT / "book").glob("quiz_*.md"))
BLOCK = re.compile(r"^```\{quiz\} (.+?)\n:label: (\S+)\n\n(.*?)^```$", re.M | re.S)


def questions():
    """label -> (question, [(right, words, feedback), ...]), read without Sphinx."""
    found = {}
    for page in PAGES:
        for question, label, body in BLOCK.findall(page.read_text(encoding="utf-8")):
            items = re.split(r"^- (?=\[)", body, flags=re.M)[1:]
            options = [item.split("\n\n", 1) for item in items]
            read = [(words[:3] == "[x]", words[4:].strip(), said) for words, said in options]
            found[label] = (question, read)
    return found


QUESTIONS = questions()


def figures(text):
    """The numbers with a point or a per-cent sign, as written; not those inside formulas."""
    words = re.sub(r"\{[\w:]+\}`[^`]*`|\$[^$]*\$", "", text)
    return set(re.findall(r"(?<![\w.])(?:\d*\.\d+(?: %)?|\d+ %|\d+,\d{3})", words))


def short(number, digits):
    """As the book writes it: .63 and not 0.63."""
    return f"{number:.{digits}f}".lstrip("0")


def stored(data, method, lam, name):
    """One value per seed from the stored table, read as plain CSV."""
    with open(ROOT / "results" / data / "table.csv", encoding="utf-8", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["experiment"] == method]
    return [json.loads(row[name]) for row in rows if float(row["lam"]) == lam]


def stored_mean(*of):
    return statistics.fmean(stored(*of))


def computed():
    """label -> the figures of its answers, each from a formula of its own."""
    log = [1 / math.log2(1 + j) for j in range(1, 11)]
    plain = [1 / j for j in range(1, 11)]
    low, high = sum(log[5:]), sum(log[:5])
    total = sum(log)
    gap = log[0] - log[1]
    return {
        "quiz-1-step": {
            f"{0.88 / 0.89:.1%}",
            f"{low / high:.1%}",
            f"{sum(plain[5:]) / sum(plain[:5]):.1%}",
            f"{log[9]:.1%}",
            f"{0:.0%}",
        },
        "quiz-1-pair": {short(math.e / (1 + math.e), 2), short(1 - 1 / math.e, 2)},
        "quiz-1-lists": {
            f"{round(100 * (0.02 / 0.002) ** 2):,}",
            "1,000",
            short(0.02 / math.sqrt(10), 4),
            short(0.02 / math.sqrt(2), 4),
        },
        "quiz-1-proportion": {short(total / (1 + 9 * 0.3), 2)},
        "quiz-2-baseline": {short(9 / 10, 1), short(10 / 9, 2)},
        "quiz-2-coin": {short(gap / 4, 3), short(gap, 3)},
        "quiz-2-charge": {short(2 / (6 * 0.5), 2), short(2 / 6, 2)},
        "quiz-2-error": {f"{relative_error(24, 10):.0%}", f"{1 / math.sqrt(10):.0%}"},
        "quiz-2-hinge": {
            short(0.02 / math.sqrt(2 * math.pi), 3),
            short(0.02 * math.sqrt(2 / math.pi), 3),
        },
        **of_part_three(),
        **of_part_four(),
    }


def of_part_three():
    """From the stored results, apart from the two that follow from definitions."""
    log = [1 / math.log2(1 + j) for j in range(1, 11)]
    behind = behind_rank_svm("fair_pg_rank-linear-entropy0")
    trained = ("mslr", "fair_pg_rank-linear-entropy0")
    one_sided, both = (
        stored_mean("german", "fair_pg_rank-sample-sex", 0, name)
        for name in ("d_group", "group_gap")
    )
    return {
        "quiz-3-factor": {short(statistics.fmean(log[:2]) / statistics.fmean(log[2:]), 2)},
        "quiz-3-paired": {short(-behind.high, 2), short(-behind.low, 2)},
        "quiz-3-hat": {
            short(stored_mean(*trained, 100, "train_policy_d_ind"), 4),
            short(stored_mean(*trained, 0, "train_policy_ndcg_at_10"), 2),
        },
        "quiz-3-gap": {f"{left_of('group_gap'):.0%}", f"{one_sided / both:.0%}"},
    }


def of_part_four():
    training = 0.05 * 1_000_000 / 1000 * 20
    return {
        "quiz-4-units": {short(2 / 5, 1)},
        "quiz-4-cost": {
            f"{30 * training / 60 / 60:.1f}",
            f"{training * math.ceil(30 / 60) / 60:.1f}",
            f"{training * math.ceil(30 / 15) / 60:.1f}",
            f"{30 * training / 3600:.1f}",
        },
    }


def per_query(method):
    """NDCG@10 of the 42 test queries, means over seeds (42,)."""
    return np.mean(stored("mslr", method, 0, "test_ndcg_at_10_per_query"), axis=0)


def behind_rank_svm(method):
    """NDCG@10 less RankSVM's, with the interval of chapter 10's figure, over queries and seeds."""
    cells = load_cells(ROOT / "results" / "mslr")
    return ahead(method, "rank_svm", "test_ndcg_at_10")(cells)


def interval(values):
    """95 % by drawing the queries anew."""
    picks = np.random.default_rng(0).integers(0, len(values), (10_000, len(values)))
    return np.quantile(values[picks].mean(1), [0.025, 0.975])


def left_of(name):
    method = "fair_pg_rank-sample-sex"
    last, first = (stored_mean("german", method, lam, name) for lam in (25, 0))
    return last / first


def relative_error(n, S):
    """Of the leave-one-out gradient at the uniform lottery: the formula of chapter 8."""
    bias = [1 / math.log2(1 + j) for j in range(1, n + 1)]
    slope = [1 - sum(1 / (n - k + 1) for k in range(1, j + 1)) for j in range(1, n + 1)]
    kappa = (n - 1) / statistics.correlation(bias, slope) ** 2
    return math.sqrt((kappa - 1) / S + (kappa + 1) / (S * (S - 1)))


def measured_error(n, S, draws):
    """The same from sampled lists, for prices of its own, which the formula says do not matter."""
    generator = torch.Generator().manual_seed(0)
    prices = torch.rand(n, dtype=torch.float64, generator=generator)
    scores = torch.zeros(n, dtype=torch.float64, requires_grad=True)
    value = (prices * fpg.PlackettLuce(scores).exposure()).sum()
    (truth,) = torch.autograd.grad(value, scores)
    lists = fpg.PlackettLuce(scores).sample((draws, S), generator=generator)
    bias = fpg.position_bias(n, dtype=torch.float64)
    reward = (prices * fpg.ranking_exposure(lists, bias)).sum(-1)
    # In the uniform lottery the slope of a document depends on its position only.
    left = torch.arange(n, 0, -1, dtype=torch.float64)
    slope = (1 - (1 / left).cumsum(0))[lists.argsort(-1)]
    others = (reward.sum(1, keepdim=True) - reward) / (S - 1)
    estimate = ((reward - others)[..., None] * slope).mean(1)
    return math.sqrt((estimate - truth).square().sum(-1).mean() / truth.square().sum())


def test_the_error_of_a_sampled_gradient():
    assert math.isclose(relative_error(24, 10), measured_error(24, 10, draws=20_000), rel_tol=0.01)


def test_no_question_is_overlooked():
    """The pattern that reads them here finds as many as the pages have."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    assert len(QUESTIONS) == sum(text.count("```{quiz}") for text in pages) > 0


FIGURES = computed()


@pytest.mark.parametrize("label", QUESTIONS)
def test_the_numbers_are_computed(label):
    """Every figure in the answers is computed here, or was given in the question."""
    question, options = QUESTIONS[label]
    shown = set().union(*(figures(f"{words} {said}") for _, words, said in options))
    written = {figure.replace("%", " %").replace("  ", " ") for figure in FIGURES.get(label, set())}
    assert shown - figures(question) == written - figures(question)


def test_the_threshold_of_proportionality():
    """quiz-1-proportion names it inside a formula."""
    bias = [1 / math.log2(1 + j) for j in range(2, 11)]
    answer = QUESTIONS["quiz-1-proportion"][1][2]
    assert answer[0]
    assert rf"\epsilon^* = {short(sum(bias) / 9, 3)}$" in answer[2]


def synthetic_queries():
    """Features, relevance and groups of the stored seeds' 2,000 queries."""
    batches = [next(iter(fpg.synthetic(seed=seed).batches(100))) for seed in range(20)]
    return [
        torch.cat([getattr(batch, name) for batch in batches]).double()
        for name in ("features", "relevance", "groups")
    ]


def angle_of_least_disparity():
    """Of theta, length 4, in degrees: exact exposure on the queries of the stored seeds."""
    x, relevance, groups = synthetic_queries()

    def disparity(degrees):
        angle = math.radians(degrees)
        theta = 4 * torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
        v = fpg.PlackettLuce(x @ theta).exposure(tolerance=1e-5)
        return float(fpg.group_disparity(v, relevance, groups.long()).mean())

    return min(range(-5, 41, 5), key=disparity)


def test_the_figures_that_the_questions_of_part_three_give():
    """What a question states is measured too."""
    method = "fair_pg_rank-sample-clip5"
    first, last = (
        stored_mean("synthetic", method, lam, "theta2")
        / stored_mean("synthetic", method, lam, "theta1")
        for lam in (0, 25)
    )
    said, options = QUESTIONS["quiz-3-turn"]
    assert f"from {short(first, 2)} at" in said
    assert f"to {short(last, 2)} at" in said
    assert f"at about {angle_of_least_disparity()}°" in options[0][2]

    said, options = QUESTIONS["quiz-3-paired"]
    stated = {
        short(x, 2)
        for values in map(per_query, ("fair_pg_rank-linear-entropy0", "rank_svm"))
        for x in (values.mean(), *interval(values))
    }
    assert figures(said) - {"95 %"} == stated
    network = behind_rank_svm("fair_pg_rank-neural-entropy0")
    assert network.low < network.value < 0 < network.high

    assert figures(QUESTIONS["quiz-3-gap"][0]) == {f"{left_of('d_group'):.0%}".replace("%", " %")}


def test_the_minority_has_more_merit_in_about_half_of_the_queries():
    _, relevance, minority = synthetic_queries()
    both = (minority.sum(1) > 0) & (minority.sum(1) < 10)
    means = [(relevance * of).sum(1) / of.sum(1) for of in (minority, 1 - minority)]
    assert abs((means[0] > means[1])[both].double().mean() - 0.5) < 0.05


def test_the_hat_of_quiz_three():
    """At the largest price the policy has the NDCG of a lottery, on the stored test queries."""
    trained = ("mslr", "fair_pg_rank-linear-entropy0")
    _, test = fpg.mslr_sample(dtype=torch.float64)
    hat = fpg.evaluate(
        lambda features: torch.zeros(features.shape[:-1]).double(),
        test,
        measures=("ndcg_at_k", "d_ind"),
        k=10,
    )
    stated = {
        short(stored_mean(*trained, lam, f"test_policy_{name}"), digits)
        for lam in (0, 100)
        for name, digits in (("d_ind", 4), ("ndcg_at_10", 3))
    }
    assert figures(QUESTIONS["quiz-3-hat"][0]) == stated | {short(hat.ndcg_at_k, 3)}
    assert hat.d_ind < 1e-9
    from_worst_to_best = [
        float(fpg.ndcg(query.relevance.argsort(), query.relevance, k=10))
        for query in test
        if query.relevance.any()
    ]
    assert statistics.fmean(from_worst_to_best) < hat.ndcg_at_k / 2


def test_the_verdict_of_quiz_three():
    question, options = QUESTIONS["quiz-3-verdict"]
    ends = [float(end) for end in re.findall(r"\$([-+]\.\d+)\$", question)]
    checks = []
    for low, high in (ends[:2], ends[2:]):
        # 40 repetitions: half of the interval is 2.02 standard errors.
        error = (high - low) / 2 / 2.023
        estimate = Estimate((low + high) / 2, low, high, "40 repetitions", error, 39)
        checks.append(Check("the change", lambda _, e=estimate: e, high=0.0))
    outcomes = [finding.outcome for finding in look(tuple(checks), [])]
    (right,) = [words for right, words, _ in options if right]
    assert f"{decide(outcomes).capitalize()}." == right


def test_the_units_of_a_price():
    """quiz-4-units: five times the merit needs five times the price, for both disparities."""
    merit, groups = torch.tensor([3.0, 1.0, 2.0, 1.0]), torch.tensor([0, 0, 1, 1])
    v = fpg.PlackettLuce(torch.tensor([3.0, 1.0, 0.0, 0.5])).exposure()
    for disparity in (
        lambda m: fpg.individual_disparity(v, m),
        lambda m: fpg.group_disparity(v, m, groups),
    ):
        assert disparity(merit) > 0
        assert torch.isclose(10 * disparity(5 * merit), 2 * disparity(merit))
    (right,) = [words for right, words, _ in QUESTIONS["quiz-4-units"][1] if right]
    assert right == "10"


GOOD = "- [ ] one\n\n  No, because.\n\n- [x] two\n\n  Yes, because."


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (GOOD, None),
        (GOOD.replace("[x]", "[ ]"), "exactly one"),
        (GOOD.replace("[ ]", "[x]"), "exactly one"),
        (GOOD.replace("\n\n  Yes, because.", ""), "no feedback"),
        (GOOD.replace("[x]", "(x)"), "begins with"),
        ("Just words.", "one list"),
        ("- [x] one\n\n  Yes.", "two options"),
    ],
)
def test_a_spoilt_question_fails_the_build(tmp_path, body, complaint):
    from sphinx.testing.util import SphinxTestApp

    folder = tmp_path / "book"
    folder.mkdir()
    settings = "import sys\nsys.path.insert(0, {!r})\nextensions = ['myst_parser', 'quiz']\n"
    (folder / "conf.py").write_text(settings.format(str(ROOT / "book" / "_ext")))
    page = f"# Page\n\n```{{quiz}} What is $1 + 1$?\n:label: quiz-9-sum\n\n{body}\n```\n"
    (folder / "index.md").write_text(page)
    app = SphinxTestApp("html", srcdir=folder)
    app.build()
    said = app.warning.getvalue()
    html = (folder / "_build" / "html" / "index.html").read_text()
    app.cleanup()
    if complaint is None:
        assert said == ""
        assert html.count('type="radio" name="quiz-9-sum"') == 2
        assert '<label for="quiz-9-sum-b">(b) two</label>' in html
    else:
        assert complaint in said


def test_choosing_by_keyboard_shows_the_feedback(window, built_book):
    page = window.open(built_book / "book" / "quiz_1.html").page
    group = page.get_by_role("group").first
    assert not group.get_by_text("Not so.").first.is_visible()
    group.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    assert group.get_by_text("Not so.").first.is_visible()
    page.keyboard.press("ArrowDown")
    assert group.get_by_text("Right.").is_visible()
    assert not group.get_by_text("Not so.").first.is_visible()
