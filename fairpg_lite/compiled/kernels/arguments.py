"""What kernels are given: named tuples of arrays and numbers, and the numbers of the choices."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Problem.disparity
NO_DISPARITY = 0
D_IND = 1
D_GROUP = 2
GROUP_GAP = 3

# Problem.baseline
NO_BASELINE = 0
MEAN = 1
LEAVE_ONE_OUT = 2
UNIFORM = 3


class Problem(NamedTuple):
    """What is known of N documents and Q queries before training, and the objective."""

    offsets: Ints
    """Query q has the documents ``offsets[q]:offsets[q + 1]``, ``(Q + 1,)``."""
    weight: Floats
    """The utility of a query is its constant plus the sum of weight times exposure, ``(N,)``."""
    constant: Floats
    """The part of a query's utility that does not depend on exposure, ``(Q,)``."""
    merit: Floats
    """Merit of the documents, ``(N,)``."""
    groups: Ints
    """Group of the documents, from 0, ``(N,)``."""
    n_groups: int
    """Number of groups."""
    position_bias: Floats
    """Attention per position, as long as the longest query."""
    lam: float
    """Weight of the disparity in the objective."""
    samples: int
    """Rankings drawn per query; 0 is exact exposure."""
    baseline: int
    """`NO_BASELINE`, `MEAN`, `LEAVE_ONE_OUT` or `UNIFORM`."""
    reward_to_go: bool
    """Whether each draw answers for what is paid from its place on only."""
    places: int
    """How many places are paid at most."""
    disparity: int
    """`NO_DISPARITY`, `D_IND`, `D_GROUP` or `GROUP_GAP`."""


class Times(NamedTuple):
    """At which nodes and log-times a race is evaluated, for every length n of a query.

    `fairpg_lite.nodes` says what the numbers mean.
    """

    nodes: NDArray[np.float64 | np.complex128]
    """Nodes of all lengths, one length after the other."""
    coefficients: NDArray[np.float64 | np.complex128]
    """Coefficient of each node."""
    node_starts: Ints
    """Length n has the nodes ``node_starts[n]:node_starts[n + 1]``; where there are none, only the
    first few positions are paid."""
    step: Floats
    """Distance of neighbouring times for length n."""
    widest_gap: Floats
    """Score gaps of a query of length n are narrowed to this one."""
    first_bias: Floats
    """Position bias of the paid positions ``(k,)``, for the lengths without nodes."""
    first_step: float
    """Distance of neighbouring times for these."""
    enough: float
    """The expected number of arrivals at which their grid ends."""
    first: float
    """Where the grid of times begins."""
    arrival: float
    """When a document of log-weight 0 has arrived."""


class Model(NamedTuple):
    """A scorer, its data and the objective."""

    features: NDArray[np.floating]
    """Features of the documents, ``(N, d)``."""
    problem: Problem
    times: Times
    hidden: int
    """Units of the hidden layer; 0 is a linear scorer."""
    theta: NDArray[np.floating]
    """All weights in one vector; `network` says in which order."""


class Optimizer(NamedTuple):
    """Settings and state of Adam, or of plain gradient descent if the moments are empty."""

    lr: float
    weight_decay: float
    beta1: float
    beta2: float
    epsilon: float
    first_moment: NDArray[np.floating]
    second_moment: NDArray[np.floating]


class Plan(NamedTuple):
    """Consecutive batches: B of them, with Q queries altogether."""

    queries: Ints
    """The queries of all batches, in their order, ``(Q,)``."""
    ends: Ints
    """Batch b takes the queries at ``ends[b - 1]:ends[b]``, ``(B,)``."""
    row_starts: Ints
    """The row of its batch's workspace at which each query begins, ``(Q,)``."""
    longest: Ints
    """Number of documents of each batch's longest query, ``(B,)``."""


class Workspace(NamedTuple):
    """Room for the documents of one batch, one row each."""

    layer: NDArray[np.floating]
    """What comes out of the first layer, ``(rows, h)``."""
    scores: Floats
    """``(rows,)``"""
    log_weights: Floats
    """Log-weights of the race, ``(rows,)``; filled in for exact exposure only."""
