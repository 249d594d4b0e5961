"""Bad input gets an error that names the argument and its shape or value."""

from concurrent.futures import ThreadPoolExecutor

import pandas
import pytest
import torch

import fairpg_lite as fl
from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce, _check
from fairpg_lite.data.mslr import mslr_raw
from fairpg_lite.relevance import merit_of

OK = torch.tensor([0.1, 0.2, 0.3])
NAN, INF = float("nan"), float("inf")


def policy():
    return PlackettLuce(OK)


def dataset(**changes):
    """Two queries, of two and three documents, with some arrays changed."""
    arrays = {"features": torch.ones(5, 2), "relevance": torch.ones(5), "offsets": [0, 2, 5]}
    return fl.RankingDataset(**{**arrays, **changes})


def table(**columns):
    return fl.RankingDataset.from_pandas(pandas.DataFrame(columns), query="q", relevance="y")


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
    "k of 0": (lambda: policy().sample(k=0), ValueError, "k is 0"),
    "k above n": (lambda: policy().sample(k=4), ValueError, "k is 4 and there are 3 documents"),
    "places k of 0": (lambda: policy().log_prob(torch.tensor([0]), k=0), ValueError, "k is 0"),
    "too few places": (lambda: policy().log_prob(torch.tensor([0]), k=2), ValueError, "1 places and k is 2"),
    "place twice": (lambda: policy().log_prob(torch.tensor([0, 0]), k=2), ValueError, "does not name 2 different"),
    "too few paid places": (lambda: policy().sampled_exposure(torch.tensor([1.0, 0.5, 0.0]), rankings=torch.tensor([[0], [1]])), ValueError, "1 places, and position_bias pays 2"),
    "no axis of samples": (lambda: policy().sampled_exposure(rankings=torch.tensor([0, 1, 2]), reward_to_go=True), ValueError, "axis of samples in front"),
    "one sample to go": (lambda: policy().sampled_exposure(samples=1, reward_to_go=True), ValueError, r"1 sample\(s\).*baseline=None"),
    "one sample of k": (lambda: policy().sampled_exposure(torch.tensor([1.0, 0.0, 0.0]), samples=1, baseline="loo"), ValueError, r"1 sample\(s\).*baseline='loo'"),
    "uniform without reward-to-go": (lambda: policy().sampled_exposure(baseline="uniform"), ValueError, "needs reward_to_go=True"),
    "unknown baseline to go": (lambda: policy().sampled_exposure(baseline="median", reward_to_go=True), ValueError, "baseline is 'median'"),
    "sample shape": (lambda: policy().sample(5), TypeError, "sample_shape is 5; give a tuple"),
    "masks differ": (lambda: Mixture([PlackettLuce(OK, torch.tensor([True, True, False])), policy()], [0.5, 0.5]), ValueError, "another mask"),
    "no policies": (lambda: Mixture([], []), ValueError, "no policies"),
    "weights shape": (lambda: Mixture([policy()], [0.5, 0.5]), ValueError, r"weights has shape \(2,\) for 1"),
    "negative weight": (lambda: Mixture([policy(), policy()], [1.5, -0.5]), ValueError, "a weight is -0.5"),
    "weights sum": (lambda: Mixture([policy(), policy()], [0.5, 0.4]), ValueError, "sum to 0.9"),
    "exposure shape": (lambda: fl.expected_dcg(torch.ones(2), OK), ValueError, r"exposure has shape \(2,\)"),
    # data: what a dataset is made of has its own table, in test_data_dataset.py
    "dataset negative grade": (lambda: dataset(relevance=[1, 0, 0, -1, 0]), ValueError, r"relevance\[3\] is -1; relevance must be zero or more"),
    "dataset nan grade": (lambda: dataset(relevance=[NAN, 0, 0, 0, 0]), ValueError, r"relevance\[0\] is nan; relevance must be finite"),
    "dataset grades shape": (lambda: dataset(relevance=[1, 0]), ValueError, r"relevance has shape \(2,\), and features has 5 rows"),
    "dataset empty query": (lambda: dataset(offsets=[0, 2, 2, 5]), ValueError, r"offsets\[2\] is 2, after 2"),
    "dataset last offset": (lambda: dataset(offsets=[0, 2]), ValueError, "offsets ends with 2, and features has 5 rows"),
    "split into none": (lambda: dataset().split(()), ValueError, "split: fractions is empty"),
    "split share": (lambda: dataset().split((0.5, 0.0)), ValueError, r"split: fractions\[1\] is 0.0; it must be positive"),
    "split nan": (lambda: dataset().split((NAN,)), ValueError, r"split: fractions\[0\] is nan; it must be positive"),
    "split sum": (lambda: dataset().split((0.5, 0.6)), ValueError, "split: fractions sum to 1.1"),
    "split empty part": (lambda: dataset().split((0.99, 0.01)), ValueError, r"split: fractions\[1\] is 0.01 of 2 queries"),
    "shard world": (lambda: dataset().shard(0, 0), ValueError, "shard: world is 0"),
    "shard queries": (lambda: dataset().shard(0, 3), ValueError, "shard: world is 3, and the dataset has 2 queries"),
    "shard rank": (lambda: dataset().shard(2, 2), ValueError, "shard: rank is 2; the 2 parts are 0 to 1"),
    "batch size": (lambda: dataset().batches(0), ValueError, "batches: size is 0"),
    "concat nothing": (lambda: fl.RankingDataset.concat([]), ValueError, "concat: there is no dataset"),
    "dataset no queries": (lambda: fl.RankingDataset.from_queries([]), ValueError, "from_queries: there is no query"),
    "from_pandas no table": (lambda: fl.RankingDataset.from_pandas([1], query="q", relevance="y"), TypeError, "from_pandas: frame is a list"),
    "from_pandas no column": (lambda: table(q=[1], x=[1]), ValueError, r"from_pandas: frame has no column 'y'; its columns are \['q', 'x'\]"),
    "from_pandas no rows": (lambda: table(q=[], y=[]), ValueError, "from_pandas: frame has no rows"),
    "from_pandas missing value": (lambda: table(q=[1, 1], y=[0, 1], x=[1, NAN]), ValueError, "column 'x' is missing in row 1"),
    "from_pandas no number": (lambda: table(q=[1], y=[0], x=["tall"]), ValueError, "column 'x' does not hold numbers"),
    "load_letor no file": (lambda: fl.load_letor([]), ValueError, "load_letor: path is an empty list"),
    "load_letor file dtype": (lambda: fl.load_letor("x.txt", dtype=torch.float16), ValueError, "load_letor: dtype is torch.float16"),
    "load_letor file features": (lambda: fl.load_letor("x.txt", n_features=0), ValueError, "load_letor: n_features is 0"),
    "load_letor table as file": (lambda: fl.load_letor(pandas.DataFrame({"x": [1]})), TypeError, "load_letor: path is a DataFrame.*from_pandas"),
    "synthetic queries": (lambda: fl.synthetic(n_queries=0), ValueError, "synthetic: n_queries is 0"),
    "synthetic documents": (lambda: fl.synthetic(n_docs=0), ValueError, "synthetic: n_docs is 0"),
    "synthetic clip": (lambda: fl.synthetic(clip=0.0), ValueError, "synthetic: clip is 0.0"),
    "synthetic minority": (lambda: fl.synthetic(minority=1.5), ValueError, "synthetic: minority is 1.5"),
    "german attributes": (lambda: fl.german_credit(attributes=10), ValueError, r"attributes is 10; choose one of \(20, 9\)"),
    "german group": (lambda: fl.german_credit(group="job"), ValueError, "group is 'job'; choose one of"),
    "german ratio": (lambda: fl.german_credit(ratio="4:1"), ValueError, "ratio is '4:1'; choose one of"),
    "german split": (lambda: fl.german_credit(split="no"), ValueError, "split is 'no'; choose one of"),
    "german queries": (lambda: fl.german_credit(n_test=0), ValueError, "german_credit: n_test is 0"),
    "german persons": (lambda: fl.german_credit(n_docs=0, ratio="weights"), ValueError, "german_credit: n_docs is 0; give 1 or more"),
    "german fifths": (lambda: fl.german_credit(n_docs=7), ValueError, "n_docs is 7; .* a multiple of 5"),
    "german too many": (lambda: fl.german_credit(n_docs=500), ValueError, "n_docs is 500; .* 50 at most"),
    "mslr part": (lambda: mslr_raw("valid"), ValueError, "mslr_raw: part is 'valid'"),
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
