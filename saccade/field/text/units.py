"""A sequence of tokens as people read it: what each token writes, and which word it belongs to."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from saccade.field.text.text import Text
from saccade.field.unit import Side, Unit

# Scripts that are written without spaces; each of their letters is a word of its own here.
UNSPACED = ((0x0E00, 0x0EFF), (0x2E80, 0xA4CF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
APOSTROPHES = "'\u2019"


def token_side(text: Text, ids: Sequence[int]) -> Side:
    """The tokens of these ids, in words."""
    tokens: list[Unit] = []
    words: list[str] = []
    last = ""
    for piece in _pieces(text, ids):
        special = _is_special(text, piece[0][0])
        written = _as_text(b"".join(spelt for _, spelt in piece))
        if not tokens or tokens[-1].special or special or begins(words[-1], last, written):
            words.append("")
        words[-1] += written
        tokens += [Unit(token, _as_text(spelt), len(words) - 1, special) for token, spelt in piece]
        last = written
    known = [token for token in ids if token < text.vocab]
    return Side(tokens, [word.strip() or word for word in words], text.decode(known))


def token_text(text: Text, token: int) -> str:
    """What one token writes after others; its name, if it is special or its tokenizer decodes in a way of its own."""
    return _as_text(_spelt(text, token))


def _pieces(text: Text, ids: Sequence[int]) -> list[list[tuple[int, bytes]]]:
    """Tokens with their bytes; tokens that share a character stay together, since only the whole can be read."""
    pieces: list[list[tuple[int, bytes]]] = []
    apart = True  # at the beginning, and after a special token
    for token in ids:
        spelt = _spelt(text, token, first=apart)
        if apart or not _continues(spelt):
            pieces.append([])
        pieces[-1].append((token, spelt))
        apart = _is_special(text, token)
    return pieces


def _spelt(text: Text, token: int, *, first: bool = False) -> bytes:
    # A model's table of tokens is often longer than its tokenizer's vocabulary.
    if token >= text.vocab or token in text.silent or text.manner is None:
        return (text.tokenizer.id_to_token(token) or f"<{token}>").encode()
    return text.spell(token, first=first)


def _is_special(text: Text, token: int) -> bool:
    return token in text.silent and token != text.unknown  # an unknown token stands for a word of the text


def _continues(spelt: bytes) -> bool:
    """Whether bytes begin inside a character of UTF-8."""
    return 0x80 <= ord(spelt[:1] or b" ") < 0xC0


def _as_text(spelt: bytes) -> str:
    return spelt.decode(errors="backslashreplace")


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
