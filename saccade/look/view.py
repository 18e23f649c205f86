"""`View`: which picture of a look is asked for, and the file it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade import disk
from saccade.error import SaccadeError
from saccade.look.atlas import Looked, atlas
from saccade.look.excerpt import Excerpt
from saccade.look.map import Map
from saccade.look.page import document, page
from saccade.look.picture import KINDS, NUMBERS, file_for, filed, picture
from saccade.look.renderer import rendered

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

    @property
    def excerpt(self) -> Excerpt:
        """Which map it is of."""
        if self.layer == ATLAS:
            raise SaccadeError("the atlas is a picture of many maps: write it to an .svg, .png or .html")
        return Excerpt(self.layer, self.head, self.words, self.hide, self.size)

    def map(self, look: Looked, most: int | None = None) -> Map:
        """The map; of at most `most` cells a side, unless a size is asked for."""
        return self.excerpt.map(look, most)

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
            return filed(atlas(look, words=self.words, hide=self.hide), kind)
        if kind == "html" and self.layer is None:
            return self._page(look)
        return picture(look, self.excerpt, kind)

    def _page(self, look: Looked) -> bytes:
        """Everything: the map, the atlas and the heads in numbers."""
        map = rendered(look, self.excerpt, "html")
        return document(map.title, page(look, map, words=self.words, hide=self.hide)).encode()
