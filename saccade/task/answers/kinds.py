"""The answers by the specs that fields name.

likeliest      the label that the head finds likeliest
values         the numbers that the head predicts
search         a text after an X, token by token: greedily, by a beam, or drawn
continuation   how a text goes on
questions      a text with questions in it, of which only the answers count: the likeliest token at each
blanks         a text whose blanks are filled with the likeliest words
places         a label for each place of X
match          a set of elements, each from a query of the decoder
"""

from __future__ import annotations

from collections.abc import Callable

from saccade import spec
from saccade.task.answer import Answer
from saccade.task.answers.blanks import FilledAnswer
from saccade.task.answers.continuation import Continuation
from saccade.task.answers.matched import MatchedAnswer
from saccade.task.answers.places import PlacesAnswer
from saccade.task.answers.pooled import PooledAnswer
from saccade.task.answers.questions import Questions
from saccade.task.answers.written import WrittenAnswer
from saccade.task.inputs import Task


def answer_of(task: Task) -> Answer:
    """The answer that Y names; without a Y, that of a label, which refuses and says what the model can do."""
    made: Answer = spec.read("likeliest" if task.y is None else task.y.answer, ANSWERS, "answer", task=task)
    return made


ANSWERS: dict[str, Callable[..., Answer]] = {
    "likeliest": PooledAnswer,
    "values": PooledAnswer,
    "search": WrittenAnswer,
    "continuation": Continuation,
    "questions": Questions,
    "blanks": FilledAnswer,
    "places": PlacesAnswer,
    "match": MatchedAnswer,
}
