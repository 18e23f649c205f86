"""`Side`: one sequence of tokens as people read it: what each token writes, and which word it belongs to."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from saccade.data.field import Text

# Scripts that are written without spaces; each of their letters is a word of its own here.
UNSPACED = ((0x0E00, 0x0EFF), (0x2E80, 0xA4CF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
APOSTROPHES = "'\u2019"


class Token(NamedTuple):
    """A token with what it writes, half a character as \\xe4, and the number of its word."""

    id: int
    text: str
    word: int
    special: bool


@dataclass(frozen=True)
class Side:
    """Tokens in their order, and the words they make up."""

    tokens: list[Token]
    words: list[str]

    def __len__(self) -> int:
        return len(self.tokens)


def side_of(text: Text, ids: Sequence[int]) -> Side:
    """The tokens of these ids, in words."""
    tokens: list[Token] = []
    words: list[str] = []
    for number, token in enumerate(ids):
        special = token in text.silent and token != text.unknown  # which stands for something that was written
        written = written_by(text, token, first=number == 0 or tokens[-1].special)
        before = None if not tokens or tokens[-1].special or special else words[-1]
        if before is None or begins(before, tokens[-1].text, written):
            words.append("")
        words[-1] += written
        tokens.append(Token(token, written, len(words) - 1, special))
    return Side(tokens, [word.strip() or word for word in words])


def written_by(text: Text, token: int, *, first: bool = False) -> str:
    """What one token writes; of a special one, and where the tokenizer alone knows, its name."""
    if token >= text.vocab or token in text.silent or text.manner is None:  # tables are often longer than tokenizers
        return text.tokenizer.id_to_token(token) or f"<{token}>"
    return text.spell(token, first=first).decode(errors="backslashreplace")


def begins(word: str, last: str, new: str) -> bool:
    """Whether a token begins another word than the one that stands there: at a space, and around punctuation."""
    if not word.strip():
        return False  # a space waits for its word
    if not new or new[0].isspace() or last[-1:].isspace():
        return bool(new)
    return _is_mark(new) or _is_mark(last.strip()) or _is_unspaced(new[0]) or _is_unspaced(last[-1:])


def _is_mark(text: str) -> bool:
    """Punctuation and symbols, but for what stands inside words."""
    return bool(text) and all(unicodedata.category(each)[0] in "PS" and each not in APOSTROPHES for each in text)


def _is_unspaced(letter: str) -> bool:
    return bool(letter) and any(begin <= ord(letter) <= end for begin, end in UNSPACED)
