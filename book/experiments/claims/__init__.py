"""Every empirical claim of the paper, decided by code from stored cells (chapter 13).

claims.toml has the sentences, `groups` and `yahoo` what is measured, `verdicts` the rule, and
`board` shows the result.

The text of the paper decides. Where it contradicts itself, the main text goes before the appendix;
where it is silent, or can be read in two ways, the authors' code decides. Other readings stand
beside a verdict.
"""

# ruff: noqa: F401 (the chapters import it all from here)

import tomllib
from pathlib import Path
from typing import Any

from experiments.claims import groups, yahoo
from experiments.claims.board import board_html, load_results, print_verdicts, seeds_needed, summary
from experiments.claims.verdicts import VERDICTS, Check, Claim, Estimate, decide, judge, judge_all


def read_claims() -> tuple[Claim, ...]:
    """The sentences of claims.toml, in their order, with what decides them."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    said: dict[str, dict[str, Any]] = tomllib.loads(text)
    decided = {"yahoo": yahoo.CHECKS, "synthetic": groups.SYNTHETIC, "german": groups.GERMAN}
    for data, by_name in decided.items():
        for name, (checks, beside) in by_name.items():
            said[name] |= {"data": data, "checks": checks, "beside": beside}
    return tuple(
        Claim(name, **of | {"parts": tuple(of.get("parts", ()))}) for name, of in said.items()
    )


#: All claims, by section of the paper.
CLAIMS = read_claims()
