r"""Ranking policies: distributions over the rankings of a query's documents (chapter 3).

Whatever judges, draws or ranks takes a `Policy`. Four kinds come with the package:
`PlackettLuce`, which is learned; `DoublyStochastic`, what a linear programme returns; `Mixture`, a
lottery between policies; and `FixedRanking`, which always shows the same list.

Plackett-Luce (equation (5) of the paper) is
:math:`\pi(r) = \prod_i \exp(s_{r(i)}) / \sum_{k \ge i} \exp(s_{r(k)})`: the next document is drawn
from a softmax over those that are left. With the documents in ranked order,
:math:`\log\pi = \sum_k (s_k - \log R_k)` where :math:`R_k = \sum_{l \ge k} e^{s_l}` is what
remains, and :math:`\partial \log\pi / \partial s_l = 1 - \sum_{k \le l} e^{s_l} / R_k`: one, less
the chance of being picked at each draw that the document was still in.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.birkhoff import decompose
from fairpg_lite.exact import TOLERANCE, exact_exposure, exact_position_probs
from fairpg_lite.exposure import bias_like, paid_places, ranking_exposure
from fairpg_lite.reward_to_go import BASELINES, reward_to_go_exposure


@runtime_checkable
class Policy(Protocol):
    """A distribution over rankings of n documents; leading axes are queries.

    What a class of your own needs so that `evaluate` judges it and lists can be drawn from it. With
    a method ``expected_value(metric)`` as well, as `DoublyStochastic` has it, measures of whole
    rankings are exact for it; without one they are means over drawn rankings.
    ``mask (…, n)`` is True for a real document, None if all are; padding is ranked last and has no
    exposure.

    >>> isinstance(PlackettLuce(torch.zeros(3)), Policy)
    True
    """

    mask: Tensor | None

    def exposure(self, position_bias: Tensor | None = None) -> Tensor:
        """The position bias ``(…, n)`` that each document can expect; None is 1/log2(1+j)."""
        ...

    def position_probs(self) -> Tensor:
        """The probability ``(…, n, n)`` [document, position]."""
        ...

    def sample(
        self, sample_shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings ``(*sample_shape, …, n)``: the document at each position."""
        ...

    @property
    def mode(self) -> Tensor:
        """The one ranking ``(…, n)`` that stands for the policy where only one can be shown."""
        ...


class MakePolicy(Protocol):
    """What makes a policy of scores; `PlackettLuce` itself is one."""

    def __call__(self, scores: Tensor, mask: Tensor | None, /) -> Policy:
        """The policy of scores ``(B, n)``; its exposure has a gradient in them.

        Args:
            scores: ``(B, n)``.
            mask: ``(B, n)``, True for a real document; None: all are real.

        Returns:
            A policy over rankings of each query's documents.
        """
        ...


