"""The house style of the figures: readable on light and dark pages, in print, and without colour.

A figure keeps its own white ground (the page rounds its corners), so one picture serves both.
Colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart;
lines and bars that matter also differ in marker, dash or hatch. Used in every chapter from 1 on.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

from fairpg_lite._extras import require

__all__ = ["PALETTE", "palette_png", "style", "use_style"]

# Okabe & Ito (2008), darkest first so that two-colour figures have the strongest contrast.
PALETTE: dict[str, str] = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "grey": "#5F6670",
}


def matplotlib_module() -> Any:
    """Matplotlib with pyplot, or an error that names the extra to install."""
    matplotlib = require("matplotlib", "plots")
    require("matplotlib.pyplot", "plots")
    return matplotlib


def _settings(matplotlib: Any) -> dict[str, Any]:
    return {
        "figure.figsize": (6.4, 3.6),
        "figure.dpi": 120,
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "font.size": 10.5,
        "axes.prop_cycle": matplotlib.cycler(color=list(PALETTE.values())),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#3A3F45",
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E3E5E8",
        "lines.linewidth": 2.0,
        "legend.frameon": False,
        "svg.hashsalt": "fairpg-lite",
    }


def style() -> AbstractContextManager[None]:
    """The house style for one block: `with style(): ...`.

    >>> import matplotlib
    >>> with style():
    ...     matplotlib.rcParams["axes.spines.top"]
    False
    """
    matplotlib = matplotlib_module()
    return matplotlib.rc_context(_settings(matplotlib))


def use_style() -> None:
    """The house style from here on: the first line of a chapter that draws."""
    matplotlib = matplotlib_module()
    matplotlib.rcParams.update(_settings(matplotlib))


def palette_png(png: bytes, colours: int = 128) -> bytes:
    """The same picture with a palette and no text chunks: a third of the size, equal on each run.

    Matplotlib stamps its version into a PNG; without the stamp a chapter's file changes only when
    the picture does. 128 colours are more than a line or bar chart with smooth edges uses.
    """
    require("PIL", "plots")
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        white = Image.new("RGBA", picture.size, "white")
        flat = Image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    small = flat.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, format="PNG", optimize=True)
    return out.getvalue()
