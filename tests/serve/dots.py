"""A kind of input that is no text and that the package does not know: rows of dots, each of a shade from 0 to 6."""

from __future__ import annotations

from small import small, text

from saccade.config import read
from saccade.error import SaccadeError
from saccade.field.field import Array, Source
from saccade.field.label import Label
from saccade.field.text.config import TargetTextConfig
from saccade.field.text.target import TargetText
from saccade.field.text.text_field import padded
from saccade.field.unit import Side, Unit
from saccade.model.input import Input
from saccade.store.run import Run
from saccade.task.task import Task


class Dots(Source):
    """A row of dots."""

    kind, unit, noun = "dots", "dots", "row of dots"
    keys = config = None
    limit = 5
    arrays = {"tokens": Array("<u2", ragged=True)}  # noqa: RUF012
    model = {"embed": "tokens"}  # noqa: RUF012
    encoding = {}  # noqa: RUF012
    made = load = cell = identity = report = line = None  # they are made by hand, and asked over the network alone

    def encode(self, raws):
        return {"tokens": [list(each) for each in raws]}

    def collate(self, taken, draw=None):
        tokens, lengths = padded(taken["tokens"], 0)
        return Input({"tokens": tokens}, lengths)

    def received(self, value):
        if not isinstance(value, list) or not all(isinstance(each, int) and 0 <= each < 7 for each in value):
            raise SaccadeError("this run reads rows of dots: give a list of shades from 0 to 6")
        return value

    def side(self, x):
        shades = x.values["tokens"][0].tolist()
        width = 1 / len(shades)
        units = [Unit(shade, str(shade), n, False, (n * width, 0.0, width, 1.0)) for n, shade in enumerate(shades)]
        return Side(units, [unit.text for unit in units], "", "dots", {"grid": [1, len(shades)], "text": "not this"})


def labelling() -> Run:
    """Dots to a label."""
    run = Run(small(encoder=2, position="rotary", pooler=True, head="label(3)"))
    run.__dict__["task"] = Task("label", {"row": Dots()}, "label", Label(["bad", "good", "odd"]), asks="classify")
    return run


def captioning() -> Run:
    """Dots to a text."""
    run = Run(small(encoder=2, decoder=2, position="rotary"))
    run.__dict__["task"] = Task("caption", {"row": Dots()}, "caption", TargetText(text(), read(TargetTextConfig, {})))
    return run
