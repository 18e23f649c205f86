"""A text whose blanks are filled as Y: the likeliest words at the places of its mask tokens (Devlin et al. 2019).

It is the output of models from elsewhere that were trained on masked tokens; there is no recipe that learns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.field import Taken, Target, Term
from saccade.field.metric import METRICS
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import TextConfig
from saccade.field.text.text import TOKENIZER, Text
from saccade.field.text.text_field import TextField, padded, vocabulary_of
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

SHOWN = 5  # words for each blank
INSIDE = "##"  # how a word piece begins that is not the first of a word


class Blanks(TextField, Target):
    """The whole text, its blanks filled. `mask` is the token that stands for a blank, `sign` how it is written."""

    kind: ClassVar[str] = "blanks"
    keys: ClassVar[type[TextConfig]] = TextConfig
    head, needs, answer, main, known = "masked", "places", "blanks", "exact_match", ("exact_match",)

    def __init__(self, text: Text, config: TextConfig) -> None:
        if text.mask is None:
            raise SaccadeError("this tokenizer has no token for a blank ([MASK] or <mask>)")
        self.text, self.config, self.mask = text, config, text.mask
        self.sign = text.tokenizer.id_to_token(text.mask) or ""
        self.missing = f"without a blank: write {self.sign} where a word is missing"

    @classmethod
    def load(cls, config: TextConfig, files: Mapping[str, bytes], column: str) -> Blanks:
        return cls(vocabulary_of(files), config)

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Tokens (B,T) and their lengths."""
        tokens, lengths = padded(taken["tokens"], self.text.pad or 0)
        return Input({"tokens": tokens}, lengths)

    def counts(self, y: Input) -> dict[str, int]:
        return {"tokens": y.rows}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        raise SaccadeError(
            "a model that fills blanks is used here, not trained: start a recipe from it (start = FOLDER)"
        )

    def results(self, scores: Tensor, raw: str) -> Result:
        """The filled text, from the scores (n,V) of its n blanks. Each is filled by itself, as if the others stayed
        blank; the score is the sum of their log-probabilities.
        """
        logs = scores.float().log_softmax(-1)
        best = logs.topk(min(SHOWN, logs.shape[-1]), -1)
        chances = [self._words(*row) for row in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)]
        text = self._filled(raw, [next(iter(each)) for each in chances])
        return Result(text, text, float(best.values[:, 0].sum()), probabilities=chances)

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        kind = METRICS["exact_match"]
        return {"exact_match": Tally(kind.counts([each.text for each in results], list(raws), "en"), kind.score)}

    def places(self, x: Input) -> Tensor:
        """Where blanks are, (n,2): the row and the position of each."""
        return torch.nonzero(x.values["tokens"] == self.mask)

    def _words(self, tokens: list[int], chances: list[float]) -> dict[str, float]:
        """Tokens as they are written, with the space before them where the tokenizer keeps it; one that is written as
        another is, by its name.
        """
        found: dict[str, float] = {}
        for token, chance in zip(tokens, chances, strict=True):
            word = self.text.tokenizer.decode([token], skip_special_tokens=False)
            found[word if word and word not in found else self.text.tokenizer.id_to_token(token) or str(token)] = chance
        return found

    def _filled(self, raw: str, words: Sequence[str]) -> str:
        """The text with words in place of its blanks. A piece that goes on with a word, or brings its own space, leaves
        no space before it.
        """
        first, *rest = raw.split(self.sign)
        made = first
        for word, after in zip(words, rest, strict=False):
            joined = word.startswith((INSIDE, " "))
            made = (
                (made.rstrip(" ") if joined else made) + (word.removeprefix(INSIDE) if made else word.strip()) + after
            )
        return made


def fills(files: Mapping[str, bytes]) -> bool:
    """Whether the tokenizer among these files has a token for a blank."""
    return TOKENIZER in files and vocabulary_of(files).mask is not None
