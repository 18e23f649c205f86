"""`relations`: pictures of coloured shapes, and questions about one of them, or about two and how they lie.

After CLEVR (Johnson et al. 2017), small and flat: 3 to 5 shapes that do not touch, no two of the same colour and shape.

    one object    what colour is the cross?  what shape is the red one?
    two objects   is the red cross left of the blue square?
                  what colour is the shape above the red cross?  what shape is below the red cross?
                  how many others have the shape of the red cross?  how many others have the colour of the red cross?

What lies on a side is asked only where one shape alone does. A question is drawn by its answer: first one of the
answers that the picture allows, then one of the questions that have it. So an answer is rarely told by the question
alone. The same number gives the same picture and question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np

from saccade.data.outlines import COLOURS, OUTLINES
from saccade.error import SaccadeError, nearest

VERSION = 1  # of the generator: raise it when the same number gives another example
SPLITS = ("train", "val", "test")
SIDE = 48  # pixels of a picture's side
QUESTIONS = 5  # of a picture
FEWEST, MOST = 3, 5  # shapes of a picture
PALETTE = 4, 3  # colours and shapes of a picture
RADIUS, APART, CLEAR = (4.0, 5.5), 13.0, 4.0  # of a shape; between two centres; to lie left of another
ONE, TWO = "one object", "two objects"  # the kinds of questions
Row = tuple[np.ndarray, str, str]


class Thing(NamedTuple):
    """A shape on a picture, by its centre in pixels."""

    colour: str
    shape: str
    x: float
    y: float
    radius: float

    @property
    def name(self) -> str:
        """What no other shape of the picture is called."""
        return f"{self.colour} {self.shape}"


class Asked(NamedTuple):
    """A question and its answer."""

    text: str
    answer: str


def example(number: int, *, split: str = "train", seed: int = 0) -> Row:
    """The picture (48,48,3), question and answer of this number; those of one picture share its array."""
    if split not in SPLITS:
        raise SaccadeError(f"relations: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    pixels, asked = _scene(number // QUESTIONS, split, seed)
    return pixels, *asked[number % QUESTIONS]


def examples(count: int, *, split: str = "train", seed: int = 0, first: int = 0) -> Iterator[Row]:
    """`count` examples of a split."""
    return (example(number, split=split, seed=seed) for number in range(first, first + count))


@lru_cache(16)
def _scene(picture: int, split: str, seed: int) -> tuple[np.ndarray, list[Asked]]:
    """A picture and its questions."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), picture])))
    things = placed(random)
    return drawn(things, random), _questions(things, random)


def kind_of(question: str) -> str:
    """Whether a question is about one object, or about two: it names no side and counts nothing."""
    return TWO if any(words in question for words in (*SIDES, "how many")) else ONE


def placed(random: np.random.Generator) -> list[Thing]:
    """The shapes of a picture, each of its own colour and shape, none near another. They are made of few colours and
    shapes, so that many are alike in one of the two.
    """
    colours, shapes = random.permutation(list(COLOURS))[: PALETTE[0]], random.permutation(list(SHAPES))[: PALETTE[1]]
    kinds = [(str(colour), str(shape)) for colour in colours for shape in shapes]
    chosen = random.permutation(len(kinds))[: random.integers(FEWEST, MOST + 1)]
    found: list[Thing] = []
    for colour, shape in (kinds[each] for each in chosen):
        radius = random.uniform(*RADIUS)
        spots = random.uniform(radius + 1, SIDE - radius - 1, (64, 2))
        free = (spot for spot in spots.tolist() if all(np.hypot(spot[0] - t.x, spot[1] - t.y) >= APART for t in found))
        found += [Thing(colour, shape, spot[0], spot[1], radius) for spot in islice(free, 1)]  # none, where all is full
    return found


def drawn(things: list[Thing], random: np.random.Generator) -> np.ndarray:
    """A picture (48,48,3) of bytes: a light ground with a little noise, and shapes whose colours vary."""
    picture = np.full((SIDE, SIDE, 3), random.uniform(200, 245), np.float32)
    for each in things:
        tone = np.array(COLOURS[each.colour]) + random.uniform(-18, 18, 3)
        top, left = max(0, int(each.y) - 7), max(0, int(each.x) - 7)
        part = picture[top : top + 15, left : left + 15]
        y, x = np.ogrid[top : top + part.shape[0], left : left + part.shape[1]]
        part[SHAPES[each.shape]((x - each.x) / each.radius, (y - each.y) / each.radius)] = tone
    picture += random.normal(0, 5, picture.shape).astype(np.float32)
    return picture.clip(0, 255).astype(np.uint8)


