"""Readers: what a user's own files are, and the rows in them.

A reader says which files it reads for which kinds of columns; the first that fits reads them. Files that no reader fits
are refused, with what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data import (
    boxes,
    boxtable,
    classes,
    coco,
    events,
    idx,
    nodes,
    npz,
    point_boxes,
    source,
    voc,
    windows,
    yolo,
)
from saccade.data.skipped import Place, Skipped, line_of, numbered
from saccade.error import SaccadeError
from saccade.field.field import Kind, UnreadableError
from saccade.field.file import FileSource
from saccade.recipe import WindowsConfig
from saccade.recipes.read import for_files

Row = tuple[Any, ...]
Kinds = tuple[str, ...]  # of the columns, by their names


@dataclass(frozen=True)
class ReadRequest:
    """What a reader is asked for. kinds: of the columns by name; columns: those of a table that the recipe names;
    skipped: counts rows that are blank or cannot be read; strict: refuses them; split: the one to be read of a folder
    that holds several; None: all of them. windows: how recordings are cut; part: between which shares of the time of
    each, where a split is a part of it.
    """

    files: Sequence[str]
    kinds: Mapping[str, Kind]
    task: str
    columns: list[str] | list[int]
    skipped: Skipped | None = None
    strict: bool = False
    split: str | None = None
    windows: WindowsConfig | None = None
    part: tuple[float, float] = (0.0, 1.0)

    def leave_out(self, reason: str, place: Place | None, told: str) -> None:
        """Counts what cannot be read; refuses it where that is asked for. told: what is wrong, in a sentence."""
        if self.strict:
            raise SaccadeError(f"{told}; mend it or take it away, or leave such out with data.skip = true")
        if self.skipped is not None:
            self.skipped.add(reason, place)


def _no_splits(path: Path) -> tuple[str, ...]:
    return ()


class Reader(NamedTuple):
    """fits: whether it reads these files; holds: the kinds that their columns may have, where the files determine them;
    pieces: whether its rows are pieces of one long text; timed: whether they are windows of recordings; parts: whether
    the outputs of a row belong to its places, which may be split; splits: those that a folder holds itself, none where
    it has no training split.
    """

    what: str
    fits: Callable[[Sequence[Path], Mapping[str, Kind]], bool]
    rows: Callable[[ReadRequest], Iterator[Row]]
    digest: Callable[[str | Path], str] = source.digest
    holds: Callable[[Sequence[Path]], list[Kinds]] | None = None
    pieces: bool = False
    parts: bool = False
    splits: Callable[[Path], tuple[str, ...]] = _no_splits
    timed: bool = False


Annotator = Callable[[Path, ReadRequest], Iterable[boxes.Annotated | UnreadableError]]


def present(files: Sequence[str]) -> list[Path]:
    """The paths of files and folders that are there, and can be read several times; refuses any other."""
    paths = [Path(each) for each in files]
    return [path if path.is_dir() else source.lasting(path) for path in paths]


def reader_of(files: Sequence[str], request: ReadRequest) -> Reader:
    """The reader of a user's own files; refuses files of several kinds, or of none that the columns can be."""
    paths = present(files)
    asked = tuple(each.kind for each in request.kinds.values())
    kinds = " and ".join(asked)
    for reader in READERS:
        if reader.fits(paths, request.kinds):
            held = [asked] if reader.holds is None else reader.holds(paths)
            if not any(takes(request.kinds, each) for each in held):
                problem = f"{', '.join(files)}: this is {reader.what}, and {request.task} reads {kinds} here"
                raise SaccadeError(f"{problem}: {_advice(held[0], files)}")
            return reader
    if any(path.is_dir() for path in paths):
        raise SaccadeError(f"{files[0]} is a folder, and {request.task} reads {kinds}: give the file itself")
    if len({source.is_table(path) for path in paths}) > 1:
        raise SaccadeError("some of the files are tables, and others texts without columns: give one kind")
    raise SaccadeError(f"{', '.join(files)}: {request.task} reads {kinds}, and these files hold none")


def takes(kinds: Mapping[str, Kind], held: Kinds) -> bool:
    """Whether columns of these kinds read such ones: the inputs may be made of others, as points are of pictures."""
    *inputs, output = kinds.values()
    fits = (each in (kind.kind, *kind.reads) for kind, each in zip(inputs, held[:-1], strict=False))
    return len(kinds) == len(held) and output.kind == held[-1] and all(fits)


