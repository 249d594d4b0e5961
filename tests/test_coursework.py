"""The coursework: the solution earns all points, each slip its sentence, a blank no crash."""

import ast
import dataclasses
import itertools
import math
import re
import subprocess
import sys

import jupytext
import nbformat
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from oracles import position_probs_by_subsets

import checker as coursework
import fairpg_lite as fpg
from checker import TASKS, begin, check, examine, score
from checker.examine import Finding
from tools import make_coursework as tool
from tools.check_chapters import ROOT, UNPUBLISHED, files_in, problems

BOOK = ROOT / "book" / "coursework"
SEEDS = (0, 7)


@pytest.fixture(autouse=True)
def in_double_precision():
    """As the notebook asks for; and every test starts without points."""
    torch.set_default_dtype(torch.float64)
    begin(seed=0)
    yield
    torch.set_default_dtype(torch.float32)


def bias(n):
    return torch.tensor([1 / math.log2(1 + j) for j in range(1, n + 1)])


# --- right answers, each by a way of its own: what the wrong ones below depart from ---------


def probability(scores, ranking):
    placed = scores[ranking]
    log_p = torch.zeros(())
    for k in range(len(placed)):
        log_p = log_p + placed[k] - placed[k:].logsumexp(0)
    return log_p.exp()


def expectation(scores, value):
    orders = itertools.permutations(range(len(scores)))
    return sum(probability(scores, torch.tensor(r)) * value(r) for r in orders)


def sampler(scores, samples, generator):
    """From the top, document by document: exponential arrival times."""
    u = torch.rand(samples, len(scores), generator=generator)
    return ((-u.log()).log() - scores).argsort(-1)


def payments(rankings):
    paid = torch.zeros(rankings.shape)
    for row, ranking in zip(paid, rankings, strict=True):
        row[ranking] = bias(len(ranking))
    return paid


def sampled(rankings):
    return payments(rankings).mean(0)


def exact(scores):
    return position_probs_by_subsets(scores) @ bias(len(scores))


def d_ind(exposure, merit, mask=None, *, hinge=torch.relu, pair=lambda a, b: a >= b > 0):
    n = range(len(merit)) if mask is None else torch.nonzero(mask).flatten().tolist()
    pairs = [(i, j) for i in n for j in n if pair(merit[i], merit[j])]
    terms = [hinge(exposure[i] / merit[i] - exposure[j] / merit[j]) for i, j in pairs]
    return sum(terms) / len(pairs) if pairs else torch.zeros(())


def d_group(exposure, merit, groups, mask=None, *, v=torch.mean, m=torch.mean, hinge=torch.relu):
    keep = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    sides = [keep & (groups == k) for k in (0, 1)]
    if any(not side.any() or merit[side].sum() == 0 for side in sides):
        return torch.zeros(())
    ratio = [v(exposure[side]) / m(merit[side]) for side in sides]
    means = [merit[side].mean() for side in sides]
    if means[0] == means[1]:
        return (ratio[0] - ratio[1]).abs()
    high = 0 if means[0] > means[1] else 1
    return hinge(ratio[high] - ratio[1 - high])


def slope(scores, ranking):
    left = torch.ones_like(scores)
    for k in range(len(ranking)):
        left[ranking[k:]] -= scores[ranking[k:]].softmax(0)
    return left


def dcg_gradient(scores, relevance, rankings, *, baseline=torch.mean, gain=lambda r: 2**r - 1):
    values = (gain(relevance)[rankings] * bias(len(scores))).sum(-1)
    values = values - baseline(values)
    slopes = torch.stack([slope(scores, r) for r in rankings])
    return (values[:, None] * slopes).mean(0)


def loop(data, lam, lr, epochs, samples, seed, *, sign=-1.0, scale=1.0, group=fpg.group_disparity):
    order = torch.Generator().manual_seed(2 * seed)
    draws = torch.Generator().manual_seed(2 * seed + 1)
    theta = torch.zeros(data.n_features)
    for _ in range(epochs):
        for q in torch.randperm(len(data), generator=order).tolist():
            x, relevance, groups = data[q]
            s = x @ theta
            rankings = fpg.PlackettLuce(s).sample((samples,), draws)
            paid = payments(rankings)
            v = paid.mean(0).requires_grad_()
            (price,) = torch.autograd.grad(group(v, relevance, groups) + 0 * v.sum(), v)
            gain = 2**relevance - 1
            ideal = (gain.sort(descending=True).values * bias(len(gain))).sum()
            reward = paid @ (gain / ideal + sign * lam * price)
            slopes = torch.stack([slope(s, r) for r in rankings])
            step = ((reward - reward.mean())[:, None] * slopes).mean(0)
            theta = theta + scale * lr * x.T @ step
    return theta


