"""Every empirical claim of the paper, decided by code from stored cells (chapter 13).

A `Claim` holds the sentence and its checks, `judge_all` the verdicts, `board` shows them.
"""

from experiments.claims import overall, section_4_1, section_4_2, section_4_3
from experiments.claims.board import (
    DIRECTORIES,
    board_html,
    load_results,
    print_verdicts,
    seeds_needed,
    tally,
    with_seeds,
)
from experiments.claims.verdicts import (
    VERDICTS,
    Beside,
    Check,
    Claim,
    Estimate,
    Finding,
    Judged,
    MissingCellsError,
    combine,
    decide,
    judge,
    judge_all,
)

#: All claims, by section of the paper.
CLAIMS: tuple[Claim, ...] = (
    *overall.CLAIMS,
    *section_4_1.CLAIMS,
    *section_4_2.CLAIMS,
    *section_4_3.CLAIMS,
)

__all__ = [
    "CLAIMS",
    "DIRECTORIES",
    "VERDICTS",
    "Beside",
    "Check",
    "Claim",
    "Estimate",
    "Finding",
    "Judged",
    "MissingCellsError",
    "board_html",
    "combine",
    "decide",
    "judge",
    "judge_all",
    "load_results",
    "print_verdicts",
    "seeds_needed",
    "tally",
    "with_seeds",
]
