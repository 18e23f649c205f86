"""`copy`: letters in a row, of many lengths, to be written again. It shows what an architecture forgets.

`c q a f` -> `c q a f`, with 5 to 50 letters; the lengths are drawn evenly, so that a model that keeps a source in one
vector can be seen to fail from some length on. The same number gives the same example.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from saccade.error import SaccadeError, nearest

VERSION = 1  # of the generator: raise it when the same number gives another example
LETTERS = "abcdefghijklmnopqrst"
SHORTEST, LONGEST = 5, 50
SPLITS = ("train", "val", "test")


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[str, str]:
    """The example of this number. With 20 letters and at least 5 of them, splits share a text only by chance."""
    if split not in SPLITS:
        raise SaccadeError(f"copy: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    stream = _bytes(f"{seed} {split} {number}")
    length = SHORTEST + int.from_bytes(stream[:4], "big") % (LONGEST - SHORTEST + 1)
    letters = [LETTERS[each % len(LETTERS)] for each in stream[4 : 4 + length]]
    text = " ".join(letters)
    return text, text


def examples(count: int, *, split: str = "train", seed: int = 0) -> Iterator[tuple[str, str]]:
    """The first `count` examples of a split."""
    return (example(number, split=split, seed=seed) for number in range(count))


def _bytes(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=64).digest()
