"""`Answers`: the tokens of the last answers, so that they can be looked into."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from saccade.serve.refusal import Refusal


class Kept(NamedTuple):
    """One choice of an answer: what was read (a source, a prompt or a text) and what was written, without the end."""

    model: str
    read: list[int]
    written: list[int]
    ended: bool


class Answers:
    """The last `most` answers by their ids, with `tokens` tokens in all at most; the oldest are forgotten first."""

    def __init__(self, most: int, tokens: int) -> None:
        self.most, self.tokens = most, tokens
        self._held = 0
        self._kept: OrderedDict[str, list[Kept]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, name: str, choices: list[Kept]) -> None:
        """An answer, as the newest."""
        self._kept[name] = choices
        self._held += _count(choices)
        while self._kept and (len(self._kept) > self.most or self._held > self.tokens):
            self._held -= _count(self._kept.popitem(last=False)[1])

    def find(self, name: str, choice: int = 0) -> Kept:
        """A choice of an answer."""
        if name not in self._kept:
            raise Refusal(404, f"no answer is called {name!r:.80}: the last {self.most} are kept", "completion")
        choices = self._kept[name]
        if choice >= len(choices):
            raise Refusal(404, f"this answer has {len(choices)} choices: there is no choice {choice}", "choice")
        return choices[choice]


def _count(choices: list[Kept]) -> int:
    return sum(len(each.read) + len(each.written) for each in choices)
