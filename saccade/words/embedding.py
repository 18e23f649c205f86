"""Word vectors as the beginning of a model's token embedding."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.words.vectors import Vectors


def begin(table: Tensor, text: Text, vectors: Vectors) -> int:
    """Fills the rows (V,C) of the tokens that are words with their vectors, and gives their count.

    The vectors are scaled together to the spread that the table has, so that the model sees numbers of the usual size.
    """
    if vectors.width != table.shape[1]:
        raise SaccadeError(
            f"the word vectors have width {vectors.width} and the model has {table.shape[1]}: "
            f"set model.width = {vectors.width}, or train vectors with -o width={table.shape[1]}"
        )
    rows = {token: number for token in range(text.vocab) if (number := _number(token, text, vectors)) is not None}
    if not rows:
        raise SaccadeError(
            "no token is a word of the word vectors: use a tokenizer of words or bpe, on the same language"
        )
    found = torch.from_numpy(vectors.matrix[[*rows.values()]]).to(table.dtype)
    with torch.no_grad():
        table[list(rows)] = found * (table.std() / found.std())
    return len(rows)


def _number(token: int, text: Text, vectors: Vectors) -> int | None:
    """The word that a token spells, without the space before it."""
    if token in text.silent:
        return None
    spelled = text.spell(token).decode(errors="replace").strip()
    return vectors.find(spelled) if spelled else None