def told(files: Sequence[str], kinds: Mapping[str, Kind]) -> tuple[str, list[Kinds]]:
    """What files are, and the kinds that their columns may have; none where the files do not tell. kinds: those that
    are asked for, which a table is taken to have where its cells do not name files of another kind.
    """
    paths = present(files)
    reader = next((each for each in READERS if each.fits(paths, kinds)), None)
    if reader is None:
        return "", []
    if reader.holds is not None:
        return reader.what, reader.holds(paths)
    named = _named_kind(paths[0], next(iter(kinds.values())))
    if named is None:
        return reader.what, []
    _, *others = (each.kind for each in kinds.values())
    return f"a table that names files ({paths[0].name})", [(named, *others)]


def _named_kind(path: Path, asked: Kind) -> str | None:
    """The kind of X whose files the first rows of a table name, if they name any but files of what is asked for."""
    own = asked.media.endings if issubclass(asked, FileSource) else ()
    for row in source.first_rows(path, 2):  # the first may be a header
        for cell in row:
            ending = Path(cell.strip()).suffix.lower()
            kind = None if ending in own else classes.KINDS.get(ending)
            # os.path: a cell too long for a name is no file, where Path raises
            if kind is not None and os.path.isfile(path.parent / cell.strip()):  # noqa: PTH113
                return kind
    return None


def _advice(kinds: tuple[str, ...], files: Sequence[str]) -> str:
    """How to train on files of these kinds: with a recipe for them, or with options that name the kinds."""
    fitting = for_files(kinds)
    if fitting:
        return f"saccade train {fitting[0]} --files {' '.join(files)}"
    *inputs, output = kinds
    options = " ".join([*(f"-o x.source.kind={each}" for each in inputs), f"-o y.kind={output}"])
    return f"say what the files hold ({options})"


