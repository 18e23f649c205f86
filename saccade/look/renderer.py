"""Renderers: how a map is drawn, by the kind of units that are looked at.

A renderer has two parts. `drawn` takes a look, the excerpt of it to draw and the kind of file to be made (svg, png or
html), and gives a drawing; `thumb` takes a look and a layer, and says how its heads are drawn in the atlas. A third,
`walked`, gives the drawings of an animation, where there is one. To add a renderer, write its parts in a file of their
own and name them in RENDERERS, by the `kind` of the sides that they are for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from saccade.error import SaccadeError
from saccade.look.chart import SIDE, heat
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.looked import Layered, Looked
from saccade.look.nodes import nodes, small
from saccade.look.overlay import SmallOverlay
from saccade.look.patches import patches, walked
from saccade.look.thumb import SmallMatrix, Thumb


class Renderer(NamedTuple):
    """A map by itself, small among all heads, and row after row. few: whether each row looks at few columns, so that a
    terminal names them.
    """

    drawn: Callable[[Looked, Excerpt, str], Drawing]
    thumb: Callable[[Looked, Layered], Thumb]
    walked: Callable[[Looked, Excerpt], list[Drawing]] | None = None
    few: bool = False


def rendered(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """A map as a drawing, by the renderer of what is looked at in it."""
    layer = excerpt.layer_of(look)
    renderer = WORDS if layer is None else _renderer_of(look, layer)
    return renderer.drawn(look, excerpt, kind)


def animated(look: Looked, excerpt: Excerpt) -> list[Drawing]:
    """A map as the drawings of an animation; refuses a map whose units have none."""
    layer = excerpt.layer_of(look)
    renderer = WORDS if layer is None else _renderer_of(look, layer)
    if renderer.walked is None:
        raise SaccadeError(
            "an animation shows where each word looked on a picture, and here no picture is looked at: "
            "write .png, .svg or .html"
        )
    return renderer.walked(look, excerpt)


def names_few(look: Looked, excerpt: Excerpt) -> bool:
    """Whether a terminal tells of each row what it looked at most, in place of a matrix."""
    layer = excerpt.layer_of(look)
    return layer is not None and _renderer_of(look, layer).few


def thumb_of(look: Looked, layer: Layered) -> Thumb:
    """How the heads of a layer are drawn small."""
    return _renderer_of(look, layer).thumb(look, layer)


def matrix(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """Rows, columns and the weights between them, which fits units of every kind."""
    return heat(excerpt.map(look, SIDE))


def _renderer_of(look: Looked, layer: Layered) -> Renderer:
    return RENDERERS.get(look.sides[layer.columns].kind, WORDS)


WORDS = Renderer(matrix, SmallMatrix)
PICTURES = Renderer(patches, SmallOverlay, walked)
POINTS = Renderer(nodes, small)
GRAPHS = POINTS._replace(few=True)
RENDERERS = {
    "words": WORDS,
    "patches": PICTURES,
    "frames": PICTURES,
    "graph": GRAPHS,
    "points": POINTS,
    "tracks": GRAPHS,
}
