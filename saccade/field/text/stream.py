"""A text as Y alone: one long stream of tokens, of which a decoder says what comes next (Bengio et al. 2003, Radford et
al. 2019).

With `ask`, texts have questions in them, and only their answers are learned and scored. A question is a certain token,
such as `?`, and one more; its answer is the token after them: in `? key value`, the value. So every decoder is scored
on the same tokens, however it looks back, and no search stands between a model and its accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
import torch

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field import metric
from saccade.field.field import Column, Encoded, StreamTarget, Taken, Term
from saccade.field.loss import place_loss, text_losses
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import StreamedTextConfig
from saccade.field.text.target import added, differs
from saccade.field.text.text import Text
from saccade.field.text.text_field import TextField, vocabulary_of
from saccade.field.text.units import token_side
from saccade.field.unit import Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

LINE = 40  # characters from which a line of text is unlikely to occur twice by chance


class StreamedText(TextField, StreamTarget):
    """Windows of a stream of tokens.

    closed: every text of it ends with <end>. framed: a prompt is read with what the tokenizer puts around it, as a
    model from elsewhere was trained. remembers: windows follow one another, for a model with a memory of M positions
    (Dai et al. 2019): at place t of a segment it sees the t tokens before it in the segment and the M before those; in
    generation a token sees the M before it, as if every token were a segment of its own. Under
    `mask = "window(M + 1)"` both are the same, whatever the length of a segment.
    """

    keys: ClassVar[type[StreamedTextConfig]] = StreamedTextConfig
    held: ClassVar[str | None] = "long lines"
    head, main, known = "vocabulary", "loss", ("loss",)

    def __init__(
        self,
        text: Text,
        config: StreamedTextConfig,
        *,
        closed: bool = False,
        remembers: bool = False,
        framed: bool = False,
    ) -> None:
        self.text, self.config, self.closed, self.remembers, self.framed = text, config, closed, remembers, framed
        if closed and text.end is None:
            raise SaccadeError("this tokenizer has no token for the end, so its texts cannot be closed")
        self.passes = 2 if config.agree else 1
        self.ask = None if config.ask is None else _question(text, config.ask)
        if self.ask is not None:  # texts of one length, each by itself: at once, or in segments
            self.rows, self.answer = f"texts({config.window}, whole={not remembers})", "questions"
        else:  # segments in order where the model remembers, otherwise windows at random places
            way = "segments" if remembers else "windows"
            self.rows, self.answer = f"{way}({config.window})", "continuation"

    @classmethod
    def load(cls, config: StreamedTextConfig, files: Mapping[str, bytes], column: str, **manner: bool) -> StreamedText:
        """manner: `closed`, `remembers` or `framed`."""
        return cls(vocabulary_of(files), config, **manner)

    def windowed(self, length: int) -> StreamedText:
        config = self.config.model_copy(update={"window": length})
        return StreamedText(self.text, config, closed=self.closed, remembers=self.remembers, framed=self.framed)

    def closing(self, closed: bool) -> StreamedText:
        return StreamedText(self.text, self.config, closed=closed, remembers=self.remembers, framed=self.framed)

    def fits(self, config: ModelConfig) -> None:
        differs(config, self.config.agree)

    def fits_room(self, room: int | None) -> None:
        if room is not None and self.config.window > room:
            raise SaccadeError(f"y.window = {self.config.window} does not fit the model's {room} positions")

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Their tokens, with an end token where texts are closed."""
        last = [self.text.end] if self.closed else []
        return {"tokens": [ids + last for ids in self.text.encode(raws)]}

    def sizes(self, column: Column) -> np.ndarray:
        """Tokens alone: a window has no special tokens around it."""
        return column.lengths()

    def fault(self, size: int, limit: int | None) -> str | None:
        """Only an empty text is left out: a stream is cut into windows, so that no text is too long."""
        return super().fault(size, None)

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """tokens (B,T) of windows (B,T+1), and wanted (B,T), the token after each; with questions, wanted is -1 where
        it is not an answer.
        """
        window = torch.from_numpy(taken["tokens"])
        tokens, wanted = window[:, :-1], window[:, 1:]
        if self.ask is not None:  # the answer to `? key` is the token after `key`, whose token before is `?`
            before = torch.cat((torch.from_numpy(taken["before"])[:, None], tokens[:, :-1]), 1)
            wanted = wanted.masked_fill(before != self.ask, -1)
        return Input({"tokens": tokens, "wanted": wanted})

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input:
        return Input({"tokens": y.values["tokens"]})

    def counts(self, y: Input) -> dict[str, int]:
        """All tokens; with questions, the answers."""
        wanted = y.values["wanted"]
        return {"tokens": wanted.numel() if self.ask is None else int((wanted >= 0).sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over the wanted tokens."""
        smoothing, agree = (self.config.smoothing, self.config.agree) if learning else (0.0, 0.0)
        total = place_loss(model, states.last, y.values["wanted"], smoothing, agree)
        return {"tokens": Term(total)}

    def losses(self, model: Model, states: States, y: Input) -> torch.Tensor:
        """Of windows: they are what is drawn again."""
        return text_losses(model, states.last, y.values["wanted"])

    def adds(self) -> list[str]:
        return added(self.config.smoothing, self.config.agree)

    @staticmethod
    def parts(raws: Iterable[str]) -> Iterable[str]:
        """Long lines: shorter ones occur twice by chance."""
        return (line for raw in raws for line in raw.split("\n") if len(line) >= LINE)

    def side(self, tokens: Sequence[int]) -> Side:
        return token_side(self.text, tokens)

    def prompt(self, tokens: list[int]) -> list[int]:
        return self.text.framed(tokens) if self.framed else tokens

    def extent(self, raws: Iterable[str], column: Column) -> int:
        """Characters of a split's text, and one more for each end token. 0 where the tokens do not spell the whole text
        (unknown words, lost spaces): bits per character would leave out what was not predicted.
        """
        count, tokens = 0, column.take(np.arange(len(column.lengths())))["tokens"]
        for raw, encoded in zip_longest(raws, tokens):
            if raw is None or encoded is None or self.text.decode(encoded) != raw:
                return 0
            count += len(raw) + self.closed
        return count

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """Loss, perplexity and, where the characters are known, bits per character; of answers the loss alone."""
        if self.ask is not None:
            return {"loss": loss}
        bits = {"bits_per_character": metric.bits_per_character(loss * count, extent)} if extent else {}
        return {"loss": loss, "perplexity": metric.perplexity(loss), **bits}

    def quick(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, float]:
        """Nothing beyond what the loss says."""
        return {}

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        """No tallies: a language model is compared by its losses."""
        return {}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """Token frequencies of the training text, each count plus one; nothing where only answers are scored."""
        if self.ask is not None:
            return {}
        seen = np.bincount(train().array("tokens"), minlength=self.text.vocab) + 1.0
        wanted = np.bincount(tested.array("tokens")[1:], minlength=self.text.vocab)
        loss = float(-(wanted * np.log(seen / seen.sum())).sum() / wanted.sum())
        return {"what": "how often each token is", "loss": loss, "perplexity": metric.perplexity(loss)}


def _question(text: Text, ask: str) -> int:
    """The token that begins a question."""
    tokens = text.encode([ask])[0]
    if len(tokens) != 1 or tokens[0] == text.unknown or text.end is None:
        raise SaccadeError(f"y.ask = {ask!r} is no token of this vocabulary: write one that stands in the texts")
    return tokens[0]
