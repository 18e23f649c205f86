"""`scenes`: points of boxes on a ground, as a laser that stands at one place measures them, and the boxes; made here.

Cars, people and signs stand on a ground of ten metres by ten, beside bushes. A point lies on a face that looks towards
the sensor and that nothing hides; most of an object is therefore not seen, and its kind tells how large it is. A point
has x, y, z in metres and a reflectance from 0 to 1. The same number gives the same scene.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saccade.data.batch import random_of
from saccade.field.elements.element import Elements, elements

VERSION = 1  # of the generator: raise it when the same number gives another scene
SPLITS = ("train", "val", "test")
SPACE = (0.0, 0.0, 0.0, 10.0, 10.0, 4.0)  # metres: where it begins along x, y and z, and where it ends
SENSOR = np.array((5.0, -2.0, 1.8))
OBJECTS = (1, 6)  # of a scene, from and to
POINTS = (128, 256)
SEEN = 5  # points of an object, at least; one of which less is seen is taken away
SHARE = (0.6, 0.8)  # of the points that are on objects, before some are hidden
BUSHES = (0, 4)
APART = 0.3  # metres between two objects, at least
TRIES = 20  # places that are drawn for an object before it is left out
NOISE = 0.015  # metres by which a point is off


class ObjectKind(NamedTuple):
    """What a kind of object is like: size along its own length, width and height in metres, how far a size is from it,
    as a share, and its reflectance.
    """

    size: tuple[float, float, float]
    spread: float
    light: float


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[np.ndarray, Elements]:
    """The points (N,4) of this number, in any order, and the boxes in the space."""
    random = random_of(seed, SPLITS.index(split), number)
    count = int(random.integers(POINTS[0], POINTS[1] + 1))
    points, seen = np.empty((0, 4)), np.zeros(0, bool)
    while len(points) < count or not seen.any():  # an object just before the sensor may hide nearly all
        labels, boxes = _placed(random)
        points, owner = _measured(labels, boxes, count, random)
        seen = np.bincount(owner[owner >= 0], minlength=len(boxes)) >= SEEN
    kept = (owner < 0) | seen[owner]
    points[~kept] = _ground(int((~kept).sum()), random)
    chosen = np.flatnonzero(seen)
    return random.permutation(points), elements([labels[each] for each in chosen], boxes[chosen], SPACE)


def _placed(random: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Labels and corners (n,6) of objects that stand apart."""
    labels: list[str] = []
    boxes = np.empty((0, 6))
    for each in random.integers(0, len(KINDS), random.integers(OBJECTS[0], OBJECTS[1] + 1)).tolist():
        label = [*KINDS][each]
        size = np.array(KINDS[label].size) * (1 + KINDS[label].spread * random.uniform(-1, 1, 3))
        size = size[[1, 0, 2]] if random.random() < 0.5 else size
        low = np.zeros((TRIES, 3))
        low[:, :2] = random.uniform(0, np.array(SPACE[3:5]) - size[:2], (TRIES, 2))
        gaps = np.maximum(low[:, None, :2] - boxes[:, 3:5], boxes[:, :2] - (low + size)[:, None, :2]).max(2)
        free = np.flatnonzero((gaps >= APART).all(1))
        if len(free):
            labels.append(label)
            boxes = np.concatenate([boxes, [[*low[free[0]], *low[free[0]] + size]]])
    return labels, boxes


def _measured(
    labels: list[str], boxes: np.ndarray, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many points (N,4), and the number of the object that each is on, -1 for the ground and bushes (N,)."""
    faces, owners, sizes = _faces(boxes)
    chosen = random.choice(len(faces), int(random.uniform(*SHARE) * count), p=sizes / sizes.sum())
    low, high = faces[chosen, :3], faces[chosen, 3:]
    places = low + random.random(low.shape) * (high - low)
    owner = owners[chosen]
    light = np.array([KINDS[each].light for each in labels])[owner] + 0.05 * random.standard_normal(len(owner))
    found = np.concatenate([places + NOISE * random.standard_normal(places.shape), light[:, None]], 1)
    seen = ~_hidden(places, owner, boxes)
    found, owner = found[seen], owner[seen]
    rest = np.concatenate([_bushes(random), _ground(4 * count, random)])
    rest = rest[~_hidden(rest[:, :3], np.full(len(rest), -1), boxes)][: count - len(found)]
    points = np.concatenate([found, rest])
    points[:, :3] = points[:, :3].clip(SPACE[:3], SPACE[3:])
    points[:, 3] = points[:, 3].clip(0, 1)
    return points.astype(np.float32), np.concatenate([owner, np.full(len(rest), -1)])


def _faces(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The faces that look towards the sensor: their corners (m,6), the number of their box (m,), and how large each
    looks from there (m,): its area, times the cosine of the angle, over the squared distance.
    """
    found, owners, sizes = [], [], []
    for number, box in enumerate(boxes):
        for axis in range(3):
            for side, outwards in ((0, -1.0), (3, 1.0)):
                away = outwards * (SENSOR[axis] - box[side + axis])
                if away <= 0:
                    continue
                face = box.copy()
                face[[axis, 3 + axis]] = box[side + axis]
                extent = np.delete(face[3:] - face[:3], axis)
                apart = float(((face[:3] + face[3:]) / 2 - SENSOR) @ ((face[:3] + face[3:]) / 2 - SENSOR))
                found.append(face)
                owners.append(number)
                sizes.append(float(extent.prod()) * away / apart**1.5)
    return np.array(found), np.array(owners), np.array(sizes)


def _hidden(places: np.ndarray, owner: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether another object than its own lies around each place (n,3), or between it and the sensor: where the line to
    it enters the last slab of a box before it leaves the first one.
    """
    ray = places - SENSOR
    low, high = ((boxes[:, each : each + 3] - SENSOR) / np.where(ray == 0, 1e-9, ray)[:, None] for each in (0, 3))
    enters, leaves = np.minimum(low, high).max(2), np.maximum(low, high).min(2)  # (n,m) shares of the way
    through = (enters < leaves) & (leaves > 0) & (enters < 1)
    through[np.flatnonzero(owner >= 0), owner[owner >= 0]] = False
    hidden: np.ndarray = through.any(1)
    return hidden


def _bushes(random: np.random.Generator) -> np.ndarray:
    """Points (n,4) of a few bushes: clutter of no kind."""
    found = [np.empty((0, 4))]
    for _ in range(int(random.integers(BUSHES[0], BUSHES[1] + 1))):
        middle = random.uniform((0, 0, 0.2), (*SPACE[3:5], 0.6))
        each = middle + 0.25 * random.standard_normal((int(random.integers(4, 12)), 3))
        each[:, 2] = np.abs(each[:, 2])
        found.append(np.concatenate([each, random.uniform(0.1, 0.6, (len(each), 1))], 1))
    return np.concatenate(found)


def _ground(count: int, random: np.random.Generator) -> np.ndarray:
    """Points (n,4) of the ground."""
    places = random.uniform(SPACE[:2], SPACE[3:5], (count, 2))
    height = np.abs(NOISE * random.standard_normal((count, 1)))
    return np.concatenate([places, height, random.uniform(0.1, 0.3, (count, 1))], 1)


KINDS = {
    "car": ObjectKind((3.9, 1.75, 1.5), 0.08, 0.45),
    "person": ObjectKind((0.55, 0.55, 1.75), 0.1, 0.3),
    "sign": ObjectKind((0.9, 0.2, 2.6), 0.1, 0.9),
}
