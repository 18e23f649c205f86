"""`lanes`: cars on two straight lanes that cross or merge, seen from above; made here.

Cars follow each other (the intelligent driver model, Treiber et al. 2000) and yield where the lanes meet: whoever would
come there first goes first, and the others of the other lane stop before it. So where a car will be depends on the
others. Scenes lie and are turned anyhow. The same number gives the same scene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saccade.field.tracks.scene import Sequel
from saccade.recipe import LanesConfig

VERSION = 1  # of the generator: raise it when the same number gives another scene
SPLITS = ("train", "val", "test")
STEP, FINE = 0.4, 2  # seconds from one step to the next, and how many times a step is computed in
LENGTH, GAP, HEADWAY = 4.5, 2.5, 1.2  # of a car, and between two that stand, in metres; between two that go, in seconds
FASTER, SLOWER, HARDEST = 1.6, 2.2, 7.0  # metres per second squared: gaining speed, braking, at most
NEAR, AROUND = 45.0, 5.0  # metres before the meeting point where a car looks at the other lane, and that it takes up
FAR = 1e6  # metres to nobody
Row = tuple[np.ndarray, Sequel]


@dataclass
class Car:
    """lane: its number; at: metres along it, 0 where the lanes meet; speed, and the speed it would like to have."""

    lane: int
    at: float
    speed: float
    wish: float


def example(number: int, config: LanesConfig, *, split: str = "train", seed: int = 0) -> Row:
    """What was seen of a scene (N,T,2), and that with what came then."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    merges = bool(random.random() < 0.5)
    angles = np.array([0.0, random.uniform(0.35, 0.8) if merges else random.uniform(0.35, 0.65) * math.pi])
    angles = angles * random.choice([-1.0, 1.0]) + random.uniform(-math.pi, math.pi)
    cars = [car for lane in (0, 1) for car in _queue(lane, config.cars, random)]
    along = drive(cars, config.seen + config.told, merges)
    lanes = np.array([car.lane for car in cars])
    turned = np.where(merges & (along > 0), 0, lanes[:, None])  # behind the meeting point both are the first lane
    places = along[..., None] * np.stack([np.cos(angles[turned]), np.sin(angles[turned])], -1)
    scene = np.round(random.permutation(places + random.uniform(-50, 50, 2)), 3)
    sequel = Sequel(scene[:, : config.seen], scene[:, config.seen :])
    return sequel.seen, sequel


def drive(cars: Sequence[Car], steps: int, merges: bool) -> np.ndarray:
    """Where each car is along its lane, step by step, (N,steps); the cars are changed."""
    found = np.empty((len(cars), steps))
    second = STEP / FINE
    for step in range(steps):
        found[:, step] = [car.at for car in cars]
        for _ in range(FINE):
            first = _first(cars, merges)
            gains = [_gain(car, *_ahead(car, cars, first, merges)) for car in cars]
            for car, gain in zip(cars, gains, strict=True):
                before = car.speed
                car.speed = max(0.0, before + gain * second)
                car.at += (before + car.speed) / 2 * second
    return found


def _queue(lane: int, most: int, random: np.random.Generator) -> list[Car]:
    """The cars of a lane, the foremost first, each with room to brake."""
    at, cars = float(random.uniform(-45, 5)), list[Car]()
    for _ in range(int(random.integers(1, most + 1))):
        speed = float(random.uniform(5, 13))
        cars.append(Car(lane, at, speed, speed * float(random.uniform(0.95, 1.25))))
        at -= LENGTH + GAP + speed * float(random.uniform(1.2, 3.0))
    return cars


def _first(cars: Sequence[Car], merges: bool) -> Car | None:
    """The car that goes next where the lanes meet: one that is there, else the one that would come there first."""
    waiting = [car for car in cars if -NEAR < car.at < (0.0 if merges else AROUND + LENGTH)]
    return min(waiting, key=_arrival, default=None)


def _arrival(car: Car) -> float:
    """Seconds until it is where the lanes meet; who is nearly there goes before who could still stop."""
    return (-car.at - AROUND) / max(car.speed, 2.0)


def _ahead(car: Car, cars: Sequence[Car], first: Car | None, merges: bool) -> tuple[float, float]:
    """Metres to what a car must not run into, and its speed: the next car on its way, or the line where it waits."""
    gap, speed = FAR, 0.0
    for other in cars:
        same = other.lane == car.lane or (merges and other.at >= -AROUND and (car.at > -NEAR))
        if other is not car and same and other.at > car.at and other.at - car.at - LENGTH < gap:
            gap, speed = other.at - car.at - LENGTH, other.speed
    yields = first is not None and first.lane != car.lane and -NEAR < car.at < -AROUND
    if yields and -AROUND - car.at < gap:
        gap, speed = -AROUND - car.at, 0.0
    return gap, speed


def _gain(car: Car, gap: float, speed: float) -> float:
    """The acceleration of the intelligent driver model."""
    closing = car.speed * (car.speed - speed) / (2 * math.sqrt(FASTER * SLOWER))
    wanted = GAP + max(0.0, car.speed * HEADWAY + closing)
    free = 1 - (car.speed / car.wish) ** 4
    return max(-HARDEST, FASTER * (free - (wanted / max(gap, 0.1)) ** 2))
