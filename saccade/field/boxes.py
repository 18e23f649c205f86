"""Boxes as Y: what is there, and where, on a picture (Carion et al. 2020) or among points in space."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, field_validator

from saccade import spec
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field.elements.config import ElementsConfig
from saccade.field.elements.element import Elements
from saccade.field.elements.move import Boxed, moves
from saccade.field.elements.precision import OVERLAPS, Precision, coco_json
from saccade.field.elements.target import SPANS, ElementsTarget, Inputs, names_of
from saccade.field.field import Source
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.model.head import HEADS, elements
from saccade.model.input import Input
from saccade.zoo.special import label_names

DIGITS = 6  # of a number of a box
COCO_AXES = ("x", "y")  # what COCO's boxes lie along
SIDES = ("width", "height", "depth")  # of a picture, or of a space


class BoxesConfig(ElementsConfig):
    """The keys of boxes in a recipe."""

    kind: Literal["boxes"] = Field("boxes", description="boxes")
    axes: Literal[2, 3] = Field(2, description="2: on a picture, or in a plane; 3: in space")
    augment: str = Field(
        "",
        description='in training alone, moves a picture and its boxes: "flip(0.5) quarter crop(0.7, 1.0) colour(0.2)"',
    )

    @field_validator("augment")
    @classmethod
    def _known(cls, text: str) -> str:
        moves(text)
        return text


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

    def __init__(self, names: Sequence[str], most: int, config: BoxesConfig) -> None:
        super().__init__(names, most, config)
        self.moves = moves(config.augment)

    @property
    def axes(self) -> int:
        found: int = self.config.axes
        return found

    def joined(self, x: Mapping[str, Source]) -> None:
        super().joined(x)
        if self.moves and [each.kind for each in x.values()] != ["image"]:
            raise SaccadeError("y.augment moves boxes along with one picture, and X is another: leave it out")

    def transformed(self, x: Inputs, y: Input, draw: np.random.Generator) -> tuple[Inputs, Input]:
        """The picture and its boxes, moved together; those that are left come first."""
        if not self.moves:
            return x, y
        ((name, given),) = x.items()
        spans = y.values["spans"]
        real = torch.arange(spans.shape[1]) < y.lengths[0].unsqueeze(1)
        moved = reduce(lambda each, move: move(each, draw), self.moves, Boxed(given.values["pixels"], spans, real))
        order = (~moved.real).long().argsort(dim=1, stable=True)
        values = {
            "labels": y.values["labels"].gather(1, order),
            "spans": moved.boxes.gather(1, order.unsqueeze(2).expand_as(spans)),
        }
        pixels = replace(given, values={**given.values, "pixels": moved.pixels})
        return {name: pixels}, Input(values, moved.real.sum(1))

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

    def filed(self, results: Sequence[Result], rows: Sequence[Sequence[Any]]) -> bytes:
        """COCO's list of results, where boxes lie on pictures; a picture's id is its name, or its number from 1."""
        if self.axes != len(COCO_AXES):
            return super().filed(results, rows)
        found = self.found(results, [row[-1] for row in rows])
        sure = [each if each.scores is not None else _sure(each) for each in found]
        return json.dumps(coco_json(sure, self.names, names_of(rows))).encode()

    def _matched(
        self, results: Sequence[Result], raws: Sequence[Elements], overlaps: Sequence[float] = OVERLAPS
    ) -> Precision:
        found = [each if each.scores is not None else _sure(each) for each in self.found(results, raws)]
        return Precision(found, raws, self.names, overlaps)


def registered_labels(model: ModelConfig) -> int | None:
    """How many labels the registers of an encoder tell of boxes on pictures, beside "nothing"; None: they tell none."""
    if model.decoder or not model.registers or model.named_heads.get(SPANS) != f"{SPANS}(2)" or model.head is None:
        return None
    name, found = spec.arguments(model.head, HEADS, "head")
    return found["n"] - 1 if name == elements.__name__ else None


def _sure(found: Elements) -> Elements:
    """Elements whose scores nobody told: a set without any, or of another system."""
    return found._replace(scores=np.ones(len(found.labels)))
