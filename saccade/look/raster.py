"""A drawing as pixels, by pillow; and which of the machine's fonts can write which letters."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from saccade.error import SaccadeError
from saccade.look.label import plain
from saccade.look.part import DROP, INK, PAPER, Cells, Dot, Lettering, Line, Part, Rectangle

if TYPE_CHECKING:
    from PIL.Image import Image as Canvas

# A letter is written by the first of these fonts that is installed and has it; pillow's own comes last.
PLAIN = ("DejaVuSans", "NotoSans-Regular", "Arial", "LiberationSans-Regular", "Helvetica", "SegoeUI", "FreeSans")
BOLD = ("DejaVuSans-Bold", "NotoSans-Bold", "Arial Bold", "arialbd", "LiberationSans-Bold", "FreeSansBold")
NOTO = ("CJK", "SC", "JP", "KR", "Arabic", "Hebrew", "Devanagari", "Thai", "Symbols2")
OTHERS = (
    *(f"NotoSans{script}-Regular" for script in NOTO),
    *("NotoNaskhArabic-Regular", "NotoEmoji-Regular", "wqy-microhei", "DroidSansFallbackFull", "PingFang", "msyh"),
    *("arialuni", "Arial Unicode", "unifont"),
)
ENDINGS = (".ttf", ".ttc", ".otf")
ABSENT = "\U0010fffd"  # a letter that no font has: what is drawn in its place is the sign of a missing one
LARGEST = 1 << 26  # pixels of one picture
COLOURS = 256  # of a picture of an animation
FINER = 3  # pixels of a sheet that edges are smoothed on, for each of the canvas


def rasterise(width: float, height: float, parts: Iterable[Part], scale: float = 2.0) -> bytes:
    """Parts on a sheet of this size as a PNG, each unit `scale` pixels wide."""
    made = io.BytesIO()
    canvas_of(width, height, parts, scale).save(made, "PNG")
    return made.getvalue()


def canvas_of(width: float, height: float, parts: Iterable[Part], scale: float) -> Canvas:
    """The same as pillow's picture."""
    kinds = _pillow()
    if not (isinstance(scale, int | float) and math.isfinite(scale) and scale > 0):
        raise SaccadeError(f"scale is a number above 0: the pixels of a unit; got {scale!r}")
    size = math.ceil(width * scale), math.ceil(height * scale)
    if size[0] * size[1] > LARGEST:
        raise SaccadeError(f"a picture of {size[0]} x {size[1]} pixels is too large: ask for a smaller scale, or SVG")
    canvas = kinds.Image.new("RGB", size, PAPER)
    for part in parts:
        _draw(canvas, part, scale)
    return canvas


def animation(canvases: Sequence[Canvas], milliseconds: Sequence[int]) -> bytes:
    """Pictures one after another, each so long, again and again: a GIF, each with 256 colours of its own."""
    made = io.BytesIO()
    quantised = [each.quantize(COLOURS, dither=_pillow().Image.Dither.NONE) for each in canvases]
    quantised[0].save(
        made, "GIF", save_all=True, append_images=quantised[1:], duration=[*milliseconds], loop=0, disposal=1
    )
    return made.getvalue()


