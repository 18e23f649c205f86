"""`Text`: what turns texts into tokens and back.

Byte pair encoding: Sennrich et al. 2016; over bytes, so that nothing is unknown: Radford et al. 2019. Every `Text` is a
`Tokenizer` of the `tokenizers` library and is stored as its tokenizer.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as cuts

from saccade.error import SaccadeError, nearest

TOKENIZER, SPECIAL_FILE = "tokenizer.json", "special.json"  # of a run; the latter where its model comes from elsewhere
SPECIAL = ["<pad>", "<begin>", "<end>", "<unknown>"]  # ids 0 to 3 of every vocabulary made here
BYTES = 256
# The names that published tokenizers give to ours, the likeliest first.
NAMES = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"),
    "begin": ("<begin>", "<s>", "<bos>", "[CLS]", "<|begin_of_text|>", "<|startoftext|>", "<|endoftext|>"),
    "end": ("<end>", "</s>", "<eos>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
    "unknown": ("<unknown>", "<unk>", "[UNK]"),
}
BLANKS = ("[MASK]", "<mask>")  # how published tokenizers write a blank


class Text:
    """A vocabulary: made by `Text.train`, read by `from_bytes`, or given a Hugging Face tokenizer.

    `vocab` counts the tokens, the special ones included; `pad`, `begin`, `end` and `unknown` are the ids of the special
    ones, None where a tokenizer has none. special: of a model from elsewhere, lists of these ids by role; roles that it
    leaves out are found by the usual names of tokens.
    """

    def __init__(self, tokenizer: Tokenizer, special: Mapping[str, Sequence[int]] | None = None) -> None:
        # A copy: the caller's tokenizer keeps its padding, truncation and manner with special tokens.
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.vocab = max(self.tokenizer.get_vocab().values(), default=-1) + 1
        found = {role: self._ids_of(role, special or {}) for role in NAMES}
        self.pad, self.begin, self.end, self.unknown = (next(iter(each), None) for each in found.values())
        self.ends = found["end"]  # of some models several tokens end a text; `end` is the first
        self.elsewhere = special is not None
        if not self.elsewhere and [self.pad, self.begin, self.end, self.unknown] == [0, 1, 2, 3]:
            # In our own vocabularies a text that says "<end>" is a text and ends nothing.
            self.tokenizer.encode_special_tokens = True

    @classmethod
    def train(cls, texts: Iterable[str], kind: str = "bpe", *, vocab: int = 8000, lower: bool = False) -> Text:
        """A vocabulary of at most `vocab` tokens from texts, which are read once; the same texts give the same one."""
        if kind not in KINDS:
            raise SaccadeError(f"there is no kind of text {kind!r}; {nearest(kind, KINDS)}")
        tokenizer, trainer = KINDS[kind](vocab)
        if lower:
            own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
            tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
        letters: set[str] = set()
        tokenizer.train_from_iterator(_gathering(texts, letters), trainer)
        if not letters:
            raise SaccadeError(
                "there is no text to make a vocabulary from: every text of the training split is empty, or all are in "
                "the validation split (data.share)"
            )
        if len(letters) == 1 or tokenizer.get_vocab_size() - len(SPECIAL) < 2:
            raise SaccadeError(f"the texts have only one symbol ({min(letters)!r}...): there is nothing to learn")
        return cls(tokenizer)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without begin and end."""
        for text in texts:
            if not isinstance(text, str):  # the library would take a list of words for one text
                raise SaccadeError(f"a text was expected, not {text!r:.40}")
        try:
            found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            raise SaccadeError("a text holds half a character (an unpaired surrogate) and cannot be read") from None
        return [each.ids for each in found]

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """What a tokenizer from elsewhere puts before and behind a text; nothing, if it was made here."""
        if not self.elsewhere:
            return [], []
        found = self.tokenizer.encode("a")
        inside = [place for place, added in enumerate(found.special_tokens_mask) if not added]
        return (found.ids[: inside[0]], found.ids[inside[-1] + 1 :]) if inside else ([], [])

    def framed(self, tokens: list[int]) -> list[int]:
        """The tokens of a text inside the `frame`."""
        before, behind = self.frame
        return [*before, *tokens, *behind]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; special ones are left out, bytes that are not UTF-8 become the replacement character."""
        return self.tokenizer.decode(self._checked(ids), skip_special_tokens=True)

    @cached_property
    def manner(self) -> str | None:
        """How tokens become a text. "bytes": their bytes side by side; a character may be split between them.
        "pieces": a token writes the same after any other, but bytes by name such as <0xC3> <0xA9> are read together.
        "words": with a space between them, except around punctuation. None: by a decoder that is not understood here.
        """
        names = "".join(f"{step['type']} " for step in self._steps)
        if names == "ByteLevel ":
            return "bytes"
        if names == "WordPiece Fuse Replace " and self._steps[-1]["pattern"] == {"Regex": _superfluous_spaces()}:
            return "words"
        known = re.fullmatch("((Metaspace|WordPiece|Replace) )*(ByteFallback )?(Fuse (Strip )?)?", names)
        return "pieces" if known and all(map(_is_local, self._steps)) else None

    @cached_property
    def mask(self) -> int | None:
        """The token that stands for a blank, where the vocabulary has one."""
        added = {token.content: number for number, token in self.tokenizer.get_added_tokens_decoder().items()}
        return next((added[name] for name in BLANKS if name in added), None)

    @cached_property
    def lower(self) -> bool:
        """Whether capitals are read as small letters, and never written."""
        normalizer = self.tokenizer.normalizer
        return normalizer is not None and normalizer.normalize_str("A").endswith("a")

    @cached_property
    def silent(self) -> frozenset[int]:
        """The tokens that `decode` leaves out: special ones, and numbers that no token has."""
        special = {each for each, token in self.tokenizer.get_added_tokens_decoder().items() if token.special}
        return frozenset(special | (set(range(self.vocab)) - set(self.tokenizer.get_vocab().values())))

    @cached_property
    def merges(self) -> list[tuple[int, tuple[int, int]]]:
        """Of byte pair encoding: each merged token with the two it is made of, in the order of merging."""
        model, ids = json.loads(self.tokenizer.to_str())["model"], self.tokenizer.get_vocab()
        inside = model.get("continuing_subword_prefix") or ""  # how a piece begins that is not the first of a word
        named = [(a + b.removeprefix(inside), a, b) for a, b in model.get("merges", ())]
        return [(ids[made], (ids[a], ids[b])) for made, a, b in named if {made, a, b} <= ids.keys()]

    def is_byte(self, token: int) -> bool:
        """Whether a token is a byte by name, such as <0xC3>."""
        return re.fullmatch("<0x[0-9A-Fa-f]{2}>", self.tokenizer.id_to_token(token) or "") is not None

    def spell(self, token: int, *, first: bool = False) -> bytes:
        """The bytes that a token writes after others, or as the first of a text; perhaps half a character.

        A word comes with the space before it, also where `decode` would drop it around punctuation.
        """
        self._checked([token])
        if token in self.silent:
            return b""
        name = self.tokenizer.id_to_token(token) or ""
        if self.manner is None:
            raise SaccadeError("what a single token writes cannot be known: its tokenizer decodes in a way of its own")
        if self.manner == "bytes":
            codes = [_byte_letters().get(each, -1) for each in name]
            return name.encode() if -1 in codes else bytes(codes)
        decoder = self.tokenizer.decoder
        if self.manner == "words" or decoder is None:
            return name.encode() if first else f" {name}".encode()
        if self.is_byte(token) and any(step["type"] == "ByteFallback" for step in self._steps) and name[3] > "7":
            return bytes.fromhex(name[3:5])
        before = [] if first else ["\ue000"]  # a private character, which no decoder treats in a special way
        return decoder.decode([*before, name])[len(before) :].encode()

    @cached_property
    def _steps(self) -> list[dict[str, Any]]:
        """The steps of the tokenizer's decoder, in order."""
        decoder = json.loads(self.tokenizer.to_str())["decoder"]
        if decoder is None:
            return []
        return decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]

    def to_bytes(self) -> bytes:
        """The tokenizer.json of this vocabulary; the same vocabulary gives the same bytes."""
        return self.tokenizer.to_str().encode()

    @classmethod
    def from_bytes(cls, content: bytes, special: Mapping[str, Sequence[int]] | None = None) -> Text:
        """The vocabulary in a tokenizer.json, by `to_bytes` or from elsewhere."""
        try:
            return cls(Tokenizer.from_str(content.decode()), special)
        except Exception as problem:  # the library raises nothing narrower
            raise SaccadeError(f"this is no tokenizer.json: {problem}") from None

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Text:
        """The vocabulary among the files of a run; special.json: {"pad": [0], "begin": ..., "end": ...}."""
        if TOKENIZER not in files:
            raise SaccadeError(f"there is no {TOKENIZER}: without its tokenizer a model cannot read text")
        special = json.loads(files[SPECIAL_FILE]) if SPECIAL_FILE in files else None
        return cls.from_bytes(files[TOKENIZER], special)

    def _ids_of(self, role: str, special: Mapping[str, Sequence[int]]) -> list[int]:
        """The ids of a role: those in `special` that the vocabulary has, else the one found by its name, if any."""
        given = [each for each in special.get(role, ()) if 0 <= each < self.vocab]
        named = _special(self.tokenizer, role)
        return given or ([] if named is None else [named])

    def _checked(self, ids: Iterable[int]) -> list[int]:
        """The ids as a list; refuses those that the vocabulary does not have."""
        found = [int(each) for each in ids]
        for each in found:
            if not 0 <= each < self.vocab:
                raise SaccadeError(f"there is no token {each}: the vocabulary has {self.vocab}")
        return found


