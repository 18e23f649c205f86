"""Renderers: how a map is drawn, by the kind of units that are looked at.

A renderer is given a look, the map of it that is meant and the kind of file to be made (svg, png or html), and gives a
drawing. To add one, write such a function in a file of its own and name it in RENDERERS, by the `kind` of the sides
that it is for.
"""

from __future__ import annotations

from collections.abc import Callable

from saccade.look.atlas import Looked
from saccade.look.chart import SIDE, heat
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.patches import patches

Renderer = Callable[[Looked, Excerpt, str], Drawing]


def rendered(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """A map as a drawing, by the renderer of what is looked at in it."""
    sides = excerpt.sides(look)
    renderer = matrix if sides is None else RENDERERS.get(sides[1].kind, matrix)
    return renderer(look, excerpt, kind)


def matrix(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """Rows, columns and the weights between them, which fits units of every kind."""
    return heat(excerpt.map(look, SIDE))


RENDERERS: dict[str, Renderer] = {"words": matrix, "patches": patches}
