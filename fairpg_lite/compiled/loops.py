"""What `fairpg_lite.compiled` runs: epochs of updates of a linear scorer or one hidden layer.

Parameters are one vector: weights ``(h, d)`` and, of a hidden layer, ``(h,)`` biases and weights of
the output.
"""

import inspect
import math
import zlib
from itertools import pairwise
from types import FunctionType

import numpy as np

from fairpg_lite.compiled import kernels as compiled_kernels
from fairpg_lite.compiled.kernels import compiled, entropy, exact, log_weights, sampled

# Moments below this count as zero; they would become denormal numbers, eighty times as slow.
_TINY = 1e-30
# Into so many parts a large batch is divided.
_PARTS = 8


@compiled
def forward(x, theta, hidden, layer, scores):
    """Scores ``(n,)``; ``layer (n, h)`` keeps what comes out of the first layer."""
    n, h, d, zero = len(x), layer.shape[1], x.shape[1], theta.dtype.type(0)
    w = theta[: h * d].reshape((h, d))
    for i in range(n):
        for c in range(h % 4):
            total = zero
            for k in range(d):
                total += x[i, k] * w[c, k]
            layer[i, c] = scores[i] = total
    for c in range(h % 4, h, 4):  # units in fours: a document is read once for all of them
        for i in range(n):
            s0 = s1 = s2 = s3 = zero
            for k in range(d):
                s0 += x[i, k] * w[c, k]
                s1 += x[i, k] * w[c + 1, k]
                s2 += x[i, k] * w[c + 2, k]
                s3 += x[i, k] * w[c + 3, k]
            layer[i, c], layer[i, c + 1], layer[i, c + 2], layer[i, c + 3] = s0, s1, s2, s3
    if hidden > 0:
        for i in range(n):
            total = zero
            for c in range(h):
                layer[i, c] = max(layer[i, c] + theta[h * d + c], zero)
            for c in range(h):
                total += layer[i, c] * theta[h * d + h + c]
            scores[i] = total


@compiled
def backward(x, theta, hidden, layer, slope, grad):
    """Add to ``grad`` the gradient by the parameters, given that by the scores."""
    n, h, d, zero = len(x), layer.shape[1], x.shape[1], theta.dtype.type(0)
    by_w, active, pull = grad[: h * d].reshape((h, d)), np.empty(n + 3, np.int64), np.empty(n + 3)
    for c in range(h):
        count = 0
        for i in range(n):
            g = slope[i]
            if hidden > 0:
                grad[h * d + h + c] += g * layer[i, c]
                g *= theta[h * d + h + c] if layer[i, c] > 0 else zero
                grad[h * d + c] += g
            if g != 0:  # of a hidden unit's documents, about half
                active[count], pull[count] = i, g
                count += 1
        active[count : count + 3], pull[count : count + 3] = 0, 0.0
        for a in range(0, count, 4):  # documents in fours, the last ones perhaps of no weight
            i0, i1, i2, i3 = active[a], active[a + 1], active[a + 2], active[a + 3]
            g0, g1 = theta.dtype.type(pull[a]), theta.dtype.type(pull[a + 1])
            g2, g3 = theta.dtype.type(pull[a + 2]), theta.dtype.type(pull[a + 3])
            for k in range(d):
                by_w[c, k] += g0 * x[i0, k] + g1 * x[i1, k] + g2 * x[i2, k] + g3 * x[i3, k]


@compiled
def update(theta, grad, opt, step):
    """One step of `torch.optim.Adam`, or of plain descent if there are no moments."""
    lr, weight_decay, beta1, beta2, epsilon, first, second = opt
    kind = theta.dtype.type
    decay, epsilon, zero, tiny = kind(weight_decay), kind(epsilon), kind(0), kind(_TINY)
    rate, root = kind(lr / (1.0 - beta1**step)), kind(1.0 / math.sqrt(1.0 - beta2**step))
    new1, new2 = kind(1.0 - beta1), kind(1.0 - beta2)
    if len(first) == 0:
        theta -= rate * (grad + decay * theta)
        return
    for k in range(len(theta)):
        g = grad[k] + decay * theta[k]
        m = first[k] + new1 * (g - first[k])
        v = second[k] + new2 * (g * g - second[k])
        first[k] = m if abs(m) > tiny else zero
        second[k] = v if v > tiny else zero
        theta[k] -= rate * m / (np.sqrt(v) * root + epsilon)