def sweep(data, lams, *, fresh=True, figures=("ndcg", "d_group")):
    rows, scorer = [], None
    for lam in lams:
        if fresh or scorer is None:
            g = torch.Generator().manual_seed(0)
            scorer = fpg.LinearScorer(data.n_features, generator=g)
        fpg.fit(scorer, data, coursework.settings(lam), progress=False)
        result = fpg.evaluate(scorer, data)
        rows.append([getattr(result, name) for name in figures])
    return rows


def moved_share(exposure, merit, groups, mask):
    if mask is not None:
        exposure, merit = exposure * mask, merit * mask
    due = merit / merit.sum(-1, keepdim=True).clamp(min=1e-9)
    return (exposure / exposure.sum(-1, keepdim=True) - due).abs().sum(-1) / 2


RIGHT = {
    "task1a": probability,
    "task1b": expectation,
    "task2": sampler,
    "task3a": sampled,
    "task3b": exact,
    "task4b": d_ind,
    "task4c": d_group,
    "task5": dcg_gradient,
    "task6": loop,
    "task7a": sweep,
    "task8": moved_share,
}


@pytest.mark.parametrize("task", RIGHT)
def test_another_right_answer_gets_all_points(task):
    for seed in SEEDS:
        begin(seed)
        assert check(task, RIGHT[task]) == TASKS[task].points


def test_points_sum_to_a_hundred():
    assert sum(task.points for task in TASKS.values()) == 100


@pytest.mark.parametrize("name", TASKS)
def test_the_chapter_to_read_has_that_heading(name):
    (text,) = (ROOT / "book").glob(f"{TASKS[name].chapter:02}_*.md")
    assert re.search(rf"^##+ {re.escape(TASKS[name].heading)}$", text.read_text(), re.M)


# --- wrong answers ------------------------------------------------------------------------------


def changes_its_input(scores, ranking):
    scores -= scores.max()
    return probability(scores, ranking)


def after_subtracting_the_maximum(scores, ranking):
    w = (scores - scores.max())[ranking].exp()
    return (w / w.flip(0).cumsum(0).flip(0)).prod()


def breaks_at_one(exposure, merit, mask=None):
    if len(merit) == 1:
        raise IndexError("nobody to compare with")
    return d_ind(exposure, merit, mask)


def gumbel(sign, scores, samples, generator, descending=True):
    noise = -torch.log(-torch.log(torch.rand(samples, len(scores), generator=generator)))
    return (scores + sign * noise).argsort(-1, descending=descending)


def with_multinomial(scores, samples, generator):
    p = scores.softmax(-1).expand(samples, -1)
    return torch.multinomial(p, len(scores), generator=generator)


def per_list(data, lam, lr, epochs, samples, seed):
    """The disparity of each list as a negative reward: chapter 7, first section."""

    def reward(rankings, relevance, mask=None):
        paid = fpg.ranking_exposure(rankings, bias(rankings.shape[-1]))
        shape = (len(rankings), *relevance.shape)
        groups = next(q.groups for q in data if torch.equal(q.relevance, relevance[0]))
        d = fpg.group_disparity(paid, relevance.expand(shape), groups.expand(shape))
        return fpg.ndcg(rankings, relevance) - lam * d

    scorer = fpg.LinearScorer(data.n_features, init=0.0)
    config = fpg.TrainConfig(
        utility=reward, optimizer="sgd", lr=lr, epochs=epochs, samples=samples, seed=seed
    )
    fpg.fit(scorer, data, config, progress=False)
    return scorer.linear.weight[0].detach()


