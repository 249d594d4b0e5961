"""No call mixes devices: shown on a pretended device, as there is no other here.

Tensors on it hold numbers of their own and compute on the CPU, but say that they are elsewhere, and
refuse what CUDA refuses: a CPU tensor beside them (but for scalars and indices), or the generator
of another device. What is not shown: kernels that a real device lacks, and its rounding.
"""

from contextlib import contextmanager

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from fairpg_lite import (
    DoublyStochastic,
    LinearScorer,
    MLPScorer,
    RankingDataset,
    TrainConfig,
    err,
    evaluate,
    exposure,
    fit,
    fit_to_budget,
    nodes,
)
from fairpg_lite.measures import MEASURES as TABLE
from fairpg_lite.training import objective_on

ELSEWHERE = "meta"  # a device that PyTorch has everywhere, and that we use for nothing else here
aten = torch.ops.aten
MAY_MIX = {aten.index.Tensor, aten.index_put_.default, aten.copy_.default, aten._to_copy.default}
NO_SCALARS = {aten.cat.default, aten.stack.default}
MEASURES = tuple(name for name, row in TABLE.items() if "posterior" not in row.needs)
GENERATORS: dict[int, str] = {}


class Pretended(torch.Tensor):
    """A tensor ``inner`` on the CPU that says it is elsewhere."""

    @staticmethod
    def __new__(cls, inner):
        how = {"dtype": inner.dtype, "device": ELSEWHERE, "strides": inner.stride()}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **how)

    def __init__(self, inner):
        self.inner = inner

    def tolist(self):
        return self.inner.tolist()

    def __repr__(self):
        return f"Pretended({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func, args, kwargs):
    leaves, shape = tree_flatten((args, kwargs))
    there = [leaf for leaf in leaves if isinstance(leaf, Pretended)]
    here = [leaf for leaf in leaves if type(leaf) in (torch.Tensor, torch.nn.Parameter)]
    scalars = func not in NO_SCALARS
    mixed = there and any(leaf.ndim > 0 or not scalars for leaf in here) and func not in MAY_MIX
    if func is aten.index.Tensor and not isinstance(args[0], Pretended):
        mixed = bool(there)  # the indices of a tensor on the CPU must be there, too
    if mixed:
        raise RuntimeError(f"{func} mixes devices")
    target = kwargs.get("device")
    away = bool(there) if target is None else torch.device(target).type == ELSEWHERE
    if func is aten.copy_.default:
        away = isinstance(args[0], Pretended)
    generator = kwargs.get("generator")
    if generator is not None and GENERATORS.get(generator._cdata) != (ELSEWHERE if away else "cpu"):
        raise RuntimeError(f"{func} draws from the generator of another device")
    inner = [leaf.inner if isinstance(leaf, Pretended) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(inner, shape)
    out = func(*args, **(kwargs | ({} if target is None else {"device": "cpu"})))
    known = {id(leaf.inner): leaf for leaf in there}

    def wrap(value):
        if id(value) in known:  # computed in place
            return known[id(value)]
        return Pretended(value) if away else value

    return tree_map(lambda value: wrap(value) if isinstance(value, torch.Tensor) else value, out)


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


@pytest.fixture
def elsewhere(monkeypatch):
    """A block in which the device exists; what was made in it is gone from our caches after it."""
    real, made = torch.Generator, []

    class Generator:
        def __new__(cls, device="cpu"):
            made.append(real())
            GENERATORS[made[-1]._cdata] = torch.device(device).type
            return made[-1]

    @contextmanager
    def block():
        with monkeypatch.context() as patch, Watch():
            patch.setattr(torch, "Generator", Generator)
            yield

    def forget():
        for module in (exposure, nodes):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()

    forget()
    yield block
    forget()
    GENERATORS.clear()


def ragged(seed):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 7, (8,), generator=g)
    n = int(lengths.sum())
    return RankingDataset(
        torch.randn(n, 3, generator=g, dtype=torch.float64),
        torch.randint(0, 4, (n,), generator=g).double(),
        torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
        groups=torch.randint(0, 2, (n,), generator=g),
    )


def numbers(scorer):
    return [p.detach().cpu().flatten().tolist() for p in scorer.parameters()]


