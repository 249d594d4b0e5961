"""The authors' own numbers for Figure 1, from the outputs stored in their notebook (chapter 9).

One unseeded run; D_group is sampled with 20 rankings. Shown beside ours and never mixed with them.
"""

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
