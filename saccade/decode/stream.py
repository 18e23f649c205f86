"""`Stream`: the text of a sequence while its tokens are written, with stop strings.

Text that was given out is never taken back, so only text that no later token can change is given out: not half a
character, not a space that a comma would close up, not the beginning of what may become a stop string.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from saccade.error import SaccadeError
from saccade.field.text.text import Text


class Stream:
    """The text of one sequence: `push` its tokens, then `finish`.

        pieces = [stream.push(token) for token in tokens] + [stream.finish()]
        "".join(pieces) == text.decode(tokens)          # or what stands before the first stop string

    The first stop string is the one that is complete first, the longest of those that end together. `text` is all that
    was given out; `stopped` says that a stop string was found, and whatever comes after it is ignored.
    """

    def __init__(self, text: Text, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(stop)
        if isinstance(stop, str) or not all(isinstance(each, str) and each for each in self._stop):
            raise SaccadeError(f"stop is a list of strings, none of them empty; got {stop!r}")
        self.stopped, self._over = False, False
        self._reader = READERS[text.manner](text)
        self._given, self._held = list[str](), ""

    @property
    def text(self) -> str:
        return "".join(self._given)

    def push(self, token: int) -> str:
        """The text that became certain with this token; perhaps none."""
        if self._over:
            raise SaccadeError("this stream was finished: make another for another sequence")
        return "" if self.stopped else self._give(self._reader.push(token))

    def finish(self) -> str:
        """The rest: no more tokens come."""
        over, self._over = self._over or self.stopped, True
        return "" if over else self._give(self._reader.finish())

    def _give(self, new: str) -> str:
        known = self._held + new
        found = [(start + len(each), start) for each in self._stop if (start := known.find(each)) >= 0]
        self.stopped = bool(found)
        cut = min(found)[1] if found else len(known) - self._undecided(known)
        self._held = known[cut:]
        self._given.append(known[:cut])
        return known[:cut]

    def _undecided(self, known: str) -> int:
        """How many of the last letters may be the beginning of a stop string, and are held back."""
        if self._over:
            return 0
        longest = max((len(each) - 1 for each in self._stop), default=0)
        lengths = range(min(longest, len(known)), 0, -1)
        return next((n for n in lengths if any(each.startswith(known[-n:]) for each in self._stop)), 0)


class Bytes:
    """Tokens that are bytes side by side: characters come out as they are complete."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The characters that the token completes."""
        return self._decoder.decode(self._text.spell(token))

    def finish(self) -> str:
        """Half a character, which is broken now."""
        return self._decoder.decode(b"", final=True)


class Pieces:
    """Tokens that write the same after any other. A run of byte tokens waits until it is over: one that is not UTF-8
    makes all of its bytes broken, those before it too.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._before: list[int] = []  # the last token that was given out, so that the next is not decoded as the first
        self._run: list[int] = []

    def push(self, token: int) -> str:
        """The token and the run before it, if it ends one."""
        if token in self._text.silent:
            return ""
        self._run.append(token)
        return "" if self._text.is_byte(token) else self.finish()

    def finish(self) -> str:
        """The run of bytes that was left."""
        new = self._text.decode(self._before + self._run)[len(self._text.decode(self._before)) :]
        self._before, self._run = self._run[-1:] or self._before, []
        return new


class Words:
    """Tokens with spaces between them, closed up around punctuation: a word is certain when the next one is there.

    Whether a space closes up depends on the two tokens before it and the two behind it, as in l ' eau and it ' s.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._last: list[int] = []
        self._given = 0  # letters of `_last` that were given out

    def push(self, token: int) -> str:
        """The text up to the token before this one."""
        if token in self._text.silent:
            return ""
        known = [*self._last, token]
        certain = self._certain(known)
        new = certain[self._given :]
        self._last = known[-4:]
        self._given = len(self._certain(self._last))
        return new

    def finish(self) -> str:
        return self._text.decode(self._last)[self._given :]

    def _certain(self, tokens: list[int]) -> str:
        word = self._text.spell(tokens[-1], first=True).decode()
        return self._text.decode(tokens).removesuffix(word).removesuffix(" ")


class Whole:
    """Tokens of a tokenizer that decodes in a way of its own: nothing is certain before the end."""

    def __init__(self, text: Text) -> None:
        self._text, self._tokens = text, list[int]()

    def push(self, token: int) -> str:
        self._tokens.append(token)
        return ""

    def finish(self) -> str:
        return self._text.decode(self._tokens)


READERS: dict[str | None, type[Bytes | Pieces | Words | Whole]] = {
    "bytes": Bytes,
    "pieces": Pieces,
    "words": Words,
    None: Whole,
}
