"""The kinds of fields by name: what can be X, what can be Y, and what can be Y alone."""

from __future__ import annotations

from typing import Any

from saccade.field.image import Image
from saccade.field.label import Label
from saccade.field.numbers import Numbers
from saccade.field.text.read import Reading
from saccade.field.text.stream import Stream
from saccade.field.text.write import Writing

SOURCES: dict[str, Any] = {"text": Reading, "image": Image}
TARGETS: dict[str, Any] = {"text": Writing, "label": Label, "numbers": Numbers}
ALONE: dict[str, Any] = {"text": Stream}
