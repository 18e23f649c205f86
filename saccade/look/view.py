"""`View`: which picture of a look is asked for, and the file it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade import disk
from saccade.error import SaccadeError
from saccade.look.atlas import Looked, atlas
from saccade.look.chart import SIDE
from saccade.look.map import Map
from saccade.look.page import document, page
from saccade.look.picture import KINDS, NUMBERS, draw, file_for

ATLAS = "atlas"  # in the place of a layer: all of them


@dataclass(frozen=True)
class View:
    """A layer (by default the look's usual map) and a head of it, in tokens or words, without what is hidden."""

    layer: str | None = None
    head: int | str = "mean"
    words: bool = False
    hide: Sequence[str] = ()  # special, sink, or both; as one text with a comma
    size: int | None = None

    def __post_init__(self) -> None:
        if self.layer == ATLAS and (self.head != "mean" or self.size is not None):
            raise SaccadeError("the atlas shows every head, as small as it is: leave out the head and the size")

    def map(self, look: Looked, most: int | None = None) -> Map:
        """The map; of at most `most` cells a side, unless a size is asked for."""
        if self.layer == ATLAS:
            raise SaccadeError("the atlas is a picture of many maps: write it to an .svg, .png or .html")
        size = most if self.size is None else self.size
        return look.map(self.layer, self.head, size=size, words=self.words, hide=self.hide)

    def write(self, look: Looked, path: str | Path) -> Path:
        """The file of the view, whole or not at all; its ending tells the kind. A page shows all of a look, unless a
        layer is named.
        """
        target = file_for(path, KINDS)
        disk.write(target, self.content(look, target.suffix[1:].lower()))
        return target

    def content(self, look: Looked, kind: str) -> bytes:
        """The same as bytes."""
        if self.layer == ATLAS and kind not in NUMBERS:
            return self._atlas(look, kind)
        map = self.map(look, None if kind in NUMBERS else SIDE)
        if kind == "html" and self.layer is None:
            return document(map.title, page(look, map, words=self.words, hide=self.hide)).encode()
        return draw(map, kind)

    def _atlas(self, look: Looked, kind: str) -> bytes:
        drawing = atlas(look, words=self.words, hide=self.hide)
        if kind == "png":
            return drawing.to_png()
        if kind == "svg":
            return drawing.to_svg().encode()
        return document("all heads", drawing.to_svg(ink="currentColor", paper=None)).encode()
