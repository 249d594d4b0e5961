"""Every way to a gradient of a Plackett-Luce policy, side by side (chapter 8, appendix A2).

=============== ==================================================================================
`ways`          which ways there are: what each draws, subtracts and knows
`kernels`       what they compute, written from the papers' formulas and compiled with Numba
`problems`      queries to try them on, and their true gradients
`errors`        how wrong a gradient is for the time that it takes
`learning`      training with each of them in one compiled loop
`training`      the objective that each reaches, for the time that it takes
`prices`        what a lambda buys, by gradient and step size
=============== ==================================================================================
"""
