"""Data that are made here: dates in words (`dates`), letters to repeat (`copy`), values to find by key (`recall`),
pictures of text to read (`lines`), spoken digits one after another (`fsdd-strings`), questions about pictures of shapes
(`relations`), small graphs (`motifs`), sets of numbers (`set-maximum`), points of several Gaussians (`mixture`),
distances of points (`distances`), sounds with events in them (`tones`, `spoken-events`), boxes in space (`scenes`),
shapes that overlap (`shapes`), cars on lanes that cross (`lanes`).

A generator makes a row of its number, its split and a seed. So its training rows may be made once, or drawn anew in
each epoch (`data.fresh`): then an epoch's rows have the numbers after those of the epoch before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from saccade import disk
from saccade.config import read
from saccade.data import (
    copies,
    distances,
    fsdd,
    lanes,
    lines,
    maxima,
    mixtures,
    motifs,
    named,
    recall,
    relations,
    scenes,
    shapes,
    soundscape,
    spoken_events,
    tones,
)
from saccade.data.origin import DataOrigin, ungrouped
from saccade.data.skipped import Skipped
from saccade.recipe import (
    DataConfig,
    DistancesConfig,
    LanesConfig,
    LinesConfig,
    RecallConfig,
    Recipe,
    SoundscapeConfig,
)

Row = tuple[Any, ...]
SURVEYED = 5000  # rows that vocabularies and the spread of pixels are learned from, where there is no end of rows


class Generator(NamedTuple):
    """row(number, split, seed): a row, the same whenever it is asked for; made_of: what it depends on; task: the one
    the rows are for; kinds and what: what their columns hold, as kinds of fields and in words; fresh: whether training
    rows are drawn anew in each epoch where the recipe does not say; splits: all of them, the last one to be tested on;
    group: see `DataOrigin.group`.
    """

    row: Callable[[int, str, int], Row]
    made_of: Callable[[], dict[str, Any]]
    task: str = "translate"
    kinds: tuple[str, ...] = ("text", "text")
    what: str = "pairs of texts"
    fresh: bool = False
    splits: tuple[str, ...] = ("train", "val", "test")
    group: Callable[[Row], str | None] = ungrouped


class Generated(DataOrigin):
    """The rows of a generator, as many as the recipe asks for."""

    def __init__(self, recipe: Recipe) -> None:
        self.data, self.seed = recipe.data, recipe.seed
        self.generator = GENERATED[recipe.data.name](recipe.data)
        self.splits = self.generator.splits
        self.fresh = self.generator.fresh if self.data.fresh is None else self.data.fresh
        self.surveyed = SURVEYED if self.fresh else None

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        if name == "train":
            return self.epoch(0)
        return (self.generator.row(number, name, self.seed) for number in range(self.data.held))

    def epoch(self, number: int) -> Iterator[Row]:
        begin = number * self.data.examples
        return (self.generator.row(begin + each, "train", self.seed) for each in range(self.data.examples))

    def group(self, row: Row) -> str | None:
        return self.generator.group(row)

    def made_of(self) -> dict[str, Any]:
        sizes = {"examples": self.data.examples, "held": self.data.held, "seed": self.seed}
        return {**self.generator.made_of(), **sizes, **({"fresh": True} if self.fresh else {})}

    def changed(self, before: Mapping[str, Any]) -> list[str]:
        """Nothing: a generator keeps its splits apart in every version."""
        return []


def _dates(_: DataConfig) -> Generator:
    from saccade.data import dates  # imports babel, which takes a while

    def row(number: int, split: str, seed: int) -> Row:
        made = dates.example(number, split=split, seed=seed)
        return made.source, made.target

    return Generator(row, lambda: {"dates": dates.VERSION, "babel": version("babel")})


def _copy(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return copies.example(number, split=split, seed=seed)

    return Generator(row, lambda: {"copy": copies.VERSION})


def _recall(data: DataConfig) -> Generator:
    config = data.recall or read(RecallConfig, {})

    def row(number: int, split: str, seed: int) -> Row:
        return (recall.example(number, config, split=split, seed=seed),)

    made_of = {"recall": recall.VERSION, **config.model_dump()}
    return Generator(row, lambda: made_of, "write", ("text",), "texts to go on with")


def _lines(data: DataConfig) -> Generator:
    config = data.lines or read(LinesConfig, {})
    lines.check(config)

    def row(number: int, split: str, seed: int) -> Row:
        return lines.example(number, config, split=split, seed=seed)

    def made_of() -> dict[str, Any]:
        libraries = {each: version(each) for each in ("pillow", "matplotlib")}
        return {"lines": lines.VERSION, **libraries, **config.model_dump()}

    return Generator(row, made_of, "read", ("image", "text"), "pictures of text", True, lines.SPLITS)


def _strings(data: DataConfig) -> Generator:
    def archive(split: str = "train") -> Path:
        return named.files("fsdd", split)[0]

    def row(number: int, split: str, seed: int) -> Row:
        found = fsdd.string(archive(split), number, split, seed, data.speaker)
        return found.recording, found.text

    def made_of() -> dict[str, Any]:
        return {"fsdd-strings": fsdd.VERSION, "fsdd": disk.known_digest(archive()), **data.apart}

    return Generator(row, made_of, "transcribe", ("sound", "text"), "sounds with their words", True)


def _relations(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return relations.example(number, split=split, seed=seed)

    made_of, kinds = {"relations": relations.VERSION}, ("image", "text", "label")
    what = "pictures and questions with an answer"
    return Generator(row, lambda: made_of, "answer", kinds, what, group=lambda row: relations.kind_of(row[1]))


def _motifs(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return motifs.example(number, split=split, seed=seed)

    made_of, kinds = {"motifs": motifs.VERSION}, ("graph", "label")
    return Generator(row, lambda: made_of, "classify", kinds, "small graphs with a label", True)


def _maxima(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return maxima.example(number, split=split, seed=seed)

    made_of, kinds = {"set-maximum": maxima.VERSION}, ("points", "numbers")
    return Generator(row, lambda: made_of, "regress", kinds, "sets of numbers and their maximum", True)


def _mixtures(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return mixtures.example(number, split=split, seed=seed)

    made_of, kinds = {"mixture": mixtures.VERSION}, ("points", "mixture")
    return Generator(row, lambda: made_of, "cluster", kinds, "sets of points of several Gaussians", True)


def _distances(data: DataConfig) -> Generator:
    config = data.distances or read(DistancesConfig, {})

    def row(number: int, split: str, seed: int) -> Row:
        return distances.example(number, config, split=split, seed=seed)

    made_of, kinds = {"distances": distances.VERSION, **config.model_dump()}, ("graph", "pairs")
    return Generator(row, lambda: made_of, "regress", kinds, "some distances of points, and the others", True)


def _tones(data: DataConfig) -> Generator:
    config = data.soundscape or read(SoundscapeConfig, {})

    def row(number: int, split: str, seed: int) -> Row:
        return tones.example(number, config, split=split, seed=seed)

    made_of = {"tones": tones.VERSION, **config.model_dump()}
    return Generator(row, lambda: made_of, *_EVENTS, splits=soundscape.SPLITS)


def _spoken_events(data: DataConfig) -> Generator:
    config = data.soundscape or read(SoundscapeConfig, {})

    def archive(split: str = "train") -> Path:
        return named.files("fsdd", split)[0]

    def row(number: int, split: str, seed: int) -> Row:
        of = split.partition("-")[0]
        return spoken_events.example(archive(of), number, config, split=split, seed=seed, speaker=data.speaker)

    def made_of() -> dict[str, Any]:
        held = {} if data.speaker is None else {"speaker": data.speaker}
        known = {"spoken-events": spoken_events.VERSION, "fsdd": disk.known_digest(archive())}
        return {**known, **held, **config.model_dump()}

    return Generator(row, made_of, *_EVENTS, splits=soundscape.SPLITS)


def _scenes(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return scenes.example(number, split=split, seed=seed)

    made_of, kinds = {"scenes": scenes.VERSION}, ("points", "boxes")
    return Generator(row, lambda: made_of, "detect", kinds, "points in space with boxes around some", True)


_EVENTS = ("detect", ("sound", "events"), "sounds with the events in them", True)  # what their rows are for and hold


def _shapes(_: DataConfig) -> Generator:
    def row(number: int, split: str, seed: int) -> Row:
        return shapes.example(number, split=split, seed=seed)

    made_of, kinds = {"shapes": shapes.VERSION}, ("image", "boxes")
    return Generator(row, lambda: made_of, "detect", kinds, "pictures of shapes with their boxes", True)


def _lanes(data: DataConfig) -> Generator:
    config = data.lanes or read(LanesConfig, {})

    def row(number: int, split: str, seed: int) -> Row:
        return lanes.example(number, config, split=split, seed=seed)

    made_of, kinds = {"lanes": lanes.VERSION, **config.model_dump()}, ("tracks", "tracks")
    return Generator(row, lambda: made_of, "foretell", kinds, "scenes of cars, and what comes")


GENERATED: dict[str | None, Callable[[DataConfig], Generator]] = {
    "dates": _dates,
    "copy": _copy,
    "recall": _recall,
    "lines": _lines,
    "fsdd-strings": _strings,
    "relations": _relations,
    "motifs": _motifs,
    "set-maximum": _maxima,
    "mixture": _mixtures,
    "distances": _distances,
    "tones": _tones,
    "spoken-events": _spoken_events,
    "scenes": _scenes,
    "shapes": _shapes,
    "lanes": _lanes,
}
HELD_OUT: dict[str | None, str] = {
    "fsdd-strings": "speaker",
    "spoken-events": "speaker",
}  # the key of [data] that says what may be held out
ABOUT = {
    "dates": "dates as they are written in 14 languages, and as ISO 8601 (task translate)",
    "copy": "letters to repeat (task translate)",
    "fsdd-strings": "strings of 3 to 6 spoken digits, made of the clips of fsdd (task transcribe)",
    "recall": "texts with keys and values, and questions for them (task write)",
    "lines": "pictures of words and numbers in many fonts, and what they say (task read)",
    "relations": "pictures of coloured shapes, and questions about one or two of them (task answer)",
    "motifs": "small graphs, and whether there is a ring in them (task classify)",
    "set-maximum": "sets of 1 to 10 numbers and the largest of each (task regress)",
    "mixture": "sets of points in the plane that four Gaussians were the source of (task cluster)",
    "distances": "points in space: some of their distances, and all the others (task regress)",
    "tones": "seconds of noise with tones of six kinds, and when each begins and ends (task detect)",
    "spoken-events": "spoken digits over noise, made of the clips of fsdd, and when each is said (task detect)",
    "scenes": "points on cars, people and signs as a laser measures them, and a box around each (task detect)",
    "shapes": "pictures of up to eight shapes that overlap, and a box around each (task detect)",
    "lanes": "cars on two lanes that cross or merge, and where they will be (task foretell)",
}