def _questions(things: list[Thing], random: np.random.Generator) -> list[Asked]:
    """As many as a picture has, each of a template that fits these things."""
    by_answer = [_by_answer(template(things)) for template in TEMPLATES]
    fitting = [each for each in by_answer if each]
    return [_one_of(fitting, random) for _ in range(QUESTIONS)]


def _by_answer(possible: list[Asked]) -> list[list[Asked]]:
    """The questions of each answer."""
    return [[each for each in possible if each.answer == answer] for answer in sorted({a.answer for a in possible})]


def _one_of(fitting: list[list[list[Asked]]], random: np.random.Generator) -> Asked:
    """A template, then an answer, then a question."""
    answers = fitting[random.integers(len(fitting))]
    questions = answers[random.integers(len(answers))]
    return questions[random.integers(len(questions))]


def _colour(things: list[Thing]) -> list[Asked]:
    return [Asked(f"what colour is the {t.shape}?", t.colour) for t in _alone(things, "shape")]


def _shape(things: list[Thing]) -> list[Asked]:
    return [Asked(f"what shape is the {t.colour} one?", t.shape) for t in _alone(things, "colour")]


def _alone(things: list[Thing], key: str) -> list[Thing]:
    """Those whose shape, or colour, no other has."""
    every = [getattr(each, key) for each in things]
    return [each for each, value in zip(things, every, strict=True) if every.count(value) == 1]


def _is_there(things: list[Thing]) -> list[Asked]:
    """Both answers for each pair that lies clearly apart."""
    found = []
    for one, other in permutations(things, 2):
        for words, lies in SIDES.items():
            if abs(lies(one, other)) >= CLEAR:
                answer = "yes" if lies(one, other) > 0 else "no"
                found.append(Asked(f"is the {one.name} {words} the {other.name}?", answer))
    return found


def _colour_there(things: list[Thing]) -> list[Asked]:
    return [Asked(f"what colour is the shape {words} the {t.name}?", o.colour) for words, t, o in _only_there(things)]


def _shape_there(things: list[Thing]) -> list[Asked]:
    return [Asked(f"what shape is {words} the {t.name}?", o.shape) for words, t, o in _only_there(things)]


def _only_there(things: list[Thing]) -> list[tuple[str, Thing, Thing]]:
    """Words, a thing, and the only other on that side of it; none lies so that one could doubt it."""
    found = []
    for each in things:
        for words, lies in SIDES.items():
            others = [(lies(other, each), other) for other in things if other is not each]
            there = [other for far, other in others if far > 0]
            if len(there) == 1 and all(abs(far) >= CLEAR for far, _ in others):
                found.append((words, each, there[0]))
    return found


def _same_shape(things: list[Thing]) -> list[Asked]:
    return _same(things, "shape")


def _same_colour(things: list[Thing]) -> list[Asked]:
    return _same(things, "colour")


def _same(things: list[Thing], key: str) -> list[Asked]:
    """Asked only where the answer depends on whose shape, or colour, is meant."""
    every = [getattr(each, key) for each in things]
    if len({every.count(each) for each in every}) == 1:
        return []
    return [
        Asked(f"how many others have the {key} of the {each.name}?", str(every.count(getattr(each, key)) - 1))
        for each in things
    ]


SHAPES = {name: OUTLINES[name] for name in ("circle", "square", "triangle", "cross")}
SIDES: dict[str, Callable[[Thing, Thing], float]] = {  # by how many pixels one lies there of another
    "left of": lambda one, other: other.x - one.x,
    "right of": lambda one, other: one.x - other.x,
    "above": lambda one, other: other.y - one.y,
    "below": lambda one, other: one.y - other.y,
}
TEMPLATES = [_colour, _shape, _is_there, _is_there, _colour_there, _shape_there, _same_shape, _same_colour]
