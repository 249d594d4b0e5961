"""Sliders for the book: `frames` works on a page without a kernel, `live` where one is running.

`frames` draws one picture per value beforehand and switches between them with the browser's own
range input: no library, no network, arrow keys included. First used in chapter 1.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.pictures import short_svg
from fairpg_lite._extras import require
from fairpg_lite.figures import matplotlib_module, style

__all__ = ["Frames", "frames", "live"]

# Everything the slider does. It looks only inside its own <figure>, so no ids are needed and
# any number of sliders can share a page.
_ON_INPUT = (
    "const f=this.closest('figure'),p=f.querySelectorAll('img'),k=+this.value;"
    "p.forEach((e,i)=>{e.hidden=i!==k});"
    "const t=p[k].dataset.value;f.querySelector('output').textContent=t;"
    "this.setAttribute('aria-valuetext',t)"
)


@dataclass(frozen=True)
class Frames:
    """Pre-drawn pictures under a slider; a notebook shows them as HTML.

    `labels`, `alts` and `pictures` (SVG) hold one entry per value; `start` is shown first.
    """

    label: str
    labels: tuple[str, ...]
    alts: tuple[str, ...]
    pictures: tuple[bytes, ...]
    start: int = 0
    caption: str | None = None

    def __repr__(self) -> str:
        return f"Frames({self.label}: {', '.join(self.labels)})"

    def _repr_html_(self) -> str:
        # `autocomplete="off"`: Firefox would otherwise restore the slider, but not the picture.
        pictures = "\n".join(self._picture(index) for index in range(len(self.pictures)))
        shown = html.escape(self.labels[self.start])
        caption = f"\n<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            '<figure class="frames" style="margin:0">\n'
            '<label style="display:flex;flex-wrap:wrap;align-items:center;'
            'gap:.2em .8em;margin:.4em 0">'
            f"<span>{html.escape(self.label)}</span>"
            f'<input type="range" min="0" max="{len(self.pictures) - 1}" step="1"'
            f' value="{self.start}"'
            f' autocomplete="off" aria-valuetext="{shown}" style="flex:1 1 10em"'
            f' oninput="{_ON_INPUT}">'
            f'<output style="min-width:4em;font-weight:600">{shown}</output></label>\n'
            f'<div class="pictures">\n{pictures}\n</div>{caption}\n</figure>'
        )

    def _picture(self, index: int) -> str:
        data = base64.b64encode(self.pictures[index]).decode()
        hidden = "" if index == self.start else " hidden"
        return (
            f'<img alt="{html.escape(self.alts[index])}"'
            f' data-value="{html.escape(self.labels[index])}"{hidden}'
            ' style="max-width:100%;border-radius:6px"'
            f' src="data:image/svg+xml;base64,{data}">'
        )


def frames(
    values: Sequence[Any],
    draw: Callable[[Any], str],
    label: str,
    *,
    form: str = "{:g}",
    start: int = 0,
    caption: str | None = None,
) -> Frames:
    """One picture per value, behind a slider that needs no kernel.

    Args:
        values: what the slider runs through, in order.
        draw: draws the current matplotlib figure for one value and returns its alt text: what a
            reader who cannot see the picture should know, with the figures that matter.
        label: the slider's name.
        form: how a value is written beside the slider.
        start: the index of the value shown first.
        caption: one sentence under the slider.

    The result is the same, byte by byte, on each run with the same versions. nbval compares the
    text of the HTML, alt texts included, and leaves the pixels out as it does for every picture.

    >>> import matplotlib.pyplot as plt
    >>> def draw(slope):
    ...     plt.plot([0, 1], [0, slope])
    ...     return f"a line of slope {slope}"
    >>> frames([1, 2], draw, "slope")
    Frames(slope: 1, 2)
    """
    values = list(values)
    if not values or not 0 <= start < len(values):
        raise ValueError(
            f"frames: start={start} names none of the {len(values)} values; "
            "give at least one value and a start between 0 and len(values) - 1."
        )
    alts, pictures = zip(*(_frame(draw, value) for value in values), strict=True)
    labels = tuple(form.format(value) for value in values)
    return Frames(label, labels, alts, pictures, start, caption)


def _frame(draw: Callable[[Any], str], value: Any) -> tuple[str, bytes]:
    plt = matplotlib_module().pyplot
    with style():
        figure = plt.figure()
        try:
            alt = draw(value)
            if not isinstance(alt, str) or not alt.strip():
                raise TypeError(
                    f"frames: draw({value!r}) returned {alt!r}; return the alt text, one sentence "
                    "that tells a reader who cannot see the picture what it shows."
                )
            out = io.StringIO()
            plt.gcf().savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        finally:
            plt.close(plt.gcf())
            plt.close(figure)
    return alt.strip(), short_svg(out.getvalue()).encode()


def live(draw: Callable[..., Any], **ranges: Any) -> None:
    """Sliders that call `draw` in a running kernel (JupyterLab, Binder).

    `ranges` are ipywidgets abbreviations, such as `temperature=(0.1, 2.0, 0.1)`. On a built page
    there is no kernel to answer, so give the cell the tags `remove-output` and
    `nbval-ignore-output`, and show `frames` as well. A `draw` written for `frames` serves here too.
    """
    ipywidgets = require("ipywidgets", "plots")

    def show(**values: Any) -> None:
        draw(**values)  # its alt text would otherwise be printed under the picture

    ipywidgets.interact(show, **ranges)
