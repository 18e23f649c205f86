"""A text as Y alone: one long stream of tokens, of which a decoder says what comes next (Bengio et al. 2003, Radford et
al. 2019).

With `ask`, texts have questions in them, of which the answers alone are learned and judged: in `? key value` the value
is an answer, the token after a question, and a question is a certain token, such as `?`, and one more. So what counts
is the same for every decoder, however it looks back, and no search stands between a model and its accuracy.
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
from saccade.field.field import Column, Encoded, Streamed, Taken, Term
from saccade.field.loss import place_loss
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import StreamConfig
from saccade.field.text.side import side_of
from saccade.field.text.text import Text
from saccade.field.text.tokens import Tokens, of_files
from saccade.field.text.write import differs
from saccade.field.unit import Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

LINE = 40  # characters from which a line of text is unlikely to occur twice by chance


class Stream(Tokens, Streamed):
    """Windows of a stream of tokens. closed: every text of it has an end. remembers: windows follow one another, for a
    model with a memory of M (Dai et al. 2019): at place t of a segment it sees the t before it and the M before those;
    a token that is written sees the M before it, as if every token were a segment of its own. Under
    `mask = "window(M + 1)"` both are the same, whatever the length of a segment.

    framed: a text to go on from is read with what its tokenizer puts around it, as a model from elsewhere was taught.
    """

    keys: ClassVar[type[StreamConfig]] = StreamConfig
    held: ClassVar[str | None] = "long lines"
    head, main, known = "vocabulary", "loss", ("loss",)

    def __init__(
        self, text: Text, config: StreamConfig, *, closed: bool = False, remembers: bool = False, framed: bool = False
    ) -> None:
        self.text, self.config, self.closed, self.remembers, self.framed = text, config, closed, remembers, framed
        if closed and text.end is None:
            raise SaccadeError("this tokenizer has no token for the end, so its texts cannot be closed")
        self.passes = 2 if config.agree else 1
        self.ask = None if config.ask is None else _question(text, config.ask)
        # Windows at random places, segments in order where the model remembers; with questions, texts of one length,
        # each for itself, at once or in segments.
        asked = f"texts({config.window}, whole={not remembers})"
        goes_on = f"segments({config.window})" if remembers else f"windows({config.window})"
        self.rows, self.answer = (goes_on, "continuation") if self.ask is None else (asked, "questions")

    @classmethod
    def load(cls, config: StreamConfig, files: Mapping[str, bytes], column: str, **manner: bool) -> Stream:
        """The field with the vocabulary among a run's files."""
        return cls(of_files(files), config, **manner)

    def windowed(self, length: int) -> Stream:
        """The same in windows of another length."""
        config = self.config.model_copy(update={"window": length})
        return Stream(self.text, config, closed=self.closed, remembers=self.remembers, framed=self.framed)

    def closing(self, closed: bool) -> Stream:
        """The same whose texts have an end, or none."""
        return Stream(self.text, self.config, closed=closed, remembers=self.remembers, framed=self.framed)

    def fits(self, config: ModelConfig) -> None:
        """Refuses two passes that cannot differ."""
        differs(config, self.config.agree)

    def fits_room(self, room: int | None) -> None:
        """Refuses windows that are longer than a table of positions."""
        if room is not None and self.config.window > room:
            raise SaccadeError(f"y.window = {self.config.window} does not fit the model's {room} positions")

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Their tokens, closed where texts have an end."""
        last = [self.text.end] if self.closed else []
        return {"tokens": [ids + last for ids in self.text.encode(raws)]}

    def sizes(self, column: Column) -> np.ndarray:
        """Tokens, to which nothing is added."""
        return column.lengths()

    def fault(self, size: int, limit: int | None) -> str | None:
        """No tokens; of a stream, any number fits."""
        return super().fault(size, None)

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """tokens (B,T) of windows (B,T+1), and the next ones: wanted, -1 where an answer alone counts and this is none.

        before: the token before each window, -1 where there is none.
        """
        window = torch.from_numpy(taken["tokens"])
        tokens, wanted = window[:, :-1], window[:, 1:]
        if self.ask is not None:
            before = torch.cat((torch.from_numpy(taken["before"])[:, None], tokens[:, :-1]), 1)
            wanted = wanted.masked_fill(before != self.ask, -1)
        return Input({"tokens": tokens, "wanted": wanted})

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input:
        """The window itself."""
        return Input({"tokens": y.values["tokens"]})

    def counts(self, y: Input) -> dict[str, int]:
        """All tokens, or the answers."""
        wanted = y.values["wanted"]
        return {"tokens": wanted.numel() if self.ask is None else int((wanted >= 0).sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over all tokens that are wanted."""
        smoothing, agree = (self.config.smoothing, self.config.agree) if learning else (0.0, 0.0)
        total = place_loss(model, states.last, y.values["wanted"], smoothing, agree)
        return {"tokens": Term(total)}

    @staticmethod
    def parts(raws: Iterable[str]) -> Iterable[str]:
        """Long lines: shorter ones occur twice by chance."""
        return (line for raw in raws for line in raw.split("\n") if len(line) >= LINE)

    def side(self, tokens: Sequence[int]) -> Side:
        """Tokens in words."""
        return side_of(self.text, tokens)

    def prompt(self, tokens: list[int]) -> list[int]:
        """What a model is shown of a text to go on from."""
        return self.text.framed(tokens) if self.framed else tokens

    def extent(self, raws: Iterable[str], column: Column) -> int:
        """Characters of a split's text, with one for the end of each text that has one; 0 where its tokens do not say
        all of it: what is unknown, or not written, costs no bits.
        """
        count, tokens = 0, column.take(np.arange(len(column.lengths())))["tokens"]
        for raw, said in zip_longest(raws, tokens):
            if raw is None or said is None or self.text.decode(said) != raw:
                return 0
            count += len(raw) + self.closed
        return count

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """The loss, as perplexity and, where the characters are known, in bits for each; of answers the loss alone."""
        if self.ask is not None:
            return {"loss": loss}
        bits = {"bits_per_character": metric.bits_per_character(loss * count, extent)} if extent else {}
        return {"loss": loss, "perplexity": metric.perplexity(loss), **bits}

    def quick(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, float]:
        """Nothing beyond what the loss says."""
        return {}

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        """None: a language model is compared by its losses."""
        return {}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """Each token as often as it stands in the training text, once more than it does; of answers nothing."""
        if self.ask is not None:
            return {}
        seen = np.bincount(train().array("tokens"), minlength=self.text.vocab) + 1.0
        asked = np.bincount(tested.array("tokens")[1:], minlength=self.text.vocab)
        loss = float(-(asked * np.log(seen / seen.sum())).sum() / asked.sum())
        return {"what": "how often each token is", "loss": loss, "perplexity": metric.perplexity(loss)}


def _question(text: Text, ask: str) -> int:
    """The token that begins a question."""
    tokens = text.encode([ask])[0]
    if len(tokens) != 1 or tokens[0] == text.unknown or text.end is None:
        raise SaccadeError(f"y.ask = {ask!r} is no token of this vocabulary: write one that stands in the texts")
    return tokens[0]
