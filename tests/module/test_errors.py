"""Bad input gets an error that names the argument and its shape or value."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import fairpg_lite as fl
from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce, _check
from fairpg_lite.relevance import merit_of

OK = torch.tensor([0.1, 0.2, 0.3])
NAN, INF = float("nan"), float("inf")


def policy():
    return PlackettLuce(OK)


CASES = {
    "nan score": (lambda: PlackettLuce(torch.tensor([0.0, NAN])), ValueError, r"scores\[1\] is nan"),
    "inf score": (lambda: PlackettLuce(torch.tensor([[INF, 0.0]])), ValueError, r"scores\[0, 0\] is inf"),
    "list": (lambda: PlackettLuce([0.1, 0.2]), TypeError, "scores is a list"),
    "integers": (lambda: PlackettLuce(torch.tensor([1, 2])), TypeError, "torch.int64.*double"),
    "no axis": (lambda: PlackettLuce(torch.tensor(1.0)), ValueError, r"shape \(\)"),
    "no document": (lambda: PlackettLuce(torch.zeros(2, 0)), ValueError, r"shape \(2, 0\)"),
    "float mask": (lambda: PlackettLuce(OK, torch.ones(3)), TypeError, "mask is torch.float32"),
    "mask shape": (lambda: PlackettLuce(OK, torch.ones(2, dtype=bool)), ValueError, r"mask has shape \(2,\)"),
    "all masked": (lambda: PlackettLuce(torch.zeros(2, 3), torch.tensor([[True] * 3, [False] * 3])), ValueError, r"mask\[1\] is False everywhere"),
    "not a permutation": (lambda: policy().log_prob(torch.tensor([0, 0, 2])), ValueError, r"\[0, 0, 2\] is not a permutation"),
    "ranking dtype": (lambda: policy().log_prob(torch.tensor([0.0, 1.0, 2.0])), TypeError, "rankings is torch.float32"),
    "ranking length": (lambda: policy().log_prob(torch.tensor([0, 1])), ValueError, r"shape \(2,\)"),
    "padding first": (lambda: PlackettLuce(OK, torch.tensor([True, False, True])).log_prob(torch.tensor([1, 0, 2])), ValueError, "padding before a real document"),
    "values shape": (lambda: policy().expect(torch.zeros(5), policy().sample((4,))), ValueError, r"values has shape \(5,\)"),
    "baseline name": (lambda: policy().expect(torch.zeros(4), policy().sample((4,)), "median"), ValueError, "'median'"),
    "one sample": (lambda: policy().sampled_exposure(samples=1), ValueError, r"1 sample\(s\).*baseline=None"),
    "bias length": (lambda: policy().exposure(torch.ones(2)), ValueError, r"position_bias has shape \(2,\)"),
    "negative bias": (lambda: policy().exposure(torch.tensor([1.0, -1.0, 0.0])), ValueError, r"position_bias\[1\] is -1"),
    "tolerance": (lambda: policy().exposure(tolerance=0.0), ValueError, "tolerance is 0.0"),
    "bias kind": (lambda: fl.position_bias(3, "cubic"), ValueError, "'cubic'"),
    "bias n": (lambda: fl.position_bias(0), ValueError, "n is 0"),
    "bias k": (lambda: fl.position_bias(3, k=0), ValueError, "k is 0"),
    "bias decay": (lambda: fl.position_bias(3, "geometric", decay=2.0), ValueError, "decay is 2.0"),
    "negative merit": (lambda: fl.individual_disparity(OK, torch.tensor([1.0, -2.0, 0.0])), ValueError, r"merit\[1\] is -2"),
    "nan merit": (lambda: fl.group_disparity(OK, torch.tensor([1.0, NAN, 0.0]), torch.tensor([0, 1, 1])), ValueError, r"merit\[1\] is nan"),
    "merit shape": (lambda: fl.individual_disparity(OK, torch.ones(2)), ValueError, r"merit has shape \(2,\), exposure has \(3,\)"),
    "groups shape": (lambda: fl.group_disparity(OK, OK, torch.tensor([0, 1])), ValueError, r"groups has shape \(2,\), exposure has \(3,\)"),
    "groups dtype": (lambda: fl.group_disparity(OK, OK, torch.ones(3)), TypeError, "groups is torch.float32"),
    "merit name": (lambda: merit_of(OK, "cube"), ValueError, "'cube'"),
    "relevance dtype": (lambda: fl.ndcg(torch.tensor([0, 1]), torch.tensor([1, 0])), TypeError, "relevance is torch.int64"),
    "nan relevance": (lambda: fl.dcg(torch.tensor([0, 1]), torch.tensor([NAN, 0.0])), ValueError, r"relevance\[0\] is nan"),
    "metric ranking": (lambda: fl.ndcg(torch.tensor([0, 0]), torch.tensor([1.0, 0.0])), ValueError, "not a permutation"),
    "metric shapes": (lambda: fl.ndcg(torch.tensor([0, 1]), torch.ones(3, 2)), ValueError, "only add sample axes"),
    "top grade": (lambda: fl.err(torch.tensor([0, 1]), torch.tensor([5.0, 0.0])), ValueError, "relevance 5.0.*max_grade=4"),
    "k": (lambda: fl.ndcg(torch.tensor([0, 1]), torch.tensor([1.0, 0.0]), k=0), ValueError, "k is 0"),
    "negative grade": (lambda: fl.err(torch.tensor([0, 1]), torch.tensor([-1.0, 0.0])), ValueError, "relevance -1.0 is negative"),
    "no groups": (lambda: fl.group_disparity(OK, OK), TypeError, "groups is None"),
    "matrix dtype": (lambda: DoublyStochastic(torch.eye(2).long()), TypeError, "matrix is torch.int64"),
    "matrix shape": (lambda: DoublyStochastic(torch.ones(2, 3)), ValueError, r"matrix has shape \(2, 3\)"),
    "matrix rows": (lambda: DoublyStochastic(torch.tensor([[0.5, 0.4], [0.5, 0.6]])), ValueError, r"row \[0\] sums to 0.8999"),
    "matrix columns": (lambda: DoublyStochastic(torch.tensor([[0.6, 0.4], [0.5, 0.5]])), ValueError, r"column \[0\] sums to 1.1"),
    "matrix negative": (lambda: DoublyStochastic(torch.tensor([[1.5, -0.5], [-0.5, 1.5]])), ValueError, r"matrix\[0, 1\] is -0.5"),
    "matrix padding": (lambda: DoublyStochastic(torch.eye(2), torch.tensor([True, False])), ValueError, r"row \[1\] sums to 1; it must sum to 0"),
    "matrix mask": (lambda: DoublyStochastic(torch.eye(2), torch.ones(3, dtype=bool)), ValueError, r"mask has shape \(3,\)"),
    "no policies": (lambda: Mixture([], []), ValueError, "no policies"),
    "weights shape": (lambda: Mixture([policy()], [0.5, 0.5]), ValueError, r"weights has shape \(2,\) for 1"),
    "negative weight": (lambda: Mixture([policy(), policy()], [1.5, -0.5]), ValueError, "a weight is -0.5"),
    "weights sum": (lambda: Mixture([policy(), policy()], [0.5, 0.4]), ValueError, "sum to 0.9"),
    "exposure shape": (lambda: fl.expected_dcg(torch.ones(2), OK), ValueError, r"exposure has shape \(2,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_input(name):
    call, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        call()


def checks_are_on() -> bool:
    try:
        fl.individual_disparity(OK, -OK)
    except ValueError:
        return True
    return False


def test_trusting_blocks_that_overlap_leave_the_checks_on():
    """Two generators hold a block each, and the first to begin is the first to end."""

    def loop():
        with _check.trusted():
            yield checks_are_on()

    first, second = loop(), loop()
    assert (next(first), next(second)) == (False, False)
    first.close()
    assert not checks_are_on()
    second.close()
    assert checks_are_on()


def test_one_thread_does_not_switch_off_the_checks_of_another():
    with _check.trusted(), ThreadPoolExecutor(1) as pool:
        assert not checks_are_on()
        assert pool.submit(checks_are_on).result()
    assert checks_are_on()