@compiled
def scored(model, order, place, longest, room):
    """Scores of the queries ``order`` and, for a race, log-weights; returns the least of these.

    ``place`` says where each query begins in the batch's ``room``: what comes out of the first
    layer ``(N, h)``, scores and log-weights ``(N,)``.
    """
    (x, problem, times, hidden, theta), (layer, scores, log_w), lowest = model, room, 0.0
    for i in range(len(order)):
        q, start = order[i], place[i]
        rows = slice(problem.offsets[q], problem.offsets[q + 1])
        here = slice(start, start + rows.stop - rows.start)
        forward(x[rows], theta, hidden, layer[here], scores[here])
        if problem.samples == 0:
            lowest = min(lowest, log_weights(scores[here], times.widest[longest], log_w[here]))
    return lowest


@compiled
def graded(model, order, place, longest, room, lowest, draws, gamma, share, terms, grad):
    """Sum of the objective; adds to ``grad`` its gradient times ``share``, fills in ``terms``."""
    (x, problem, times, hidden, theta), (layer, scores, log_w), total = model, room, 0.0
    for i in range(len(order)):
        rows = slice(problem.offsets[order[i]], problem.offsets[order[i] + 1])
        here = slice(place[i], place[i] + rows.stop - rows.start)
        s, slope = scores[here], np.zeros(rows.stop - rows.start)
        if problem.samples > 0:
            u, d = sampled(s, draws[:, i, : len(s)], problem, order[i], slope)
        else:
            u, d = exact(s, log_w[here], lowest, longest, problem, times, order[i], slope)
        terms[i, 0], terms[i, 1], terms[i, 2] = u, d, entropy(s, gamma, slope)
        total += u - problem.lam * d + gamma * terms[i, 2]
        slope *= share
        backward(x[rows], theta, hidden, layer[here], slope, grad)
    return total


def _epoch(done):
    """The loop over batches, which returns ``done`` at its end."""

    @compiled
    def epoch(model, gamma, opt, order, ends, place, longest, noise, step, terms, norms):
        """Updates from batch to batch; batch b holds the queries ``order[ends[b - 1]:ends[b]]``.

        ``terms`` and ``norms`` are filled in. Returns the batch at which something stopped being
        finite (before its update), or ``done``.
        """
        _, problem, _, hidden, theta = model
        grad, begin, drawn = np.empty_like(theta), 0, 0
        for b, end in enumerate(ends):
            own, at, count = order[begin:end], place[begin:end], end - begin
            size = at[-1] + problem.offsets[own[-1] + 1] - problem.offsets[own[-1]]
            layer = np.empty((size, max(hidden, 1)), theta.dtype)
            room = (layer, np.empty(size), np.empty(size))
            lowest = scored(model, own, at, longest[b], room)
            if not math.isfinite(room[1].sum()):
                return b
            shape = (problem.samples, count, longest[b])
            draws = noise[drawn : drawn + shape[0] * shape[1] * shape[2]].reshape(shape)
            drawn, share = drawn + draws.size, -1.0 / count  # minus the mean over the batch
            grad[:] = 0
            seen = terms[begin:end]
            total = graded(
                model, own, at, longest[b], room, lowest, draws, gamma, share, seen, grad
            )
            norms[b] = math.sqrt((grad * grad).sum())
            if not math.isfinite(norms[b] + total):
                return b
            update(theta, grad, opt, step + b + 1)
            begin = end
        return done

    return epoch


# Numba compiles a function again when its own file has changed, not when that of a function which
# it calls has; but a number in the closure is part of its key.
epoch = _epoch(-1 - zlib.crc32(inspect.getsource(compiled_kernels).encode()))


def together(pool):
    """`epoch` for large batches: the same loop, the queries of a batch shared out to threads."""

    def parts(order):
        # Always as many, so that sums come out the same on any number of threads.
        bounds = np.linspace(0, len(order), _PARTS + 1).astype(int)
        return [slice(*ends) for ends in pairwise(bounds) if ends[0] < ends[1]]

    def scored_parts(model, order, place, *rest):
        work = [(model, order[part], place[part], *rest) for part in parts(order)]
        return min(pool.map(scored, *zip(*work, strict=True)))

    def graded_parts(model, order, place, longest, room, lowest, draws, *rest):
        *same, terms, grad = rest
        grads = np.zeros((_PARTS, len(grad)), grad.dtype)
        work = []
        for part, own in zip(parts(order), grads, strict=False):
            chosen = (order[part], place[part], longest, room, lowest, draws[:, part])
            work.append((model, *chosen, *same, terms[part], own))
        total = sum(pool.map(graded, *zip(*work, strict=True)))
        grad += grads.sum(0)
        return total

    # As Python, in which these two stand where the compiled loop has its own.
    own_names = {**globals(), "scored": scored_parts, "graded": graded_parts}
    loop = getattr(epoch, "py_func", epoch)  # itself, where Numba is told not to compile
    return FunctionType(loop.__code__, own_names, closure=loop.__closure__)
