"""Small pictures by class, and the smallest training on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saccade import Recipe, png
from saccade.recipes.read import from_values


def photos(folder: Path, count: int = 40, size: tuple[int, int] = (8, 12)) -> Path:
    """Pictures that are brighter on one side than on the other, in a folder by class."""
    draw, (height, width) = np.random.default_rng(0), size
    for number in range(count):
        pixels = draw.integers(0, 128, (height, width, 3)).astype(np.uint8)
        name = ("left", "right")[number % 2]
        pixels[:, width // 2 * (number % 2) :][:, : width // 2] += 127
        (folder / "photos" / name).mkdir(parents=True, exist_ok=True)
        (folder / "photos" / name / f"{number}.png").write_bytes(png.encode(pixels))
    return folder / "photos"


def recipe(folder: Path, **tables: Any) -> Recipe:
    """A classifier of the pictures in a folder."""
    values = {
        "task": "classify",
        "data": {"files": [str(folder)], "share": 0.2},
        "x": {"source": {"kind": "image", "embed": "patches(4)"}},
        "model": {"width": 16, "heads": 2, "hidden": 24, "encoder": 2, "position": "sinusoid"},
        "train": {"steps": 6, "batch": 8, "every": 3, "rate": 1e-2},
    }
    for name, table in tables.items():
        values[name] = {**values.get(name, {}), **table}
    return from_values(values)
