"""A text as X: its tokens, and the special tokens before and behind them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field.field import Source, Taken
from saccade.field.text.config import SourceTextConfig
from saccade.field.text.text import Text
from saccade.field.text.text_field import TextField, padded, vocabulary_of
from saccade.field.text.units import token_side
from saccade.field.text.unmerge import Unmerging
from saccade.field.unit import Lengths, Side
from saccade.model.input import Input

OTHERS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".wav", ".flac", ".npz", ".npy")  # not texts

NAMED = 5  # unknown words that a remark names


class SourceText(TextField, Source):
    """Tokens that an encoder is shown. If Y reads a pooled state, a text begins with <begin>, whose state is the pooled
    one (a model from elsewhere: with what its tokenizer puts around a text). If Y has a decoder, it ends with <end>.
    """

    keys: ClassVar[type[SourceTextConfig]] = SourceTextConfig
    held: ClassVar[str | None] = "sources"
    part: ClassVar[str | None] = "text"
    lengths = Lengths("words", (10, 15))
    compares: ClassVar[bool] = True

    def __init__(self, text: Text, config: SourceTextConfig, *, needs: str | None) -> None:
        """needs: the states that Y reads, "pooled", "places" or "decoder"; None: there is no Y, the model is only
        looked into.
        """
        self.text, self.config, self.pad = text, config, text.pad or 0
        self.before, self.behind = _around(text, needs)
        self.full = needs == "decoder"  # a decoder's source needs no lengths where all are equally long
        self.limit = config.limit
        self.around = max(1, sum(map(len, text.frame)))
        self.unmerging = Unmerging(text, config.unmerge) if config.unmerge else None

    @classmethod
    def keys_of(cls, model: ModelConfig, files: Mapping[str, bytes]) -> dict[str, Any]:
        return {"limit": None}

    @classmethod
    def load(cls, config: SourceTextConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> SourceText:
        return cls(vocabulary_of(files), config, needs=needs)

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        return self.before, self.behind

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Tokens (B,T) and their lengths."""
        tokens, lengths = padded(taken["tokens"], self.pad, self.before, self.behind)
        full = self.full and bool((lengths == tokens.shape[1]).all())
        return Input({"tokens": tokens}, None if full else lengths)

    def line(self, text: str) -> str:
        """The text itself; refuses the name of a picture or another file that is no text."""
        if text.lower().endswith(OTHERS) and Path(text).is_file():
            raise SaccadeError(f"{text} is a file of another kind, and this run reads texts: give a text")
        return text

    def received(self, value: Any) -> str:
        if not isinstance(value, str) or (value.startswith("data:") and ";base64," in value[:100]):
            raise SaccadeError("this run reads texts: give a string")
        return value

    def remark(self, raw: str, arrays: Mapping[str, Any]) -> str | None:
        """Which of its words the vocabulary does not have."""
        if self.text.unknown is None or self.text.unknown not in arrays["tokens"]:
            return None
        read = self.text.tokenizer.encode(raw, add_special_tokens=False)
        spans = [span for token, span in zip(read.ids, read.offsets, strict=True) if token == self.text.unknown]
        words = list(dict.fromkeys(raw[begin:end] for begin, end in spans))
        return f"not known: {', '.join(map(repr, words[:NAMED]))}{' ...' if len(words) > NAMED else ''}"

    def side(self, x: Input) -> Side:
        return token_side(self.text, x.values["tokens"][0].tolist())

    def distances(self, some: Taken, others: Taken) -> np.ndarray:
        """0 where two texts are the same, 1 where they are not."""
        one, other = ([np.asarray(row, np.int64).tobytes() for row in each["tokens"]] for each in (some, others))
        numbers = {row: number for number, row in enumerate(dict.fromkeys([*one, *other]))}
        first, second = (np.array([numbers[row] for row in rows]) for rows in (one, other))
        return (first[:, None] != second).astype(np.float32)

    def bucket(self, raw: str) -> int:
        return len(raw.split())


def _around(text: Text, needs: str | None) -> tuple[list[int], list[int]]:
    """The special tokens before and behind a text."""
    if needs in (None, "places"):
        return text.frame
    if text.begin is None or text.pad is None:
        raise SaccadeError("this tokenizer lacks a token for begin or padding: a text that is read needs them")
    if needs == "pooled":
        return text.frame if any(text.frame) else ([text.begin], [])
    if text.end is None:
        raise SaccadeError("this tokenizer lacks a token for the end: a source needs it")
    return [], [text.end]