HALF = "not at the edges"
# (task, a wrong answer as a student writes it, words that the message must hold)
WRONG = {
    "1a log": ("task1a", lambda s, r: probability(s, r).log(), "logarithm"),
    "1a positions": ("task1a", lambda s, r: probability(s, r.argsort()), "holds documents"),
    "1a prefix sums": (
        "task1a",
        lambda s, r: (s[r].exp() / s[r].exp().cumsum(0)).prod(),
        "those that are left",
    ),
    "1a with replacement": ("task1a", lambda s, r: s.softmax(0)[r].prod(), "cannot be drawn again"),
    "1a overflow": (
        "task1a",
        lambda s, r: (s[r].exp() / s[r].exp().flip(0).cumsum(0).flip(0)).prod(),
        "exp(800) overflows",
    ),
    "1a underflow": (
        "task1a",
        lambda s, r: after_subtracting_the_maximum(s, r),
        "exp(-801) underflows to 0",
    ),
    "1a in place": ("task1a", changes_its_input, "in place"),
    "1a shape": ("task1a", lambda s, r: probability(s, r).expand(1), "shape (1,)"),
    "1b unweighted": (
        "task1b",
        lambda s, value: (
            sum(value(r) for r in itertools.permutations(range(len(s)))) / math.factorial(len(s))
        ),
        "weighs each by its probability",
    ),
    "2 ascending": (
        "task2",
        lambda s, n, g: gumbel(1, s, n, g, descending=False),
        "descending",
    ),
    "2 sign of the noise": ("task2", lambda s, n, g: gumbel(-1, s, n, g), "wrong sign"),
    "2 positions": ("task2", lambda s, n, g: gumbel(1, s, n, g).argsort(-1), "one argsort"),
    "2 uniform noise": (
        "task2",
        lambda s, n, g: (s + torch.rand(n, len(s), generator=g)).argsort(-1, descending=True),
        "is the noise Gumbel?",
    ),
    "2 scores ignored": ("task2", lambda s, n, g: gumbel(1, 0 * s, n, g), "no effect"),
    "2 no noise": (
        "task2",
        lambda s, n, g: s.argsort(descending=True).expand(n, -1),
        "its own noise",
    ),
    "2 own generator": ("task2", lambda s, n, g: gumbel(1, s, n, None), "hand `generator` on"),
    "2 not rankings": ("task2", lambda s, n, g: s + torch.rand(n, len(s)), "every document once"),
    "2 shape": ("task2", lambda s, n, g: gumbel(1, s, n, g).T, "samples first"),
    "2 underflow": ("task2", with_multinomial, HALF),
    "3a natural log": (
        "task3a",
        lambda r: sampled(r) / math.log(2),
        "natural logarithm",
    ),
    "3a a factor": ("task3a", lambda r: sampled(r) * math.log(2), ".6931 times the right one"),
    "3a always 0": ("task3a", lambda r: 0 * sampled(r), "Your answer is always 0."),
    "3a indices": ("task3a", lambda r: bias(r.shape[1])[r].mean(0), "as if they were positions"),
    "3a sum": ("task3a", lambda r: payments(r).sum(0), "sum over the samples"),
    "3a no mean": ("task3a", payments, "the mean over them"),
    "3b natural log": ("task3b", lambda s: exact(s) / math.log(2), "natural logarithm"),
    "3b most probable": (
        "task3b",
        lambda s: payments(s.argsort(descending=True)[None])[0],
        "is a lottery",
    ),
    "3b not conserved": ("task3b", lambda s: s.softmax(0) * bias(len(s)).sum() / 2, "goes to some"),
    "4b two-sided": ("task4b", lambda *x: d_ind(*x, hinge=torch.abs), "one-sided"),
    "4b reversed": ("task4b", lambda *x: d_ind(*x, hinge=lambda y: (-y).relu()), "reversed"),
    "4b no hinge": ("task4b", lambda *x: d_ind(*x, hinge=lambda y: y), "max(0, ...) is missing"),
    "4b strict": ("task4b", lambda *x: d_ind(*x, pair=lambda a, b: a > b > 0), "M_i >= M_j"),
    "4b no mask": ("task4b", lambda v, m, mask=None: d_ind(v, m), "mask has no effect"),
    "4b no merit bar": (
        "task4b",
        lambda v, m, mask=None: d_ind(v, m, mask, pair=lambda a, b: a >= b),
        "M_j > 0",
    ),
    "4b breaks": ("task4b", breaks_at_one, "IndexError: nobody to compare with"),
    "4c G factor": ("task4c", lambda *x: d_group(*x, v=torch.sum), "|G|"),
    "4c reversed": ("task4c", lambda *x: d_group(*x, hinge=lambda y: (-y).relu()), "reversed"),
    "4c two-sided": ("task4c", lambda *x: d_group(*x, hinge=torch.abs), "one-sided"),
    "4c merit ignored": ("task4c", lambda *x: d_group(*x, m=lambda m: 1.0), "divided by merit"),
    "4c no mask": ("task4c", lambda v, m, g, mask=None: d_group(v, m, g), "mask has no effect"),
    "5 summed": ("task5", lambda s, rel, r: len(r) * dcg_gradient(s, rel, r), "averages it"),
    "5 no baseline": (
        "task5",
        lambda *x: dcg_gradient(*x, baseline=lambda values: 0.0),
        "no baseline",
    ),
    "5 leave-one-out": (
        "task5",
        lambda s, rel, r: dcg_gradient(s, rel, r) * len(r) / (len(r) - 1),
        "leave-one-out",
    ),
    "5 reversed": ("task5", lambda *x: -dcg_gradient(*x), "sign is reversed"),
    "5 natural log": ("task5", lambda *x: dcg_gradient(*x) / math.log(2), "natural logarithm"),
    "5 linear gain": ("task5", lambda *x: dcg_gradient(*x, gain=lambda r: r), "2**rel - 1"),
    "5 factor": ("task5", lambda *x: 3 * dcg_gradient(*x), "3 times the right one"),
    "6 plus": ("task6", lambda *x: loop(*x, sign=1.0), "with a minus"),
    "6 lam ignored": ("task6", lambda *x: loop(*x, sign=0.0), "lam has no effect"),
    "6 downhill": ("task6", lambda *x: loop(*x, scale=-1.0), "run downhill"),
    "6 summed": ("task6", lambda *x: loop(*x, scale=8.0), "averages it"),
    "6 G factor": ("task6", lambda *x: loop(*x, group=lambda *y: d_group(*y, v=torch.sum)), "|G|"),
    "6 per list": ("task6", per_list, "look at the disparity"),
    "7a carried on": ("task7a", lambda *x: sweep(*x, fresh=False), "Make a new scorer"),
    "7a swapped": ("task7a", lambda *x: sweep(*x, figures=("d_group", "ndcg")), "swapped"),
    "8 copied": ("task8", lambda v, m, g, k: fpg.group_disparity(v, m, g, k), "D_group up to"),
    "8 scaled copy": ("task8", lambda v, m, g, k: 7 * fpg.individual_disparity(v, m, k), "D_ind"),
    "8 one number": ("task8", lambda *x: moved_share(*x).sum(), "one value per query"),
    "8 negative": ("task8", lambda *x: -moved_share(*x), "negative"),
    "8 not zero": ("task8", lambda *x: moved_share(*x) + 0.1, "must be 0"),
    "8 always zero": ("task8", lambda v, m, g, k: 0 * v.sum(-1), "your disparity is 0"),
    "8 no gradient": ("task8", lambda *x: moved_share(*x).detach(), "No gradient"),
    "8 order": (
        "task8",
        lambda v, m, g, k: moved_share(v, m, g, k) * v[..., 0] / m[..., 0],
        "another order",
    ),
    "8 no mask": ("task8", lambda v, m, g, k: moved_share(v, m, g, None), "mask has no effect"),
}


