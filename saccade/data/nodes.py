"""Graphs whose nodes have labels, in files: JSON or NPZ that hold both, or two tables, of edges and of nodes.

Of the table of nodes each line has a node's name, then its features, then its label, ? where it is not known; of the
table of edges, the names of two nodes and perhaps a weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from saccade.data import source
from saccade.data.skipped import line_of
from saccade.error import SaccadeError, nearest
from saccade.field.field import Kind
from saccade.field.network import Network, network_of

Labelled = tuple[Network, tuple[str | None, ...]]
HOLDS = [("graph", "labels")]
UNKNOWN = "?"  # the label of a node that has none


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Files that are graphs; of other kinds, JSON where there are two columns, which a text in lines is not."""
    if any(path.is_dir() for path in paths) or not paths:
        return False
    endings = {path.suffix.lower() for path in paths}
    if tuple(each.kind for each in kinds.values()) not in HOLDS:
        return len(kinds) > 1 and endings == {".json"}
    return endings <= {".json", ".npz"} or (len(paths) % 2 == 0 and all(map(source.is_table, paths)))


def rows(files: Sequence[str], columns: list[str] | list[int]) -> Iterator[Labelled]:
    """Each graph with the labels of its nodes. columns: those of the table of nodes, where it has more or a header."""
    if source.is_table(files[0]):
        for edges, nodes in zip(files[::2], files[1::2], strict=True):
            yield _of_tables(edges, nodes, columns)
        return
    for each in files:
        found = network_of(Path(each))
        if not any(label is not None for label in found.labels):
            told = f'{each} has no labels of its nodes: give it "labels", one for each, null where it is not known'
            raise SaccadeError(told)
        yield found._replace(labels=()), found.labels


def _of_tables(edges: str, nodes: str, columns: list[str] | list[int]) -> Labelled:
    cells = list(source.rows(nodes, columns=columns or None, width=None, strict=True))
    if len(cells[0]) < 2:
        raise SaccadeError(f"{nodes}: a line has a node's name, its features and its label; this has one column")
    numbers = {name: number for number, (name, *_) in enumerate(cells)}
    if len(numbers) < len(cells):
        twice = next(name for number, (name, *_) in enumerate(cells) if numbers[name] != number)
        raise SaccadeError(f"{nodes} has two nodes with the name {twice!r}: give each one of its own")
    features = [_numbers(row[1:-1], nodes, row) or [1.0] for row in cells]
    pairs, weights = _pairs(edges, nodes, numbers)
    table = {"nodes": features, "edges": pairs, "names": list(numbers), **({"weights": weights} if weights else {})}
    labels = tuple(None if row[-1].strip() == UNKNOWN else row[-1] for row in cells)
    return network_of(table), labels


def _pairs(edges: str, nodes: str, numbers: Mapping[str, int]) -> tuple[list[tuple[int, int]], list[float]]:
    """The edges as pairs of numbers, and their weights; a first line that names no node at all is a header."""
    wide = len((source.first_rows(edges, 1) or [[""]])[0])
    if wide not in (2, 3):
        raise SaccadeError(
            f"{edges}: a line has the names of two nodes, and perhaps a weight; here it has {wide} cells"
        )
    pairs, weights = [], []
    for row in source.rows(edges, columns=list(range(1, wide + 1)), width=None, strict=True):
        missing = [name for name in row[:2] if name not in numbers]
        if len(missing) == 2 and line_of(row) == 1:
            continue
        if missing:
            near = nearest(missing[0], numbers)
            raise SaccadeError(f"{edges}, line {line_of(row)}: {nodes} has no node {missing[0]!r}; {near}")
        pairs.append((numbers[row[0]], numbers[row[1]]))
        weights += _numbers(row[2:], edges, row)
    return pairs, weights


def _numbers(cells: Sequence[str], name: str, row: Sequence[str]) -> list[float]:
    try:
        found = [float(each) for each in cells]
    except ValueError:
        wrong, header = ", ".join(cells), " (is it a header? Then name its columns: data.columns)"
        told = f"{name}, line {line_of(row)}: these should be numbers: {wrong:.60}{header if line_of(row) == 1 else ''}"
        raise SaccadeError(told) from None
    if not np.isfinite(found).all():
        raise SaccadeError(f"{name}, line {line_of(row)}: a number is not finite: {', '.join(cells)}")
    return found
