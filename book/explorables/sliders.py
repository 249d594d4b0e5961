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
    """The slider's name."""
    labels: tuple[str, ...]
    """The value of each picture."""
    alts: tuple[str, ...]
    """The alt text of each picture."""
    pictures: tuple[bytes, ...]
    """SVG."""
    start: int = 0
    """Which picture is shown first."""
    caption: str | None = None

    def __repr__(self) -> str:
        return f"Frames({self.label}: {', '.join(self.labels)})"

    def _repr_html_(self) -> str:
        pictures = "\n".join(self._image(index) for index in range(len(self.pictures)))
        first_label = html.escape(self.labels[self.start])
        caption = ""
        if self.caption:
            caption = f"\n<figcaption>{html.escape(self.caption)}</figcaption>"
        return f"""\
<figure class="frames" style="margin:0">
<label style="display:flex;flex-wrap:wrap;align-items:center;gap:.2em .8em;margin:.4em 0">\
<span>{html.escape(self.label)}</span>\
<input type="range" min="0" max="{len(self.pictures) - 1}" step="1" value="{self.start}" \
autocomplete="off" aria-valuetext="{first_label}" style="flex:1 1 10em" oninput="{_ON_INPUT}">\
<output style="min-width:4em;font-weight:600">{first_label}</output></label>
<div class="pictures">
{pictures}
</div>{caption}
</figure>"""

    def _image(self, index: int) -> str:
        """The <img> of one picture, hidden unless it is the first to be shown."""
        alt = html.escape(self.alts[index])
        label = html.escape(self.labels[index])
        hidden = "" if index == self.start else " hidden"
        content = base64.b64encode(self.pictures[index]).decode()
        return (
            f'<img alt="{alt}" data-value="{label}"{hidden} '
            'style="max-width:100%;border-radius:6px" '
            f'src="data:image/svg+xml;base64,{content}">'
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

    Args:
        values: What the slider can be set to.
        draw: Draws the current matplotlib figure for one value and returns its alt text.
        label: The slider's name.
        start: The index of the value shown first.
        caption: A sentence below the picture.

    Returns:
        The pictures, for a notebook to show.
    """
    alts = []
    pictures = []
    for value in values:
        alt, picture = _frame(draw, value)
        alts.append(alt)
        pictures.append(picture)
    labels = [f"{value:g}" for value in values]
    return Frames(label, tuple(labels), tuple(alts), tuple(pictures), start, caption)


def _frame(draw: Callable[[Any], str], value: Any) -> tuple[str, bytes]:
    """The alt text and the picture of one value."""
    svg = io.StringIO()
    with style():  # says what to install if there is no matplotlib
        from matplotlib import pyplot as plt

        figure = plt.figure()
        try:
            alt = draw(value)
            if not isinstance(alt, str) or not alt.strip():
                raise TypeError(f"frames: draw({value!r}) returned {alt!r}; return the alt text.")
            plt.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        finally:
            plt.close()  # of draw's own making, maybe
            plt.close(figure)
    return alt.strip(), short_svg(svg.getvalue()).encode()


def short_svg(svg: str) -> str:
    """The same picture in fewer bytes: places to a hundredth of a point, and no stamp.

    Matplotlib writes six decimals and its own version. Letters stay text, in the reader's own
    font; Verdana, which most have, is as wide as the one that matplotlib measured with.
    """

    def shorter(places: re.Match[str]) -> str:
        two_decimals = re.sub(r"(\.\d\d)\d+", r"\1", places[0])
        return re.sub(r"\s+", " ", two_decimals)

    svg = re.sub("'DejaVu Sans'(?=\")", "'DejaVu Sans', Verdana, sans-serif", svg)  # in formulas
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    return re.sub(r'\b(?:d|x|y)="[^"]*"|translate\([^)]*\)', shorter, svg)


def live(draw: Callable[..., Any], **ranges: Any) -> None:
    """Sliders in a running kernel; on a built page show `frames` too.

    Args:
        draw: Draws a figure for one value of each slider.
        ranges: The sliders by name, as `ipywidgets.interact` takes them.
    """
    try:
        import ipywidgets
    except ImportError as error:
        raise ImportError(
            'live: ipywidgets is not installed; pip install "fairpg-lite[plots]" brings it.'
        ) from error

    def show(**values: Any) -> None:
        draw(**values)  # its alt text would otherwise be printed under the picture

    ipywidgets.interact(show, **ranges)
