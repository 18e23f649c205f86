"""Boxes as Pascal VOC has them (Everingham et al. 2010): an XML file for each picture, in a folder `Annotations` beside
`JPEGImages`, or beside the picture itself.

Its pixels are counted from 1, and both ends belong to a box: it lies from xmin - 1 to xmax. Who writes edges, as many
programs do, is off by one pixel at most. `ImageSets/Main/{train,val,test}.txt` name the pictures of each split; without
them, folders called train, val (valid) and test are splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.parsers import expat

from saccade.data.boxes import Annotated, Box, inner, split_of, splits_in
from saccade.data.boxes import digest as boxes_digest
from saccade.data.boxes import pictures as pictures_in
from saccade.error import SaccadeError
from saccade.field.field import Kind, UnreadableError
from saccade.field.picture import ENDINGS

ANNOTATIONS, PICTURES, LISTS = "Annotations", "JPEGImages", "ImageSets/Main"
NAMES = {"train": ("train", "trainval"), "val": ("val",), "test": ("test",)}  # of the lists; the first that is there
CORNERS = ("xmin", "ymin", "xmax", "ymax")
ROOT = "annotation"


class Annotation(NamedTuple):
    """What is in a file: the name of its picture, the size that it says (0, 0 where it says none), and boxes."""

    filename: str
    size: tuple[float, float]
    boxes: list[Box]


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Folders that hold XML files: themselves, in Annotations, or in folders of splits."""
    return bool(paths) and all(path.is_dir() and any(_first_files(path)) for path in paths)


def _first_files(folder: Path) -> Iterator[Path]:
    return chain(folder.glob("*.xml"), folder.glob("*/*.xml"))


def splits(folder: Path) -> tuple[str, ...]:
    """The splits that a folder has of its own."""
    if _lists(folder):
        return splits_in(_lists(folder))
    return splits_in(split_of(each.relative_to(folder).parts[0]) for each in folder.glob("*/*.xml"))


def annotated(folder: Path, split: str | None) -> Iterator[Annotated | UnreadableError]:
    """Every picture of a split, or of all, with its boxes. One that has no XML file was not looked at: it is left out,
    while one whose file names no object has no boxes.
    """
    chosen = _files(folder, split)
    for each in chosen:
        try:
            yield _annotated(folder, each)
        except UnreadableError as problem:
            yield problem
    if split is None or not _lists(folder):
        known = {each.stem for each in chosen}
        places = [each for each in pictures_in(_pictures_folder(folder)) if _is_of(folder, each, split)]
        for each in places:
            if each.stem not in known:
                yield UnreadableError(f"{each} has no XML file", "a picture without annotations", str(each))


def annotation(content: bytes, name: str) -> Annotation:
    """What a file says; name: what errors call it."""
    found = _Reading(name)
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = found.doctype  # and so no entity is ever declared, nor expanded
    parser.StartElementHandler = partial(found.begin, parser)
    parser.EndElementHandler = found.end
    parser.CharacterDataHandler = found.text
    try:
        parser.Parse(content, True)
    except UnreadableError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as problem:  # the latter of an encoding that nobody knows
        raise UnreadableError(f"{name} is broken XML: {problem}", "broken XML", name) from None
    if found.root != ROOT:
        told = f"{name} has no <{ROOT}>: this is not the XML of Pascal VOC, but begins with <{found.root}>"
        raise UnreadableError(told, "another kind of XML", name)
    return Annotation(found.filename, (found.side("width"), found.side("height")), found.boxes)


def digest(path: str | Path) -> str:
    """The hash of all that is read in a folder."""
    folder = Path(path)
    return boxes_digest(folder, [*pictures_in(folder), *sorted(folder.rglob("*.xml")), *_lists(folder).values()])


