"""What `fairpg_lite.compiled` runs: epochs of updates of a linear scorer or one hidden layer.

Parameters are one vector: weights ``(h, d)`` and, of a hidden layer, ``(h,)`` biases and weights of
the output.
"""

import inspect
import math
import zlib

import numpy as np

from fairpg_lite import compiled_kernels
from fairpg_lite.compiled_kernels import compiled, entropy, exact, log_weights, sampled

# Moments below this count as zero; they would become denormal numbers, eighty times as slow.
_TINY = 1e-30


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


def _epoch(done):
    """The loop over batches, which returns ``done`` at its end."""

    @compiled
    def epoch(x, problem, gamma, times, hidden, opt, theta, order, ends, place, longest, noise,
              step, terms, norms):  # fmt: skip
        """Updates from batch to batch; batch b holds the queries ``order[ends[b - 1]:ends[b]]``.

        ``place`` says where a query begins in its batch; ``terms`` and ``norms`` are filled in.
        Returns the batch at which something stopped being finite (before its update), or ``done``.
        """
        offsets, grad, begin, drawn = problem.offsets, np.empty_like(theta), 0, 0
        for b, end in enumerate(ends):
            count, last, lowest = end - begin, order[end - 1], 0.0
            room = place[end - 1] + offsets[last + 1] - offsets[last]
            scores, log_w, slope = np.empty(room), np.empty(room), np.zeros(room)
            layer = np.empty((room, max(hidden, 1)), theta.dtype)
            for i in range(begin, end):
                rows = slice(offsets[order[i]], offsets[order[i] + 1])
                here = slice(place[i], place[i] + rows.stop - rows.start)
                forward(x[rows], theta, hidden, layer[here], scores[here])
                if problem.samples == 0:
                    log_w[here] = log_weights(scores[here], times.widest[longest[b]])
                    lowest = min(lowest, log_w[here].min())
            if not math.isfinite(scores.sum()):
                return b
            shape = (problem.samples, count, longest[b])
            draws = noise[drawn : drawn + shape[0] * shape[1] * shape[2]].reshape(shape)
            drawn += draws.size
            grad[:], objective = 0, 0.0
            for i in range(begin, end):
                rows = slice(offsets[order[i]], offsets[order[i] + 1])
                here = slice(place[i], place[i] + rows.stop - rows.start)
                s, g = scores[here], slope[here]
                if problem.samples > 0:
                    u, d = sampled(s, draws[:, i - begin, : len(s)], problem, order[i], g)
                else:
                    u, d = exact(s, log_w[here], lowest, longest[b], problem, times, order[i], g)
                terms[i, 0], terms[i, 1], terms[i, 2] = u, d, entropy(s, gamma, g)
                objective += u - problem.lam * d + gamma * terms[i, 2]
                g /= -count  # the gradient of minus the mean over the batch
                backward(x[rows], theta, hidden, layer[here], g, grad)
            norms[b] = math.sqrt((grad * grad).sum())
            if not math.isfinite(norms[b] + objective):
                return b
            update(theta, grad, opt, step + b + 1)
            begin = end
        return done

    return epoch


# Numba compiles a function again when its own file has changed, not when that of a function which
# it calls has; but a number in the closure is part of its key.
epoch = _epoch(-1 - zlib.crc32(inspect.getsource(compiled_kernels).encode()))
