"""The kinds of fields by name: what can be X, what can be Y, and what can be Y alone."""

from __future__ import annotations

from typing import Any

from saccade.field.boxes import Boxes
from saccade.field.events import Events
from saccade.field.graph import Graph
from saccade.field.image import Image
from saccade.field.label import Label
from saccade.field.labels import Labels
from saccade.field.mixture import Mixture
from saccade.field.numbers import Numbers
from saccade.field.pairs import PairNumbers
from saccade.field.points import Points
from saccade.field.sound import Sound
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.field.tracks.futures import Futures
from saccade.field.tracks.tracks import Tracks

SOURCES: dict[str, Any] = {
    "text": SourceText,
    "image": Image,
    "sound": Sound,
    "graph": Graph,
    "points": Points,
    "tracks": Tracks,
}
TARGETS: dict[str, Any] = {
    "text": TargetText,
    "label": Label,
    "numbers": Numbers,
    "labels": Labels,
    "pairs": PairNumbers,
    "mixture": Mixture,
    "boxes": Boxes,
    "events": Events,
    "tracks": Futures,
}
ALONE: dict[str, Any] = {"text": StreamedText}
