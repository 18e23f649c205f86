"""Constraints: what is allowed, by brute force against Python's own `re`."""

from __future__ import annotations

import itertools
import random
import re

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from saccade.decode.constraint import Constraint, matching, only
from saccade.error import SaccadeError
from saccade.field.text.text import Text


def text(tokens: list[str], decoder: object = None) -> Text:
    """A vocabulary of just these tokens, and an end (0)."""
    vocab = {each: number for number, each in enumerate(["<end>", "<pad>", "<unknown>", *tokens])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unknown>"))
    tokenizer.add_special_tokens(["<end>", "<pad>"])
    tokenizer.decoder = decoder or decoders.Fuse()
    return Text(tokenizer)


def llama(tokens: list[str]) -> Text:
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return text(tokens, decoders.Sequence(steps))


# GPT-2's letters for the two bytes of é are Ã and ©, for the space Ġ.
FIELDS = {
    "characters": text(["a", "b", "é", "\n"]),
    "longer": text(["a", "ab", "bab", "éa"]),
    "bytes": text(["a", "b", "Ã", "©", "©Ã"], decoders.ByteLevel()),
    "words": text(["a", "ab", "é"], decoders.WordPiece(cleanup=False)),
    "llama": llama(["▁", "▁a", "a", "<0xC3>", "<0xA9>"]),
    "metaspace": text(["▁a", "a▁b", "é"], decoders.Metaspace()),
}
LENGTH = 5
PATTERNS = [
    *["a", "", "a|ab", "(a|ab)(b|)", "a*?b", "(?:ab)*", "é+", "[^a]*", "[é-ü]b?", ".", "(?s).{2}", ".*a", "(a*)*b"],
    *[
        "((a|b)b)+",
        "a{2}",
        "a{,2}",
        "a{1,}b",
        "a{2,3}?",
        r"\w+",
        r"\W|a",
        r"\xe9",
        r"[\xe9\n]+",
        "(?i)É|A+",
        "^a$|^b+$",
    ],
    *["(?P<x>a)b|é", r"\Aa.\Z", "a a|a é", "( ?a)+", "a b.*", "(é|)(a|)", "[]a]", "[^]b]+", "a||b", "(a|b){0}", "ab é"],
    *[r"\s*a", "a{0,4}é"],
]


def fits(field: Text, pattern: str) -> dict[tuple[int, ...], bool]:
    """For all short sequences without special tokens, whether their text is UTF-8 and matches."""
    tokens = range(3, field.vocab)
    every = [each for length in range(LENGTH + 1) for each in itertools.product(tokens, repeat=length)]
    texts = zip(every, field.tokenizer.decode_batch([list(each) for each in every]), strict=True)
    return {each: "\ufffd" not in text and bool(re.fullmatch(pattern, text)) for each, text in texts}


@pytest.mark.parametrize("name", FIELDS)
def test_exactly_what_can_be_completed_is_allowed(name):
    field = FIELDS[name]
    for pattern in PATTERNS:
        expected = fits(field, pattern)
        completed = {each[:length] for each, fit in expected.items() if fit for length in range(len(each) + 1)}
        if not completed:
            continue
        constraint = matching(pattern, field)
        states = {(): constraint.start()}
        for sequence, fit in expected.items():
            if sequence not in states or len(sequence) == LENGTH:
                continue
            allowed = constraint.allowed(states[sequence])
            assert allowed.dtype is torch.bool
            assert allowed[:3].tolist() == [fit, False, False], (pattern, sequence)
            for token in range(3, field.vocab):
                longer = (*sequence, token)
                # Long ones may be completed beyond what was tried; none is forbidden that could be.
                if longer in completed:
                    assert allowed[token], (pattern, longer)
                elif len(sequence) <= 1:
                    assert not allowed[token], (pattern, longer)
                if allowed[token]:
                    states[longer] = constraint.advance(states[sequence], token)


def test_a_vocabulary_that_lacks_a_letter_never_walks_into_a_blind_alley():
    constraint = matching("ac|b|a[ab]*d", text(["a", "b"]))
    assert constraint.allowed(constraint.start()).tolist() == [False, False, False, False, True]


KINDS = {
    "bpe": Text.train(["The eye jumps: é ü 漢字 🙂 2024-01-31, yes no maybe"] * 3, "bpe", vocab=320),
    "characters": Text.train(["The eye jumps: é ü 漢字 🙂 2024-01-31, yes no maybe"], "characters"),
    "words": Text.train(["yes no maybe the eye é 漢字 2024 01 31"] * 2, "words"),
    "llama": llama([*(f"<0x{code:02X}>" for code in range(256)), "▁yes", "▁no", "20", "é", "漢"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_ends_in_a_text_that_matches(kind):
    field, walk = KINDS[kind], random.Random(7)
    for pattern in [r"(?:yes|no|maybe)", r"\w{1,3}( \w{1,3})?", r"[^a-z]{2,5}", r"(é|漢|🙂| )*", r"(\d+[ -])*\d\d"]:
        constraint = matching(pattern, field)
        for _ in range(23):
            state, tokens = constraint.start(), []
            while not tokens or tokens[-1] != field.end:
                allowed = constraint.allowed(state).nonzero().squeeze(1).tolist()
                ends = field.end in allowed and len(tokens) > 3
                tokens.append(field.end if ends else walk.choice(allowed))
                state = constraint.advance(state, tokens[-1])
            assert re.fullmatch(pattern, field.decode(tokens)), (pattern, field.decode(tokens))
            assert constraint.allowed(state).nonzero().tolist() == [[field.end]], "after the end there is the end alone"


@pytest.mark.filterwarnings("ignore:Possible")
@examples(150)
@given(st.from_regex(r"([a-c]|\.|[|]|\([ab]|\)|[*+?]|\{\d?,?\d?\}|\[\^?[]a-c-]*\]){0,9}", fullmatch=True), st.data())
def test_any_pattern_is_read_as_python_reads_it(pattern, data):
    field = text(["a", "b", "c", "]", "{"])
    try:
        expected = re.compile(pattern)
    except re.error:
        with pytest.raises(SaccadeError, match="cannot be read"):
            matching(pattern, field)
        return
    try:
        constraint = matching(pattern, field)
    except SaccadeError:
        short = ["".join(each) for length in range(4) for each in itertools.product("abc]{", repeat=length)]
        keeps = re.search(r"[*+?}]\+", pattern)  # what it took, and gives nothing back
        assert keeps or not any(map(expected.fullmatch, short))
        return
    state, tokens = constraint.start(), []
    for _ in range(7):
        allowed = constraint.allowed(state)
        assert bool(allowed[0]) == bool(expected.fullmatch(field.decode(tokens)))
        if not allowed[3:].any():
            break
        tokens.append(data.draw(st.sampled_from((allowed[3:].nonzero().squeeze(1) + 3).tolist())))
        state = constraint.advance(state, tokens[-1])


@pytest.mark.parametrize("atom", [r"\w", r"\W", r"\d", r"\s", ".", "[^\\Wé-ü]", "(?i)k", "(?a)\\w", "[[a]"])
@pytest.mark.filterwarnings("ignore:Possible")
def test_every_character_is_in_a_class_as_python_has_it(atom):
    letters = [chr(code) for code in [*range(0x700), *range(0x1F00, 0x2200), *range(0x1F600, 0x1F680), 0x10FFFF]]
    field = text(letters)
    allowed = matching(atom, field).allowed(matching(atom, field).start())
    pattern = re.compile(atom)
    assert allowed[3:].tolist() == [bool(pattern.fullmatch(letter)) for letter in letters]


def test_masks_are_made_once():
    constraint = matching("[ab]*", FIELDS["characters"])
    state = constraint.start()
    first = constraint.allowed(state)
    after = constraint.advance(constraint.advance(state, 3), 4)
    assert constraint.allowed(state) is first
    assert constraint.allowed(after) is first, "states that allow the same share the tensor"
    assert constraint.advance(state, 3) == constraint.advance(state, 3)


def test_the_models_vocabulary_may_be_larger():
    constraint = matching("a", FIELDS["characters"], vocab=11)
    assert constraint.allowed(constraint.start()).tolist() == [False] * 3 + [True] + [False] * 7


def test_only():
    constraint: Constraint = only([5, 2, 5], vocab=7)
    state = constraint.start()
    assert constraint.allowed(state).nonzero().squeeze(1).tolist() == [2, 5]
    assert constraint.allowed(constraint.advance(state, 2)) is constraint.allowed(state)
    with pytest.raises(SaccadeError, match="token 3 is not allowed"):
        constraint.advance(state, 3)
    with pytest.raises(SaccadeError, match="none are given"):
        only([], vocab=7)
    for wrong in (-1, 7):
        with pytest.raises(SaccadeError, match=f"{wrong} is outside"):
            only([1, wrong], vocab=7)


def test_words_have_a_space_between_them():
    field = Text.train(["yes , no"], "words")
    constraint = matching("yes , no", field)
    state = constraint.start()
    for token in field.encode(["yes, no"])[0]:
        state = constraint.advance(state, token)
    assert constraint.allowed(state)[field.end]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "cannot be read"),
        ("a**", "cannot be read"),
        ("\ud800", "cannot be read"),
        ("(" * 997 + ")" * 997, "cannot be read|inside one another"),
        *[
            (each, "cannot follow")
            for each in [r"(a)\1", "(?=a)a", r"a\b", "a$b", "a*+a", "(?i:a)", "(?x)a b", "(?>a)"]
        ],
        *[(each, "matches nothing") for each in ["c", "ac", "a[b]c|d"]],
        (r"[^\s\S]", "no character"),
        ("(?:a{300}){400}", "simpler"),
        ("(?:(?:){99999}){99999}", "simpler"),
    ],
)
def test_what_cannot_be_is_refused(pattern, why):
    with pytest.raises(SaccadeError, match=why):
        matching(pattern, FIELDS["characters"])


def test_vocabularies_that_cannot_be_known_are_refused():
    with pytest.raises(SaccadeError, match="way of its own"):
        matching("a", text(["a</w>"], decoders.BPEDecoder()))
    with pytest.raises(SaccadeError, match="no token for the end"):
        matching("a", Text(Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="b"))))
    with pytest.raises(SaccadeError, match="do not belong together"):
        matching("a", FIELDS["characters"], vocab=3)
    with pytest.raises(SaccadeError, match="token 4 is not allowed"):
        matching("a", FIELDS["characters"]).advance(2, 4)
