"""Boxes as Y: what is there, and where, on a picture (Carion et al. 2020) or among points in space."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade import spec
from saccade.config import ModelConfig
from saccade.field.elements.config import ElementsConfig
from saccade.field.elements.element import Elements
from saccade.field.elements.precision import OVERLAPS, Matched
from saccade.field.elements.target import SPANS, ElementsTarget
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.model.head import HEADS, elements
from saccade.zoo.special import label_names

DIGITS = 6  # of a number of a box
SIDES = ("width", "height", "depth")  # of a picture, or of a space


class BoxesConfig(ElementsConfig):
    """The keys of boxes in a recipe."""

    kind: Literal["boxes"] = Field("boxes", description="boxes")
    axes: Literal[2, 3] = Field(2, description="2: on a picture, or in a plane; 3: in space")


class Boxes(ElementsTarget):
    """Labels and boxes: [left, top, width, height] in pixels of the picture; in space [x, y, z] and the three sizes."""

    kind: ClassVar[str] = "boxes"
    keys: ClassVar[type[BoxesConfig]] = BoxesConfig
    unit, noun = "boxes", "set of boxes"
    ranked: ClassVar[bool] = True
    main, known = "map", ("map", "map50", "map75")
    written = '{"width": 640, "height": 480, "boxes": [{"label": "cat", "box": [10, 20, 100, 50]}]}'

    @classmethod
    def brought(cls, model: ModelConfig, options: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes | None:
        """The names of the labels, in the order of their numbers; what has no name is called by its number."""
        labels = registered_labels(model)
        if labels is None:
            return None
        names = label_names(options) or [f"LABEL_{number}" for number in range(labels)]
        return json.dumps({"labels": names, "most": 0}, ensure_ascii=False).encode()

    @classmethod
    def keys_of(cls, model: ModelConfig, files: Mapping[str, bytes]) -> dict[str, Any]:
        """As a model without a decoder has them: its registers are the queries, and "nothing" is one of its labels."""
        if registered_labels(model) is None:
            return {}
        return {"queries": model.registers, "anchors": False, "denoise": 0, "criterion": "cross_entropy"}

    @property
    def axes(self) -> int:
        found: int = self.config.axes
        return found

    @staticmethod
    def place(corners: Sequence[float]) -> dict[str, Any]:
        low, high = corners[: len(corners) // 2], corners[len(corners) // 2 :]
        sizes = [end - begin for begin, end in zip(low, high, strict=True)]
        return {"box": [float(f"{each:.{DIGITS}g}") for each in (*low, *sizes)]}

    @staticmethod
    def corners(place: Mapping[str, Any]) -> list[float]:
        low, sizes = place["box"][: len(place["box"]) // 2], place["box"][len(place["box"]) // 2 :]
        return [*low, *(begin + size for begin, size in zip(low, sizes, strict=True))]

    @staticmethod
    def whole(frame: Sequence[float]) -> dict[str, Any]:
        axes = len(frame) // 2
        if any(frame[:axes]):
            return {"space": list(frame)}
        return dict(zip(SIDES, frame[axes:], strict=False))

    @staticmethod
    def frame(table: Mapping[str, Any]) -> list[float]:
        if "space" in table:
            return list(table["space"])
        sides = [table[each] for each in SIDES if each in table]
        return [0.0] * len(sides) + sides

    def tallies(self, results: Sequence[Result], raws: Sequence[Elements]) -> dict[str, Tally]:
        """Average precision, over all labels: at overlaps from 0.5 to 0.95, at 0.5, and at 0.75."""
        return self._matched(results, raws).tallies()

    def quick(self, results: Sequence[Result], raws: Sequence[Elements]) -> dict[str, float]:
        """At an overlap of 0.5 alone."""
        return {"map50": self._matched(results, raws, OVERLAPS[:1]).score()}

    def beside(self, results: Sequence[Result], raws: Sequence[Elements]) -> dict[str, Any]:
        """The average precision of each label."""
        found = self._matched(results, raws)
        return {"map_by_class": found.by_label(), "map50_by_class": found.by_label(OVERLAPS[:1])}

    def _matched(
        self, results: Sequence[Result], raws: Sequence[Elements], overlaps: Sequence[float] = OVERLAPS
    ) -> Matched:
        found = [each if each.scores is not None else _sure(each) for each in self.found(results, raws)]
        return Matched(found, raws, self.names, overlaps)


def registered_labels(model: ModelConfig) -> int | None:
    """How many labels the registers of an encoder tell of boxes on pictures, beside "nothing"; None: they tell none."""
    if model.decoder or not model.registers or model.named_heads.get(SPANS) != f"{SPANS}(2)" or model.head is None:
        return None
    name, found = spec.arguments(model.head, HEADS, "head")
    return found["n"] - 1 if name == elements.__name__ else None


def _sure(found: Elements) -> Elements:
    """Elements whose scores nobody told: a set without any, or of another system."""
    return found._replace(scores=np.ones(len(found.labels)))
