"""Windows: scenes cut out of recordings of tracks, tables `frame agent x y`: so many steps that are seen, and those
that come then.

A window has everybody who is there at one of the steps that are seen, NaN where they are not. Windows overlap, so that
a split goes by time: those that lie on both sides of its border are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from saccade.config import read
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.field.tracks.scene import Sequel, Sighting, sightings, steps_of
from saccade.recipe import WindowsConfig

HOLDS = [("tracks", "tracks")]
TABLES = (".csv", ".tsv", ".txt")
Row = tuple[np.ndarray, Sequel]


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Tables of numbers, where scenes are asked for."""
    asked = bool(kinds) and all(each.recorded for each in kinds.values())
    return asked and bool(paths) and all(path.is_file() and _ending(path) in TABLES for path in paths)


def rows(files: Sequence[str], config: WindowsConfig | None, part: tuple[float, float]) -> Iterator[Row]:
    """The windows of each file within a part of its time; refuses files in which there is none."""
    config, count = config or read(WindowsConfig, {}), 0
    for each in files:
        for row in windows(sightings(Path(each)), each, config, part):
            count += 1
            yield row
    if not count:
        told = f"{', '.join(files)}: there is no window of {config.seen} steps and {config.told} that come"
        raise SaccadeError(f"{told}, in which somebody is foretold: set data.windows.seen and told, or data.share")


def windows(found: Sighting, name: str, config: WindowsConfig, part: tuple[float, float] = (0.0, 1.0)) -> Iterator[Row]:
    """The windows of one recording, in their order, in each of which somebody is seen at the last step and later."""
    numbers, count = steps_of(found, name)
    begin, end = (round(share * count) for share in part)
    order = np.argsort(numbers, kind="stable")
    numbers, agents, places = numbers[order], found.agents[order], found.places[order]
    length = config.seen + config.told
    for first in range(begin, end - length + 1, config.every):
        inside = slice(*np.searchsorted(numbers, (first, first + length)))
        made = _window(numbers[inside] - first, agents[inside], places[inside], config)
        if made is not None:
            yield made.seen, made


def _window(steps: np.ndarray, agents: np.ndarray, places: np.ndarray, config: WindowsConfig) -> Sequel | None:
    """The window of these rows; None where nobody is foretold."""
    seen = np.unique(agents[steps < config.seen])
    kept = np.isin(agents, seen)
    scene = np.full((len(seen), config.seen + config.told, places.shape[1]), np.nan)
    scene[np.searchsorted(seen, agents[kept]), steps[kept]] = places[kept]
    known = np.isfinite(scene[..., 0])
    foretold = known[:, config.seen - 1] & known[:, config.seen :].any(1)
    return Sequel(scene[:, : config.seen], scene[:, config.seen :]) if foretold.any() else None


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
