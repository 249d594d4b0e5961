"""Every empirical claim of the paper, decided by code from stored cells (chapter 13).

claims.toml has the sentences; `synthetic`, `german` and `yahoo` say which checks decide them;
`quantities` and `curves` are what a check can measure, with `intervals`; `verdicts` has the rule,
and `board` and `component` show the result.

The text of the paper decides. Where it contradicts itself, the main text goes before the appendix;
where it is silent, the authors' code decides; where it can be read in two ways, both readings do.
Where text and code differ, both are judged side by side. Other readings stand beside a verdict.
"""

# ruff: noqa: F401 (the chapters import it all from here)

from experiments.claims.board import (
    CLAIMS,
    load_results,
    print_verdicts,
    summary,
    verdicts_by_count,
)
from experiments.claims.component import Verdicts, board_html
from experiments.claims.verdicts import VERDICTS, Check, Claim, Estimate, decide, judge, judge_all
