"""The accelerator: whole epochs of Algorithm 1 compiled with Numba.

`fairpg_lite.objective`, with autograd, says what every number means. Here the same numbers come
from loops over queries of unequal length, on the same random draws, a hundred times as fast where
an update is one query. ``TrainConfig(compiled=...)`` is the only way in.

=============== ==================================================================================
`switch`        whether a training can take this way, and whether that pays
`problem`       what is known before training, worked out by the functions that define it
`epochs`        one epoch of updates: optimiser state and random numbers in, weights out
`threads`       the loop over batches with its two steps shared out to threads
`kernels`       the folder of everything that Numba compiles
=============== ==================================================================================
"""
