"""What every text field shares: a vocabulary, tokens as arrays on the disk, and tokens as one padded tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from saccade.field.field import Array, Column, Encoded, Field
from saccade.field.text.config import TextConfig
from saccade.field.text.text import SPECIAL_FILE, TOKENIZER, Text

GLIMPSE = 20  # letters of a text that something is tried out on


class TextField(Field):
    """What every text has, whether it is read or written: a vocabulary that all texts of a run share."""

    kind: ClassVar[str] = "text"
    inherited: ClassVar[tuple[str, ...]] = ("tokenizer", "vocab", "lower")
    amount_unit: ClassVar[str | None] = "characters"
    reads: ClassVar[tuple[str, ...]] = ("label",)
    unit, noun = "tokens", "text"
    text: Text

    @classmethod
    def stored(cls, column: str) -> str:
        """One file for all texts of a run, which share their vocabulary."""
        return TOKENIZER

    @staticmethod
    def made(config: TextConfig, raws: Iterable[Any]) -> bytes:
        return Text.train(raws, config.tokenizer, vocab=config.vocab, lower=config.lower).to_bytes()

    @staticmethod
    def cell(text: str, folder: Path) -> str:
        return text

    @staticmethod
    def identity(raw: str) -> bytes:
        """The text, however it is spaced."""
        return " ".join(raw.split()).encode()

    @staticmethod
    def amount(raw: str) -> int:
        return len(raw)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Two bytes a token, or four of a large vocabulary."""
        return {"tokens": Array("<u2" if self.text.vocab <= 1 << 16 else "<u4", ragged=True)}

    @property
    def model(self) -> Mapping[str, Any]:
        return {"embed": "tokens", "vocab": self.text.vocab}

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Their tokens, without special tokens around them."""
        return {"tokens": self.text.encode(raws)}

    def sizes(self, column: Column) -> np.ndarray:
        """Tokens, and one more for the special token that `collate` adds."""
        return column.lengths() + 1

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays follow from the vocabulary alone."""
        return {}

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """Tokens, lengths (unless they are only pieces of one text), vocabulary, share of unknown tokens."""
        tokens, lengths = column.array("tokens"), column.lengths()
        median, most, longest = (int(each) for each in np.quantile(lengths, [0.5, 0.95, 1.0], method="inverted_cdf"))
        unknown = 0 if self.text.unknown is None else int((tokens == self.text.unknown).sum())
        sizes = "" if pieces else f"length {median} (median) {most} (95 %) {longest} (longest), "
        count = f"{len(tokens):,} token{'' if len(tokens) == 1 else 's'}"
        return f"{count}, {sizes}vocabulary {self.text.vocab:,}, unknown {unknown / len(tokens):.2%}"

    def glimpse(self, raw: str) -> str:
        return raw[:GLIMPSE]


def vocabulary_of(files: Mapping[str, bytes]) -> Text:
    """The vocabulary among the files of a run, parsed once however many fields share it."""
    if TOKENIZER not in files:
        return Text.from_files(files)  # says what is missing
    return _vocabulary(files[TOKENIZER], files.get(SPECIAL_FILE))


@lru_cache(maxsize=8)
def _vocabulary(tokenizer: bytes, special: bytes | None) -> Text:
    return Text.from_files({TOKENIZER: tokenizer} | ({} if special is None else {SPECIAL_FILE: special}))


def padded(
    rows: Sequence[np.ndarray] | Sequence[Sequence[int]],
    value: int,
    before: Sequence[int] = (),
    behind: Sequence[int] = (),
) -> tuple[Tensor, Tensor]:
    """Rows of tokens as one int64 tensor (B,T), with the same tokens before and behind each, filled up with `value` on
    the right, and their lengths (B,).
    """
    inner = np.array([len(row) for row in rows], np.int64)
    first, lengths = len(before), inner + len(before) + len(behind)
    tokens = np.full((len(rows), lengths.max(initial=0)), value, np.int64)
    if len(rows):
        places = np.arange(tokens.shape[1])
        tokens[:, :first] = before
        tokens[(places >= first) & (places < first + inner[:, None])] = np.concatenate(list(rows))
        for number, token in enumerate(behind):
            tokens[np.arange(len(rows)), first + inner + number] = token
    return torch.from_numpy(tokens), torch.from_numpy(lengths)
