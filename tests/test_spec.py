"""The grammar: what is read, what is refused and how, and that nothing is ever executed."""

import inspect
import re
from contextlib import suppress
from functools import partial

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

import saccade
from saccade import SaccadeError, spec
from saccade.attend.mask import MASKS, as_mask
from saccade.attend.normaliser import NORMALISERS, as_normaliser
from saccade.attend.position import POSITIONS, as_position
from saccade.attend.score import SCORES, as_score

READERS = {
    "mask": as_mask,
    "normaliser": as_normaliser,
    "score": as_score,
    "score in a layer": partial(as_score, width=6, heads=3),
    "position": as_position,
    "position in a layer": partial(as_position, head_width=6, heads=3, input_width=17),
}
TABLES = {"mask": MASKS, "normaliser": NORMALISERS, "score": SCORES, "position": POSITIONS}


class Term(str):
    """Writes down how operators bind."""

    def __and__(self, other):
        return Term(f"({self} & {other})")

    def __or__(self, other):
        return Term(f"({self} | {other})")

    def __invert__(self):
        return Term(f"~{self}")


LETTERS = {"a": lambda: Term("a"), "b": lambda: Term("b"), "c": lambda: Term("c")}
BOUND = {"a | b & ~c": "(a | (b & ~c))", "(a | b) & c": "((a | b) & c)", "~(a | b) | c": "(~(a | b) | c)"}
PLAIN = {"a": "a", " a ( ) ": "a", "\na # a remark": "a", "a & b & c": "((a & b) & c)", "~~a": "~~a"}


@pytest.mark.parametrize(("text", "bound"), (BOUND | PLAIN).items())
def test_operators_bind_as_in_python(text, bound):
    assert spec.read(text, LETTERS, "letter") == bound


NUMBERS = {"3": 3, "-3": -3, "1_000": 1000, "0.5": 0.5, "-1e-3": -0.001}
OTHERS = {"True": True, "None": None, "'a b'": "a b", "favor": "favor", "[1, (2, x), []]": (1, (2, "x"), ())}


@pytest.mark.parametrize(("written", "value"), (NUMBERS | OTHERS).items())
def test_arguments_are_plain_values(written, value):
    table = {"keep": lambda *args, **named: (args, named)}
    args, named = spec.read(f"keep({written}, key={written})", table, "thing")
    assert (args, named) == ((value,), {"key": value})
    assert type(args[0]) is type(value)


def test_given_values_go_only_to_who_asks():
    table = {"asks": lambda n, *, width: (n, width), "does_not": lambda n: n}
    assert spec.read("asks(2)", table, "thing", width=7, heads=5) == (2, 7)
    assert spec.read("does_not(2)", table, "thing", width=7) == 2


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("mask", "casual", r"^no mask is called 'casual'; did you mean 'causal'\?$"),
        ("mask", "causal & windw(3)", r"^no mask is called 'windw'; did you mean 'window' or 'windows'\?$"),
        ("mask", "qqqq", "^no mask is called 'qqqq'; there are: " + ", ".join(sorted(MASKS)) + "$"),
        ("normaliser", "sofmax", "^no normaliser is called 'sofmax'; did you mean 'softmax'"),
        ("score", "cosin(3)", r"^no score is called 'cosin'; did you mean 'cosine'\?$"),
        ("score", "aditive", r"^no score is called 'aditive'; did you mean 'additive'\?$"),
        ("position", "rotery", r"^no position is called 'rotery'; did you mean 'rotary'\?$"),
        ("position in a layer", "relativ(3)", r"^no position is called 'relativ'; did you mean 'relative'\?$"),
    ],
)
def test_a_typo_answers_with_the_nearest_names(kind, text, message):
    with pytest.raises(SaccadeError, match=message):
        READERS[kind](text)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("mask", "window", r"^mask window: missing a required argument: 'n'; it is written window\(n\)$"),
        ("mask", "window(1, 2)", r"^mask window: too many positional arguments; it is written window\(n\)$"),
        ("mask", "causal(3)", r"it is written causal\(\)$"),
        ("mask", "order([0], tight=True)", r"argument 'tight'; it is written order\(permutation, strict=False\)$"),
        ("mask", "window(n=1, n=2)", r"^cannot read .* 'n' .*twice|repeated"),
        ("normaliser", "softmax(temperature=2)", r"'temperature'; it is written softmax\(beta=1\.0\)$"),
        ("score", "scaled_dot(1, 2)", r"it is written scaled_dot\(scale=None\)$"),
        # What the layer fills in is neither shown nor taken from the text.
        ("score in a layer", "bilinear(5)", r"it is written bilinear\(\)$"),
        ("score in a layer", "bilinear(width=5)", r"it is written bilinear\(\)$"),
        ("score in a layer", "gate(heads=1)", r"it is written gate\(\)$"),
        ("score in a layer", "additive(depth=5)", r"it is written additive\(hidden=None, activation='tanh'\)$"),
        ("position in a layer", "relative", r"'distance'; it is written relative\(distance"),
        ("position in a layer", "t5(heads=5)", r"it is written t5\(buckets=32, distance=128, bidirectional=True\)$"),
        ("position in a layer", "xl(input_width=x)", r"it is written xl\(segments=False, layout='interleaved'\)$"),
    ],
)
def test_wrong_arguments_show_how_it_is_written(kind, text, message):
    with pytest.raises(SaccadeError, match=message):
        READERS[kind](text)


