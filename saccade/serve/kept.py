"""`Answers`: what was read and written for the last answers, so that they can be looked into."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from saccade.serve.refusal import Refusal
from saccade.task.example import Example


class Kept(NamedTuple):
    """One choice of an answer: the run that gave it, and what it read and wrote; or a note why there is none."""

    model: str
    example: Example | None
    note: str | None = None


class Answers:
    """The last `most` answers by their ids, with so many bytes in all at most; the oldest are forgotten first."""

    def __init__(self, most: int, nbytes: int) -> None:
        self.most, self.nbytes = most, nbytes
        self._held = 0
        self._kept: OrderedDict[str, list[Kept]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, name: str, choices: list[Kept]) -> None:
        """An answer, as the newest."""
        self._kept[name] = choices
        self._held += _count(choices)
        while self._kept and (len(self._kept) > self.most or self._held > self.nbytes):
            self._held -= _count(self._kept.popitem(last=False)[1])

    def find(self, name: str, choice: int = 0) -> tuple[str, Example]:
        """The run that gave a choice of an answer, and what it read and wrote."""
        if name not in self._kept:
            raise Refusal(404, f"no answer is called {name!r:.80}: the last {self.most} are kept", "completion")
        choices = self._kept[name]
        if choice >= len(choices):
            raise Refusal(404, f"this answer has {len(choices)} choices: there is no choice {choice}", "choice")
        model, example, note = choices[choice]
        if example is None:
            raise Refusal(400, f"there is nothing to look into: this input is {note}", "completion")
        return model, example


def _count(choices: list[Kept]) -> int:
    return sum(each.example.nbytes for each in choices if each.example is not None)
