"""`bccd`: photographs of blood cells (github.com/Shenggan/BCCD_Dataset), read from their archive: pictures as the bytes
of JPEG, decoded when they are needed, with boxes of red cells (RBC), white cells (WBC) and platelets.

Two of the boxes have no area and are left out. The splits are the data set's own.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from saccade.data import voc
from saccade.error import SaccadeError
from saccade.field.elements.element import Elements, elements

ROOT = "BCCD"
LABELS = ("RBC", "WBC", "Platelets")


def rows(archive: Path, split: str) -> Iterator[tuple[bytes, Elements]]:
    """The pictures of a split with their boxes, in the order of its list."""
    members = _read(archive, archive.stat().st_mtime_ns)
    listed = f"{ROOT}/{voc.LISTS}/{split}.txt"
    if listed not in members:
        raise SaccadeError(f"{archive} cannot be read as the archive of bccd: there is no {listed} in it")
    for name in members[listed].decode().split():
        path = f"{ROOT}/{voc.ANNOTATIONS}/{name}.xml"
        found = voc.annotation(members[path], path)
        boxes = [each for each in found.boxes if _has_area(each.corners)]
        frame = (0, 0, *found.size)
        marks = elements([each.label for each in boxes], [each.corners for each in boxes], frame)
        yield members[f"{ROOT}/{voc.PICTURES}/{name}.jpg"], marks


def _has_area(corners: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = corners
    return right > left and bottom > top


@lru_cache(1)
def _read(archive: Path, changed: int) -> dict[str, bytes]:
    """The content of all files in an archive that was changed at this time, by name."""
    try:
        with tarfile.open(archive) as tar:
            files = ((member.name, tar.extractfile(member)) for member in tar if member.isfile())
            return {name: file.read() for name, file in files if file is not None}
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise SaccadeError(f"{archive} cannot be read as the archive of bccd: {problem}") from None