def caught(task, answer, words, capsys):
    """The answer loses points, and the message says why and where to look."""
    capsys.readouterr()
    points = check(task, answer)
    printed = " ".join(capsys.readouterr().out.split())
    assert points < TASKS[task].points, "full marks for a wrong answer"
    assert words in printed
    assert f"To read: chapter {TASKS[task].chapter}," in printed
    return printed


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_gets_its_message(name, capsys):
    printed = caught(*WRONG[name], capsys)
    inputless = ("own generator", "copied", "scaled copy", "not rankings")
    if not name.endswith(inputless) and not name.startswith("2 own"):
        assert "Shown by" in printed


@pytest.mark.parametrize("name", ["1a overflow", "1a underflow"])
def test_numerical_faults_are_sent_to_the_section_on_numerics(name, capsys):
    printed = caught(*WRONG[name], capsys)
    assert 'chapter 3, "Where a computer gets it wrong"' in printed
    assert HALF in printed
    assert ("underflow" in printed) == ("overflow" not in printed)


@pytest.mark.parametrize("seed", [8, 11, 13, 15, 29, 57])
def test_no_seed_hides_a_slip(seed, capsys):
    """Seeds with which an early checker gave full marks for a wrong answer."""
    names = ["4b no mask", "4c no mask", "4b no merit bar", "4c G factor"]
    if seed in (8, 11, 13):
        names += ["6 plus", "6 lam ignored", "6 G factor"]
    for name in names:
        begin(seed)
        caught(*WRONG[name], capsys)