def _pillow() -> Any:
    """Pillow's modules, if they are there."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError:
        raise SaccadeError(
            "PNG and GIF need pillow: pip install 'saccade[look]', or draw an SVG, which needs nothing"
        ) from None
    return PIL


def _draw(canvas: Canvas, part: Part, scale: float) -> None:
    match part:
        case Rectangle():
            _fill(canvas, _box(part, scale), part.colour or INK, part.strength)
        case Cells():
            _paste(canvas, part, scale)
        case Line():
            _stroke(canvas, part, scale)
        case Dot():
            box = (part.x - part.radius, part.y - part.radius, part.x + part.radius, part.y + part.radius)
            _cover(canvas, box, part, scale, lambda pen, ends: pen.ellipse(ends, fill=round(255 * part.strength)))
        case Lettering():
            _write(canvas, part, scale)


def _box(part: Rectangle | Cells, scale: float) -> tuple[int, int, int, int]:
    """Left, top, right, bottom, in whole pixels, never empty."""
    left, top = round(part.x * scale), round(part.y * scale)
    right, bottom = round((part.x + part.width) * scale), round((part.y + part.height) * scale)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _fill(canvas: Canvas, box: tuple[int, int, int, int], colour: str, strength: float) -> None:
    left, top, right, bottom = box
    cover = _pillow().Image.new("L", (right - left, bottom - top), round(255 * strength))
    canvas.paste(colour, box, cover)


def _paste(canvas: Canvas, image: Cells, scale: float) -> None:
    kinds, box = _pillow(), _box(image, scale)
    cells = kinds.Image.fromarray(image.colours.contiguous().numpy())
    size = box[2] - box[0], box[3] - box[1]
    canvas.paste(cells.resize(size, kinds.Image.Resampling.NEAREST), box[:2])


def _stroke(canvas: Canvas, line: Line, scale: float) -> None:
    """A line that goes straight across or down is a thin rectangle, without blurred edges."""
    wide = max(1.0, line.width * scale) / scale
    x, y = min(line.x1, line.x2) - wide / 2, min(line.y1, line.y2) - wide / 2
    across, down = abs(line.x2 - line.x1) + wide, abs(line.y2 - line.y1) + wide
    if min(across, down) <= wide:
        _fill(canvas, _box(Rectangle(x, y, across, down), scale), line.colour or INK, line.strength)
        return
    thick, fill = round(wide * scale * FINER), round(255 * line.strength)
    ends = (line.x1, line.y1, line.x2, line.y2)
    _cover(canvas, ends, line, scale, lambda pen, points: pen.line(points, fill=fill, width=thick), wide)


def _cover(
    canvas: Canvas,
    points: Sequence[float],
    part: Line | Dot,
    scale: float,
    draw: Callable[[Any, list[float]], None],
    beyond: float = 0.0,
) -> None:
    """A part laid on the canvas with smooth edges: drawn on a finer sheet of its own, as large as it is."""
    kinds = _pillow()
    across, down = points[0::2], points[1::2]
    left, top = (math.floor((min(each) - beyond) * scale) - 1 for each in (across, down))
    right, bottom = (math.ceil((max(each) + beyond) * scale) + 1 for each in (across, down))
    size = right - left, bottom - top
    sheet = kinds.Image.new("L", (size[0] * FINER, size[1] * FINER), 0)
    inside = [(each * scale - (top if n % 2 else left)) * FINER for n, each in enumerate(points)]
    draw(kinds.ImageDraw.Draw(sheet), inside)
    canvas.paste(part.colour or INK, (left, top), sheet.resize(size, kinds.Image.Resampling.BOX))


def _write(canvas: Canvas, label: Lettering, scale: float) -> None:
    """The label on a strip of its own, which is turned and laid on the canvas."""
    size = max(1.0, label.size * scale)
    runs = _runs(plain(label.text), size, label.bold)
    length = sum(font.getlength(run) for font, run in runs)
    if not length:
        return
    margin = round(size)
    strip = _pillow().Image.new("L", (math.ceil(length) + 2 * margin, 3 * margin), 0)
    pen, x = _pillow().ImageDraw.Draw(strip), float(margin)
    for font, run in runs:
        pen.text((x, 1.5 * margin + DROP * size), run, fill=255, font=font, anchor="ls")
        x += font.getlength(run)
    anchor = margin + length * {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
    _lay(canvas, strip, (anchor, 1.5 * margin), label, scale)


def _lay(canvas: Canvas, strip: Canvas, anchor: tuple[float, float], label: Lettering, scale: float) -> None:
    """The strip, turned around its anchor, with the anchor at the label's point."""
    angle = math.radians(label.turn)
    dx, dy = anchor[0] - strip.width / 2, anchor[1] - strip.height / 2
    if label.turn:
        strip = strip.rotate(-label.turn, _pillow().Image.Resampling.BICUBIC, expand=True)
    x = label.x * scale - (dx * math.cos(angle) - dy * math.sin(angle)) - strip.width / 2
    y = label.y * scale - (dx * math.sin(angle) + dy * math.cos(angle)) - strip.height / 2
    faint = strip if label.strength == 1 else strip.point([round(each * label.strength) for each in range(256)])
    canvas.paste(label.colour or INK, (round(x), round(y)), faint)


def _runs(text: str, size: float, bold: bool) -> list[tuple[Any, str]]:
    """The text in pieces, each with the font that writes it."""
    fonts = _fonts(size, bold)
    chosen = ((_font_number(each, len(fonts), size, bold), each) for each in text)
    return [(fonts[number], "".join(each for _, each in run)) for number, run in groupby(chosen, lambda each: each[0])]


@lru_cache(1 << 14)
def _font_number(letter: str, count: int, size: float, bold: bool) -> int:
    """The number of the first font that has a letter; 0 if none has."""
    fonts = _fonts(size, bold)
    able = (number for number in range(count) if letter.isspace() or not _is_missing(fonts[number], letter))
    return next(able, 0)


def _is_missing(font: Any, letter: str) -> bool:
    drawn, sign = font.getmask(letter), font.getmask(ABSENT)
    return drawn.size == sign.size and bytes(drawn) == bytes(sign)


@lru_cache(64)
def _fonts(size: float, bold: bool) -> tuple[Any, ...]:
    """The fonts of the machine that we know by name, and pillow's own."""
    first = [font for font in (_font(name, size) for name in ((*BOLD, *PLAIN) if bold else PLAIN)) if font][:2]
    others = [font for font in (_font(name, size) for name in OTHERS) if font]
    return (*first, *others, _pillow().ImageFont.load_default(size))


@cache
def _font_file(name: str) -> str | None:
    """The file of a font, searched for once."""
    for ending in ENDINGS:
        try:
            return str(_pillow().ImageFont.truetype(name + ending).path)
        except OSError:
            continue
    return None


def _font(name: str, size: float) -> Any:
    path = _font_file(name)
    return None if path is None else _pillow().ImageFont.truetype(path, size)