class PlackettLuce:
    """The policy of scores: the next document is drawn from a softmax over those that are left.

    In the manner of ``torch.distributions``. Chapter 3, eq-03-pl; equation (5) of the paper.

    Args:
        scores: ``(…, n)``, higher is better; leading axes are queries.
        mask: ``(…, n)``, True for a real document; padding ranks last. None: all are real.

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

    @torch.no_grad()
    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        *,
        k: int | None = None,
    ) -> Tensor:
        """Draw rankings, or their first k places.

        Scores plus Gumbel noise -log(-log U), sorted: the same distribution as drawing from the
        top, document by document (chapter 3, eq-03-gumbel). In float64, so that noise on a score
        of 1e4 keeps its digits.

        Args:
            sample_shape: Axes of the draws, in front of those of the queries.
            generator: Where the noise comes from; None is torch's own stream.
            k: Draw the first k places only, which is quicker for a short page of a long list; the
                same noise gives the same places. None is the whole list.

        Returns:
            ``(*sample_shape, …, n)``, or k instead of n: the document at each position.
        """
        _check_sample_shape(sample_shape)
        if k is not None:
            _check_places("sample", k, self.scores.shape[-1])
        shape = (*sample_shape, *self.scores.shape)
        keys = torch.empty(shape, dtype=torch.float64, device=self.scores.device)
        # U = 0 would put a real document among the padding at -inf.
        keys.uniform_(generator=generator).clamp_(min=1e-300)
        negative_gumbel = keys.log_().neg_().log_()  # negative, as the sort ascends
        arrival = negative_gumbel.sub_(self._masked_scores())
        if k is None:
            return arrival.argsort(dim=-1)
        return arrival.topk(k, dim=-1, largest=False, sorted=True).indices

    @property
    def mode(self) -> Tensor:
        """The most probable ranking ``(…, n)``, by score and ties by index (chapter 3)."""
        return self._masked_scores().argsort(dim=-1, descending=True, stable=True)

    def log_prob(self, rankings: Tensor, *, k: int | None = None) -> Tensor:
        """Log-probability of rankings, or of their first k places.

        Chapter 3, eq-03-log, eq-03-gradient.

        Args:
            rankings: ``(S, …, n)``, all documents, padding last; with ``k`` lists ``(S, …, k)`` or
                longer ones, of which the first k places count.
            k: How many places; None is the whole list.

        Returns:
            ``(S, …)``, with a gradient in the scores.
        """
        if k is None:
            _check.permutations("log_prob", rankings, self.scores.shape, self.mask)
            return log_steps(self.scores, rankings, self.mask).sum(-1).to(self.dtype)
        _check_places("log_prob", k, self.scores.shape[-1])
        if rankings.shape[-1] < k:
            raise ValueError(
                f"log_prob: rankings has {rankings.shape[-1]} places and k is {k}; give k places."
            )
        places = rankings[..., :k]
        _check.first_places("log_prob", places, self.scores.shape, self.mask)
        return log_first_steps(self._masked_scores(), places).sum(-1).to(self.dtype)

    def softmax_entropy(self) -> Tensor:
        """Entropy ``(…)`` of Softmax(scores), the first draw (chapter 6, eq-06-entropy).

        It is the paper's regulariser, and not the entropy of the distribution over rankings.
        """
        log_p = self._masked_scores().log_softmax(-1)
        if self.mask is not None:  # before the product: its gradient would be 0 * inf at padding
            log_p = torch.where(self.mask, log_p, 0.0)
        return -(log_p.exp() * log_p).sum(-1).to(self.dtype)

    def exposure(self, position_bias: Tensor | None = None, tolerance: float = TOLERANCE) -> Tensor:
        """Exact exposure, with its exact gradient: the race is integrated, nothing is sampled.

        Chapter 4, eq-04-exposure; equation (2) of the paper.

        Args:
            position_bias: ``(n,)`` or longer; None is 1/log2(1+j).
            tolerance: Order of the error: at most that much at the default, and some four times
                that much at 1e-5 (`fairpg_lite.exact.exact_exposure`).

        Returns:
            ``(…, n)``, the position bias that each document can expect.
        """
        _check.not_transformed("exposure")
        bias_like("exposure", position_bias, self.scores)  # refuses a wrong one
        return exact_exposure(self.scores, position_bias, self.mask, tolerance).to(self.dtype)

    def sampled_exposure(
        self,
        position_bias: Tensor | None = None,
        *,
        samples: int = 10,
        generator: torch.Generator | None = None,
        rankings: Tensor | None = None,
        baseline: str | None = "mean",
        reward_to_go: bool = False,
    ) -> Tensor:
        """The mean exposure over drawn rankings, differentiated as `expect` does.

        Put through any function of exposure, that is the paper's estimator of its gradient.
        Chapters 4, 7 and 8; Algorithm 1 of the paper.

        Where the position bias ends in zeros, after place k, the later places pay nothing. Then
        lists of k places are drawn, and the gradient is that of the log-probability of these k
        draws (`log_prob` with ``k``). It has the same expectation, and less variance if the list is
        long.

        Args:
            position_bias: ``(n,)`` or longer; None is 1/log2(1+j).
            samples: How many rankings to draw; not used if ``rankings`` are given.
            generator: Where the noise comes from; None is torch's own stream.
            rankings: ``(S, …, n)``, drawn before, or their first k places if no more are paid; None
                draws them here.
            baseline: What is subtracted from a reward, as in `expect`; with ``reward_to_go`` also
                ``"uniform"``, what the documents that are left at a draw would earn in random
                order. That one is unbiased, and one ranking is enough for it.
            reward_to_go: Whether the exposure of a document pulls on the draws up to its own place
                only (`fairpg_lite.reward_to_go`), instead of on all draws as in the paper.

        Returns:
            ``(…, n)``, the mean over the rankings.

        >>> scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        >>> generator = torch.Generator().manual_seed(0)
        >>> exposure = PlackettLuce(scores).sampled_exposure(
        ...     samples=1000, generator=generator, baseline="uniform", reward_to_go=True
        ... )
        >>> exposure[0].backward()
        >>> scores.grad.mul(50).round()  # the exact slopes are 0.12, -0.06, -0.06
        tensor([ 6., -3., -3.], dtype=torch.float64)
        """
        _check.not_transformed("sampled_exposure")
        n = self.scores.shape[-1]
        bias = bias_like("sampled_exposure", position_bias, self.scores)
        # Of the whole position bias, so that the length a query is padded to does not matter.
        places = n if position_bias is None else min(n, paid_places(position_bias))
        if rankings is None and places == n:
            rankings = self.sample((samples,), generator)
        elif rankings is None:
            rankings = self.sample((samples,), generator, k=places)
        if places == n and not reward_to_go:
            paid = ranking_exposure(rankings, bias, self.mask)
            return self.expect(paid, rankings, baseline).to(self.dtype)
        lists = self._paid_lists(rankings, places)
        _check_baseline("sampled_exposure", baseline, len(lists), reward_to_go)
        return self._exposure_of_lists(lists, bias, baseline, reward_to_go).to(self.dtype)

    def _exposure_of_lists(
        self, lists: Tensor, bias: Tensor, baseline: str | None, reward_to_go: bool
    ) -> Tensor:
        """The mean exposure ``(…, n)`` of lists ``(S, …, k)``, with the slope of their draws."""
        n = self.scores.shape[-1]
        places = lists.shape[-1]
        paid = bias.new_zeros(*lists.shape[:-1], n)
        paid = paid.scatter(-1, lists, bias[:places].expand(lists.shape))
        if self.mask is not None:
            paid = paid * self.mask
        mean = paid.mean(0)
        if not (torch.is_grad_enabled() and self.scores.requires_grad):
            return mean
        if places == n:
            steps = log_steps(self.scores, lists, self.mask)
        else:
            steps = log_first_steps(self._masked_scores(), lists)
        if reward_to_go:
            return reward_to_go_exposure(steps, mean, lists, bias, self.mask, baseline)
        log_prob = steps.sum(-1, keepdim=True)
        move = log_prob - log_prob.detach()
        return _with_slope(mean, _advantage(paid, mean, baseline), move)

    def _paid_lists(self, rankings: Tensor, places: int) -> Tensor:
        """The first places ``(S, …, k)`` of rankings, which are checked."""
        if rankings.shape[-1] < places:
            raise ValueError(
                f"sampled_exposure: rankings has {rankings.shape[-1]} places, and position_bias "
                f"pays {places}; give at least as many."
            )
        lists = rankings[..., :places]
        _check.first_places("sampled_exposure", lists, self.scores.shape, self.mask)
        if lists.ndim == self.scores.ndim:
            raise ValueError(
                f"sampled_exposure: rankings has shape {tuple(rankings.shape)} for scores "
                f"{tuple(self.scores.shape)}; put an axis of samples in front."
            )
        return lists

    def expect(self, values: Tensor, rankings: Tensor, baseline: str | None = "mean") -> Tensor:
        r"""Mean of values over drawn rankings, with the score-function estimator as gradient.

        Going backward it is
        :math:`\frac1S \sum_s (\mathrm{value}_s - b)\, \nabla \log \pi(r_s)`.
        Chapter 6, eq-06-baseline; equation (6) of the paper.

        Args:
            values: ``(S, …)``, one for each ranking, or ``(S, …, n)``, one for each document of it.
            rankings: ``(S, …, n)``, drawn from this policy.
            baseline: What b is: the mean of the values (``"mean"``, the paper's choice, which
                shrinks the gradient by (S-1)/S), the mean of the *other* values (``"loo"``,
                unbiased), or zero (None, unbiased and noisy).

        Returns:
            The mean, ``(…)`` or ``(…, n)``.
        """
        _check.permutations("expect", rankings, self.scores.shape, self.mask)
        _check.not_transformed("expect")
        samples = rankings.shape[0]
        if values.shape not in (rankings.shape[:-1], rankings.shape):
            raise ValueError(
                f"expect: values has shape {tuple(values.shape)}, rankings "
                f"{tuple(rankings.shape)}; give a value per ranking, or per document."
            )
        _check_baseline("expect", baseline, samples, reward_to_go=False)
        mean = values.mean(0)
        if not (torch.is_grad_enabled() and self.scores.requires_grad):
            return mean
        by_position = log_slopes(self.scores.detach(), rankings, self.mask)
        by_document = torch.zeros_like(by_position).scatter_(-1, rankings, by_position)
        # Zero as a number, so the mean keeps its value, and log pi's slope going backward.
        move = (by_document * (self.scores - self.scores.detach())).sum(-1)
        if values.ndim == rankings.ndim:
            move = move.unsqueeze(-1)
        return _with_slope(mean, _advantage(values, mean, baseline), move)

    def position_probs(self, tolerance: float = TOLERANCE) -> Tensor:
        """Exact probability of each position (chapter 4, eq-04-fourier).

        Args:
            tolerance: Order of the error, as in `exposure`.

        Returns:
            ``(…, n, n)`` [document, position], with a gradient; zero for padding.
        """
        _check.not_transformed("position_probs")
        probs = exact_position_probs(self.scores, self.mask, tolerance).to(self.dtype)
        if self.mask is None:
            return probs
        documents = self.mask.sum(-1, keepdim=True)
        is_taken = torch.arange(probs.shape[-1], device=probs.device) < documents
        return torch.where(self.mask.unsqueeze(-1) & is_taken.unsqueeze(-2), probs, 0.0)

    def _masked_scores(self) -> Tensor:
        """The scores, minus infinity for padding."""
        if self.mask is None:
            return self.scores
        return self.scores.masked_fill(~self.mask, -math.inf)


class DoublyStochastic:
    """The policy of a matrix that says how often each document stands at each position.

    What a linear programme returns. The matrix does not say which rankings are shown; this class
    draws them from a decomposition into permutations (`fairpg_lite.birkhoff`), one of many that
    have these probabilities.

    Args:
        matrix: ``(…, n, n)`` [document, position]; rows and columns of real documents sum to one.
        mask: ``(…, n)``, True for a real document; padding ranks last. None: all are real.

    >>> policy = DoublyStochastic(torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64))
    >>> policy.mode
    tensor([0, 1])
    >>> policy.exposure(torch.tensor([1.0, 0.0], dtype=torch.float64))
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """

    def __init__(self, matrix: Tensor, mask: Tensor | None = None):
        _check_matrix(matrix, mask)
        self.matrix = matrix
        self.mask = mask

    @classmethod
    def uniform(cls, n: int, dtype: torch.dtype | None = None) -> "DoublyStochastic":
        """Every one of ``n`` documents equally often at every position.

        These are the probabilities of drawing all n! rankings equally often, and so is exposure;
        the lists that are drawn here are n rankings in which each document takes each position
        once. What depends on whole rankings, such as ERR, can differ from that of all n!.
        """
        return cls(torch.full((n, n), 1.0 / n, dtype=dtype))

    def exposure(self, position_bias: Tensor | None = None) -> Tensor:
        """The position bias ``(…, n)`` that each document can expect; None is 1/log2(1+j)."""
        return self.matrix @ bias_like("exposure", position_bias, self.matrix)

    def position_probs(self) -> Tensor:
        """The matrix itself, ``(…, n, n)`` [document, position]."""
        return self.matrix

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        *,
        k: int | None = None,
    ) -> Tensor:
        """Draw rankings ``(*sample_shape, …, n)`` of the decomposition, or their first k places."""
        _check_sample_shape(sample_shape)
        if k is not None:
            _check_places("sample", k, self.matrix.shape[-1])
        count = math.prod(sample_shape)
        drawn = []
        for weights, query_rankings in self.lotteries:
            chosen = torch.multinomial(weights, count, replacement=True, generator=generator)
            drawn.append(query_rankings[chosen])
        batch_shape = self.matrix.shape[:-2]
        stacked = torch.stack(drawn, dim=1)
        rankings = stacked.view(*sample_shape, *batch_shape, self.matrix.shape[-1])
        return rankings[..., :k]

    @property
    def mode(self) -> Tensor:
        """The ranking ``(…, n)`` of the decomposition that is drawn most often."""
        heaviest = [rankings[weights.argmax()] for weights, rankings in self.lotteries]
        return torch.stack(heaviest).view(self.matrix.shape[:-1])

    @cached_property
    def lotteries(self) -> list[tuple[Tensor, Tensor]]:
        """Weights ``(L,)`` and rankings ``(L, n)`` of each query, queries in flattened order."""
        n = self.matrix.shape[-1]
        matrices = self.matrix.detach().double().cpu().reshape(-1, n, n)
        if self.mask is None:
            masks = torch.ones(matrices.shape[:-1], dtype=torch.bool)
        else:
            masks = self.mask.cpu().reshape(-1, n)
        lotteries = []
        for matrix, mask in zip(matrices, masks, strict=True):
            weights, rankings = _lottery(matrix, mask)
            lotteries.append((weights.to(self.matrix.device), rankings.to(self.matrix.device)))
        return lotteries

    def expected_value(self, metric: "Metric") -> Tensor:
        """The mean ``(…)`` of ``metric(rankings (S, …, n)) -> (S, …)`` over the decomposition."""
        longest = max(len(weights) for weights, _ in self.lotteries)
        weights = self.lotteries[0][0].new_zeros(longest, len(self.lotteries))
        rankings = self.mode.reshape(1, len(self.lotteries), -1).repeat(longest, 1, 1)
        for query, (query_weights, query_rankings) in enumerate(self.lotteries):
            weights[: len(query_weights), query] = query_weights
            rankings[: len(query_weights), query] = query_rankings
        batch_shape = self.matrix.shape[:-2]
        values = metric(rankings.view(longest, *self.matrix.shape[:-1]))
        return (weights.view(longest, *batch_shape).to(values) * values).sum(0)


class Mixture:
    """A lottery between policies: each ranking is drawn from one of them.

    Args:
        policies: Policies over the same documents.
        weights: The probability of each, ``(K,)``.

    >>> sorted_list = PlackettLuce(torch.tensor([9.0, 0.0]))
    >>> half_random = Mixture([sorted_list, DoublyStochastic.uniform(2)], [0.5, 0.5])
    >>> half_random.exposure(torch.tensor([1.0, 0.0]))
    tensor([0.7499, 0.2501])
    """

    def __init__(self, policies: Sequence[Policy], weights: Sequence[float] | Tensor):
        if len(policies) == 0:
            raise ValueError("Mixture: there are no policies; give one at least.")
        self.weights = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.shape != (len(policies),):
            raise ValueError(
                f"Mixture: weights has shape {tuple(self.weights.shape)} for {len(policies)} "
                "policies; give one weight for each."
            )
        if not bool((self.weights >= 0).all()):
            raise ValueError(f"Mixture: a weight is {self.weights.min().item()}; give 0 or more.")
        if abs(float(self.weights.sum()) - 1.0) > 1e-9:
            raise ValueError(
                f"Mixture: the weights sum to {self.weights.sum().item()}; they must sum to one."
            )
        self.policies = list(policies)
        self.mask = policies[0].mask
        for number, policy in enumerate(self.policies):
            if not _same_mask(policy.mask, self.mask):
                raise ValueError(
                    f"Mixture: policy {number} has another mask than the first; "
                    "mix policies over the same documents."
                )

    def exposure(self, position_bias: Tensor | None = None) -> Tensor:
        """The weighted mean ``(…, n)`` of the policies' exposures; None is 1/log2(1+j)."""
        return self._mean([policy.exposure(position_bias) for policy in self.policies])

    def position_probs(self) -> Tensor:
        """The weighted mean ``(…, n, n)`` of the policies' probabilities [document, position]."""
        return self._mean([policy.position_probs() for policy in self.policies])

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        *,
        k: int | None = None,
    ) -> Tensor:
        """Draw rankings ``(*sample_shape, …, n)``, each of its own policy, or their first k."""
        of_each = [first_places(policy, k, sample_shape, generator) for policy in self.policies]
        drawn = torch.stack(of_each)
        one_each = drawn[0, ..., 0]
        chosen = torch.multinomial(
            self.weights, one_each.numel(), replacement=True, generator=generator
        )
        index = chosen.view(1, *one_each.shape, 1).expand(1, *drawn.shape[1:])
        return drawn.gather(0, index.to(drawn.device)).squeeze(0)

    @property
    def mode(self) -> Tensor:
        """The mode ``(…, n)`` of the policy with the largest weight.

        A convention: the most probable ranking of a mixture may be another.
        """
        return self.policies[int(self.weights.argmax())].mode

    def _mean(self, values: list[Tensor]) -> Tensor:
        total = torch.zeros_like(values[0])
        for weight, value in zip(self.weights.tolist(), values, strict=True):
            total = total + weight * value
        return total


