"""Pictures as HTML that needs nothing else: no script, no address, light or dark as the reader has it."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.look.atlas import atlas
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.looked import Looked
from saccade.look.renderer import rendered
from saccade.look.shown import DECODED
from saccade.look.statistic import Statistic
from saccade.look.vector import escaped

CELLS = 120  # of a side of the map on a page
OPEN = 48  # heads whose table is shown at once
# A browser that obeys this fetches nothing, whatever markup a token may hold.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
SHEET = """
  :root { color-scheme: light dark }
  body { margin: 2rem auto; padding: 0 1rem; max-width: 76rem; background: #ffffff; color: #1c1d21;
         font: 15px/1.5 "DejaVu Sans", "Noto Sans", "Segoe UI", "Helvetica Neue", Arial, sans-serif }
  svg { max-width: 100%; height: auto }
  @media (prefers-color-scheme: dark) { body { background: #17181c; color: #e6e6ea } }
"""
# A notebook shows the same fragment: every rule is about our own class, colours are those of its surroundings.
SCOPED = """
  .saccade-look { color: inherit; line-height: 1.4 }
  .saccade-look .saccade-scroll { overflow-x: auto; margin: 0.5em 0 1.5em }
  .saccade-look svg { max-width: none }
  .saccade-look .saccade-quote { white-space: pre-wrap; overflow-wrap: anywhere }
  .saccade-look table.saccade-heads { border-collapse: collapse; font-size: 0.9em; font-variant-numeric: tabular-nums }
  .saccade-look table.saccade-heads td, .saccade-look table.saccade-heads th {
    padding: 0.15em 0.9em 0.15em 0; text-align: left; border-bottom: 1px solid rgba(128, 128, 128, 0.3) }
  .saccade-look table.saccade-heads td.saccade-number { text-align: right }
"""


def document(title: str, body: str) -> str:
    """A whole page around a body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escaped(title)}</title>\n<style>{SHEET}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def page(look: Looked, map: Drawing | None = None, *, words: bool = False, hide: Sequence[str] = ()) -> str:
    """All of a look: what was read and written, its map (or the one given), the atlas and a table of its heads.

    words and hide: as in `Look.map`. It is a fragment for a notebook; `document` makes a page of it.
    """
    usual = Excerpt(words=words, hide=hide, size=CELLS)
    map = rendered(look, usual, "html") if map is None else map
    heads = atlas(look, words=words, hide=hide)
    parts = [*_texts(look), _figure(map), "<h3>All heads</h3>", _figure(heads), _heads_table(look)]
    return "\n".join([f'<div class="saccade-look"><style>{SCOPED}</style>', *parts, "</div>"])


def _texts(look: Looked) -> list[str]:
    """What was read, where it is a text, and what was written."""
    read = [(name, side.text) for name, side in look.sides.items() if name not in DECODED]
    quoted = [(name, text) for name, text in (*read, ("output", look.output)) if text]
    return [f'<p class="saccade-quote"><b>{escaped(name)}</b>  {escaped(text)}</p>' for name, text in quoted]


def _figure(drawing: Drawing) -> str:
    return f'<div class="saccade-scroll">{drawing.to_svg(ink="currentColor", paper=None)}</div>'


def _heads_table(look: Looked) -> str:
    """Layer, head, entropy, distance and badges; of many heads, folded until it is asked for."""
    names = "".join(f"<th>{name}</th>" for name in ("layer", "head", "entropy", "distance", "badges"))
    lines = [_head_row(layer.name, *each) for layer in look.layers for each in enumerate(look.statistics(layer.name))]
    table = f'<table class="saccade-heads"><thead><tr>{names}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    state = " open" if len(lines) <= OPEN else ""
    return f"<details{state}><summary>{len(lines)} heads in numbers</summary>{table}</details>"


def _head_row(layer: str, head: int, found: Statistic) -> str:
    away = "" if found.distance is None else f"{found.distance:.1f}"
    numbers = "".join(f'<td class="saccade-number">{each}</td>' for each in (head, f"{found.entropy:.3f}", away))
    return f"<tr><td>{escaped(layer)}</td>{numbers}<td>{escaped(', '.join(found.badges))}</td></tr>"
