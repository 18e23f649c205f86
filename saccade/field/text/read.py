"""A text as X: tokens with what stands around them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saccade.error import SaccadeError
from saccade.field.field import Source, Taken
from saccade.field.text.config import ReadConfig
from saccade.field.text.side import side_of
from saccade.field.text.spelling import Unmerging
from saccade.field.text.text import Text
from saccade.field.text.tokens import Tokens, of_files, padded
from saccade.field.unit import Lengths, Side
from saccade.model.input import Input

OTHERS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".wav", ".flac", ".npz", ".npy")  # no texts, by their names


class Reading(Tokens, Source):
    """Tokens that an encoder is shown. For a Y that reads a pooled state a text begins with <begin>, whose state that
    is (of a model from elsewhere, with what its tokenizer puts around a text); for a decoder it ends with <end>.
    """

    keys: ClassVar[type[ReadConfig]] = ReadConfig
    held: ClassVar[str | None] = "sources"
    lengths = Lengths("words", (10, 15))

    def __init__(self, text: Text, config: ReadConfig, *, needs: str | None) -> None:
        """needs: what Y reads, "pooled" or "decoder"; None: there is no Y, and the model is looked into alone."""
        self.text, self.config, self.pad = text, config, text.pad or 0
        self.before, self.behind = _around(text, needs)
        self.full = needs == "decoder"  # a decoder's source needs no lengths where all are as long
        self.limit = config.limit
        self.around = max(1, sum(map(len, text.frame)))
        self.unmerging = Unmerging(text, config.unmerge) if config.unmerge else None

    @classmethod
    def load(cls, config: ReadConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Reading:
        """The field with the vocabulary among a run's files."""
        return cls(of_files(files), config, needs=needs)

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """The tokens before and behind a text."""
        return self.before, self.behind

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Tokens (B,T) and their lengths."""
        tokens, lengths = padded(taken["tokens"], self.pad, self.before, self.behind)
        full = self.full and bool((lengths == tokens.shape[1]).all())
        return Input({"tokens": tokens}, None if full else lengths)

    def line(self, text: str) -> str:
        """The text itself; a file of another kind is told."""
        if text.lower().endswith(OTHERS) and Path(text).is_file():
            raise SaccadeError(f"{text} is a file of another kind, and this run reads texts: give a text")
        return text

    def received(self, value: Any) -> str:
        """A string."""
        if not isinstance(value, str) or (value.startswith("data:") and ";base64," in value[:100]):
            raise SaccadeError("this run reads texts: give a string")
        return value

    def side(self, x: Input) -> Side:
        """Tokens in words."""
        return side_of(self.text, x.values["tokens"][0].tolist())

    def bucket(self, raw: str) -> int:
        """Words."""
        return len(raw.split())


def _around(text: Text, needs: str | None) -> tuple[list[int], list[int]]:
    """What stands before and behind a text."""
    if needs is None:
        return text.frame
    if text.begin is None or text.pad is None:
        raise SaccadeError("this tokenizer lacks a token for begin or padding: a text that is read needs them")
    if needs == "pooled":
        return text.frame if any(text.frame) else ([text.begin], [])
    if text.end is None:
        raise SaccadeError("this tokenizer lacks a token for the end: a source needs it")
    return [], [text.end]
