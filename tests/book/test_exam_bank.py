"""The numbers in the answers of the exam bank come out."""

import itertools
import math
import re

import pytest
import torch
from scipy import stats

import fairpg_lite as fpg
from tools.check_chapters import ROOT

TEXT = (ROOT / "book" / "exam_bank.md").read_text()
QUESTION = re.compile(
    r"^\*\*Question \d+\.\*\* (.+?)\n\n:::\{admonition\} Answer [^\n]*\n"
    r":class: dropdown\n(.+?)\n:::$",
    re.M | re.S,
)
ANSWERS = dict(QUESTION.findall(TEXT))
V = [1 / math.log2(1 + j) for j in range(1, 11)]


def three(x):
    return f"{x:.3f}".removeprefix("0")


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def answer(words):
    """The answer to the one question that holds these words."""
    (found,) = [said for question, said in ANSWERS.items() if words in question]
    return found


def coin():
    return float(fpg.individual_disparity(tensor(V[0], V[1]), tensor(1, 1)))


def pairs(merits):
    return sum(a >= b > 0 for a, b in itertools.product(merits, merits))


men, women = sum(V[:5]) / 5, sum(V[5:]) / 5
ten = fpg.group_disparity(
    tensor(*V), tensor(*[0.89] * 5, *[0.88] * 5), torch.tensor([0] * 5 + [1] * 5)
)
small = fpg.group_disparity(tensor(1, V[1], 0.5), tensor(1, 1, 0.9), torch.tensor([0, 0, 1]))
race = fpg.PlackettLuce(tensor(math.log(3), 0)).exposure()
third = fpg.PlackettLuce(tensor(0, 0, math.log(2)))
relevance = tensor(3, 0, 1)


# The first document stands at position 1 with probability .2, else at position 3.
propensity = float(
    fpg.DoublyStochastic(tensor([0.2, 0.0, 0.8], [0.8, 0.2, 0.0], [0.0, 0.8, 0.2])).exposure()[0]
)
merits = tensor(3, 2, 1)
groups_of_three = fpg.group_disparity(tensor(0.5, 0.3, 0.4) * merits, merits, torch.arange(3))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("first three positions", [three(V[1]), three(V[2])]),
        (
            "Five men",
            [three(men), three(women), f"{women / men:.0%}".replace("%", " %"), three(ten)],
        ),
        ("no single list fair", [three(V[1]), three((1 + V[1]) / 2 - 5e-4)]),
        ("relevance 3, 0 and 1", [three(fpg.ndcg(torch.arange(3), relevance)), three(7 + V[1])]),
        ("list third, first", [r"\frac14"]),
        ("scores $\\ln 3$ and 0", [three(race[0]), three(race[1])]),
        ("three documents sum to", [three(sum(V[:3]))]),
        ("pairs does $H$ have", ["Seven"]),
        ("of merit 1 have the exposures", [three(coin())]),
        ("Group 0 has two", [three(small)]),
        ("A fair coin puts", [three(coin())]),
        ("uniform on $(0, 3)$", [f"{100 / 18:.1f} %", f"{200 / 9:.1f} %"]),
        ("score is $\\ln 4$ higher", [three((4 + V[1]) / 5)]),
        ("of merit 1.2 and 1", [three((1 / 1.2 - V[1]) / 3)]),
        ("In 45 of 100", [three(0.55 * 0.08)]),
        ("Over 25 seeds", [three(1.96 * 0.05 / 5), three(2.0639 * 0.05 / 5)]),
        ("0, 0 and $\\ln 2$. How probable", ["1/2"]),
        ("differ by $\\ln 3$", ["3/4"]),
        ("uniform on $(0, 3)$", ["1/18", "2/9"]),
        ("varies from list to list", [f"{(0.06 / 0.004) ** 2:.0f}"]),
        ("An old policy put", [three(propensity), three(18 / 400 / propensity), three(18 / 400)]),
        ("30 cells of 20 s", [f"{math.ceil(30 / 8) * 20} s", f"{math.ceil(30 / 3)} workers"]),
        ("Three groups have", [three(groups_of_three)]),
    ],
)
def test_the_numbers_of_an_answer_come_out(words, said):
    for number in said:
        assert number in answer(words)


def test_the_other_facts():
    assert pairs([2, 2, 1]) == 7
    assert float(third.log_prob(torch.tensor([2, 0, 1])).exp()) == pytest.approx(1 / 4)
    assert float(fpg.individual_disparity(tensor(V[1], V[0]), tensor(2, 1))) == 0
    assert float(third.position_probs()[2, 0]) == pytest.approx(1 / 2)
    above = fpg.PlackettLuce(tensor(math.log(3), 0)).position_probs()[0, 0]
    assert float(above) == pytest.approx(3 / 4)
    bounds = (0.004, 0.007, 0.013, 0.009)
    certified = list(itertools.takewhile(lambda bound: bound <= 0.010, bounds))
    assert answer("each at level .1").startswith(f"The first {len(certified)}.")
    assert stats.t.ppf(0.975, 24) == pytest.approx(2.0639, abs=1e-4)
    assert math.ceil(30 / 9) == math.ceil(30 / 8) > math.ceil(30 / 10)
    assert math.factorial(20) > 2e18
    s = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(fpg.PlackettLuce(s).log_prob(torch.arange(2)), s)
    assert slope.tolist() == [0.5, -0.5]
    both = fpg.PlackettLuce(torch.zeros(2, dtype=torch.float64)).exposure()
    assert float(fpg.individual_disparity(both, tensor(1, 1))) < 1e-9