def _tables(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return all(source.is_table(path) for path in paths)


def _lines(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Files side by side. It takes anything for several columns: reading them then says what is wrong."""
    return len(kinds) > 1 and all(path.is_file() for path in paths)


def _one_text(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return len(kinds) == 1 and all(path.is_file() and not source.is_table(path) for path in paths)


def _cells(request: ReadRequest) -> Iterator[Row]:
    """Rows of a table, or of files side by side: each column is a cell, or a line."""
    files, kinds = request.files, list(request.kinds.values())
    columns, named = request.columns or (["text"] if len(kinds) == 1 else None), len(request.columns)
    more = kinds[-1].several  # whether the last column takes all cells that are left
    least, wide = len(kinds), f"{len(kinds)} columns{' or more' if more else ''}"

    def fits(count: int) -> bool:
        return count >= least if more else count == least

    if named and not fits(named):
        raise SaccadeError(f"{request.task} reads {wide}; data.columns names {named}")
    folder = Path(files[0]).parent
    rows = source.rows(
        files, columns=columns, skipped=request.skipped, strict=request.strict, width=None if more else least
    )
    for number, row in enumerate(rows, 1):
        if not fits(len(row)):
            there = "there is 1" if len(row) == 1 else f"there are {len(row)}"
            hint = " (are its cells apart by ';'? They should be by a comma or a tab)" if ";" in row[0] else ""
            raise SaccadeError(f"{', '.join(files)}: {request.task} reads {wide}, and {there}{hint}")
        cells = [*row[: least - 1], row[least - 1 :] if more else row[-1]]
        maybe_header = number == 1 and not named
        try:
            yield numbered((kind.cell(cell, folder) for kind, cell in zip(kinds, cells, strict=True)), line_of(row))
        except UnreadableError as problem:
            told = f"{files[0]}, row {number:,}: {problem}"
            if maybe_header:
                raise SaccadeError(told + HEADER) from None
            request.leave_out(problem.reason, line_of(row), told)
        except SaccadeError as problem:
            raise SaccadeError(f"{files[0]}, row {number:,}: {problem}{HEADER if maybe_header else ''}") from None


def readable(rows: Iterator[Row], request: ReadRequest) -> Iterator[Row]:
    """The rows whose things can be read; the others are left out. Where none can, the first problem is told."""
    checked = [(number, kind) for number, kind in enumerate(request.kinds.values()) if kind.endings]
    return _without_flaws(rows, checked, request) if checked else rows


def _without_flaws(rows: Iterator[Row], checked: Sequence[tuple[int, Kind]], request: ReadRequest) -> Iterator[Row]:
    first, sound = None, False
    for row in rows:
        flaws = (kind.flaw(row[number]) for number, kind in checked)
        flaw = next((each for each in flaws if each is not None), None)
        if flaw is None:
            sound = True
            yield row
        else:
            first = first or flaw
            request.leave_out(flaw.reason, line_of(row) or flaw.name or None, str(flaw))
    if first is not None and not sound:
        raise SaccadeError(f"nothing of {', '.join(request.files)} can be read; the first problem: {first}")


def _pieces(request: ReadRequest) -> Iterator[Row]:
    return ((piece,) for path in request.files for piece in source.text(path))


def _of_event_tables(request: ReadRequest) -> Iterator[Row]:
    marked = (each for path in request.files for each in events.of_table(Path(path), request.columns))
    return events.rows(marked, request.files, request.leave_out)


def _of_labelled_folders(request: ReadRequest) -> Iterator[Row]:
    marked = (each for path in request.files for each in events.of_folder(Path(path), request.leave_out))
    return events.rows(marked, request.files, request.leave_out)


def _boxes(annotated: Annotator) -> Callable[[ReadRequest], Iterator[Row]]:
    """The rows of pictures with boxes, by how one file or folder is read."""

    def rows(request: ReadRequest) -> Iterator[Row]:
        every = (each for path in request.files for each in annotated(Path(path), request))
        return boxes.rows(every, request.files, request.leave_out)

    return rows


HEADER = " (is this line a header? Then name its columns: data.columns)"
READERS = [
    Reader(
        "a folder of sounds with Audacity's labels",
        events.is_labelled,
        _of_labelled_folders,
        events.folder_digest,
        holds=lambda _: [*events.HOLDS],
    ),
    Reader(
        "a table of sounds with events",
        events.is_table,
        _of_event_tables,
        events.table_digest,
        holds=lambda _: [*events.HOLDS],
    ),
    Reader(
        "points with boxes in lines of JSON",
        point_boxes.fits,
        lambda request: point_boxes.rows(request.files, request.leave_out),
        holds=lambda _: [*point_boxes.HOLDS],
    ),
    Reader(
        "a folder of pictures with boxes in Pascal VOC's XML",
        voc.fits,
        _boxes(lambda path, request: voc.annotated(path, request.split)),
        voc.digest,
        holds=lambda _: [*boxes.HOLDS],
        splits=voc.splits,
    ),
    Reader(
        "a folder of pictures with boxes in YOLO's text files",
        yolo.fits,
        _boxes(lambda path, request: yolo.annotated(path, request.split, request.leave_out)),
        yolo.digest,
        holds=lambda _: [*boxes.HOLDS],
        splits=yolo.splits,
    ),
    Reader(
        "boxes in COCO's JSON",
        coco.fits,
        _boxes(lambda path, request: coco.annotated(path, request.leave_out)),
        coco.digest,
        holds=lambda _: [*boxes.HOLDS],
    ),
    Reader(
        "a table of boxes",
        boxtable.fits,
        _boxes(lambda path, _: boxtable.annotated(path)),
        boxtable.digest,
        holds=lambda _: [*boxes.HOLDS],
    ),
    Reader(
        "a folder by class",
        classes.fits,
        lambda request: classes.rows(request.files, request.leave_out),
        classes.digest,
        holds=lambda paths: [(classes.kind(paths[0]), "label")],
    ),
    Reader("two IDX files", idx.fits, lambda request: idx.pairs(request.files), holds=lambda _: [("image", "label")]),
    Reader(
        "a graph with labels of its nodes",
        nodes.fits,
        lambda request: nodes.rows(request.files, request.columns),
        holds=lambda _: [*nodes.HOLDS],
        parts=True,
    ),
    Reader(
        "a table of tracks (frame, agent, x, y)",
        windows.fits,
        lambda request: windows.rows(request.files, request.windows, request.part),
        holds=lambda _: [*windows.HOLDS],
        timed=True,
    ),
    Reader("arrays (.npz)", npz.fits, lambda request: npz.rows(request.files, request.kinds), holds=npz.holds),
    Reader("a table (.tsv .csv .jsonl)", _tables, _cells),
    Reader("one long text", _one_text, _pieces, pieces=True),
    Reader("text files side by side", _lines, _cells),
]
