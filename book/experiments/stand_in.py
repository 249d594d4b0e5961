"""A stand-in with the published shape of Yahoo's Set 1, made by a recipe. It is not Yahoo data."""

import os
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

import numpy as np
import torch

from fairpg_lite.data import RankingDataset

N_IDS = 699
N_ACTIVE = 519
MEAN_LENGTH = 23.72
MAX_LENGTH = 139
GRADE_SHARES = (0.261, 0.358, 0.286, 0.077, 0.019)
# Published quantiles, and points between them that bring the means to the published ones.
DENSITY_QUANTILES = (
    (0.0, 0.05, 0.25, 0.4, 0.5, 0.62, 0.75, 0.85, 0.95, 1.0),
    (0.01, 0.03, 0.15, 0.28, 0.36, 0.52, 0.66, 0.84, 0.96, 1.0),
)
VALUE_QUANTILES = (
    (0.0, 0.05, 0.12, 0.25, 0.38, 0.5, 0.75, 0.95, 1.0),
    (0.005, 0.17, 0.32, 0.48, 0.61, 0.70, 0.86, 0.97, 1.0),
)
RELEVANCE_QUANTILES = ((0, 0.15, 0.5, 0.66, 1), (-0.68, -0.2, 0.13, 0.39, 0.76))
PARTS = ("train", "valid", "test")
FAMILIES = 8
CAUSES = 14
PAIRS = 10
INTERACTION = 0.6  # the standard deviation of the interactions, relative to that of the steps
NOISE = 0.65  # the standard deviation of what no ranker can explain, of 1 in all
QUERY_SHARE = 0.35  # of the latent factors' variance lies between queries
# Latent values are rounded to a grid on [-4, 4].
BINS = 2048
RANGE = 4.0
GRID = (np.arange(BINS) + 0.5) * (2 * RANGE / BINS) - RANGE
CHUNK = 256  # queries that share a random stream
ROWS = 1024  # documents drawn together: few enough for the processor's cache