class _Reading:
    """What the parser meets, by its place in the file."""

    def __init__(self, name: str) -> None:
        self.name, self.root, self.filename = name, "", ""
        self.boxes: list[Box] = []
        self._path: list[str] = []
        self._size: dict[str, str] = {}
        self._object: dict[str, str] = {}
        self._line, self._text = 0, ""

    def doctype(self, *_: object) -> None:
        told = f"{self.name} has a DOCTYPE, which may make a file endlessly large: take it out"
        raise UnreadableError(told, "XML with a DOCTYPE", self.name)

    def begin(self, parser: expat.XMLParserType, tag: str, _: object) -> None:
        self.root = self.root or tag
        self._path.append(tag)
        self._text = ""
        if self._path == [ROOT, "object"]:
            self._object, self._line = {}, parser.CurrentLineNumber

    def text(self, data: str) -> None:
        self._text += data

    def end(self, _: str) -> None:
        match self._path:
            case [_, "filename"]:
                self.filename = self._text.strip()
            case [_, "size", side]:
                self._size[side] = self._text
            case [_, "object", "name" as key] | [_, "object", "bndbox", key]:
                self._object[key] = self._text.strip()
            case [_, "object"]:
                self.boxes.append(self._box())
        self._path.pop()
        self._text = ""

    def side(self, name: str) -> float:
        found = _number(self._size.get(name, "0"))
        return found if found > 0 else 0.0

    def _box(self) -> Box:
        left, top, right, bottom = (_number(self._object.get(each, "")) for each in CORNERS)
        place = f"{self.name}, line {self._line}"
        empty = right <= left or bottom <= top  # for whoever counts edges: one pixel that is counted twice is not meant
        corners = (left, top, right, bottom) if empty else (left - 1, top - 1, right, bottom)
        return Box(self._object.get("name", ""), corners, place)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _annotated(folder: Path, path: Path) -> Annotated:
    """The picture of an XML file, with its boxes."""
    name = str(path.relative_to(folder))
    try:
        content = path.read_bytes()
    except OSError as problem:
        told = f"{path} is named in {LISTS} and cannot be read: {problem.strerror or problem}"
        raise UnreadableError(told, "annotations that are not there", name) from None
    found = annotation(content, name)
    size = found.size if all(found.size) else None
    return Annotated(_picture(folder, path, found.filename), found.boxes, size)


def _picture(folder: Path, path: Path, filename: str) -> Path:
    """The picture that an XML file names, or else the one of its own name, whatever its ending."""
    there = _pictures_folder(folder) if path.parent == folder / ANNOTATIONS else path.parent
    named = inner(there, filename, str(path)) if filename else path
    if filename and named.is_file():
        return named
    names = (there / f"{path.stem}{ending}" for each in ENDINGS for ending in (each, each.upper()))
    return next((each for each in names if each.is_file()), named)


def _pictures_folder(folder: Path) -> Path:
    return folder / PICTURES if (folder / PICTURES).is_dir() else folder


def _lists(folder: Path) -> dict[str, Path]:
    """The files that name the pictures of splits, by split."""
    paths = {split: [folder / LISTS / f"{each}.txt" for each in names] for split, names in NAMES.items()}
    there = {split: next((each for each in several if each.is_file()), None) for split, several in paths.items()}
    return {split: path for split, path in there.items() if path is not None}


def _files(folder: Path, split: str | None) -> list[Path]:
    """The XML files of a split, or all of them."""
    lists = _lists(folder)
    if split is not None and lists:
        lines = lists[split].read_text(errors="replace").splitlines()
        names = dict.fromkeys(line.split()[0] for line in lines if line.strip())  # a list of one class adds a 1 or -1
        _check_inner(names, lists[split])
        return [folder / ANNOTATIONS / f"{each}.xml" for each in names]
    root = folder / ANNOTATIONS if (folder / ANNOTATIONS).is_dir() else folder
    return [each for each in sorted(root.rglob("*.xml")) if _is_of(folder, each, split)]


def _check_inner(names: Mapping[str, None], source: Path) -> None:
    bad = next((each for each in names if ".." in PurePosixPath(each).parts or each.startswith("/")), None)
    if bad is not None:
        raise SaccadeError(f"{source} names {bad!r:.80}: names are relative to the folder, and stay in it")


def _is_of(folder: Path, path: Path, split: str | None) -> bool:
    """Whether a file lies in the folder of a split."""
    return split is None or split_of(path.relative_to(folder).parts[0]) == split