@pytest.mark.parametrize("text", ["normaliser: softmax & hard", "score: ~dot", "position: rotary | alibi"])
def test_only_masks_combine(text):
    kind, text = text.split(": ")
    with pytest.raises(SaccadeError, match=re.escape(f"a {kind} cannot be combined with '&', '|' or '~': '{text}'")):
        READERS[kind](text)


@pytest.mark.parametrize("other", [3, 2.5, ["causal"], object()])
def test_a_mask_combines_with_masks_alone(other):
    for combine in (lambda: saccade.causal & other, lambda: saccade.causal | other, lambda: other & saccade.causal):
        with pytest.raises(SaccadeError, match=f"^mask is a Mask, .* not {type(other).__name__}$"):
            combine()


CALL = "__import__('pathlib').Path('{canary}').touch()"
HOSTILE = [
    *("{x}", "window({x})", "window(n={x})", "causal & {x}", "(lambda: {x})()", "lambda: {x}", "[{x} for _ in 'a']"),
    *("window([{x} for _ in 'a'])", "window(({x} for _ in 'a'))", 'f"{{{x}}}"', 'window(f"{{{x}}}")', "(a := {x})"),
    *("window(a := {x})", "window(*{x})", "window(**{x})", "window(*[3])", "window(**{{'n': 3}})", "window([*{x}])"),
    *("causal if {x} else causal", "causal and {x}", "{x} or causal", "not causal", "causal < {x}", "causal[{x}]"),
    *("causal.__class__", "causal.__init__.__globals__", "window(3).n", "window(causal.n)", "causal()()"),
    *("'causal'", "3", "None", "...", "[causal]", "(causal, causal)", "{{causal}}", "{{1: causal}}", "causal + causal"),
    *("causal ^ causal", "-causal", "window(1 + 1)", "window(-'a')", "window(--1)", "window(~1)", "window(not 1)"),
    *(
        "window({{1}})",
        "window({{1: 2}})",
        "window(b'a')",
        "window(3j)",
        "window(...)",
        "window(window(3))",
        "\0",
        "\\",
    ),
    *("import os", "causal; causal", "causal = 3", "causal causal", "yield 3", "await causal", "", " ", "#", "3window"),
    *("window(", "window)", "causal &", "& causal", "'\ud800'", "window(3", "win dow(3)", "window(3)(4)", "causal,"),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_else_is_read_and_nothing_is_executed(hostile, tmp_path):
    canary = tmp_path / "executed"
    text = hostile.format(x=CALL.format(canary=canary))
    with pytest.raises(SaccadeError, match=r"^cannot read"):
        as_mask(text)
    assert not canary.exists()


def test_long_input():
    assert spec.read("a" + " " * 999, LETTERS, "letter") == "a"
    with pytest.raises(SaccadeError, match=r"^this mask has 1001 characters; a spec has at most 1000$"):
        as_mask("causal" + " " * 995)


def test_deep_input():
    assert spec.read(" & ".join("a" * 41), LETTERS, "letter").count("a") == 41
    assert spec.read("~" * 40 + "a", LETTERS, "letter") == "~" * 40 + "a"
    for deep in ("~" * 41 + "a", " & ".join("a" * 42), " | ".join("a" * 200), "(a | " * 41 + "a" + ")" * 41):
        with pytest.raises(SaccadeError, match=r"^the letter is nested more than 40 deep$"):
            spec.read(deep, LETTERS, "letter")


NESTED = [
    *("~" * 990 + "a", "-" * 990 + "1", "not " * 240 + "a", "(" * 990, "(" * 90 + "a" + ",)" * 90, "a" + ".a" * 490),
    *("a" + "()" * 490, "a" + "[0]" * 320, "a" + "+a" * 490, "a(" * 320 + ")" * 320, "lambda:" * 140 + "a"),
    *(f"a({deep})" for deep in ("[" * 190 + "]" * 190, "-" * 990 + "1", "x" + ".a" * 490, "x" + "+x" * 490)),
]


@pytest.mark.parametrize("text", NESTED, ids=[text[:10] for text in NESTED])
def test_nesting_never_breaks_the_parser(text):
    with pytest.raises(SaccadeError):
        spec.read(text[:1000], LETTERS, "letter")


def names(kind):
    """Every name of a table, and every argument that something in it takes."""
    table = TABLES[kind.split()[0]]
    keys = {key for factory in table.values() for key in inspect.signature(factory).parameters}
    return sorted(table), sorted(keys)


@st.composite
def specs(draw, kind):
    """Text that is nearly a spec: real names, arbitrary arguments, then a few characters lost, added or changed.

    Numbers stay small: a table of 10^9 vectors is honest input, and no test should allocate it.
    """
    called, keys = names(kind)
    value = st.recursive(
        st.sampled_from(
            ["0", "1", "2", "3", "-1", "7", "0.5", "1e999", "True", "False", "None", "'a'", "left", "half"]
        ),
        lambda inner: st.lists(inner, max_size=3).map(lambda each: "[" + ", ".join(each) + "]"),
        max_leaves=5,
    )
    argument = st.one_of(value, st.builds("{}={}".format, st.sampled_from(keys), value))
    call = st.builds(
        lambda name, args: f"{name}({', '.join(args)})" if args else name,
        st.sampled_from(called),
        st.lists(argument, max_size=4),
    )
    term = st.one_of(call, call.map("~{}".format), st.builds("({} | {})".format, call, call))
    text = draw(st.one_of(call, st.lists(term, min_size=1, max_size=3).map(" & ".join)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at] + draw(st.sampled_from([*"()[],=~&|-.*: '\"ab\\\n", ""])) + text[at + draw(st.integers(0, 1)) :]
        )
    return text


@pytest.mark.parametrize("kind", READERS)
def test_nearly_specs_are_read_or_refused(kind):
    @examples(250)
    @given(specs(kind))
    def check(text):
        with suppress(SaccadeError):
            read = READERS[kind](text)
            if kind == "mask":
                read(3, 5)

    check()


@examples(200)
@given(st.one_of(st.text(), st.text("causlwindo()[]~&|,=-.*:'\"0123 {}\\\n#", max_size=60)))
@example("window(3)\\")
@example("window('\\d')")
def test_any_text_is_read_or_refused(text):
    for read in READERS.values():
        with suppress(SaccadeError):
            read(text)