@pytest.mark.parametrize("name", WRONG)
def test_a_checker_that_passes_everything_turns_the_test_red(name, capsys, monkeypatch):
    task, answer, words = WRONG[name]
    lenient = dataclasses.replace(TASKS[task], examine=lambda answers, g: Finding(1.0))
    monkeypatch.setitem(TASKS, task, lenient)
    with pytest.raises(AssertionError, match="full marks"):
        caught(task, answer, words, capsys)


@pytest.mark.parametrize(
    "name", ["1a log", "3a indices", "4b two-sided", "4c G factor", "5 summed"]
)
def test_a_comparison_that_is_always_true_turns_the_test_red(name, capsys, monkeypatch):
    monkeypatch.setattr(examine, "same", lambda *arguments: True)
    with pytest.raises(AssertionError, match="full marks"):
        caught(*WRONG[name], capsys)


def module_slips():
    """Every slip that the checker knows, for the tasks that are quick to examine."""
    from checker import disparities, learning, policies

    tables = {
        "task1a": policies.PROBABILITY_SLIPS,
        "task1b": policies.EXPECTATION_SLIPS,
        "task3a": policies.SAMPLED_SLIPS,
        "task3b": policies.EXACT_SLIPS,
        "task4b": disparities.IND_SLIPS,
        "task4c": disparities.GROUP_SLIPS,
        "task5": learning.GRADIENT_SLIPS,
    }
    return [(task, slip) for task, slips in tables.items() for slip in slips]


@pytest.mark.parametrize(("task", "slip"), module_slips(), ids=lambda x: getattr(x, "says", x)[:30])
def test_no_slip_is_taken_for_another(task, slip, capsys):
    for seed in SEEDS:
        begin(seed)
        caught(task, slip.answer, " ".join(slip.says.split()), capsys)


@given(
    task=st.sampled_from(["task1a", "task3a", "task3b", "task4b", "task4c", "task5"]),
    scale=st.floats(-2, 2).filter(lambda x: abs(x) > 1e-3),
    kind=st.sampled_from(["added", "multiplied", "noise", "constant"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_no_random_wrong_function_gets_full_marks(task, scale, kind, seed):
    begin(seed)
    g = torch.Generator().manual_seed(seed)

    def wrong(*inputs):
        right = RIGHT[task](*inputs)
        return {
            "added": right + scale,
            "multiplied": right * (1 + scale),
            "noise": right + scale * torch.randn(right.shape, generator=g),
            "constant": torch.full(right.shape, scale),
        }[kind]

    assert check(task, wrong) < TASKS[task].points


# --- answers that are none ------------------------------------------------------------------------


def blank(*inputs):
    raise NotImplementedError("not answered yet")


def bare_blank(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize("task", [name for name in TASKS if TASKS[name].answers == 1])
@pytest.mark.parametrize("answer", [blank, bare_blank, lambda *x: ..., ...])
def test_a_blank_is_said_to_be_one(task, answer, capsys):
    assert check(task, answer) == 0
    out = capsys.readouterr().out
    assert out.startswith(task)
    assert "not answered yet" in out
    assert len(out.splitlines()) == 1


def test_a_blank_for_numbers(capsys):
    assert check("task4a", ..., ...) == check("task7b", ..., ...) == 0
    assert capsys.readouterr().out.count("not answered yet") == 2


def no_return(scores, ranking):
    probability(scores, ranking)


def unheard_of(scores, ranking):
    raise NotImplementedError('"argsort" not implemented for this type')


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (no_return, "is the `return` missing?"),
        (unheard_of, 'stops with NotImplementedError: "argsort"'),
        (lambda s, r: s[99], "stops with IndexError"),
        (lambda s: s, "stops with TypeError"),
        (lambda s, r: "0.5", "Returned a str"),
        (0.5, "Give its name without parentheses"),
    ],
)
def test_what_is_no_answer(answer, words, capsys):
    assert check("task1a", answer) == 0
    assert words in " ".join(capsys.readouterr().out.split())


def test_an_exception_is_shown_with_its_line_and_input(capsys):
    def divides(scores, ranking):
        return 1 / (len(ranking) - 3)

    check("task1a", divides)
    out = " ".join(capsys.readouterr().out.split())
    assert "ZeroDivisionError" in out
    assert "`return 1 / (len(ranking) - 3)`" in out
    assert "ranking = [1, 2, 0]" in out


def test_a_misused_checker_says_how_to_use_it():
    with pytest.raises(ValueError, match=r"no task 'task9'.*task1a"):
        check("task9", probability)
    with pytest.raises(ValueError, match="task4a takes 2"):
        check("task4a", 0.5)


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3, 2026])
def test_by_hand(seed, capsys):
    begin(seed)
    three = coursework.three_documents()
    right = float(d_ind(*three[:2])), float(d_group(*three))
    assert check("task4a", *(round(x, 3) for x in right)) == 6
    assert check("task4a", right[0], right[1] + 0.1) == 3
    assert check("task4a", float(three[0].sum()), 2.0) == 0
    capsys.readouterr()
    assert check("task4a", right[0], float(d_group(*three, v=torch.sum))) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "D_group: A factor |G| is left in" in out
    assert f"{right[1]:.3f}" not in out  # what is wrong, never what is right
    assert 'To read: chapter 5, "Group disparity".' in out
    check("task4a", right[0] + 0.1, right[1])
    assert '"Individual disparity".' in capsys.readouterr().out
    check("task4a", 9.0, 9.0)
    out = " ".join(capsys.readouterr().out.split())
    assert '"Individual disparity" and "Group disparity".' in out


