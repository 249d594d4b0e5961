"""Sliders for the book: `frames` works on a page without a kernel, `live` where one is running.

`frames` draws one picture per value beforehand and switches between them with the browser's own
range input: no library, no network, arrow keys included. First used in chapter 1.
"""

import base64
import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairpg_lite._extras import require
from fairpg_lite.figures import style

__all__ = ["Frames", "frames", "live"]

# It looks only inside its own <figure>, so no ids are needed and any number of sliders can share a
# page. `autocomplete="off"`: Firefox would otherwise restore the slider, but not the picture.
_ON_INPUT = (
    "const f=this.closest('figure'),p=f.querySelectorAll('img'),k=+this.value;"
    "p.forEach((e,i)=>{e.hidden=i!==k});"
    "const t=p[k].dataset.value;f.querySelector('output').textContent=t;"
    "this.setAttribute('aria-valuetext',t)"
)


@dataclass(frozen=True)
class Frames:
    """Pre-drawn pictures under a slider; a notebook shows them as HTML."""

    label: str
    labels: tuple[str, ...]
    alts: tuple[str, ...]
    pictures: tuple[bytes, ...]  # SVG
    start: int = 0
    caption: str | None = None

    def __repr__(self) -> str:
        return f"Frames({self.label}: {', '.join(self.labels)})"

    def _repr_html_(self) -> str:
        pictures = "\n".join(map(self._image, range(len(self.pictures))))
        shown = html.escape(self.labels[self.start])
        caption = f"\n<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return f"""\
<figure class="frames" style="margin:0">
<label style="display:flex;flex-wrap:wrap;align-items:center;gap:.2em .8em;margin:.4em 0">\
<span>{html.escape(self.label)}</span>\
<input type="range" min="0" max="{len(self.pictures) - 1}" step="1" value="{self.start}" \
autocomplete="off" aria-valuetext="{shown}" style="flex:1 1 10em" oninput="{_ON_INPUT}">\
<output style="min-width:4em;font-weight:600">{shown}</output></label>
<div class="pictures">
{pictures}
</div>{caption}
</figure>"""

    def _image(self, index: int) -> str:
        alt, label = html.escape(self.alts[index]), html.escape(self.labels[index])
        return (
            f'<img alt="{alt}" data-value="{label}"{"" if index == self.start else " hidden"} '
            'style="max-width:100%;border-radius:6px" '
            f'src="data:image/svg+xml;base64,{base64.b64encode(self.pictures[index]).decode()}">'
        )


def frames(
    values: Sequence[Any],
    draw: Callable[[Any], str],
    label: str,
    *,
    start: int = 0,
    caption: str | None = None,
) -> Frames:
    """One picture per value, behind a slider that needs no kernel; the same bytes on each run.

    ``draw`` draws the current matplotlib figure for one value and returns its alt text. ``label``
    is the slider's name, ``start`` the index of the value shown first.
    """
    alts, pictures = zip(*(_frame(draw, value) for value in values), strict=True)
    return Frames(label, tuple(map("{:g}".format, values)), alts, pictures, start, caption)


def _frame(draw: Callable[[Any], str], value: Any) -> tuple[str, bytes]:
    plt, out = require("matplotlib.pyplot", "plots"), io.StringIO()
    with style():
        figure = plt.figure()
        try:
            alt = draw(value)
            if not isinstance(alt, str) or not alt.strip():
                raise TypeError(f"frames: draw({value!r}) returned {alt!r}; return the alt text.")
            plt.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        finally:
            plt.close()  # of draw's own making, maybe
            plt.close(figure)
    return alt.strip(), short_svg(out.getvalue()).encode()


def short_svg(svg: str) -> str:
    """The same picture in fewer bytes: places to a hundredth of a point, and no stamp.

    Matplotlib writes six decimals and its own version. Letters stay text, in the reader's own
    font; Verdana, which most have, is as wide as the one that matplotlib measured with.
    """

    def shorter(part: re.Match[str]) -> str:
        return re.sub(r"\s+", " ", re.sub(r"(\.\d\d)\d+", r"\1", part[0]))

    svg = re.sub("'DejaVu Sans'(?=\")", "'DejaVu Sans', Verdana, sans-serif", svg)  # in formulas
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    return re.sub(r'\b(?:d|x|y)="[^"]*"|translate\([^)]*\)', shorter, svg)


def live(draw: Callable[..., Any], **ranges: Any) -> None:
    """Sliders in a running kernel, with ipywidgets' ranges; on a built page show `frames` too."""

    def show(**values: Any) -> None:
        draw(**values)  # its alt text would otherwise be printed under the picture

    require("ipywidgets", "plots").interact(show, **ranges)
