"""Small pictures for pages and results: the same on each run, in fewer bytes."""

import io
import re

from fairpg_lite._extras import require


def short_svg(svg: str) -> str:
    """The same picture in fewer bytes: places to a hundredth of a point, and no stamp.

    Matplotlib writes six decimals and its own version. Letters stay text, in the reader's own
    font; Verdana, which most have, is as wide as the one that matplotlib measured with.
    """

    def shorter(part: re.Match[str]) -> str:
        text = re.sub(r"(\.\d\d)\d+", r"\1", part[0])
        return re.sub(r"\s+", " ", text)

    svg = re.sub("'DejaVu Sans'(?=\")", "'DejaVu Sans', Verdana, sans-serif", svg)  # in formulas
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    return re.sub(r'\b(?:d|x|y)="[^"]*"|translate\([^)]*\)', shorter, svg)


def palette_png(png: bytes, colours: int = 128) -> bytes:
    """The same picture with a palette and no text chunks: a third of the size, equal on each run.

    Matplotlib stamps its version into a PNG; without the stamp a chapter's file changes only when
    the picture does. 128 colours are more than a line or bar chart with smooth edges uses.
    """
    image = require("PIL.Image", "plots")
    with image.open(io.BytesIO(png)) as picture:
        white = image.new("RGBA", picture.size, "white")
        flat = image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    small = flat.quantize(colours, method=image.Quantize.MEDIANCUT, dither=image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, format="PNG", optimize=True)
    return out.getvalue()
