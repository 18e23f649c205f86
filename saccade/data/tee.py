"""`tee`: several readers of one reading.

A reader is a function of an iterator, such as the training of a tokenizer, which pulls its texts itself. Each runs in a
thread of its own; rows are handed to all of them in chunks, and the next chunk waits until every reader has taken the
last one, so that only a little of a long file is in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from queue import Queue
from typing import Any, TypeVar

Row = TypeVar("Row")
CHUNK = 32  # rows that are handed out at once: pieces of a long text are 64 KiB each


def tee(rows: Iterable[Row], readers: Sequence[Callable[[Iterator[Row]], Any]]) -> list[Any]:
    """What each reader makes of the rows, which are read once (without readers, not at all). An error in the rows
    comes before one of a reader, and that of an earlier reader before that of a later one.
    """
    each = iter(rows)
    if len(readers) < 2:
        return [reader(each) for reader in readers]
    queues: list[Queue[list[Row] | None]] = [Queue(1) for _ in readers]
    with ThreadPoolExecutor(len(readers)) as pool:
        found = [pool.submit(_read, reader, queue) for reader, queue in zip(readers, queues, strict=True)]
        try:
            while chunk := list(islice(each, CHUNK)):
                for queue in queues:
                    queue.put(chunk)
        finally:
            for queue in queues:
                queue.put(None)
    return [each.result() for each in found]


def _read(reader: Callable[[Iterator[Row]], Any], queue: Queue[list[Row] | None]) -> Any:
    chunks: Iterator[list[Row]] = iter(queue.get, None)
    try:
        return reader(chain.from_iterable(chunks))
    finally:
        deque(chunks, maxlen=0)  # takes what is left: a reader that stopped early must not hold up the others