def test_the_seed_changes_the_documents_and_the_data():
    first, three = begin(1), coursework.three_documents()
    second, others = begin(2), coursework.three_documents()
    assert not torch.equal(first.features, second.features)
    assert any(not torch.equal(a, b) for a, b in zip(three, others, strict=True))


def test_reading_the_curve(capsys):
    data = begin(3)
    rows = sweep(data, coursework.LAMBDAS)
    place = next(k for k, row in enumerate(rows) if row[1] <= rows[0][1] / 2)
    lam, cost = coursework.LAMBDAS[place], rows[0][0] - rows[place][0]
    assert check("task7b", lam, round(cost, 3)) == 5
    for answers, points, words in (
        ((coursework.LAMBDAS[place - 1], cost), 2, "still"),
        ((coursework.LAMBDAS[-1], cost), 2, "a smaller one does too"),
        ((11, cost), 2, "none of the lambdas"),
        ((lam, -cost), 2, "sign is reversed"),
        ((lam, 100 * cost), 2, "per cent"),
        ((0.0, 0.5), 0, "too much"),
        (([1, 2], cost), 0, "plain numbers"),
    ):
        capsys.readouterr()
        assert check("task7b", *answers) == points
        assert words in " ".join(capsys.readouterr().out.split())


def test_the_score_adds_up_and_begins_anew(capsys):
    check("task1a", probability)
    check("task3a", sampled)
    assert score() == 14
    check("task3a", payments)
    assert score() == 8
    begin(seed=0)
    capsys.readouterr()
    assert score() == 0
    out = capsys.readouterr().out
    assert "total" in out
    assert out.count(" - of") == len(TASKS)


def test_the_checker_needs_torch_and_numpy_only():
    code = (
        "import sys; import checker; "
        "print(*[m for m in ('matplotlib', 'scipy', 'sklearn', 'lightgbm', 'joblib', 'ipywidgets')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# --- the notebooks -----------------------------------------------------------------------------


def cells(name):
    return jupytext.read(BOOK / f"{name}.md").cells


def sources(name, kind="code"):
    return [cell.source for cell in cells(name) if cell.cell_type == kind]


def test_the_assignment_is_what_the_solution_makes():
    text = tool.assignment_text((BOOK / "solution.md").read_text())
    assert (BOOK / "assignment.md").read_text() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Eight tasks", "Nine tasks"),
        ("scores.softmax(-1)", "scores.exp()"),
        ("SEED = 2026", "SEED = 1"),
    ],
)
def test_drift_between_the_two_is_seen(old, new):
    source = (BOOK / "solution.md").read_text()
    assert old in source
    assert tool.assignment_text(source.replace(old, new)) != (BOOK / "assignment.md").read_text()