class World:
    """The recipe's constants for one seed; A = 519 active features, C = 14 causes of the score.

    columns (A,): a feature's place among the 699 ids. family (A,): its shared factor. loadings
    (3, A): of the relevance factor, the family's factor and its own noise. table (A, BINS): its
    value for each latent bin, 0 below the quantile that leaves its density, then rising to 1.
    causes (C,): the features behind the score. cuts (4,): thresholds of the grades.
    """

    def __init__(self, seed: int):
        draw = np.random.default_rng([seed, 0])
        ranks = (np.arange(N_ACTIVE) + 0.5) / N_ACTIVE
        self.columns = np.sort(draw.choice(N_IDS, N_ACTIVE, replace=False))
        density = draw.permutation(np.interp(ranks, *DENSITY_QUANTILES))
        below = torch.special.ndtr(torch.from_numpy(GRID)).numpy()
        within = (below - (1 - density[:, None])) / density[:, None]
        values = np.interp(within, *VALUE_QUANTILES)
        self.table = np.where(within > 0, values, 0.0).astype(np.float32)
        self.causes = draw.choice(np.flatnonzero(density > 0.35), CAUSES, replace=False)
        relevance = draw.permutation(np.interp(ranks, *RELEVANCE_QUANTILES))
        relevance[self.causes] = 0.62
        shared = np.sqrt(draw.uniform(0.1, 0.45, N_ACTIVE) * (1 - relevance**2))
        noise = np.sqrt(1 - relevance**2 - shared**2)
        self.loadings = np.stack([relevance, shared, noise]).astype(np.float32)
        self.family = draw.integers(1, FAMILIES + 1, N_ACTIVE)
        # What is hidden (a zero) must not matter, so no threshold lies below the point of hiding.
        hidden = torch.special.ndtri(torch.from_numpy(1 - density[self.causes])).numpy()
        self.low, self.high = np.maximum(draw.uniform(-0.5, 0.8, (2, CAUSES)), hidden)
        self.middle = np.maximum(0.0, hidden)
        self.weights = draw.uniform(0.6, 1.4, CAUSES)
        pairs = [draw.choice(CAUSES, 2, replace=False) for _ in range(PAIRS)]
        self.first, self.second = np.stack(pairs, axis=1)
        self.signs = draw.choice([-1.0, 1.0], PAIRS)
        # The score's scale and the thresholds of the grades, by 100,000 independent documents.
        factors = draw.standard_normal((100_000, FAMILIES + 1), np.float32)
        document_noise = draw.standard_normal((100_000, CAUSES), np.float32)
        latent = GRID[self.bins(factors, document_noise, self.causes)]
        self.scaling = np.array([(part.mean(), part.std()) for part in self._score_parts(latent)])
        self.scaling[:, 1] *= self.score(latent).std()  # one scale for both parts: variance 1
        observed = _observed(self.score(latent), draw)
        self.cuts = np.quantile(observed, np.cumsum(GRADE_SHARES)[:-1])

    def bins(
        self, factors: np.ndarray, noise: np.ndarray, features: np.ndarray | slice
    ) -> np.ndarray:
        """Latent values, standard normal, as bins.

        Sums of products, not a matrix product: those differ in the last bits from one machine to
        another, and a bit can move a value into the next bin.

        Args:
            factors: ``(N, 1 + FAMILIES)`` of N documents, relevance first.
            noise: ``(N, A)``, each feature's own; it is overwritten.
            features: Which A of the active features.

        Returns:
            ``(N, A)``.
        """
        relevance_loading, shared_loading, noise_loading = self.loadings[:, features]
        noise *= noise_loading
        noise += factors[:, :1] * relevance_loading
        noise += np.take(factors, self.family[features], axis=1) * shared_loading
        return np.clip((noise + RANGE) * (BINS / (2 * RANGE)), 0, BINS - 1).astype(np.int64)

    def score(self, latent: np.ndarray) -> np.ndarray:
        """The noise-free score (N,), mean 0 and variance 1, of the causes' latent values (N, C)."""
        steps, interactions = self._score_parts(latent)
        (steps_mean, steps_scale), (pairs_mean, pairs_scale) = self.scaling
        additive = (steps - steps_mean) / steps_scale
        return additive + INTERACTION * (interactions - pairs_mean) / pairs_scale

    def _score_parts(self, latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Additive steps and pairwise interactions (N,) of the causes' latent values (N, C)."""
        steps = ((latent > self.low) + 0.5 * (latent > self.high)) @ self.weights
        sign = np.where(latent > self.middle, 1.0, -1.0)
        return steps, (sign[:, self.first] * sign[:, self.second]) @ self.signs


def _observed(score: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """What the thresholds turn into grades (N,)."""
    return np.sqrt(1 - NOISE**2) * score + NOISE * draw.standard_normal(len(score))


def yahoo_like(n_queries: int = 1000, seed: int = 0, *, part: str = "train") -> RankingDataset:
    """An artificial stand-in with the published shape of Yahoo's Set 1. It is not Yahoo data.

    Its strengths were chosen so that a linear model, a network and boosted trees fare in the order
    of the paper's Table 1: that order is put in by design and is no evidence for it.

    A document has a relevance factor and 8 family factors, partly shared by its query. A feature's
    latent value is a weighted sum of relevance, one family factor and noise; the lowest become 0
    ("absent"), the rest are mapped to (0, 1]. 14 features cause the score, by two steps each and
    by ten pairs that act together. Thresholds turn score and noise into grades.

    numpy's default_rng([seed, 0]) makes the world, [seed, part, 0] draws the lengths, and
    [seed, part, 1 + chunk, k] each 256 queries' factors (k = 0, 1), features (2) and noise (3).

    Args:
        n_queries: Full size is 19,944, 2,994 and 6,983 queries; fewer are the first of more.
        seed: Of the world and its documents.
        part: "train", "valid" and "test" draw different documents in the world of ``seed``.

    Returns:
        Queries of 699 features, without groups.
    """
    seed = _checked_seed(seed)
    world = World(seed)
    part_stream = PARTS.index(part) + 1
    length_stream = np.random.default_rng([seed, part_stream, 0])
    drawn = length_stream.gamma(2.5, MEAN_LENGTH / 2.5, n_queries)
    lengths = np.clip(np.rint(drawn), 1, MAX_LENGTH).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = np.zeros((offsets[-1], N_IDS), np.float32)
    grades = np.empty(offsets[-1], np.float32)

    def fill(chunk: int) -> None:
        """Draw the documents of 256 queries."""
        chunk_lengths = lengths[chunk * CHUNK : (chunk + 1) * CHUNK]
        begin = offsets[chunk * CHUNK]
        end = begin + chunk_lengths.sum()
        query_stream, factor_stream, feature_stream, noise_stream = (
            np.random.default_rng([seed, part_stream, 1 + chunk, k]) for k in range(4)
        )
        shared = query_stream.standard_normal((len(chunk_lengths), FAMILIES + 1), np.float32)
        factors = factor_stream.standard_normal((end - begin, FAMILIES + 1), np.float32)
        factors *= np.float32(np.sqrt(1 - QUERY_SHARE))
        factors += np.float32(np.sqrt(QUERY_SHARE)) * np.repeat(shared, chunk_lengths, axis=0)
        score = np.empty(end - begin)
        for first in range(0, end - begin, ROWS):
            rows = slice(first, first + ROWS)
            noise = feature_stream.standard_normal((len(score[rows]), N_ACTIVE), np.float32)
            bins = world.bins(factors[rows], noise, slice(None))
            score[rows] = world.score(GRID[bins[:, world.causes]])
            bins += np.arange(N_ACTIVE) * BINS
            features[begin:end][rows, world.columns] = world.table.ravel().take(bins)
        grades[begin:end] = np.searchsorted(world.cuts, _observed(score, noise_stream))

    # Every chunk has its own streams and rows, so threads change the time and nothing else.
    n_chunks = -(-n_queries // CHUNK)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        list(pool.map(fill, range(n_chunks)))
    return RankingDataset(
        torch.from_numpy(features),
        torch.from_numpy(grades),
        torch.from_numpy(offsets),
        info={"name": f"Yahoo-shaped stand-in, {part}", "seed": seed},
    )


def _checked_seed(seed: object) -> int:
    """The seed as an int, below the limit that the package has for all seeds."""
    if isinstance(seed, Integral) and not isinstance(seed, bool) and 0 <= int(seed) < 2**61:
        return int(seed)
    raise ValueError(f"yahoo_like: seed is {seed!r}; give a whole number from 0 up to below 2**61.")
