"""The private exam: its answers come out by the module, and no two variants are alike."""

import itertools
import math

import pytest
import torch
from scipy import stats

import fairpg_lite as fpg
from tools import make_exam
from tools.make_exam import TEMPLATES, Draw, exam

SEEDS = range(40)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def facts(template, seed):
    return template(Draw(str(seed))).facts


def by_module(name, drawn):
    """What the package says, beside what the answer says: pairs of numbers."""
    scores = {
        "exposure_of_two": lambda d: tensor([math.log(d["odds"]), 0.0]),
        "probability_of_a_list": lambda d: tensor([math.log(w) for w in d["weights"]]),
        "policy_or_its_mode": lambda d: tensor([math.log(d["odds"]), 0.0]),
    }
    policy = fpg.PlackettLuce(scores[name](drawn)) if name in scores else None
    if name == "two_groups_in_blocks":
        n = drawn["size"]
        v = fpg.position_bias(2 * n, dtype=torch.float64)
        merit = tensor([drawn["merit"]] * n + [drawn["less"]] * n)
        groups = torch.tensor([0] * n + [1] * n)
        low = tensor([drawn["merit"]] * n + [0.01] * n)
        assert float(fpg.group_disparity(v, low, groups)) == 0
        return [(fpg.group_disparity(v, merit, groups), drawn["disparity"])]
    if name == "ndcg_of_a_list":
        return [(fpg.ndcg(torch.arange(3), tensor(drawn["grades"])), drawn["ndcg"])]
    if name == "probability_of_a_list":
        return [(policy.log_prob(torch.tensor(drawn["order"])).exp(), drawn["probability"])]
    if name == "exposure_of_two":
        return list(zip(policy.exposure(), (drawn["high"], drawn["low"]), strict=True))
    if name == "individual_by_hand":
        value = fpg.individual_disparity(tensor(drawn["exposures"]), tensor(drawn["merits"]))
        return [(value, drawn["d_ind"])]
    if name == "group_by_hand":
        groups = torch.tensor([0, 0, 1])
        v, m = tensor(drawn["exposures"]), tensor(drawn["merits"])
        return [(fpg.group_disparity(v, m, groups), drawn["d_group"])]
    if name == "lottery_and_list":
        merit = tensor([drawn["merit"]] * 2)
        v = fpg.position_bias(2, dtype=torch.float64)
        return [(fpg.individual_disparity(v, merit), drawn["of_list"])]
    if name == "policy_or_its_mode":
        v = policy.exposure()
        return [(fpg.expected_ndcg(v, tensor(drawn["grades"])), drawn["expected"])]
    if name == "fairness_of_a_lottery":
        merit = tensor(drawn["merits"])
        v = fpg.position_bias(2, dtype=torch.float64)
        uniform = v.mean().expand(2)
        assert float(fpg.individual_disparity(uniform, merit)) == 0
        return [(fpg.individual_disparity(v, merit), drawn["sorted"])]
    if name == "several_groups":
        m = tensor(drawn["merits"])
        value = fpg.group_disparity(tensor(drawn["ratios"]) * m, m, torch.arange(3))
        return [(value, drawn["disparity"])]
    return []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.__name__)
def test_the_answers_come_out(template):
    for seed in SEEDS:
        drawn = facts(template, seed)
        for value, said in by_module(template.__name__, drawn):
            assert float(value) == pytest.approx(said, abs=1e-9)


def advantages(drawn):
    values = drawn["values"]
    for k, value in enumerate(values):
        others = [x for j, x in enumerate(values) if j != k]
        yield value - sum(others) / 2, drawn["alone"][k]
        yield value - sum(values) / 3, drawn["centred"][k]


def hidden_feature(drawn):
    scorer = fpg.LinearScorer(2, dtype=torch.float64)
    with torch.no_grad():
        next(scorer.parameters()).copy_(tensor([1.0, drawn["weight"]]).reshape(1, -1))
    documents = tensor([[drawn["first"], drawn["second"]], [drawn["first"], 0.0]])
    yield from zip(scorer(documents).tolist(), drawn["scores"], strict=True)


