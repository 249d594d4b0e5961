"""The loop over batches: score a batch, grade it, move the weights."""

import math
from collections.abc import Callable

import numpy as np

from fairpg_lite.compiled.kernels.adam import update
from fairpg_lite.compiled.kernels.arguments import Workspace
from fairpg_lite.compiled.kernels.exact import exact_terms, fill_log_weights
from fairpg_lite.compiled.kernels.kernel import kernel
from fairpg_lite.compiled.kernels.network import backward, forward
from fairpg_lite.compiled.kernels.objective import softmax_entropy
from fairpg_lite.compiled.kernels.sampled import sampled_terms

#: What `run_batches` returns if everything stayed finite.
DONE = -1


@kernel
def score_batch(model, queries, row_starts, longest, workspace):
    """Fill in scores and, for exact exposure, log-weights; returns the least log-weight."""
    problem = model.problem
    times = model.times
    lowest = 0.0
    for i in range(len(queries)):
        documents = slice(problem.offsets[queries[i]], problem.offsets[queries[i] + 1])
        rows = slice(row_starts[i], row_starts[i] + documents.stop - documents.start)
        scores = workspace.scores[rows]
        layer = workspace.layer[rows]
        forward(model.features[documents], model.theta, model.hidden, layer, scores)
        if problem.samples == 0:
            log_w = workspace.log_weights[rows]
            lowest = min(lowest, fill_log_weights(scores, times.widest_gap[longest], log_w))
    return lowest


@kernel
def grade_batch(
    model, queries, row_starts, longest, workspace, lowest, noise, gamma, share, terms, grad
):
    """The sum of the objective over the queries of a scored batch.

    Adds its gradient times ``share`` to ``grad``, and fills in utility, disparity and entropy of
    each query, ``terms (Q, 3)``. ``noise`` is ``(S, Q, longest)``.
    """
    problem = model.problem
    total = 0.0
    for i in range(len(queries)):
        q = queries[i]
        documents = slice(problem.offsets[q], problem.offsets[q + 1])
        n = documents.stop - documents.start
        rows = slice(row_starts[i], row_starts[i] + n)
        scores = workspace.scores[rows]
        slope = np.zeros(n)
        if problem.samples > 0:
            utility, disparity = sampled_terms(scores, noise[:, i, :n], problem, q, slope)
        else:
            log_w = workspace.log_weights[rows]
            utility, disparity = exact_terms(
                scores, log_w, lowest, longest, problem, model.times, q, slope
            )
        entropy = softmax_entropy(scores, gamma, slope)
        terms[i, 0] = utility
        terms[i, 1] = disparity
        terms[i, 2] = entropy
        total += utility - problem.lam * disparity + gamma * entropy
        slope *= share
        layer = workspace.layer[rows]
        backward(model.features[documents], model.theta, model.hidden, layer, slope, grad)
    return total


def batch_loop(
    score_step: Callable[..., float], grade_step: Callable[..., float]
) -> Callable[..., int]:
    """The loop over batches whose two steps are `score_batch` and `grade_batch`, or the like."""

    def run_batches(model, gamma, optimizer, plan, noise, steps_taken, terms, norms):
        """Update the weights batch by batch; fills in ``terms (Q, 3)`` and ``norms (B,)``.

        ``noise`` holds the random numbers of all batches, one batch after the other. Returns the
        batch at which something stopped being finite, before its update, or `DONE`.
        """
        theta = model.theta
        problem = model.problem
        samples = problem.samples
        grad = np.empty_like(theta)
        begin = 0
        noise_begin = 0
        for b, end in enumerate(plan.ends):
            queries = plan.queries[begin:end]
            row_starts = plan.row_starts[begin:end]
            longest = plan.longest[b]
            last = queries[-1]
            rows = row_starts[-1] + problem.offsets[last + 1] - problem.offsets[last]
            layer = np.empty((rows, max(model.hidden, 1)), theta.dtype)
            workspace = Workspace(layer, np.empty(rows), np.empty(rows))
            lowest = score_step(model, queries, row_starts, longest, workspace)
            if not math.isfinite(workspace.scores.sum()):
                return b
            noise_end = noise_begin + samples * (end - begin) * longest
            batch_noise = noise[noise_begin:noise_end].reshape((samples, end - begin, longest))
            grad[:] = 0
            share = -1.0 / (end - begin)  # descent on minus the mean over the batch
            total = grade_step(
                model, queries, row_starts, longest, workspace, lowest,
                batch_noise, gamma, share, terms[begin:end], grad,
            )  # fmt: skip
            norms[b] = math.sqrt((grad * grad).sum())
            if not math.isfinite(norms[b] + total):
                return b
            update(theta, grad, optimizer, steps_taken + b + 1)
            begin = end
            noise_begin = noise_end
        return DONE

    return run_batches


#: The loop with every batch in one piece, compiled as a whole.
run_batches = kernel(batch_loop(score_batch, grade_batch))
