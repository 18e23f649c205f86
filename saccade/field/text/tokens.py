"""Tokens as arrays: how they lie on the disk, as one padded tensor, and in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from saccade.field.field import Array, Column
from saccade.field.text.text import SPECIAL_FILE, TOKENIZER, Text

GLIMPSE = 20  # letters of a text that something is tried out on


def of_files(files: Mapping[str, bytes]) -> Text:
    """The vocabulary among the files of a run, parsed once however many fields share it."""
    if TOKENIZER not in files:
        return Text.from_files(files)  # says what is missing
    return _opened(files[TOKENIZER], files.get(SPECIAL_FILE))


@lru_cache(maxsize=8)
def _opened(tokenizer: bytes, special: bytes | None) -> Text:
    return Text.from_files({TOKENIZER: tokenizer} | ({} if special is None else {SPECIAL_FILE: special}))


def token_array(text: Text) -> Array:
    """Two bytes a token, or four of a large vocabulary."""
    return Array("<u2" if text.vocab <= 1 << 16 else "<u4", ragged=True)


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


def report(text: Text, column: Column, *, pieces: bool) -> str:
    """Tokens, lengths of the examples (unless they are but pieces of one text), vocabulary, share of unknown tokens."""
    tokens, lengths = column.array("tokens"), column.lengths()
    median, most, longest = (int(each) for each in np.quantile(lengths, [0.5, 0.95, 1.0], method="inverted_cdf"))
    unknown = 0 if text.unknown is None else int((tokens == text.unknown).sum())
    sizes = "" if pieces else f"length {median} (median) {most} (95 %) {longest} (longest), "
    count = f"{len(tokens):,} token{'' if len(tokens) == 1 else 's'}"
    return f"{count}, {sizes}vocabulary {text.vocab:,}, unknown {unknown / len(tokens):.2%}"