def _special(tokenizer: Tokenizer, role: str) -> int | None:
    """The id of a special token by the names it may have; the unknown one may be named by the tokenizer's model."""
    names = list(NAMES[role])
    if role == "unknown":
        names += [name for name in [getattr(tokenizer.model, "unk_token", None)] if name]
        return next((each for each in map(tokenizer.token_to_id, names) if each is not None), None)
    added = {token.content: number for number, token in tokenizer.get_added_tokens_decoder().items()}
    return next((added[name] for name in names if name in added), None)


def _is_local(step: dict[str, Any]) -> bool:
    """Whether what this step of a decoder does to a token depends on that token alone, and on whether it is first."""
    if step["type"] == "Strip":
        return bool(step["start"] <= 1 and step["stop"] == 0)
    return step["type"] != "Replace" or ("String" in step["pattern"] and step["content"] != "")


@cache
def _byte_letters() -> dict[str, int]:
    """The letters that stand for bytes (Radford et al. 2019): themselves where they print, the others from 256 on."""
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = sorted(set(range(BYTES)) - set(printed))
    return {chr(each): each for each in printed} | {chr(BYTES + n): each for n, each in enumerate(others)}


def _gathering(texts: Iterable[str], letters: set[str]) -> Iterator[str]:
    """The texts as they pass by; their letters are gathered in `letters` until there are two."""
    for text in texts:
        if len(letters) < 2:
            letters.update(text)
        yield text


