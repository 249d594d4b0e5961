"""What Numba compiles: plain loops over arrays, which say what `fairpg_lite.objective` says.

=============== ==================================================================================
`kernel`        the decorator, and the key of its cache on disk
`arguments`     the named tuples that kernels are given, and the numbers of their choices
`numerics`      softmax, exponential, ranks
`network`       features to scores, and the gradient back to the weights
`sampled`       utility and disparity of drawn rankings, and their slope by the scores
`exact`         the same by the race, without drawing
`first_places`  the same where only the first few positions are paid
`objective`     utility and disparity of an exposure, and their slope by it; the entropy
`adam`          one step of the optimiser
`batches`       the loop over batches
=============== ==================================================================================

A kernel uses nothing from outside this folder: `kernel` says why. A loop that adds up writes
nothing else: where it might write on what it reads, the compiler looks at the addresses first, and
adds in another order if they are close.
"""
