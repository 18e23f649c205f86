"""`eth-ucy`: pedestrians seen from above (Pellegrini et al. 2009, Lerner et al. 2007), a step every 0.4 s.

One place is held out: all of its windows are the test split, and of each other recording the last tenth of the time is
for validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from saccade.config import read
from saccade.data.windows import Row, windows
from saccade.error import SaccadeError, nearest
from saccade.field.tracks.scene import sightings
from saccade.recipe import WindowsConfig

PLACES = {
    "eth": ("biwi_eth",),
    "hotel": ("biwi_hotel",),
    "univ": ("students001", "students003", "uni_examples"),  # the same square
    "zara": ("crowds_zara01", "crowds_zara03"),
}
USUAL = "eth"  # the place that is held out, where a recipe does not say
PARTS = {"train": (0.0, 0.9), "val": (0.9, 1.0), "test": (0.0, 1.0)}  # of the time of a recording
FILES = {
    "biwi_eth.txt.gz": "7dcff6723273428da91c36bccde5df300033698c3cdc40d0e4b3ea26fc788605",
    "biwi_hotel.txt.gz": "3e1b719ecf49f351513e9de1cae8e9785115675869b55fde5ac1facbbc11a8fd",
    "crowds_zara01.txt.gz": "f71b3850191b209cae4b67612c5f4b9b42d6176f254eebf9cda67589fe2b3a6c",
    "crowds_zara03.txt.gz": "045d3991874aad46a1fb2b073205a2ae15c5ef0d22632bdc138c0fab2d004c2f",
    "students001.txt.gz": "5292e921521d7855ae19a8fcde669410dec4b33637488a022a65bb15e40735b9",
    "students003.txt.gz": "7882d927ae7509839837761fdc539e6ee11bd45fa4c99f7d74a8c505501edaea",
    "uni_examples.txt.gz": "344ad2e1ada4ad8ab18665041b6607d8d4e323feed228f0ff36f8914ed8bc119",
}


def rows(paths: Sequence[Path], split: str, place: str | None = None) -> Iterator[Row]:
    """The windows of a split; place: the one that is held out."""
    place = USUAL if place is None else place
    if place not in PLACES:
        raise SaccadeError(f"data.place: no place is called {place!r} here; {nearest(place, PLACES)}")
    config = read(WindowsConfig, {})
    for path in paths:
        inside = _part(split, place, path.name.split(".")[0])
        if inside is not None:
            yield from windows(sightings(path), path.name, config, inside)


def _part(split: str, place: str, recording: str) -> tuple[float, float] | None:
    """Which part of the time of a recording belongs to a split, if any does."""
    held_out = recording in PLACES[place]
    return PARTS[split] if held_out == (split == "test") else None