class FixedRanking:
    """The policy that always shows the same list.

    Args:
        ranking: ``(…, n)``, the document at each position, padding last.
        mask: ``(…, n)``, True for a real document. None: all are real.
        dtype: Number format of exposure and probabilities; None is torch's default.

    >>> FixedRanking(torch.tensor([2, 0, 1])).exposure(torch.tensor([1.0, 0.5, 0.0]))
    tensor([0.5000, 0.0000, 1.0000])
    """

    def __init__(
        self, ranking: Tensor, mask: Tensor | None = None, dtype: torch.dtype | None = None
    ):
        _check.permutations("FixedRanking", ranking, ranking.shape, mask)
        self.mode = ranking
        self.mask = mask
        self.dtype = dtype or torch.get_default_dtype()

    def exposure(self, position_bias: Tensor | None = None) -> Tensor:
        """The position bias ``(…, n)`` at each document's position; None is 1/log2(1+j)."""
        like = torch.empty(self.mode.shape[-1], dtype=self.dtype, device=self.mode.device)
        bias = bias_like("exposure", position_bias, like)
        return ranking_exposure(self.mode, bias, self.mask)

    def position_probs(self) -> Tensor:
        """One for each document's position ``(…, n, n)`` [document, position]; padding has none."""
        position_of = self.mode.argsort(-1)
        probs = torch.nn.functional.one_hot(position_of, self.mode.shape[-1]).to(self.dtype)
        return probs if self.mask is None else probs * self.mask.unsqueeze(-1)

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        *,
        k: int | None = None,
    ) -> Tensor:
        """The one ranking, ``(*sample_shape, …, n)``, or its first k places."""
        _check_sample_shape(sample_shape)
        if k is not None:
            _check_places("sample", k, self.mode.shape[-1])
        return self.mode.expand(*sample_shape, *self.mode.shape)[..., :k]

    def expected_value(self, metric: "Metric") -> Tensor:
        """The value ``(…)`` of ``metric(rankings (S, …, n)) -> (S, …)`` of the one ranking."""
        return metric(self.mode.unsqueeze(0)).squeeze(0)