def test_nothing_of_the_solution_is_left_in_the_assignment():
    regions = [m[2] for s in sources("solution") for m in tool.REGION.finditer(s)]
    assert len(regions) == len(TASKS)
    lines = {line.strip() for region in regions for line in region.splitlines()}
    lines = {x for x in lines if len(x) > 16}
    assert len(lines) > 60
    code = "\n".join(sources("assignment"))
    assert not [x for x in lines if x in code]
    given_away = (BOOK / "assignment.md").read_text() + (BOOK / "assignment.ipynb").read_text()
    hidden = [
        c for c in cells("solution") if {"solution", "answer"} & set(c.metadata.get("tags", []))
    ]
    assert len(hidden) >= 8
    for cell in hidden:
        assert not [x for x in cell.source.splitlines() if len(x) > 20 and x in given_away]
    assert "Marking notes" not in given_away
    assert given_away.count(tool.LINE) >= 3


@pytest.mark.parametrize(
    "source",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### END SOLUTION\n### BEGIN SOLUTION",
    ],
)
def test_unmatched_markers_are_refused(source):
    with pytest.raises(ValueError, match="do not match"):
        tool.blank(source)


def test_a_blank_stands_where_the_solution_stood():
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n\n\ny = ...\n"
    made = tool.blank(source + "### BEGIN SOLUTION\ny = 2\n### END SOLUTION")
    names = {}
    exec(made, names)
    assert names["y"] is ...
    with pytest.raises(NotImplementedError, match="not answered yet"):
        names["f"](1)


def test_the_notebooks_use_nothing_but_the_module():
    allowed = {"math", "itertools", "torch", "fairpg_lite", "checker", "matplotlib"}
    for name in ("assignment", "solution"):
        for source in sources(name):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import):
                    found = {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found = {node.module.split(".")[0]}
                else:
                    continue
                assert found <= allowed


def test_the_points_in_the_text_are_the_checker_s():
    text = (BOOK / "assignment.md").read_text()
    for name, task in TASKS.items():
        label = name.removeprefix("task")
        if label[-1].isalpha():
            assert f"**{label} ({task.points} points).**" in text
        else:
            assert re.search(rf"^## Task {label}: .* \({task.points} points\)$", text, re.M)
    for number, points in re.findall(r"^## Task (\d): .* \((\d+) points\)$", text, re.M):
        parts = [task.points for name, task in TASKS.items() if name[4] == number]
        assert sum(parts) == int(points)


def test_the_assignment_is_a_page_and_the_solution_is_not():
    listed = files_in(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    assert "book/coursework/assignment" in listed
    assert not listed & UNPUBLISHED


def test_a_published_solution_is_caught(tmp_path):
    toc = (ROOT / "_toc.yml").read_text().replace("coursework/assignment", "coursework/solution")
    (tmp_path / "_toc.yml").write_text(toc)
    (tmp_path / "book" / "coursework").mkdir(parents=True)
    for name in ("solution.md", "solution.ipynb"):
        (tmp_path / "book" / "coursework" / name).write_text((BOOK / name).read_text())
    found = problems(tmp_path / "book" / "coursework" / "solution.md", tmp_path)
    assert any("must stay out of _toc.yml" in problem for problem in found)


def test_an_untouched_assignment_runs_through_with_no_points():
    notebook = nbformat.read(BOOK / "assignment.ipynb", as_version=4)
    resources = {"metadata": {"path": str(BOOK)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    printed = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    )
    for name in TASKS:
        assert re.search(rf"^{name} .*: not answered yet", printed, re.M)
    assert re.search(r"total +0 of 100", printed)


def filled():
    """The assignment's code with each blank answered from the solution."""
    answers = iter([m[0] for s in sources("solution") for m in tool.REGION.finditer(s)])
    hole = re.compile(rf"^[ ]*{tool.COMMENT}(\n[ ]*{re.escape(tool.STUB)})?$", re.M)
    made = [hole.sub(lambda _: next(answers), source) for source in sources("assignment")]
    assert next(answers, None) is None
    return made


@pytest.mark.parametrize("seed", [2026, 5])
def test_the_assignment_filled_with_the_solution_gets_a_hundred_points(seed, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", plt.close)
    names = {}
    for source in filled():
        exec(source.replace("SEED = 2026", f"SEED = {seed}"), names)
    assert names["total"] == 100
