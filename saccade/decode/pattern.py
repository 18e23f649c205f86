"""`Automaton`: a regular expression over bytes (Thompson 1968), whose states are made when a search comes to them.

Python's own `re` decides which patterns are well formed, and which characters \\w, [^a-z] or (?i)k stand for. What is
not a regular language (looking around, referring back) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

import numpy as np

from saccade.error import SaccadeError

MOST = 100_000  # states of an automaton; a pattern that needs more would take the memory of the machine
DEAD, DONE, FIRST = range(3)  # nothing may follow; the end was written; nothing was written yet

Grow = Callable[["Net", int], int]  # adds a part of a pattern to the net from a state on, and says where it ends


class Automaton:
    """The deterministic automaton of a pattern, over bytes; a state is a set of the net's, made when it is reached."""

    def __init__(self, pattern: str) -> None:
        self._net = Net()
        try:
            self._last = read(pattern)(self._net, self._net.add())
        except RecursionError:
            raise SaccadeError("the pattern has too many groups inside one another: make it simpler") from None
        self.codes = {code for moves in self._net.moves for low, high, _ in moves for code in range(low, high + 1)}
        self._rows = np.full((64, 256), -1, dtype=np.int32)  # -1: not made yet
        self._rows[:3] = DEAD
        self._sets: list[frozenset[int]] = [frozenset()] * 3
        self._numbers: dict[frozenset[int], int] = {frozenset(): DEAD}
        self.ends = [False] * 3  # whether the pattern may end in a state
        self.start = self._number(frozenset([0]))

    def step(self, states: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The states that bytes lead to, elementwise."""
        new = self._rows[states, codes]
        if (new < 0).any():
            for each in np.unique(states[new < 0]).tolist():
                self.row(each)
            new = self._rows[states, codes]
        return new

    def row(self, state: int) -> np.ndarray:
        """The state after each byte, (256,)."""
        if self._rows[state, 0] < 0:
            after: list[set[int]] = [set() for _ in range(256)]
            for each in self._sets[state]:
                for low, high, to in self._net.moves[each]:
                    for code in range(low, high + 1):
                        after[code].add(to)
            found = [*map(self._number, map(frozenset, after))]  # may replace self._rows by a larger table
            self._rows[state] = found
        return self._rows[state]

    def _number(self, states: frozenset[int]) -> int:
        if states not in self._numbers:
            if len(self._sets) == MOST:
                raise SaccadeError(f"the pattern needs more than {MOST} states: make it simpler")
            if len(self._sets) == len(self._rows):
                self._rows = np.concatenate((self._rows, np.full_like(self._rows, -1)))
            everywhere = self._net.free(states)
            self._numbers[states] = len(self._sets)
            self._sets.append(everywhere)
            self.ends.append(self._last in everywhere)
        return self._numbers[states]


class Net:
    """The automaton before it is made deterministic: states with moves by a byte, and free moves (epsilon moves)."""

    def __init__(self) -> None:
        self.moves: list[list[tuple[int, int, int]]] = []  # for each state: from byte, to byte, next state
        self._free: list[list[int]] = []

    def add(self, *sources: int) -> int:
        """A new state, with a free move to it from each of the sources."""
        if len(self.moves) == MOST:
            raise SaccadeError(f"the pattern needs more than {MOST} states: make it simpler")
        self.moves.append([])
        self._free.append([])
        for each in sources:
            self.join(each, len(self.moves) - 1)
        return len(self.moves) - 1

    def join(self, source: int, to: int) -> None:
        """Adds a free move."""
        self._free[source].append(to)

    def free(self, states: Iterable[int]) -> frozenset[int]:
        """The states, and all that free moves lead to from them (the epsilon closure)."""
        found, stack = set(states), list(states)
        while stack:
            new = set(self._free[stack.pop()]) - found
            found |= new
            stack += new
        return frozenset(found)


def either(parts: list[Grow]) -> Grow:
    """One of the parts."""

    def grow(net: Net, at: int) -> int:
        return net.add(*[part(net, net.add(at)) for part in parts])

    return parts[0] if len(parts) == 1 else grow


def chain(parts: list[Grow]) -> Grow:
    """One part after another."""

    def grow(net: Net, at: int) -> int:
        for part in parts:
            at = part(net, at)
        return at

    return grow


def repeat(part: Grow, least: int, most: int | None) -> Grow:
    """A part, from `least` to `most` times; None: any number of times."""

    def grow(net: Net, at: int) -> int:
        for _ in range(least):
            at = part(net, net.add(at))  # a state each time, so that MOST also ends the repeats of an empty part
        if most is None:
            at = net.add(at)
            net.join(part(net, at), at)
            return at
        places = [at]
        for _ in range(most - least):
            places.append(part(net, net.add(places[-1])))
        return net.add(*places)

    return grow


def letter(atom: str, flags: int) -> Grow:
    """One character of those that an atom (a letter, an escape, a class, a dot) stands for."""

    def grow(net: Net, at: int) -> int:
        count, moves = _moves(atom, flags)
        states = [at, *(net.add() for _ in range(count - 1))]
        for source, low, high, to in moves:
            net.moves[states[source]].append((low, high, states[to]))
        return states[1]

    return grow


# The pieces of a pattern, in the order in which they are tried.
PIECES = re.compile(
    r"""
    (?P<edge> \^ | \$ | \\[AZ] )
  | (?P<atom> \\(?: [afnrtvdDsSwW] | x.{2} | u.{4} | U.{8} | N\{[^}]*\} | [^0-9A-Za-z] )
            | \[\^?\]?(?: \\. | [^\]\\] )*\] )
  | (?P<flags> \(\?[aimsu]+\) )
  | (?P<open> \((?: \?: | \?P<\w+> | (?!\?) ) )
  | (?P<close> \) )
  | (?P<or> \| )
  | (?P<times> (?: [*+?] | \{(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\} (?<!\{\}) ) (?P<lazy>\??) )
  | (?P<rest> [^\\(] )
    """,
    re.VERBOSE | re.DOTALL,
)
TIMES = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read(pattern: str) -> Grow:
    """A regular expression as a part that a net can grow by."""
    try:
        pattern.encode()
        flags = re.compile(pattern).flags
    except (re.error, OverflowError, RecursionError, UnicodeEncodeError) as problem:
        raise SaccadeError(f"the pattern {pattern!r} cannot be read: {problem}") from None
    pieces, at = [], 0
    while at < len(pattern):
        piece = PIECES.match(pattern, at)
        if piece is None:
            raise _refusal(pattern, at)
        pieces.append(piece)
        at = piece.end()
    return _read_either(_without_edges(pieces)[::-1], flags)


def _without_edges(pieces: list[re.Match[str]]) -> list[re.Match[str]]:
    """The pieces without flags, and without ^ in front and $ at the back: the whole text must match anyway."""
    pieces = [each for each in pieces if each.lastgroup != "flags"]
    kinds = ["or", *(each.lastgroup for each in pieces), "or"]
    found, depth = [], 0
    for number, piece in enumerate(pieces):
        depth += (piece.lastgroup == "open") - (piece.lastgroup == "close")
        beyond = kinds[number] if piece[0] in ("^", r"\A") else kinds[number + 2]
        if not (piece.lastgroup == "edge" and depth == 0 and beyond == "or"):
            found.append(piece)
    return found


def _read_either(pieces: list[re.Match[str]], flags: int) -> Grow:
    """Reads pieces, the next one last, as far as the group goes."""
    parts = [_read_row(pieces, flags)]
    while pieces and pieces[-1].lastgroup == "or":
        pieces.pop()
        parts.append(_read_row(pieces, flags))
    return either(parts)


def _read_row(pieces: list[re.Match[str]], flags: int) -> Grow:
    parts = []
    while pieces and pieces[-1].lastgroup not in ("or", "close"):
        piece = pieces.pop()
        if piece.lastgroup == "open":
            part = _read_either(pieces, flags)
            pieces.pop()
        elif piece.lastgroup == "edge":
            raise _refusal(piece.string, piece.start())
        else:
            part = letter(piece[0], flags)
        if pieces and pieces[-1].lastgroup == "times":
            part = repeat(part, *_times(pieces.pop()))
            if pieces and pieces[-1].lastgroup == "times":  # such as the possessive a*+
                raise _refusal(pieces[-1].string, pieces[-1].start())
        parts.append(part)
    return chain(parts)


def _times(piece: re.Match[str]) -> tuple[int, int | None]:
    if piece["comma"] is None:
        return TIMES[piece[0][0]]
    least = int(piece["least"] or 0)
    if not piece["comma"]:
        return least, least
    return least, int(piece["most"]) if piece["most"] else None


def _refusal(pattern: str, at: int) -> SaccadeError:
    return SaccadeError(
        f"the pattern {pattern!r} has {pattern[at : at + 4]!r} at {at}, which a constraint cannot follow: "
        "leave out lookaround, backreferences, possessive repeats, atomic groups and flags inside the pattern"
    )


@lru_cache(maxsize=1024)
def _moves(atom: str, flags: int) -> tuple[int, list[tuple[int, int, int, int]]]:
    """The states (0 the first, 1 the last) and the moves (source, from byte, to byte, next) that spell in UTF-8 each
    character an atom stands for. Characters are looked up 64 at a time; equal blocks share a state.
    """
    letters = np.zeros(5 << 18, dtype=bool)
    if len(atom) == 1 and atom != "." and not flags & re.IGNORECASE:
        letters[ord(atom)] = True
    else:
        for found in re.finditer(f"(?:{atom})+", _characters(), flags):
            letters[slice(*found.span())] = True
    letters[0xD800:0xE000] = False  # surrogates, which UTF-8 does not encode
    moves: list[tuple[int, int, int, int]] = []
    made: dict[bytes, int] = {}

    def spell(block: np.ndarray, base: int, at: int) -> None:
        if block.ndim == 1:
            edges = np.flatnonzero(np.diff(block, prepend=False, append=False)).tolist()
            moves.extend(
                (at, base + low, base + high - 1, 1) for low, high in zip(edges[::2], edges[1::2], strict=True)
            )
            return
        for place in np.flatnonzero(block.reshape(len(block), -1).any(1)).tolist():
            key = block[place].tobytes()
            if key not in made:
                made[key] = len(made) + 2
                spell(block[place], 0x80, made[key])
            moves.append((at, base + place, base + place, made[key]))

    for more, (base, first, limit) in enumerate(UTF8):
        block = letters[:limit].copy()
        block[:first] = False
        spell(block.reshape(-1, *[64] * more), base, 0)
    if not moves:
        raise SaccadeError(f"the pattern has {atom!r}, which stands for no character at all")
    return len(made) + 2, moves


# For characters of one to four bytes: what the first byte counts from, the first character, and where they end.
UTF8 = [(0x00, 0x0, 0x80), (0xC0, 0x80, 0x800), (0xE0, 0x800, 0x10000), (0xF0, 0x10000, 5 << 18)]


@cache
def _characters() -> str:
    """Every character there is, each at its own place."""
    return np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
