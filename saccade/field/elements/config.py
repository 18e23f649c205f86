"""The keys of a set of elements in a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from saccade.config import Config


class ElementsConfig(Config):
    """What boxes, events and other elements share."""

    kind: str
    queries: int = Field(60, ge=1, description="how many elements an example may have; more than the most there are")
    anchors: bool = Field(
        True,
        description="queries have places, from which they look and which each layer moves (DAB); false: plain DETR",
    )
    denoise: int = Field(
        3, ge=0, description="in training alone: groups of wanted elements at a wrong place, to be put right (DN)"
    )
    criterion: Literal["focal", "cross_entropy"] = Field(
        "focal", description="focal: each label by itself; cross_entropy: one of them or nothing, as DETR has it"
    )
    label: float = Field(2.0, ge=0, description="how much labels count in the loss and in the matching")
    span: float = Field(5.0, ge=0, description="how much the distance of places counts, as shares of the example")
    overlap: float = Field(2.0, ge=0, description="how much generalised intersection over union counts")
    threshold: float = Field(0.5, ge=0, le=1, description="at use: elements that are less sure are left out")
