"""Batches of queries, and scoring models h(x): features ``(…, n, d)`` to scores ``(…, n)``.

Any ``nn.Module`` will do. One whose ``forward`` has an argument ``mask`` is given it: a scorer that
looks at the whole list has to leave padding out.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

#: Anything that scores, a module or a function of features (and mask).
Scorer = Callable[..., Tensor]
# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


class Batch(NamedTuple):
    """B queries padded to n documents (chapter 7).

    features (B, n, d), relevance (B, n), groups (B, n) or None, mask (B, n) with True for a real
    document, queries (B,): the index of each query in the dataset. Padding has features 0,
    relevance 0 and group 0. The tensors may be views of the dataset: do not write into them.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    mask: Tensor
    queries: Tensor


@dataclass(eq=False)
class Batches:
    """What ``RankingDataset.batches`` returns: iterate over it once per epoch (chapter 7).

    The order is drawn anew each time, from ``generator``: with ``shuffle`` a random permutation of
    the queries; for size > 1 a stable sort by length inside pools of 50 batches; and with
    ``shuffle`` a random permutation of the batches. Neighbours of one length (size 1, say) are
    views. With ``reuse`` a batch is good until the next one is drawn: their padded features share
    one memory.
    """

    dataset: Any
    size: int = 1
    shuffle: bool = False
    generator: torch.Generator | None = None
    _: KW_ONLY
    dtype: torch.dtype | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"RankingDataset.batches: size is {self.size}; give 1 or more.")
        self._room = self.dataset.features.new_empty(0)

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.size)

    def order(self) -> tuple[Tensor, list[int]]:
        """The queries of an epoch ``(Q,)``, on the CPU, and how many of them each batch takes."""
        n, size = len(self.dataset), self.size
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        sizes = [size] * (n // size) + [n % size] * (n % size > 0)
        if size > 1 and n:
            lengths = torch.tensor(self.dataset._bounds).diff()
            pools = order.split(size * POOL_BATCHES)
            order = torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in pools])
            if self.shuffle:
                batches = order.split(size)
                chosen = torch.randperm(len(batches), generator=self.generator).tolist()
                order, sizes = torch.cat([batches[k] for k in chosen]), [sizes[k] for k in chosen]
        return order, sizes

    def __iter__(self) -> Iterator[Batch]:
        order, sizes = self.order()
        return map(self._batch, order.split(sizes))

    def _batch(self, queries: Tensor) -> Batch:
        bounds, device = self.dataset._bounds, self.dataset.features.device
        starts, ends = zip(*((bounds[i], bounds[i + 1]) for i in queries.tolist()), strict=True)
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        n = max(lengths)
        if min(lengths) == n and starts[1:] == ends[:-1]:  # neighbours of one length
            mask = torch.ones(1, n, dtype=torch.bool, device=device).expand(len(lengths), n)
            return self._padded(lambda values: values[starts[0] : ends[-1]], mask, queries)
        place, length = torch.arange(n), torch.tensor(lengths).unsqueeze(-1)
        mask = place < length
        # Padding points at the query's last document, and is set to zero afterwards.
        index = torch.tensor(starts).unsqueeze(-1) + torch.minimum(place, length - 1)
        rows, padding = index.flatten().to(device), (~mask).flatten().nonzero()[:, 0].to(device)

        def take(values: Tensor) -> Tensor:
            out, needed = None, len(rows) * values[:1].numel()
            if self.reuse and values is self.dataset.features:
                if len(self._room) < needed:
                    self._room = values.new_empty(needed)
                out = self._room[:needed].view(len(rows), -1)
            return torch.index_select(values, 0, rows, out=out).index_fill_(0, padding, 0)

        return self._padded(take, mask.to(device), queries)

    def _padded(self, take: Callable[[Tensor], Tensor], mask: Tensor, queries: Tensor) -> Batch:
        """The batch of the rows that ``take`` chooses of each array."""
        data, dtype = self.dataset, self.dtype or self.dataset.features.dtype
        features = take(data.features).unflatten(0, mask.shape).to(dtype)
        relevance = take(data.relevance).unflatten(0, mask.shape).to(dtype)
        groups = None if data.groups is None else take(data.groups).unflatten(0, mask.shape)
        return Batch(features, relevance, groups, mask, queries)


def score(scorer: Scorer, batch: Batch) -> Tensor:
    """Scores ``(B, n)`` of a batch, the mask given to a scorer that takes one."""
    scores = scorer(batch.features, **({"mask": batch.mask} if takes_mask(scorer) else {}))
    if not isinstance(scores, Tensor) or scores.shape != batch.mask.shape:
        found = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(
            f"score: the scorer makes {found} of features {tuple(batch.features.shape)}; give one "
            f"score per document, {tuple(batch.mask.shape)}, for example with .squeeze(-1)."
        )
    return scores


def takes_mask(scorer: Scorer) -> bool:
    """Whether ``scorer`` has an argument named ``mask``."""
    while isinstance(wrapped := getattr(scorer, "module", None), nn.Module):
        scorer = wrapped  # in DistributedDataParallel and its like
    function = type(scorer).forward if isinstance(scorer, nn.Module) else scorer
    try:
        return "mask" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C: no signature to read
        return False


@contextmanager
def eval_mode(scorer: object) -> Iterator[None]:
    """Evaluation mode (no dropout) without gradients; each part's own mode is put back after."""
    parts = list(scorer.modules()) if isinstance(scorer, nn.Module) else []
    before = [part.training for part in parts]
    for part in parts:
        part.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, before, strict=True):
            part.training = mode


class LinearScorer(nn.Module):
    """One weight per feature, started uniformly within ``init`` of zero (paper: 0.001).

    There is no bias term by default: a Plackett-Luce policy ignores a shift of all scores
    (chapters 6, 7 and 9).
    """

    def __init__(
        self,
        n_features: int,
        *,
        bias: bool = False,
        init: float = 1e-3,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.linear = nn.Linear(n_features, 1, bias=bias, dtype=dtype)
        _uniform(self, init, generator)

    def forward(self, features: Tensor) -> Tensor:
        # A matrix times a vector: quicker, forward and backward, than a matrix of one column.
        scores = features @ self.linear.weight.view(-1)
        return scores if self.linear.bias is None else scores + self.linear.bias


class MLPScorer(nn.Module):
    """One hidden ReLU layer, in the paper 32 units, weights in ±1/sqrt(hidden) (chapter 10)."""

    def __init__(
        self,
        n_features: int,
        hidden: int = 32,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.hidden = nn.Linear(n_features, hidden, dtype=dtype)
        self.output = nn.Linear(hidden, 1, dtype=dtype)
        _uniform(self, 1.0 / math.sqrt(hidden), generator)
        # Dropped only now: the first edition drew it, and the same seed should start the same.
        self.output.register_parameter("bias", None)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(torch.relu(self.hidden(features))).squeeze(-1)


@torch.no_grad()
def _uniform(module: nn.Module, reach: float, generator: torch.Generator | None) -> None:
    for parameter in module.parameters():
        parameter.uniform_(-reach, reach, generator=generator)
