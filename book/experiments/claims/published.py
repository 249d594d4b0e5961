"""The authors' own numbers, from the outputs stored in their published notebooks (chapter 13).

One unseeded run each; D_group is sampled with 20 rankings on the synthetic data. Shown beside
ours and never mixed with them. Table 1 is in `rankers_report.PAPER_TABLE_1`.
"""

from experiments.rankers_report import PAPER_TABLE_1

#: Synthetic, Fair-PG-Rank: theta1, theta2, NDCG, D_group by lambda.
SYNTHETIC = {
    0.0: (4.667, 3.459, 0.9739, 0.01315),
    1.0: (4.147, 2.500, 0.9706, 0.01208),
    3.0: (3.741, 1.731, 0.9651, 0.01020),
    5.0: (3.135, 0.940, 0.9553, 0.00820),
    8.0: (3.589, 1.027, 0.9564, 0.00820),
    10.0: (1.454, 0.336, 0.9171, 0.00495),
    25.0: (0.816, 0.204, 0.8858, 0.00262),
}
#: Synthetic, post-processing with the authors' scaling: NDCG, D_group by lambda.
SYNTHETIC_POST = {0.0: (0.9778, 0.01225), 0.95: (0.9852, 0.00616), 6.0: (0.9448, 0.03611)}
#: Synthetic, Zehlike & Castillo, sorted: D_group by lambda.
SYNTHETIC_DELTR = {0.0: 0.0177, 1e2: 0.0122, 1e6: 0.0158}
#: German Credit, Fair-PG-Rank: NDCG, D_group by lambda.
GERMAN = {
    0.0: (0.8162, 0.01039),
    0.1: (0.8161, 0.00904),
    1.0: (0.8059, 0.00640),
    10.0: (0.7104, 0.00222),
    25.0: (0.6948, 0.00085),
}
#: German Credit, first and last lambda: NDCG, D_group.
GERMAN_POST = ((0.827, 0.0145), (0.797, 0.0462))
GERMAN_DELTR = ((0.822, 0.0162), (0.797, 0.0322))


def arrow(first: float, last: float, digits: int = 4) -> str:
    """From one value to another.

    >>> arrow(0.01315, 0.00262)
    '0.0132 → 0.0026'
    """
    return f"{first:.{digits}f} → {last:.{digits}f}"


def table_1(first: str, second: str, figure: int) -> str:
    """Two published numbers of Table 1 and their difference; figure 0 is NDCG@10, 1 is ERR."""
    mine, theirs = PAPER_TABLE_1[first][figure], PAPER_TABLE_1[second][figure]
    gap = f"{mine - theirs:+.5f}".replace("-", "−")
    return f"{mine:.5f} against {theirs:.5f} ({gap}) on Yahoo's data"