def undefined_queries(drawn):
    values = [0.0] * drawn["without"] + [drawn["mean"]] * (100 - drawn["without"])
    yield sum(values) / len(values), drawn["reported"]


def interval_and_verdict(drawn):
    error = drawn["deviation"] / math.sqrt(drawn["seeds"])
    _, high = stats.norm.interval(0.95, drawn["mean"], error)
    yield high - drawn["mean"], pytest.approx(drawn["half"], rel=1e-3)
    assert abs(drawn["mean"] - drawn["half"]) > 1e-4  # four decimals show on which side 0 lies


def certified_on_a_path(drawn):
    kept = itertools.takewhile(lambda bound: bound <= drawn["delta"], drawn["bounds"])
    yield len(list(kept)), drawn["certified"]


def users_for_an_error(drawn):
    yield drawn["deviation"] / math.sqrt(drawn["users"]), drawn["error"]


def weighted_clicks(drawn):
    p = drawn["first"]
    rows = tensor([[p, 0.0, 1 - p], [1 - p, p, 0.0], [0.0, 1 - p, p]])
    propensity = float(fpg.DoublyStochastic(rows).exposure()[0])
    yield drawn["relevance"] * propensity * drawn["lists"], drawn["clicks"]


def error_of_a_gradient(drawn):
    yield math.sqrt(drawn["lists"] / 10), drawn["factor"]


def cells_and_workers(drawn):
    """Each cell to whichever worker is free first."""
    free = [0.0] * drawn["workers"]
    for _ in range(drawn["cells"]):
        free[free.index(min(free))] += drawn["each"]
    yield max(free), drawn["seconds"]
    for more in range(1, drawn["more"] + 1):
        rounds = math.ceil(drawn["cells"] / (drawn["workers"] + more))
        faster = rounds * drawn["each"] < drawn["seconds"]
        assert faster == (more == drawn["more"])


BY_HAND = (
    advantages,
    hidden_feature,
    undefined_queries,
    interval_and_verdict,
    certified_on_a_path,
    users_for_an_error,
    weighted_clicks,
    error_of_a_gradient,
    cells_and_workers,
)


@pytest.mark.parametrize("by_hand", BY_HAND, ids=lambda check: check.__name__)
def test_the_other_answers(by_hand):
    for seed in SEEDS:
        for value, said in by_hand(facts(getattr(make_exam, by_hand.__name__), seed)):
            assert value == pytest.approx(said) if isinstance(said, int | float) else value == said


def test_every_template_has_a_second_way():
    """A question whose answer nobody recomputes would go unnoticed."""
    by_hand = {check.__name__ for check in BY_HAND}
    for template in TEMPLATES:
        drawn = facts(template, 0)
        assert template.__name__ in by_hand or by_module(template.__name__, drawn)


def test_the_same_seed_gives_the_same_exam_and_another_one_other_numbers():
    assert exam(7, "A") == exam(7, "A")
    for other in (exam(7, "B"), exam(8, "A")):
        differ = sum(a.facts != b.facts for a, b in zip(exam(7, "A"), other, strict=True))
        assert differ > len(TEMPLATES) / 2


def test_every_chapter_has_a_question():
    from tools.check_chapters import ROOT

    numbers = {int(path.name[:2]) for path in (ROOT / "book").glob("[01][0-9]_*.md")}
    assert {question.chapter for question in exam(0, "A")} == numbers


def test_the_command_writes_questions_without_answers_and_answers_with_questions(tmp_path, capsys):
    assert make_exam.main(["--seed", "x", "--out", str(tmp_path)]) == 0
    paper = (tmp_path / "exam_A.md").read_text()
    sheet = (tmp_path / "answers_A.md").read_text()
    for question in exam("x", "A"):
        assert question.text in paper
        assert question.answer not in paper
        assert question.answer in sheet
    with pytest.raises(SystemExit):
        make_exam.main(["--seed", "x", "--chapters", "77", "--out", str(tmp_path)])
    assert "no question on chapter 77" in capsys.readouterr().err