def make(kind=LinearScorer):
    return kind(3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_watch_sees_what_is_mixed(elsewhere):
    with elsewhere():
        there, here = torch.ones(3, device=ELSEWHERE), torch.ones(3)
        assert (there + 1).device.type == ELSEWHERE
        assert (there * torch.tensor(2.0)).tolist() == [2.0] * 3
        assert (there.cpu() + here).device.type == "cpu"
        assert there[torch.tensor([0, 2])].tolist() == [1.0, 1.0]
        for mix in (
            lambda: there + here,
            lambda: torch.cat([there, here]),
            lambda: here[torch.zeros(2, dtype=torch.int64, device=ELSEWHERE)],
            lambda: torch.empty(3, device=ELSEWHERE).uniform_(generator=torch.Generator()),
        ):
            with pytest.raises(RuntimeError, match=r"mixes devices|another device"):
                mix()


CASES = {
    "sampled": {"disparity": "d_group"},
    "batches": {"disparity": "d_ind", "batch_size": 3, "entropy": 0.1, "baseline": "loo"},
    "exact": {"disparity": "group_gap", "method": "exact", "batch_size": 3, "optimizer": "sgd"},
    "err": {"disparity": "d_group", "utility": err, "batch_size": 3},
    "bias": {
        "disparity": None,
        "lam": 0.0,
        "utility": "dcg",
        "position_bias": 0.5,
        "batch_size": 3,
    },
}


@pytest.mark.parametrize("kind", [LinearScorer, MLPScorer])
@pytest.mark.parametrize("case", CASES)
def test_fit_and_the_objective(elsewhere, case, kind):
    settings = {"lam": 2.0, "lr": 0.1, "epochs": 2, **CASES[case]}
    if "position_bias" in settings:
        settings["position_bias"] = 0.5 ** torch.arange(6, dtype=torch.float64)
    config, data, valid = TrainConfig(**settings), ragged(0), ragged(1)
    expected = make(kind)
    history = fit(expected, data, config, valid, progress=False)
    with elsewhere():
        scorer = make(kind).to(ELSEWHERE)
        found = fit(scorer, data, config, valid, progress=False)
        assert {p.device.type for p in scorer.parameters()} == {ELSEWHERE}
        judged = objective_on(scorer, valid, config)
        assert numbers(scorer) == [pytest.approx(row, rel=1e-9) for row in numbers(expected)]
    assert found.utility == pytest.approx(history.utility, rel=1e-12)
    assert found.valid_disparity == pytest.approx(history.valid_disparity, rel=1e-12)
    assert judged == pytest.approx(objective_on(expected, valid, config), rel=1e-9)


def test_a_budget(elsewhere):
    data, valid = ragged(0), ragged(1)
    config = TrainConfig(method="exact", lr=0.1, epochs=2, batch_size=4)
    expected = fit_to_budget(make(), data, 0.02, config, valid=valid, progress=False)
    with elsewhere():
        scorer = make().to(ELSEWHERE)
        found = fit_to_budget(scorer, data, 0.02, config, valid=valid, progress=False)
    assert found.rounds == [pytest.approx(row, rel=1e-9) for row in expected.rounds]
    assert found.train_disparity == pytest.approx(expected.train_disparity, rel=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"deterministic": True}, {"samples": 5}], ids=["exact", "ranking", "sampled"]
)
def test_a_scorer_is_evaluated(elsewhere, options):
    data, scorer = ragged(0), make()
    expected = evaluate(scorer, data, MEASURES, k=2, **options)
    with elsewhere():
        scorer = scorer.to(ELSEWHERE)
        found = evaluate(scorer, data.to(device=ELSEWHERE), MEASURES, k=2, **options)
    assert found.means == pytest.approx(expected.means, nan_ok=True)


def test_scores_are_evaluated(elsewhere):
    data = ragged(0)
    scores = torch.arange(data.n_documents).double()
    expected = evaluate(scores, data, MEASURES, k=2)
    with elsewhere():
        found = evaluate(scores, data.to(device=ELSEWHERE), MEASURES, k=2)
    assert found.means == pytest.approx(expected.means, nan_ok=True)


def test_policies_are_evaluated(elsewhere):
    data = ragged(0)
    matrices = [torch.eye(int(n), dtype=torch.float64) for n in data.lengths]
    expected = evaluate([DoublyStochastic(m) for m in matrices], data, MEASURES, k=2)
    with elsewhere():
        policies = [DoublyStochastic(matrix.to(ELSEWHERE)) for matrix in matrices]
        found = evaluate(policies, data.to(device=ELSEWHERE), MEASURES, k=2)
    assert found.means == pytest.approx(expected.means, nan_ok=True)