def _bpe(vocab: int) -> tuple[Tokenizer, trainers.Trainer]:
    least = len(SPECIAL) + BYTES
    if vocab < least:
        raise SaccadeError(f"a vocabulary of {vocab} is too small for bpe: {least} hold the bytes and special tokens")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = cuts.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(cuts.ByteLevel.alphabet())
    return tokenizer, trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )


def _word_level(vocab: int, cut: Any, decoder: Any) -> tuple[Tokenizer, trainers.Trainer]:
    """A vocabulary of the commonest pieces that a cut gives, whole words or letters."""
    if vocab < len(SPECIAL) + 2:
        raise SaccadeError(f"a vocabulary of {vocab} has no room: {len(SPECIAL)} tokens are special")
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unknown>"))
    tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoder
    return tokenizer, trainers.WordLevelTrainer(vocab_size=vocab, special_tokens=SPECIAL, show_progress=False)


def _characters(vocab: int) -> tuple[Tokenizer, trainers.Trainer]:
    return _word_level(vocab, cuts.Split(Regex(r"(?m:.)"), "isolated"), decoders.Fuse())


def _words(vocab: int) -> tuple[Tokenizer, trainers.Trainer]:
    return _word_level(
        vocab,
        cuts.Whitespace(),
        decoders.Sequence([*_with_spaces(), decoders.Replace(Regex(_superfluous_spaces()), "")]),
    )


def _split(vocab: int) -> tuple[Tokenizer, trainers.Trainer]:
    tokenizer, trainer = _word_level(vocab, cuts.WhitespaceSplit(), decoders.Sequence(_with_spaces()))
    # A word of the text that looks like one of our special tokens is taken apart: "<end>" becomes "< end>".
    names = "|".join(name.strip("<>") for name in SPECIAL)
    tokenizer.normalizer = normalizers.Replace(Regex(f"<(?=(?:{names})>)"), "< ")
    return tokenizer, trainer


def _with_spaces() -> list[Any]:
    """Tokens with a space between them: the decoder of word pieces, with a mark of continuation that no text has."""
    return [decoders.WordPiece(prefix="\U0010ffff", cleanup=False), decoders.Fuse()]


def _superfluous_spaces() -> str:
    """The spaces that do not belong there: before a comma, after a bracket, in don't, l'eau, well-known, 3.5."""
    quote, suffix, prefix = "['\u2019]", r"(?:s|t|m|d|re|ve|ll)\b", r"\b[cdjlmnstCDJLMNST]"
    return "|".join(
        [
            r" (?=[.,;:!?%)\]}…»”])",
            r"(?<=[(\[{«“¿¡]) ",
            rf"(?<=\w) (?={quote} {suffix})",
            rf"(?<=\w {quote}) (?={suffix})",
            rf"(?<={prefix}) (?={quote} \w)",
            rf"(?<={prefix} {quote}) (?=\w)",
            r"(?<=\w) (?=- \w)",
            r"(?<=\w -) (?=\w)",
            r"(?<=\d \.) (?=\d)",
        ]
    )


# `split` cuts at spaces alone: for texts that somebody has tokenised already, such as wikitext.
KINDS: dict[str, Callable[[int], tuple[Tokenizer, trainers.Trainer]]] = {
    "characters": _characters,
    "words": _words,
    "split": _split,
    "bpe": _bpe,
}
