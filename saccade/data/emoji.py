"""Emoji with their names: a sheet of small pictures, and a table with a row for each of them.

The splits are of combinations: a picture in val or test differs from all in train by its skin tone, or by what it is
joined of (a profession, a partner), and every English word of its name occurs in train.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saccade.error import SaccadeError
from saccade.field.picture import pixels_of

SIDE, ACROSS = 32, 25  # pixels of a picture's side, pictures in a row of the sheet
LANGUAGES = ("en", "de", "fr")
SPACES = str.maketrans("\u00a0\u202f", "  ")  # French typography's; a caption has plain ones


def captioned(paths: Sequence[Path], split: str, pair: str) -> Iterator[tuple[Any, ...]]:
    """Rows (picture, caption) of a split; pair: "picture-de"."""
    language = pair.split("-")[1]
    return ((picture, row[language]) for picture, row in _rows(paths, split))


def in_each_language(paths: Sequence[Path], split: str) -> Iterator[tuple[Any, ...]]:
    """Rows (picture, language, caption) of a split, each picture once for each language."""
    return ((picture, each, row[each]) for picture, row in _rows(paths, split) for each in LANGUAGES)


def _rows(paths: Sequence[Path], split: str) -> Iterator[tuple[np.ndarray, dict[str, str]]]:
    """The pictures (H,W,3) of a split, and their rows in the table."""
    table, sheet = paths
    pixels = pixels_of(sheet).transpose(1, 2, 0)
    for row in csv.DictReader(io.StringIO(_content(table)), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["split"] == split:
            down, right = (SIDE * each for each in divmod(int(row["index"]), ACROSS))
            yield pixels[down : down + SIDE, right : right + SIDE], row


def _content(path: Path) -> str:
    try:
        return gzip.decompress(path.read_bytes()).decode().translate(SPACES)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as problem:
        raise SaccadeError(f"{path} cannot be read: {problem}") from None
