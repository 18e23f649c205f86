"""The parts of a drawing as elements of SVG, with every text escaped and images inside."""

from __future__ import annotations

import base64
from html import escape

from saccade import png
from saccade.look.label import plain
from saccade.look.part import DROP, Cells, Dot, Lettering, Line, Part, Rectangle

SHARPEST = 4  # pixels a cell of an embedded image: renderers that smooth it then smooth its edges alone


def escaped(text: str) -> str:
    """A text as XML and HTML may hold it, in an element or in quotes: nothing in it is read as markup."""
    return escape(plain(text))


def to_element(part: Part, ink: str) -> str:
    """A part as an element of SVG."""
    match part:
        case Rectangle():
            return f'<rect {_place(part)} fill="{part.colour or ink}"{_strength(part.strength)}/>'
        case Cells():
            return _cells(part) if part.note is not None else _embedded(part)
        case Line():
            ends = " ".join(f'{end}="{number(getattr(part, end))}"' for end in ("x1", "y1", "x2", "y2"))
            wide = f'stroke-width="{number(part.width)}"'
            return f'<line {ends} stroke="{part.colour or ink}" {wide}{_strength(part.strength, "stroke")}/>'
        case Dot():
            return _dot(part, ink)
        case Lettering():
            return _text(part, ink)


def _dot(dot: Dot, ink: str) -> str:
    place = f'cx="{number(dot.x)}" cy="{number(dot.y)}" r="{number(dot.radius)}"'
    note = f"<title>{escaped(dot.note)}</title>" if dot.note else ""
    return f'<circle {place} fill="{dot.colour or ink}"{_strength(dot.strength)}>{note}</circle>'


def _cells(image: Cells) -> str:
    """Each cell as a rectangle of its own, with its note: sharp at every size, and to be edited in a paper."""
    assert image.note is not None
    R, C, _ = image.colours.shape
    wide, high = image.width / C, image.height / R
    size = f'width="{number(wide)}" height="{number(high)}"'
    cells = ['<g shape-rendering="crispEdges">']
    for row, line in enumerate(image.colours.tolist()):
        for column, (red, green, blue) in enumerate(line):
            place = f'x="{number(image.x + column * wide)}" y="{number(image.y + row * high)}"'
            note = escaped(image.note(row, column))
            cells.append(f'<rect {place} {size} fill="#{red:02x}{green:02x}{blue:02x}"><title>{note}</title></rect>')
    return "\n".join([*cells, "</g>"])


def _embedded(image: Cells) -> str:
    R, C, _ = image.colours.shape
    tall, wide = (max(1, min(SHARPEST, int(size))) for size in (image.height / R, image.width / C))
    enlarged = image.colours.repeat_interleave(tall, 0).repeat_interleave(wide, 1)
    address = f"data:image/png;base64,{base64.b64encode(png.encode(enlarged.numpy())).decode()}"
    how = 'preserveAspectRatio="none" style="image-rendering:pixelated"'
    return f'<image {_place(image)} {how} href="{address}"/>'


def _text(label: Lettering, ink: str) -> str:
    turn = f" rotate({number(label.turn)})" if label.turn else ""
    place = f'transform="translate({number(label.x)} {number(label.y)}){turn}" y="{number(DROP * label.size)}"'
    bold = ' font-weight="bold"' if label.bold else ""
    look = f'font-size="{number(label.size)}" text-anchor="{label.anchor}"{bold} fill="{label.colour or ink}"'
    return f"<text {place} {look}{_strength(label.strength)}>{escaped(label.text)}</text>"


def _place(part: Rectangle | Cells) -> str:
    return " ".join(f'{name}="{number(getattr(part, name))}"' for name in ("x", "y", "width", "height"))


def _strength(strength: float, what: str = "fill") -> str:
    return "" if strength == 1 else f' {what}-opacity="{number(strength)}"'


def number(value: float) -> str:
    """A number to a hundredth, no longer than it must be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
