"""`survey`: one reading of the training rows before the first step. It makes the files of the fields (vocabulary,
labels), finds a header that was taken for a row, and counts held-out examples that stand in the training data too, and
rows that stand there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from saccade.data.leakage import duplicates, leak_readers
from saccade.data.supply import Row, Supply, TrainingRow
from saccade.data.tee import tee
from saccade.task.pair import Pair, Part

RowReader = Callable[[Iterator[TrainingRow]], Any]


class Survey(NamedTuple):
    """files: of the fields, by name. header: the label of the first line, where no other line has it. leaks: by column
    and split, how many held-out examples are in the training data too. duplicates: how many training rows are copies
    of an earlier one; None where that is not counted.
    """

    files: dict[str, bytes]
    header: str | None
    leaks: dict[str, dict[str, int]]
    duplicates: int | None = None


def survey(
    pair: Pair,
    supply: Supply,
    files: Mapping[str, bytes] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Reads the training rows once. files: those of the fields that come with the weights a run starts from. progress
    gets the rows read so far.
    """
    given = files or {}
    learned = {name: columns for name, columns in _columns(pair).items() if name not in given}
    fields = {name: partial(_field_file, *columns) for name, columns in learned.items()}
    headers: list[RowReader] = [_possible_header] if supply.headed and pair.y.kind.everything else []
    leaks = leak_readers(supply) if supply.data.files and not supply.origin.parts else {}
    counters = [partial(_on_learned_rows, supply, each) for each in leaks.values()]
    counted = bool(supply.data.files) and (bool(pair.x) or supply.by_line)  # pieces of one text are no rows
    copies: list[RowReader] = [partial(_copies, supply)] if counted else []
    readers: list[RowReader] = [*fields.values(), *headers, *counters, *copies]
    # The results come in the order of the readers.
    rows = supply.seen(any(part.kind.everything for part, _ in learned.values()))
    found = iter(tee(rows if progress is None else _told(rows, progress), readers))
    own = {name: next(found) for name in fields}
    header = next(found) if headers else None
    leaked = {name: next(found) for name in leaks}
    return Survey({**given, **own}, header, leaked, next(found) if copies else None)


def _told(rows: Iterator[TrainingRow], progress: Callable[[int], None]) -> Iterator[TrainingRow]:
    for number, row in enumerate(rows, 1):
        yield row
        progress(number)


def _columns(pair: Pair) -> dict[str, tuple[Part, list[int]]]:
    """By file of a field: its part, and the numbers of the columns it is made from. Texts share one file."""
    found: dict[str, tuple[Part, list[int]]] = {}
    for number, (name, part) in enumerate(pair.parts.items()):
        found.setdefault(part.kind.stored(name), (part, []))[1].append(number)
    return found


def _field_file(part: Part, columns: Sequence[int], seen: Iterable[TrainingRow]) -> bytes:
    rows = (each.row for each in seen if each.learned or part.kind.everything)
    content: bytes = part.kind.made(part.config, (row[number] for row in rows for number in columns))
    return content


def _possible_header(seen: Iterable[TrainingRow]) -> str | None:
    """The label of the first row, if no other row has it."""
    counts = Counter(each.row[-1] for each in seen)
    first = next(iter(counts), None)
    return first if counts[first] == 1 and len(counts) > 2 else None


def _copies(supply: Supply, seen: Iterable[TrainingRow]) -> int:
    return duplicates(supply, (each.row for each in seen if each.learned))


def _on_learned_rows(supply: Supply, reader: Callable[[Iterable[Row]], Any], seen: Iterable[TrainingRow]) -> Any:
    return reader(supply.both_ways(each.row for each in seen if each.learned))
