r"""Plackett-Luce ranking policies (chapter 3; equation (5) of the paper).

:math:`\pi(r) = \prod_i \exp(s_{r(i)}) / \sum_{k \ge i} \exp(s_{r(k)})`: the next document is drawn
from a softmax over those that are left. With the documents in ranked order,
:math:`\log\pi = \sum_k (s_k - \log R_k)` where :math:`R_k = \sum_{l \ge k} e^{s_l}` is what
remains, and :math:`\partial \log\pi / \partial s_l = 1 - \sum_{k \le l} e^{s_l} / R_k`: one, less
the chance of being picked at each draw that the document was still in.
"""

import math

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.exact import TOLERANCE, exact_exposure, exact_position_probs
from fairpg_lite.exposure import bias_like, ranking_exposure


class PlackettLuce:
    """A distribution over rankings of n documents, in the manner of ``torch.distributions``.

    ``scores (…, n)``: higher is better, leading axes are queries. ``mask (…, n)`` is True for a
    real document; padding ranks last. Chapter 3, eq-03-pl; equation (5) of the paper.

    >>> policy = PlackettLuce(torch.tensor([2.0, 1.0, 0.0]))
    >>> policy.mode
    tensor([0, 1, 2])
    >>> policy.exposure()
    tensor([0.8695, 0.6892, 0.5723])
    """

    def __init__(self, scores: Tensor, mask: Tensor | None = None):
        _check.floating("PlackettLuce", "scores", scores)
        _check.real_documents("PlackettLuce", mask, scores)
        _check.finite("PlackettLuce", "scores", scores, mask)
        # Half precision is computed with in float32, and only the result is rounded.
        self.scores = scores if scores.dtype.itemsize >= 4 else scores.float()
        self.dtype = scores.dtype
        self.mask = mask

    def _masked(self, fill: float) -> Tensor:
        return self.scores if self.mask is None else self.scores.masked_fill(~self.mask, fill)

    @torch.no_grad()
    def sample(
        self, sample_shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings ``(*sample_shape, …, n)``: the document at each position.

        Scores plus Gumbel noise -log(-log U), sorted: the same distribution as drawing from the
        top, document by document (chapter 3, eq-03-gumbel). In float64, so that noise on a score
        of 1e4 keeps its digits.
        """
        if not all(_check.is_whole(size) and size >= 1 for size in sample_shape):
            raise ValueError(f"sample: sample_shape is {sample_shape}; give whole numbers from 1.")
        shape = (*sample_shape, *self.scores.shape)
        keys = torch.empty(shape, dtype=torch.float64, device=self.scores.device)
        # U = 0 would put a real document among the padding at -inf.
        keys.uniform_(generator=generator).clamp_(min=1e-300)
        gumbel = keys.log_().neg_().log_()  # with its sign reversed, as the sort ascends
        return gumbel.sub_(self._masked(-math.inf)).argsort(dim=-1)

    @property
    def mode(self) -> Tensor:
        """The most probable ranking ``(…, n)``, by score and ties by index (chapter 3)."""
        return self._masked(-math.inf).argsort(dim=-1, descending=True, stable=True)

    def log_prob(self, rankings: Tensor) -> Tensor:
        """Log-probability ``(…)`` of rankings ``(…, n)`` (chapter 3, eq-03-log, eq-03-gradient)."""
        _check.permutations("log_prob", rankings, self.scores.shape, self.mask)
        return log_steps(self.scores, rankings, self.mask).sum(-1).to(self.dtype)

    def entropy(self) -> Tensor:
        """Entropy ``(…)`` of Softmax(scores), not of the ranking (chapter 6, eq-06-entropy)."""
        log_p = self._masked(-math.inf).log_softmax(-1)
        if self.mask is not None:  # before the product: its gradient would be 0 * inf at padding
            log_p = torch.where(self.mask, log_p, 0.0)
        return -(log_p.exp() * log_p).sum(-1).to(self.dtype)

    def expect(self, values: Tensor, rankings: Tensor, baseline: str | None = "mean") -> Tensor:
        r"""Mean of ``values (S, …)`` or ``(S, …, n)`` over sampled ``rankings (S, …, n)``.

        Going backward it is the score-function estimator,
        :math:`\frac1S \sum_s (\mathrm{value}_s - b)\, \nabla \log \pi(r_s)`, with b the mean of the
        values (``"mean"``, the paper; shrinks the gradient by (S-1)/S), the mean of the *other*
        values (``"loo"``, unbiased) or zero (None, unbiased and noisy).
        Chapter 6, eq-06-baseline; equation (6) of the paper.
        """
        _check.permutations("expect", rankings, self.scores.shape, self.mask)
        _check.not_transformed("expect")
        samples = rankings.shape[0]
        if values.shape not in (rankings.shape[:-1], rankings.shape):
            found = f"values has shape {tuple(values.shape)}, rankings {tuple(rankings.shape)}"
            raise ValueError(f"expect: {found}; give a value per ranking, or per document.")
        if samples < {None: 1, "mean": 2, "loo": 2}.get(baseline, math.inf):
            found = f"{samples} sample(s) with baseline={baseline!r}"
            raise ValueError(f"expect: {found}; 'mean' and 'loo' need two, baseline=None one.")
        mean, advantage = values.mean(0), values.detach()
        if not (torch.is_grad_enabled() and self.scores.requires_grad):
            return mean
        if baseline is not None:
            advantage = advantage - mean.detach()
        if baseline == "loo":
            # What the mean of the others leaves: v - (sum - v)/(S - 1) = S/(S - 1) (v - mean).
            advantage = advantage * (samples / (samples - 1))
        placed = log_slopes(self.scores.detach(), rankings, self.mask)
        slopes = torch.zeros_like(placed).scatter_(-1, rankings, placed)
        # Zero as a number, so the mean keeps its value, and log pi's slope going backward.
        move = (slopes * (self.scores - self.scores.detach())).sum(-1)
        if values.ndim == rankings.ndim:
            move = move.unsqueeze(-1)
        estimate = mean + (advantage * move).mean(0)
        what = "a mean over sampled rankings"
        estimate.register_hook(lambda _: _check.differentiable_once(what))
        return estimate

    def position_probs(self, tolerance: float = TOLERANCE) -> Tensor:
        """Exact probability ``(…, n, n)`` [document, position] (chapter 4, eq-04-fourier)."""
        _check.not_transformed("position_probs")
        probs = exact_position_probs(self.scores, self.mask, tolerance).to(self.dtype)
        if self.mask is None:
            return probs
        count = self.mask.sum(-1, keepdim=True)
        taken = torch.arange(probs.shape[-1], device=probs.device) < count
        return torch.where(self.mask.unsqueeze(-1) & taken.unsqueeze(-2), probs, 0.0)

    def exposure(
        self,
        position_bias: Tensor | None = None,
        method: str = "exact",
        *,
        samples: int = 10,
        generator: torch.Generator | None = None,
        rankings: Tensor | None = None,
        baseline: str | None = "mean",
        tolerance: float = TOLERANCE,
    ) -> Tensor:
        """Expected position bias ``(…, n)`` of each document, with a gradient.

        ``position_bias`` is by default 1/log2(1+j). ``method="exact"`` integrates the race, to
        ``tolerance``. ``"sample"`` averages over ``rankings (S, …, n)``, or over ``samples`` drawn
        here if none are given, and differentiates as `expect` does: put through any function of
        exposure, that is the paper's estimator. Chapter 4, eq-04-exposure; equation (2).
        """
        _check.not_transformed("exposure")
        bias = bias_like("exposure", position_bias, self.scores)
        if method == "exact":
            return exact_exposure(self.scores, position_bias, self.mask, tolerance).to(self.dtype)
        if method != "sample":
            raise ValueError(f"exposure: method is {method!r}; choose 'exact' or 'sample'.")
        if rankings is None:
            rankings = self.sample((samples,), generator=generator)
        paid = ranking_exposure(rankings, bias, self.mask)
        return self.expect(paid, rankings, baseline).to(self.dtype)


def _in_order(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> tuple[Tensor, bool]:
    """Scores by position ``(S, …, n)``, padding -inf; and whether plain exponentials are safe."""
    shifted = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    shifted = shifted - shifted.detach().amax(-1, keepdim=True)
    lowest = shifted.detach() if mask is None else shifted.detach()[mask]
    least = 0.8 * math.log(torch.finfo(scores.dtype).tiny)
    safe = lowest.numel() == 0 or float(lowest.amin()) > least
    return shifted.expand(rankings.shape).gather(-1, rankings), safe


def log_steps(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Log-probability of each draw ``(S, …, n)``: score less log of what remains."""
    placed, safe = _in_order(scores, rankings, mask)
    if safe:
        remaining = placed.exp().flip(-1).cumsum(-1).flip(-1).log()
    else:
        remaining = placed.flip(-1).logcumsumexp(-1).flip(-1)
    return torch.where(placed > -math.inf, placed - remaining, 0.0)


def log_slopes(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Derivative of log pi by the score of the document at each position ``(S, …, n)``."""
    placed, safe = _in_order(scores, rankings, mask)
    if safe:
        weight = placed.exp()
        picked = weight * weight.flip(-1).cumsum(-1).flip(-1).reciprocal().cumsum(-1)
    else:
        remaining = placed.flip(-1).logcumsumexp(-1).flip(-1)
        picked = (placed + torch.logcumsumexp(-remaining, -1)).exp()
    return torch.where(placed > -math.inf, 1.0 - picked, 0.0)
