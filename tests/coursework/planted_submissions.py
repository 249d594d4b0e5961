"""Submissions to the coursework, right ones in several styles and wrong ones as people write them.

None of the wrong ones may pass, none of the right ones may be refused, whatever the seed:
test_coursework.py.
"""

import itertools
import math
from functools import partial

import numpy as np
import torch
from oracles import position_probs_by_subsets

import checker as coursework
import fairpg_lite as fpg

# --- right answers, each by a way of its own: what the wrong ones below depart from ---------


def bias(n):
    return torch.tensor([1 / math.log2(1 + j) for j in range(1, n + 1)])


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


def loop(
    data,
    lam,
    lr,
    epochs,
    samples,
    seed,
    *,
    sign=-1.0,
    scale=1.0,
    group=fpg.group_disparity,
    per_list=False,
):
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
            if per_list:  # the disparity of each list as a negative reward: chapter 7
                each = torch.stack([group(one, relevance, groups) for one in paid])
                reward = paid @ (gain / ideal) - lam * each
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


# --- right answers in other styles ---------------------------------------------------------------


def in_single_precision(function):
    """As somebody writes it who thinks in float32; the answer is float32 too."""

    def answer(*inputs):
        narrow = [x.float() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
        return torch.as_tensor(function(*narrow)).float()

    return answer


def numpy_probability(scores, ranking):
    placed = np.asarray(scores)[np.asarray(ranking)]
    return np.exp(sum(placed[k] - np.logaddexp.reduce(placed[k:]) for k in range(len(placed))))


def single_probability(scores, ranking):
    placed = np.asarray(scores, dtype=np.float32)[np.asarray(ranking)]
    terms = [placed[k] - np.logaddexp.reduce(placed[k:]) for k in range(len(placed))]
    return np.exp(np.sum(terms, dtype=np.float32))


def vectorised_probability(scores, ranking):
    placed = scores[ranking]
    return (placed - placed.flip(0).logcumsumexp(0).flip(0)).sum().exp()


def numpy_sampler(scores, samples, generator):
    u = torch.rand(samples, len(scores), generator=generator).numpy()
    return np.argsort(-(scores.numpy() - np.log(-np.log(u))), axis=1)


def looped_sampler(scores, samples, generator):
    """One document after the other, by the inverse of the distribution function."""
    uniform = torch.rand(samples, len(scores), generator=generator).tolist()
    rows, s = [], scores.tolist()
    for row in uniform:
        left, drawn = list(range(len(s))), []
        for u in row:
            top = max(s[i] for i in left)
            weights = [math.exp(s[i] - top) for i in left]
            total, place = u * sum(weights), 0
            while place < len(left) - 1 and total >= weights[place]:
                total -= weights[place]
                place += 1
            drawn.append(left.pop(place))
        rows.append(drawn)
    return rows


def numpy_payments(rankings):
    rankings = np.asarray(rankings)
    paid = np.empty(rankings.shape)
    v = 1 / np.log2(np.arange(2, rankings.shape[1] + 2))
    np.put_along_axis(paid, rankings, np.broadcast_to(v, rankings.shape), axis=1)
    return paid.mean(0)


def pure_python_race(scores):
    """The race with lists and loops alone."""
    top = max(scores.tolist())
    w = [math.exp(s - top) for s in scores.tolist()]
    w = [x / sum(w) for x in w]
    n, h = len(w), 0.3
    exposure = [0.0] * n
    x, last = -3.7, math.log(40) - math.log(min(w))
    while x < last:
        t = math.exp(x - math.exp(-x))
        dt = t * (1 + math.exp(-x)) * h
        for i in range(n):
            ahead = [1.0] + [0.0] * (n - 1)
            for j in range(n):
                if j != i:
                    p = 1 - math.exp(-w[j] * t)
                    ahead = [
                        (1 - p) * a + p * b for a, b in zip(ahead, [0.0, *ahead[:-1]], strict=True)
                    ]
            pay = sum(a / math.log2(k + 2) for k, a in enumerate(ahead))
            exposure[i] += w[i] * math.exp(-w[i] * t) * pay * dt
        x += h
    return exposure


def torch_race(scores):
    """The race in one go, in whatever precision the scores have."""
    n = len(scores)
    w = scores.softmax(-1)
    x = torch.arange(-3.7, math.log(40) - math.log(float(w.min())), 0.25, dtype=scores.dtype)
    t = torch.exp(x - torch.exp(-x))
    dt = t * (1 + torch.exp(-x)) * 0.25
    exposure = []
    for i in range(n):
        ahead = torch.zeros(len(t), n, dtype=scores.dtype)
        ahead[:, 0] = 1
        for j in range(n):
            if j != i:
                p = -torch.expm1(-w[j] * t)[:, None]
                ahead = (1 - p) * ahead + p * ahead.roll(1, -1)
        paid = ahead @ bias(n).to(scores.dtype)
        exposure.append((w[i] * torch.exp(-w[i] * t) * paid * dt).sum())
    return torch.stack(exposure)


def numpy_d_ind(exposure, merit, mask=None):
    v, m = np.asarray(exposure), np.asarray(merit)
    keep = m > 0 if mask is None else (m > 0) & np.asarray(mask)
    v, m = v[keep], m[keep]
    pairs = m[:, None] >= m
    if not pairs.any():
        return 0.0
    ratio = v / m
    return np.maximum(ratio[:, None] - ratio, 0)[pairs].mean()


def numpy_d_group(exposure, merit, groups, mask=None):
    v, m, g = (np.asarray(x) for x in (exposure, merit, groups))
    keep = np.ones(len(v), bool) if mask is None else np.asarray(mask)
    total = {k: (v[keep & (g == k)].sum(), m[keep & (g == k)].sum()) for k in (0, 1)}
    size = {k: (keep & (g == k)).sum() for k in (0, 1)}
    if total[0][1] == 0 or total[1][1] == 0:
        return 0
    gap = total[0][0] / total[0][1] - total[1][0] / total[1][1]
    lead = total[0][1] / size[0] - total[1][1] / size[1]
    return abs(gap) if lead == 0 else max(0.0, gap if lead > 0 else -gap)


def autograd_gradient(scores, relevance, rankings):
    s = scores.clone().requires_grad_()
    values = ((2**relevance - 1)[rankings] * bias(len(scores))).sum(-1)
    log_p = fpg.PlackettLuce(s).log_prob(rankings)
    ((values - values.mean()) * log_p).mean().backward()
    return s.grad


def module_loop(data, lam, lr, epochs, samples, seed):
    order = torch.Generator().manual_seed(2 * seed)
    draws = torch.Generator().manual_seed(2 * seed + 1)
    theta = torch.zeros(data.n_features, requires_grad=True)
    for _ in range(epochs):
        for batch in data.batches(1, True, order):
            policy = fpg.PlackettLuce(batch.features @ theta)
            rankings = policy.sample((samples,), draws)
            v = sampled_exposure(policy, rankings)
            u = fpg.expected_ndcg(v, batch.relevance)
            d = fpg.group_disparity(v, batch.relevance, batch.groups)
            (step,) = torch.autograd.grad((u - lam * d).sum(), theta)
            theta = (theta + lr * step).detach().requires_grad_()
    return theta.detach().numpy()


def gap_of_shares(exposure, merit, groups, mask):
    """A right answer to task 8: the group's share of exposure less its share of merit, squared."""
    return signed_gap(exposure, merit, groups, mask).square()


def squared_shares(exposure, merit, groups, mask):
    """A right answer to task 8 that needs no groups: squares of what is missing."""
    real = torch.ones_like(exposure) if mask is None else mask.to(exposure.dtype)
    v, m = exposure * real, merit * real
    due = v.sum(-1, keepdim=True) * m / m.sum(-1, keepdim=True).clamp(min=1e-12)
    return (v - due).square().sum(-1) / real.sum(-1)


def enumerated(scores, value):
    """With the module's probabilities, which task 1b allows."""
    rankings = torch.tensor(list(itertools.permutations(range(len(scores)))))
    p = fpg.PlackettLuce(scores).log_prob(rankings).exp()
    return sum(p[k] * value(r) for k, r in enumerate(rankings))


#: Right answers that must not be refused, by task.
STYLES = {
    "1a NumPy": ("task1a", numpy_probability),
    "1a vectorised": ("task1a", vectorised_probability),
    "1a float32": ("task1a", in_single_precision(vectorised_probability)),
    "1a NumPy float32": ("task1a", single_probability),
    "1a a plain number": ("task1a", lambda s, r: float(vectorised_probability(s.float(), r))),
    "2 NumPy": ("task2", numpy_sampler),
    "2 loops": ("task2", looped_sampler),
    "2 float32": ("task2", in_single_precision(sampler)),
    "3a NumPy": ("task3a", numpy_payments),
    "3a float32": ("task3a", in_single_precision(sampled)),
    "3b pure Python": ("task3b", pure_python_race),
    "3b float32": ("task3b", in_single_precision(torch_race)),
    "4b NumPy": ("task4b", numpy_d_ind),
    "4b float32": ("task4b", in_single_precision(d_ind)),
    "4c NumPy": ("task4c", numpy_d_group),
    "4c float32": ("task4c", in_single_precision(d_group)),
    "5 autograd": ("task5", autograd_gradient),
    "5 float32": ("task5", in_single_precision(dcg_gradient)),
    "6 module": ("task6", module_loop),
    "7a rounded": ("task7a", lambda *x: [[round(v, 3) for v in row] for row in sweep(*x)]),
    "7a tensor": ("task7a", lambda *x: torch.tensor(sweep(*x))),
    "8 squares": ("task8", squared_shares),
    "8 gap of shares": ("task8", gap_of_shares),
    "1b module": ("task1b", lambda s, value: enumerated(s, value)),
}


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


def with_enumeration(scores):
    return expectation(scores, lambda r: payments(torch.tensor([r]))[0])


def with_all_lists_at_once(scores):
    rankings = torch.tensor(list(itertools.permutations(range(len(scores)))))
    placed = scores[rankings]
    log_p = (placed - placed.flip(-1).logcumsumexp(-1).flip(-1)).sum(-1)
    return log_p.exp() @ bias(len(scores))[rankings.argsort(-1)]


def antithetic(scores, samples, generator):
    u = torch.rand((samples + 1) // 2, len(scores), generator=generator)
    u = torch.cat([u, 1 - u])[:samples]
    return (scores - torch.log(-torch.log(u))).argsort(-1, descending=True)


def three_places(scores, samples, generator):
    drawn = gumbel(1, scores, samples, generator)
    rest = drawn[:, 3:]
    order = scores[rest].argsort(-1, descending=True)
    return torch.cat([drawn[:, :3], rest.gather(-1, order)], -1)


def through_fit(data, lam, lr, epochs, samples, seed):
    scorer = fpg.LinearScorer(data.n_features, init=0.0)
    fpg.fit(
        scorer,
        data,
        fpg.TrainConfig(lam=lam, lr=lr, epochs=epochs, samples=samples, seed=seed, optimizer="sgd"),
        progress=False,
    )
    return scorer.linear.weight[0].detach()


def one_stream(data, lams):
    g = torch.Generator().manual_seed(0)
    rows = []
    for lam in lams:
        scorer = fpg.LinearScorer(data.n_features, generator=g)
        fpg.fit(scorer, data, coursework.settings(lam), progress=False)
        result = fpg.evaluate(scorer, data)
        rows.append([round(result.ndcg, 3), round(result.d_group, 3)])
    return rows


def nan_without_merit(exposure, merit, groups, mask=None):
    if merit.sum() == 0:
        return torch.tensor(float("nan"))
    return d_group(exposure, merit, groups, mask)


def share_of_nothing(exposure, merit, groups, mask):
    if mask is not None:
        exposure, merit = exposure * mask, merit * mask
    return (
        (exposure / exposure.sum(-1, keepdim=True) - merit / merit.sum(-1, keepdim=True))
        .abs()
        .sum(-1)
    )


def nearly_d_ind(exposure, merit, groups, mask):
    small = 1e-4 * fpg.group_disparity(exposure, merit, groups, mask=mask)
    return fpg.individual_disparity(exposure, merit, mask=mask) + small


def with_multinomial(scores, samples, generator):
    p = scores.softmax(-1).expand(samples, -1)
    return torch.multinomial(p, len(scores), generator=generator)


def signed_gap(exposure, merit, groups, mask):
    """Group 0's share of exposure less its share of merit: negative when group 1 is ahead."""
    real = torch.ones_like(exposure) if mask is None else mask.to(exposure.dtype)
    first = (groups == 0) * real
    paid = (exposure * first).sum(-1) / (exposure * real).sum(-1)
    due = (merit * first).sum(-1) / (merit * real).sum(-1).clamp(min=1e-9)
    return paid - due


def below_floor(exposure, merit, groups, mask=None):
    """Chapter 7's own example."""
    if mask is not None:
        exposure, merit = exposure * mask, merit * mask
    share = exposure / exposure.sum(-1, keepdim=True)
    total = merit.sum(-1, keepdim=True).clamp(min=1e-9)
    return (0.75 * merit / total - share).relu().sum(-1)


def relevant_only(exposure, merit, groups, mask=None):
    """D_group over documents with merit alone, as in the authors' code."""
    keep = merit > 0 if mask is None else (merit > 0) & mask
    return d_group(exposure[keep], merit[keep], groups[keep])


def mean_of_ratios(exposure, merit, groups, mask=None):
    if mask is not None:
        exposure, merit, groups = exposure[mask], merit[mask], groups[mask]
    sides = [groups == k for k in (0, 1)]
    if any(not side.any() or merit[side].sum() == 0 for side in sides):
        return torch.zeros(())
    ratio = [(exposure[side] / merit[side])[merit[side] > 0].mean() for side in sides]
    means = [merit[side].mean() for side in sides]
    if means[0] == means[1]:
        return (ratio[0] - ratio[1]).abs()
    high = 0 if means[0] > means[1] else 1
    return (ratio[high] - ratio[1 - high]).relu()


def no_nan(function):
    """Multiplies by the mask, so that NaN in the padding spreads."""

    def answer(exposure, merit, *rest):
        mask = rest[-1] if rest else None
        if mask is None:
            return function(exposure, merit, *rest)
        value = function(exposure, merit, *rest)
        return value + 0 * (exposure * mask).sum()

    return answer


def by_arrival(scores, samples, generator):
    """Arrival times -log U / exp(s): ties where two scores underflow."""
    u = torch.rand(samples, len(scores), generator=generator)
    return (-u.log() / scores.exp()).argsort(-1)


def sampled_not_exact(scores):
    g = torch.Generator()
    g.seed()
    return sampled(sampler(scores, 2000, g))


def student_loop(data, lam, lr, epochs, samples, seed, *, variant=""):
    """Task 6 with torch's optimisers and autograd, and one of the usual slips."""
    order = torch.Generator().manual_seed(2 * seed)
    draws = torch.Generator().manual_seed(2 * seed + 1)
    theta = torch.zeros(data.n_features, requires_grad=True)
    kind = torch.optim.Adam if variant == "Adam" else torch.optim.SGD
    optimizer = kind([theta], lr=lr)
    for _ in range(epochs):
        if variant == "one step per epoch":
            optimizer.zero_grad()
        for batch in data.batches(1, True, order):
            if variant == "reseeded":
                draws = torch.Generator().manual_seed(2 * seed + 1)
            policy = fpg.PlackettLuce(batch.features @ theta)
            stream = None if variant == "draws not used" else draws
            rankings = policy.sample((samples,), stream)
            v = sampled_exposure(policy, rankings)
            again = v
            if variant == "second draw":
                again = sampled_exposure(policy, policy.sample((samples,), draws))
            if variant == "exact":
                v = again = policy.exposure()
            merit = batch.relevance
            if variant == "merit is gain":
                merit = 2**merit - 1
            u = fpg.expected_ndcg(v, batch.relevance)
            d = fpg.group_disparity(again, merit, batch.groups)
            loss = -(u - lam * d).sum()
            if variant not in ("not zeroed", "one step per epoch"):
                optimizer.zero_grad()
            loss.backward()
            if variant != "one step per epoch":
                optimizer.step()
        if variant == "one step per epoch":
            optimizer.step()
    return theta.detach()


def sampled_exposure(policy, rankings):
    return policy.sampled_exposure(rankings=rankings)


def positives(exposure, merit, mask):
    """|H| over the number of its pairs with a positive term."""
    n = range(len(merit)) if mask is None else torch.nonzero(mask).flatten().tolist()
    pairs = [(i, j) for i in n for j in n if merit[i] >= merit[j] > 0]
    ahead = [exposure[i] / merit[i] > exposure[j] / merit[j] for i, j in pairs]
    return len(pairs) / max(1, sum(map(bool, ahead)))


def gradient_with_exp(scores, relevance, rankings):
    """The formula for the slope of log pi as it stands in chapter 3: exp of the scores."""
    n = len(scores)
    slopes = torch.zeros(rankings.shape)
    for row, ranking in zip(slopes, rankings, strict=True):
        for k in range(n):
            left = ranking[k:]
            row[ranking[k]] += 1
            row[left] -= scores[left].exp() / scores[left].exp().sum()
    gain = 2**relevance - 1
    values = (gain[rankings] * bias(n)).sum(-1)
    return ((values - values.mean())[:, None] * slopes).mean(0)


def best_dcg(relevance):
    gain = 2**relevance - 1
    return (gain.sort(descending=True).values * bias(len(gain))).sum()


HALF = "not at the edges"
OWN = "asks for lines of your own"
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
    "2 duplicated": (
        "task2",
        lambda s, n, g: gumbel(1, s, (n + 1) // 2, g).repeat(2, 1)[:n],
        "repeat each other",
    ),
    "2 interleaved": (
        "task2",
        lambda s, n, g: gumbel(1, s, (n + 1) // 2, g).repeat_interleave(2, 0)[:n],
        "repeat each other",
    ),
    "2 antithetic": ("task2", antithetic, "are opposites of each other"),
    "2 three places": ("task2", three_places, "From place 4 on"),
    "2 warm": ("task2", lambda s, n, g: gumbel(1.03, s, n, g), "is there a temperature"),
    "2 cold": ("task2", lambda s, n, g: gumbel(0.97, s, n, g), "is there a temperature"),
    "3a natural log": (
        "task3a",
        lambda r: sampled(r) / math.log(2),
        "natural logarithm",
    ),
    "3a a factor": ("task3a", lambda r: sampled(r) * math.log(2), ".6931 times the right one"),
    "3a always 0": ("task3a", lambda r: 0 * sampled(r), "Your answer is 0 on every input."),
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
    "3b enumeration": ("task3b", with_enumeration, "all n! rankings is too slow"),
    "3b all at once": ("task3b", with_all_lists_at_once, "all n! rankings is too slow"),
    "3b sampled": ("task3b", sampled_not_exact, "something is drawn at random"),
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
    "4c NaN": ("task4c", nan_without_merit, "nobody has merit"),
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
    "6 per list": (
        "task6",
        lambda *x: loop(*x, per_list=True),
        "for each ranking and then averaged",
    ),
    "6 through fit": ("task6", through_fit, "calls `fit`"),
    "7a one generator": ("task7a", one_stream, "share one generator"),
    "7a carried on": ("task7a", lambda *x: sweep(*x, fresh=False), "Make a new scorer"),
    "7a swapped": ("task7a", lambda *x: sweep(*x, figures=("d_group", "ndcg")), "swapped"),
    "8 copied": ("task8", lambda v, m, g, k: fpg.group_disparity(v, m, g, mask=k), "D_group up to"),
    "8 scaled copy": (
        "task8",
        lambda v, m, g, k: 7 * fpg.individual_disparity(v, m, mask=k),
        "D_ind",
    ),
    "8 nearly a copy": ("task8", nearly_d_ind, "D_ind up to a factor, or so near"),
    "8 NaN": ("task8", share_of_nothing, "nobody in a query has merit"),
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
    "1a module": (
        "task1a",
        lambda s, r: fpg.PlackettLuce(s).log_prob(r).exp(),
        f"`PlackettLuce.log_prob` of fairpg_lite. This task {OWN}",
    ),
    "2 module": ("task2", lambda s, n, g: fpg.PlackettLuce(s).sample((n,), g), OWN),
    "3a module": (
        "task3a",
        lambda r: fpg.ranking_exposure(r, bias(r.shape[1])).mean(0),
        OWN,
    ),
    "3b module": ("task3b", lambda s: fpg.PlackettLuce(s).exposure(), OWN),
    "4b module": (
        "task4b",
        lambda v, m, mask=None: fpg.individual_disparity(v, m, mask=mask),
        OWN,
    ),
    "4c module": (
        "task4c",
        lambda v, m, g, mask=None: fpg.group_disparity(v, m, g, mask=mask),
        OWN,
    ),
    "1a negated": ("task1a", lambda s, r: probability(-s, r), "wrong sign"),
    "1a ranking ignored": (
        "task1a",
        lambda s, r: probability(s, torch.arange(len(s))),
        "no effect",
    ),
    "2 arrival": ("task2", by_arrival, HALF),
    "4b NaN": ("task4b", no_nan(lambda v, m, mask=None: d_ind(v, m, mask)), "holds NaN"),
    "4b positives": (
        "task4b",
        lambda v, m, mask=None: d_ind(v, m, mask) * positives(v, m, mask),
        "mean of the positive terms",
    ),
    "4c relevant only": ("task4c", relevant_only, "Only documents with merit are counted"),
    "4c mean of ratios": ("task4c", mean_of_ratios, "ratio of the means"),
    "4c NaN in padding": ("task4c", no_nan(d_group), "holds NaN"),
    "5 overflow": ("task5", gradient_with_exp, HALF),
    "5 inverse": (
        "task5",
        lambda s, rel, r: dcg_gradient(s, rel, r.argsort(-1)),
        "holds documents",
    ),
    "5 NDCG": (
        "task5",
        lambda s, rel, r: dcg_gradient(s, rel, r) / best_dcg(rel),
        "the task asks for DCG",
    ),
    "5 largest": (
        "task5",
        lambda *x: dcg_gradient(*x, baseline=torch.max),
        "the baseline is the mean",
    ),
    "6 not zeroed": ("task6", partial(student_loop, variant="not zeroed"), "add up"),
    "6 draws not used": ("task6", partial(student_loop, variant="draws not used"), "`draws`"),
    "6 exact": ("task6", partial(student_loop, variant="exact"), "The exposure is exact"),
    "6 second draw": ("task6", partial(student_loop, variant="second draw"), "drawn twice"),
    "6 reseeded": ("task6", partial(student_loop, variant="reseeded"), "seeded once"),
    "6 Adam": ("task6", partial(student_loop, variant="Adam"), "Adam's"),
    "6 one step": (
        "task6",
        partial(student_loop, variant="one step per epoch"),
        "one step per epoch",
    ),
    "6 merit is gain": ("task6", partial(student_loop, variant="merit is gain"), "for merit"),
    "8 signed": ("task8", signed_gap, "negative"),
    "8 blind to group 1": ("task8", lambda *x: signed_gap(*x).relu(), "group 1 stands on top"),
    "8 blind to group 0": ("task8", lambda *x: (-signed_gap(*x)).relu(), "group 0 stands on top"),
    "8 the chapter's": ("task8", below_floor, "`below_floor` up to a factor"),
    "8 squared": (
        "task8",
        lambda v, m, g, k: fpg.group_disparity(v, m, g, mask=k).square(),
        "a function of D_group",
    ),
    "8 sum": (
        "task8",
        lambda v, m, g, k: (
            fpg.group_disparity(v, m, g, mask=k) + fpg.individual_disparity(v, m, mask=k)
        ),
        "a sum of D_ind and D_group",
    ),
}
#: The marks of wrong answers that are right on ordinary inputs, or keep the first rules of task 8.
HALF_MARKS = {
    "1a overflow",
    "1a underflow",
    "2 underflow",
    "2 arrival",
    "3b enumeration",
    "3b all at once",
    "4b no mask",
    "4b no merit bar",
    "4b breaks",
    "4b NaN",
    "4c no mask",
    "4c NaN",
    "4c NaN in padding",
    "5 overflow",
    "8 copied",
    "8 scaled copy",
    "8 nearly a copy",
    "8 NaN",
    "8 no mask",
    "8 the chapter's",
    "8 squared",
    "8 sum",
}
