"""`View`: which picture of a look to make, and as which file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade import disk
from saccade.error import SaccadeError
from saccade.look.atlas import atlas
from saccade.look.excerpt import Excerpt
from saccade.look.looked import Looked
from saccade.look.map import Map
from saccade.look.page import document, page
from saccade.look.picture import KINDS, MOVING, NUMBERS, file_for, filed, picture
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
    row: str | None = None  # one row alone, by its name or its number

    def __post_init__(self) -> None:
        if self.layer == ATLAS and (self.head != "mean" or self.size is not None or self.row is not None):
            raise SaccadeError(
                "the atlas shows every head, as small as it is: leave out the head, the size and the row"
            )

    @property
    def excerpt(self) -> Excerpt:
        """Which map it is of."""
        if self.layer == ATLAS:
            raise SaccadeError("the atlas is a picture of many maps: write it to an .svg, .png or .html")
        return Excerpt(self.layer, self.head, self.words, self.hide, self.size, row=self.row)

    def map(self, look: Looked, most: int | None = None) -> Map:
        """The map; of at most `most` cells a side, unless a size is asked for."""
        return self.excerpt.map(look, most)

    def write(self, look: Looked, path: str | Path) -> Path:
        """The file of the view, whole or not at all; its ending tells the kind. A page shows all of a look, unless a
        layer is named.
        """
        target = file_for(path, (*KINDS, *MOVING))
        disk.write(target, self.content(look, target.suffix[1:].lower()))
        return target

    def content(self, look: Looked, kind: str) -> bytes:
        """The bytes of the file: the atlas, a whole page, or one map."""
        if self.layer == ATLAS and kind not in (*NUMBERS, *MOVING):
            return filed(atlas(look, words=self.words, hide=self.hide), kind)
        if kind == "html" and self.layer is None:
            return self._page(look)
        return picture(look, self.excerpt, kind)

    def _page(self, look: Looked) -> bytes:
        """Everything: the map, the atlas and the heads in numbers."""
        map = rendered(look, self.excerpt, "html")
        return document(map.title, page(look, map, words=self.words, hide=self.hide)).encode()
