"""`Contender` and `Given`: what is compared, a run of ours or a file with the answers of another system, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data import source
from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.field.text.text import TOKENIZER
from saccade.recipe import DecodeConfig
from saccade.store.load import load
from saccade.store.run import Run
from saccade.task.task import Task

ANSWER = "answer"  # the column of a table that has the answers


class Contender(NamedTuple):
    """A run that is compared; name: its path as it was given."""

    name: str
    run: Run
    task: Task
    decode: DecodeConfig

    def answers(self, inputs: Sequence[Any]) -> list[Result]:
        return self.task.predict(self.run.model, inputs, self.decode)


class Given(NamedTuple):
    """The answers of another system; name: their file; task: the one by whose metrics they are scored."""

    name: str
    lines: list[str]
    task: Task

    def answers(self, inputs: Sequence[Any]) -> list[Result]:
        """A line for each input, in their order."""
        return [_result(line) for line in self.lines[: len(inputs)]]

    def check(self, split: str, texts: int, first: bool) -> None:
        """Refuses a file that has not one line for each text; where only the first texts are compared, it may have
        more.
        """
        lines = len(self.lines)
        if lines < texts or (lines > texts and not first):
            counts = f"{lines:,} lines, and the split {split!r} has {texts:,} texts"
            raise SaccadeError(f"{self.name} has {counts}: it should have one answer a line, in the order of the texts")


def contenders_of(
    paths: Sequence[str | Path], options: dict[str, Any]
) -> tuple[list[Contender | Given], list[Contender]]:
    """The contenders of these paths, opened, and those of them that are runs; refuses what cannot be compared."""
    names = [str(each).rstrip("/") or "/" for each in paths]
    if len(names) < 2:
        raise SaccadeError("a comparison needs two runs at least: name another")
    places = [Path(name).resolve() for name in names]
    twice = [name for name, place in zip(names, places, strict=True) if places.count(place) > 1]
    if twice:
        raise SaccadeError(f"{twice[-1]} is named twice: a run does not differ from itself")
    files = [name for name, place in zip(names, places, strict=True) if place.is_file()]
    opened = {name: load(name) for name in names if name not in files}
    runs = {name: Contender(name, run, run.task, run.decode(**options)) for name, run in opened.items()}
    if not runs:
        raise SaccadeError("these are files of answers alone: name the run whose test data they answer, too")
    _check_comparable(list(runs.values()), files)
    task = next(iter(runs.values())).task
    given = {name: Given(name, _answers_in(name), task) for name in files}
    return [runs[name] if name in runs else given[name] for name in names], list(runs.values())


def _answers_in(path: str) -> list[str]:
    """The answers of a file: the column `answer` of a table that has one, as `saccade evaluate --out` writes it; else
    every line.
    """
    return list(source.column(path, ANSWER) if ANSWER in source.titles(path) else source.lines(path))


def _check_comparable(runs: Sequence[Contender], files: Sequence[str]) -> None:
    """Refuses runs of different tasks, and tasks whose answers are not compared."""
    first = runs[0]
    asked = [each.name for each in runs if each.task.answer.compared is None]
    if asked:
        raise SaccadeError(f"{asked[0]} answers questions inside its texts: saccade evaluate tells how many are right")
    by_loss = first.task.answer.compared == "losses"
    for other in runs[1:]:
        if other.task.verb != first.task.verb:
            raise SaccadeError(f"the task of {first.name} is {first.task.verb}, that of {other.name} {other.task.verb}")
        if by_loss and other.run.files[TOKENIZER] != first.run.files[TOKENIZER]:
            raise SaccadeError(
                f"the tokenizers of {first.name} and {other.name} differ: the loss of a token means something else"
            )
    if by_loss and files:
        raise SaccadeError(f"{files[0]} is a file: language models are compared by their loss, and a file has none")


def _result(line: str) -> Result:
    """What another system answered; a blank line is no answer."""
    return Result(line, line, 0.0) if line.strip() else Result(None, line, 0.0, "empty")
