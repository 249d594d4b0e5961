"""Scorers: one score per document or an error that says so; the mask for those who take it."""

import importlib
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fairpg_lite import LinearScorer, MLPScorer, RankingDataset, evaluate
from fairpg_lite.scorers import eval_mode, score, takes_mask


class Attention(nn.Module):
    """A listwise scorer: every document looks at the others of its list."""

    def __init__(self, d):
        super().__init__()
        self.look = nn.MultiheadAttention(d, 1, batch_first=True, dtype=torch.float64)
        self.out = nn.Linear(d, 1, dtype=torch.float64)

    def forward(self, features, mask):
        seen, _ = self.look(features, features, features, key_padding_mask=~mask)
        return self.out(seen + features).squeeze(-1)


def ragged(seed=0, d=4, count=150):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 12, (count,), generator=g)
    n = int(lengths.sum())
    return RankingDataset(
        torch.randn(n, d, generator=g, dtype=torch.float64),
        torch.randint(0, 4, (n,), generator=g).double(),
        torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
        groups=torch.randint(0, 2, (n,), generator=g),
    )


@pytest.mark.parametrize("batch_size", [8, 64])
def test_a_listwise_scorer_is_judged_the_same_in_any_batch(batch_size, monkeypatch):
    torch.manual_seed(0)
    scorer, data = Attention(4), ragged()
    module = importlib.import_module("fairpg_lite.evaluation")
    monkeypatch.setattr(module, "_BATCH_SIZE", 1)
    alone = evaluate(scorer, data, ("ndcg_at_k", "err", "d_ind"), k=5)
    monkeypatch.setattr(module, "_BATCH_SIZE", batch_size)
    together = evaluate(scorer, data, ("ndcg_at_k", "err", "d_ind"), k=5)
    for name, values in alone.per_query.items():
        assert_close(together.per_query[name], values, rtol=0, atol=1e-9, equal_nan=True)


def test_who_takes_a_mask():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *args, **options):
            return self.module(*args, **options)

    assert takes_mask(Attention(4))
    assert takes_mask(Wrapper(Attention(4)))
    assert takes_mask(lambda features, mask: features.sum(-1) * mask)
    assert not takes_mask(LinearScorer(4))
    assert not takes_mask(Wrapper(LinearScorer(4)))
    assert not takes_mask(torch.sum)


@pytest.mark.parametrize(
    ("scorer", "shape"),
    [
        (nn.Linear(4, 1, dtype=torch.float64), r"\(2, \d+, 1\)"),
        (lambda x: x.mean((-1, -2)), r"\(2,\)"),
        (lambda x: x, r"\(2, \d+, 4\)"),
    ],
)
def test_another_shape_is_refused_by_name(scorer, shape):
    data = ragged(count=2)
    with pytest.raises(ValueError, match=f"the scorer makes {shape} of features .*one score per"):
        score(scorer, next(iter(data.batches(2))))
    with pytest.raises(ValueError, match="one score per document"):
        evaluate(scorer, data)


def test_what_is_no_tensor_is_refused_by_its_kind():
    data = ragged(count=2)
    with pytest.raises(TypeError, match="the scorer makes a float of features"):
        score(lambda features: 1.0, next(iter(data.batches(2))))


def test_evaluation_judges_in_eval_mode_and_puts_back_what_was():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Dropout(0.5), LinearScorer(4, init=1.0, dtype=torch.float64)
            )
            self.frozen = nn.Dropout(0.5).eval()

        def forward(self, features):
            return self.body(self.frozen(features))

    scorer, data = Noisy(), ragged()
    modes = [part.training for part in scorer.modules()]
    assert True in modes
    assert False in modes
    first, second = evaluate(scorer, data), evaluate(scorer, data)
    assert first.to_dict() == second.to_dict()
    assert [part.training for part in scorer.modules()] == modes
    broken = next(iter(data.batches(2)))._replace(features=torch.zeros(2, 3, 9))
    with pytest.raises(RuntimeError), eval_mode(scorer):
        score(scorer, broken)
    assert [part.training for part in scorer.modules()] == modes


@pytest.mark.parametrize("seeded", [True, False])
def test_the_network_starts_as_it_did_with_an_output_bias(seeded):
    """The bias that the first edition had is drawn still, from either stream, and dropped."""
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(4) if seeded else None
    scorer = MLPScorer(5, generator=g, dtype=torch.float64)
    after = torch.rand(3, generator=g)
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(4) if seeded else None
    float64 = {"dtype": torch.float64}
    layers = nn.Sequential(nn.Linear(5, 32, **float64), nn.Linear(32, 1, **float64))
    reach = 1.0 / math.sqrt(32)
    with torch.no_grad():
        drawn = [p.uniform_(-reach, reach, generator=g) for p in layers.parameters()]
    for parameter, expected in zip(scorer.parameters(), drawn, strict=False):
        assert (parameter == expected).all()
    assert (after == torch.rand(3, generator=g)).all()
    assert set(scorer.state_dict()) == {"hidden.weight", "hidden.bias", "output.weight"}
