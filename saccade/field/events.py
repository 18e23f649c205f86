"""Events of a sound as Y: what is heard, from when to when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.field.elements import energy, timing
from saccade.field.elements.config import ElementsConfig
from saccade.field.elements.element import Elements
from saccade.field.elements.target import ElementsTarget
from saccade.field.field import Column
from saccade.field.recording import Recording, recording_of
from saccade.field.result import Result
from saccade.field.tally import Tally

DIGITS = 4  # behind the point, of seconds


class EventsConfig(ElementsConfig):
    """The keys of events in a recipe."""

    kind: Literal["events"] = Field("events", description="events")
    queries: int = Field(20, ge=1, description="how many events a sound may have; more than the most there are")


class Events(ElementsTarget):
    """Labels with a begin and an end in seconds."""

    kind: ClassVar[str] = "events"
    keys: ClassVar[type[EventsConfig]] = EventsConfig
    unit, noun = "events", "set of events"
    main, known = "event_f1", ("event_f1", "event_precision", "event_recall")
    axes = 1
    written = '{"seconds": 3.5, "events": [{"label": "seven", "begin": 0.4, "end": 0.8}]}'

    @staticmethod
    def place(corners: Sequence[float]) -> dict[str, Any]:
        return {"begin": round(corners[0], DIGITS), "end": round(corners[1], DIGITS)}

    @staticmethod
    def corners(place: Mapping[str, Any]) -> list[float]:
        return [place["begin"], place["end"]]

    @staticmethod
    def whole(frame: Sequence[float]) -> dict[str, Any]:
        return {"seconds": frame[1] - frame[0]}

    @staticmethod
    def frame(table: Mapping[str, Any]) -> list[float]:
        return [0.0, table["seconds"]]

    def tallies(self, results: Sequence[Result], raws: Sequence[Elements]) -> dict[str, Tally]:
        """F1, precision and recall of events that are found with their label, begin and end."""
        return timing.tallies(self.found(results, raws), raws)

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """Every part that is louder than the rest, under the commonest label; of what is no sound, nothing."""
        if not all(isinstance(row[0], Recording | str | Path) for row in rows):
            return {}
        name = self.names[int(np.bincount(train().array("labels")).argmax())]
        found = [energy.marked(recording_of(row[0]), name) for row in rows]
        scores = timing.tallies(found, [row[-1] for row in rows])
        return {"what": f"every loud part as {name!r}", **{each: tally.value for each, tally in scores.items()}}

    def beside(self, results: Sequence[Result], raws: Sequence[Elements]) -> dict[str, Any]:
        """The same of each label, and of times alone: how much of what is missing is due to labels."""
        found = self.found(results, raws)
        return {"by_label": timing.by_label(found, raws), "times_alone": timing.timed(found, raws)}