def _advantage(values: Tensor, mean: Tensor, baseline: str | None) -> Tensor:
    """Values ``(S, …)`` less their baseline, given their mean ``(…)``."""
    samples = len(values)
    advantage = values.detach()
    if baseline is not None:
        advantage = advantage - mean.detach()
    if baseline == "loo":
        # What the mean of the others leaves: v - (sum - v)/(S - 1) = S/(S - 1) (v - mean).
        advantage = advantage * (samples / (samples - 1))
    return advantage


def _with_slope(mean: Tensor, advantage: Tensor, move: Tensor) -> Tensor:
    """The mean, which goes backward as the mean over samples of advantage times move.

    ``move`` is zero as a number and has the slope of log pi.
    """
    estimate = mean + (advantage * move).mean(0)
    estimate.register_hook(lambda _: _check.differentiable_once("a mean over sampled rankings"))
    return estimate


class Metric(Protocol):
    """A number for each ranking of a batch of queries."""

    def __call__(self, rankings: Tensor, /) -> Tensor:
        """Values ``(S, …)`` of rankings ``(S, …, n)``."""
        ...


def first_places(
    policy: Policy,
    k: int | None,
    sample_shape: tuple[int, ...] = (),
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the first k places from any policy.

    Args:
        policy: One of this module, which draws no more than it must, or one of your own, whose
            rankings are cut.
        k: How many places; None is the whole list.
        sample_shape: Axes of the draws, in front of those of the queries.
        generator: Where the draws come from; None is torch's own stream.

    Returns:
        ``(*sample_shape, …, k)``: the document at each position.

    >>> first_places(FixedRanking(torch.tensor([2, 0, 1])), 2)
    tensor([2, 0])
    """
    if k is None:
        return policy.sample(sample_shape, generator)
    if isinstance(policy, PlackettLuce | DoublyStochastic | Mixture | FixedRanking):
        return policy.sample(sample_shape, generator, k=k)
    _check_places("first_places", k, policy.mode.shape[-1])
    return policy.sample(sample_shape, generator)[..., :k]


def log_steps(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Log-probability of each draw ``(S, …, n)``: score less log of what remains."""
    placed, is_safe = _scores_by_position(scores, rankings, mask)
    if is_safe:
        log_remaining = placed.exp().flip(-1).cumsum(-1).flip(-1).log()
    else:
        log_remaining = placed.flip(-1).logcumsumexp(-1).flip(-1)
    return torch.where(placed > -math.inf, placed - log_remaining, 0.0)


def log_first_steps(masked_scores: Tensor, places: Tensor) -> Tensor:
    """Log-probability of each of the first k draws ``(S, …, k)``; padding has score -inf."""
    scores = masked_scores - masked_scores.detach().amax(-1, keepdim=True)
    scores = scores.expand(*places.shape[:-1], scores.shape[-1])
    placed = scores.gather(-1, places)
    not_shown = scores.scatter(-1, places, -math.inf)
    # Documents from the end of the list to its beginning, those that are not shown before them.
    from_behind = torch.cat([not_shown.logsumexp(-1, keepdim=True), placed.flip(-1)], dim=-1)
    log_remaining = from_behind.logcumsumexp(-1)[..., 1:].flip(-1)
    return torch.where(placed > -math.inf, placed - log_remaining, 0.0)


def log_slopes(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Derivative of log pi by the score of the document at each position ``(S, …, n)``."""
    placed, is_safe = _scores_by_position(scores, rankings, mask)
    if is_safe:
        weight = placed.exp()
        remaining = weight.flip(-1).cumsum(-1).flip(-1)
        picked = weight * remaining.reciprocal().cumsum(-1)
    else:
        log_remaining = placed.flip(-1).logcumsumexp(-1).flip(-1)
        picked = (placed + torch.logcumsumexp(-log_remaining, -1)).exp()
    return torch.where(placed > -math.inf, 1.0 - picked, 0.0)


def _scores_by_position(
    scores: Tensor, rankings: Tensor, mask: Tensor | None
) -> tuple[Tensor, bool]:
    """Scores by position ``(S, …, n)``, padding -inf; and whether plain exponentials are safe."""
    shifted = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    shifted = shifted - shifted.detach().amax(-1, keepdim=True)
    real_scores = shifted.detach() if mask is None else shifted.detach()[mask]
    lowest_safe = 0.8 * math.log(torch.finfo(scores.dtype).tiny)
    is_safe = real_scores.numel() == 0 or float(real_scores.amin()) > lowest_safe
    return shifted.expand(rankings.shape).gather(-1, rankings), is_safe


def _lottery(matrix: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``(L,)`` and rankings ``(L, n)`` of one query, padding last."""
    real = mask.nonzero().squeeze(-1)
    padding = (~mask).nonzero().squeeze(-1)
    block = matrix[real][:, : len(real)]
    weights, places = decompose(block.numpy())
    rankings = real[torch.from_numpy(places)]
    behind = padding.expand(len(rankings), len(padding))
    return torch.from_numpy(weights), torch.cat([rankings, behind], dim=-1)


def _same_mask(first: Tensor | None, second: Tensor | None) -> bool:
    """Whether two masks say the same; None is all True."""
    if first is None or second is None:
        given = second if first is None else first
        return given is None or bool(given.all())
    return torch.equal(first, second)


def _check_places(where: str, k: int, n: int) -> None:
    if not _check.is_whole(k) or k < 1:
        raise ValueError(f"{where}: k is {k!r}; give a whole number from 1.")
    if k > n:
        raise ValueError(f"{where}: k is {k} and there are {n} documents; give at most {n}.")


def _check_baseline(where: str, baseline: str | None, samples: int, reward_to_go: bool) -> None:
    """Refuse an unknown baseline, and one that so many samples do not have."""
    if baseline == "uniform" and not reward_to_go:
        raise ValueError(
            f"{where}: baseline='uniform' is one for each draw, which needs reward_to_go=True of "
            "sampled_exposure; choose 'mean', 'loo' or None."
        )
    if baseline not in BASELINES:
        raise ValueError(f"{where}: baseline is {baseline!r}; choose 'mean', 'loo' or None.")
    if samples == 0:
        raise ValueError(f"{where}: there are 0 samples, which have no mean; draw one at least.")
    if baseline in ("mean", "loo") and samples < 2:
        raise ValueError(
            f"{where}: {samples} sample(s) with baseline={baseline!r}; draw two at least, "
            "or choose baseline=None."
        )


def _check_sample_shape(sample_shape: tuple[int, ...]) -> None:
    if not isinstance(sample_shape, tuple | list | torch.Size):
        raise TypeError(f"sample: sample_shape is {sample_shape!r}; give a tuple, such as (10,).")
    if not all(_check.is_whole(size) and size >= 1 for size in sample_shape):
        raise ValueError(f"sample: sample_shape is {sample_shape}; give whole numbers from 1.")


def _check_matrix(matrix: Tensor, mask: Tensor | None) -> None:
    """Refuse what is not doubly stochastic on its real documents, to 1e-6."""
    _check.floating("DoublyStochastic", "matrix", matrix)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(
            f"DoublyStochastic: matrix has shape {tuple(matrix.shape)}; "
            "give a row for each document and as many columns, one for each position."
        )
    _check.real_documents("DoublyStochastic", mask, matrix[..., 0])
    _check.finite("DoublyStochastic", "matrix", matrix)
    if bool((matrix < -1e-9).any()):
        index = (matrix < -1e-9).nonzero()[0].tolist()
        raise ValueError(
            f"DoublyStochastic: matrix{index} is {matrix[tuple(index)].item()}; "
            "a probability cannot be negative."
        )
    everyone = torch.ones_like(matrix[..., 0], dtype=torch.bool)
    is_real = everyone if mask is None else mask
    positions = torch.arange(matrix.shape[-1], device=matrix.device)
    is_taken = positions < is_real.sum(-1, keepdim=True)
    for name, sums, expected in (
        ("row", matrix.sum(-1), is_real),
        ("column", matrix.sum(-2), is_taken),
    ):
        off = (sums - expected.to(sums.dtype)).abs() > 1e-6
        if bool(off.any()):
            index = off.nonzero()[0].tolist()
            wanted = int(expected[tuple(index)])
            raise ValueError(
                f"DoublyStochastic: {name} {index} sums to {sums[tuple(index)].item():.9g}; it "
                f"must sum to {wanted} (documents are rows, positions are columns)."
            )
