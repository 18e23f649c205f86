"""`Drawing`: parts on a sheet, which comes out as SVG or, with pillow, as PNG, with everything at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from saccade.look.part import INK, PAPER, Part
from saccade.look.raster import animation, canvas_of, rasterise
from saccade.look.vector import escaped, number, to_element

FONTS = "DejaVu Sans, Noto Sans, Segoe UI, Helvetica Neue, Arial, sans-serif"


@dataclass
class Drawing:
    """A sheet of a size with parts on it, the later over the earlier."""

    width: float
    height: float
    title: str = ""
    parts: list[Part] = field(default_factory=list)

    def add(self, *parts: Part) -> None:
        """Lays parts on the sheet."""
        self.parts.extend(parts)

    def to_svg(self, *, ink: str = INK, paper: str | None = PAPER) -> str:
        """The drawing as one SVG element that needs nothing else; without paper, what lies behind it shows through."""
        size = f'width="{number(self.width)}" height="{number(self.height)}"'
        box = f'viewBox="0 0 {number(self.width)} {number(self.height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" font-family="{FONTS}">'
        sheet = [] if paper is None else [f'<rect width="100%" height="100%" fill="{paper}"/>']
        name = [f"<title>{escaped(self.title)}</title>"] if self.title else []
        return "\n".join([head, *name, *sheet, *(to_element(part, ink) for part in self.parts), "</svg>\n"])

    def to_png(self, scale: float = 2.0) -> bytes:
        """The drawing as a PNG of `scale` pixels for each of the SVG's; needs pillow."""
        return rasterise(self.width, self.height, self.parts, scale)


def to_gif(drawings: Sequence[Drawing], *, scale: float = 1.5, step: int = 900, rest: int = 1800) -> bytes:
    """Drawings of one size as an animation; step and rest: milliseconds of each, and of the last; needs pillow."""
    shown = [canvas_of(each.width, each.height, each.parts, scale) for each in drawings]
    return animation(shown, [*[step] * (len(shown) - 1), rest])
