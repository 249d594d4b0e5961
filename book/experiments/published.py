"""The authors' own numbers, read from the outputs stored in their notebooks.

Each has six significant digits here and is rounded once, where it is printed. One unseeded run
each; they are shown beside ours and never mixed with them. Source: ``ashudeep/Fair-PGRank``, the
notebooks "Section_4_2 Simulated Experiment" and "Section 4_3_2 German Credit Dataset", as stored at
commit d61575b.
"""

from typing import NamedTuple


class Weighed(NamedTuple):
    """A linear model of Figure 1 and what its policy got, 20 sampled rankings for each query."""

    theta_1: float
    theta_2: float
    ndcg: float
    d_group: float


class Judged(NamedTuple):
    """What a policy got, 20 sampled rankings for each query."""

    ndcg: float
    d_group: float


#: Fair-PG-Rank on the synthetic data, by lambda: cell 14, the printed dictionaries.
SYNTHETIC = {
    0.0: Weighed(4.66732, 3.45908, 0.973901, 0.0131466),
    1.0: Weighed(4.14655, 2.50043, 0.970625, 0.0120807),
    2.0: Weighed(4.34096, 1.94147, 0.967348, 0.0101720),
    3.0: Weighed(3.74119, 1.73113, 0.965046, 0.0101950),
    5.0: Weighed(3.13517, 0.939611, 0.955254, 0.00819910),
    7.0: Weighed(3.47959, 0.887350, 0.954636, 0.00755190),
    8.0: Weighed(3.58933, 1.02695, 0.956375, 0.00820280),
    10.0: Weighed(1.45431, 0.336201, 0.917090, 0.00494700),
    15.0: Weighed(1.62749, 0.429238, 0.926508, 0.00580455),
    20.0: Weighed(1.46761, 0.275665, 0.917715, 0.00443482),
    25.0: Weighed(0.815863, 0.204174, 0.885822, 0.00261966),
}

#: Fair-PG-Rank on German Credit, by lambda: cell 8, the array behind Figure 3 (right).
GERMAN = {
    0.0: Judged(0.816181, 0.0103863),
    0.1: Judged(0.816124, 0.00904383),
    1.0: Judged(0.805925, 0.00639477),
    10.0: Judged(0.710397, 0.00221628),
    12.0: Judged(0.706074, 0.000131592),
    15.0: Judged(0.705715, 0.000139066),
    20.0: Judged(0.714349, 0.000481621),
    25.0: Judged(0.694838, 0.000852245),
    50.0: Judged(0.690139, 0.000151266),
    100.0: Judged(0.701059, 0.000890980),
}

#: D_group of policies on German Credit before their training: those that cell 7 prints, with ten
#: sampled rankings for each query.
GERMAN_UNTRAINED = (0.00396012, 0.0000573368, 0.000436210, 0.000989078, 0.000593698, 0.00267061)
