"""The accelerator: whole epochs of Algorithm 1 compiled with Numba (chapter 15)."""
