"""The grammar of spec strings: Python's call syntax over a closed table.

`"causal & window(64)"`, `"softmax(beta=2)"`, `"feature(favor, 256, seed=0)"`. The text is parsed with `ast` and
walked by hand; nothing is ever evaluated. The same text serves Python, TOML and the command line.

    expression := name | name(arguments) | ~ expression | expression & expression | expression "|" expression
    argument   := number | string | True | False | None | name (read as a string) | [arguments] | (arguments)

Where several are wanted, spaces stand between them: `"crop(2) flip"`.
"""

from __future__ import annotations

import ast
import copy
import inspect
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from saccade.error import SaccadeError, nearest

Table = Mapping[str, Callable[..., Any]]

LONGEST = 1000  # characters; keeps the parser's own recursion far from its limit
DEEPEST = 40

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_}


_cache: dict[tuple[str, str], Any] = {}  # what `recall` made, by kind and text
_brought: dict[str, Any] = {}  # the parts that `knowing` adds (a plain dictionary, since compiled code reads it too)


@contextmanager
def knowing(parts: Mapping[str, Any] | None) -> Iterator[None]:
    """While it lasts, every table knows these names too: a class is made anew wherever it is named, with the arguments
    written there; a module is copied; anything else (a function of q and k, a mask) is what the name means.
    """
    parts = dict(parts or {})
    for name in parts:
        if not name.isidentifier():
            raise SaccadeError(f"a part's name is one word, as Python's names are; got {name!r}")
    before = {name: _brought[name] for name in parts if name in _brought}
    _brought.update(parts)
    try:
        yield
    finally:  # these names alone: another thread may know others
        _brought.update(before)
        for name in parts.keys() - before.keys():
            _brought.pop(name, None)


def brought() -> dict[str, Any]:
    """The parts that `knowing` adds now, by name."""
    return dict(_brought)


def recall(text: str, table: Table, kind: str) -> Any:
    """The same as `read`, for objects without weights: the same text gives the same object."""
    if _brought:  # the same text may mean another part
        return read(text, table, kind)
    made = _cache.get((kind, text))
    if made is None:
        made = read(text, table, kind)
        if len(_cache) < 1000:
            _cache[kind, text] = made
    return made


def read(text: str, table: Table, kind: str, **given: Any) -> Any:
    """The object that `text` describes. `kind` names it in errors; `given` goes to every factory that asks for it."""
    return _walk(_parse(text, kind), text, table, kind, given, 0)


def sequence(text: str, table: Table, kind: str, **given: Any) -> list[Any]:
    """The objects that several calls describe, with spaces between them: `"crop(2) flip"`."""
    return [read(each, table, kind, **given) for each in calls(text, kind)]


def arguments(text: str, table: Table, kind: str) -> tuple[str, dict[str, Any]]:
    """The name of a single call and all its arguments, defaults written out: two texts that say the same are equal."""
    node = _parse(text, kind)
    match node:
        case ast.Name(id=name):
            values, named = (), {}
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            values = tuple(_literal(each, text, kind, 0) for each in args)
            named = {str(each.arg): _literal(each.value, text, kind, 0) for each in keywords}
        case _:
            raise SaccadeError(f"the {kind} {text!r} is no single name or call: write one, as in 'name(1, key=2)'")
    table = {**table, **_brought}
    if name not in table:
        raise SaccadeError(f"no {kind} is called {name!r}; {nearest(name, table)}")
    if name in _brought and not isinstance(_brought[name], type):
        return name, {}  # an object that was brought along takes no arguments
    try:
        bound = inspect.signature(table[name]).bind_partial(*values, **named)
    except TypeError as problem:
        raise SaccadeError(f"{kind} {name}: {problem}") from None
    bound.apply_defaults()
    return name, dict(bound.arguments)


def completed(text: str, table: Table, kind: str, **values: Any) -> str:
    """The text of the same single call with these arguments, and all defaults, written out."""
    name, found = arguments(text, table, kind)
    return f"{name}({', '.join(repr(each) for each in {**found, **values}.values())})"


def calls(text: str, kind: str) -> list[str]:
    """The text cut at the spaces that stand outside all brackets."""
    if len(text) > LONGEST:
        raise SaccadeError(f"this {kind} has {len(text)} characters; a spec has at most {LONGEST}")
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        found += [""] if letter.isspace() and not depth else []
        found[-1] += letter
    return [each.strip() for each in found if each.strip()]


def _parse(text: str, kind: str) -> ast.expr:
    if len(text) > LONGEST:
        raise SaccadeError(f"this {kind} has {len(text)} characters; a spec has at most {LONGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser's remarks on odd literals; odd literals are refused below
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SaccadeError(f"cannot read the {kind} {text!r}: write a name or a call, as in 'name(1, key=2)'") from None


def _walk(node: ast.expr, text: str, table: Table, kind: str, given: dict[str, Any], depth: int) -> Any:
    if depth > DEEPEST:
        raise SaccadeError(f"the {kind} is nested more than {DEEPEST} deep")
    match node:
        case ast.Name(id=name):
            return _make(name, (), {}, table, kind, given)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            _check_keywords(keywords, text, kind)
            values = tuple(_literal(each, text, kind, depth) for each in args)
            named = {str(each.arg): _literal(each.value, text, kind, depth) for each in keywords}
            return _make(name, values, named, table, kind, given)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            a = _walk(left, text, table, kind, given, depth + 1)
            b = _walk(right, text, table, kind, given, depth + 1)
            return _operate(OPERATORS[type(op)], (a, b), text, kind)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _operate(operator.invert, (_walk(operand, text, table, kind, given, depth + 1),), text, kind)
    raise SaccadeError(
        f"cannot read {_source(node, text)!r} in the {kind} {text!r}: only names, calls, '&', '|' and '~' are read"
    )


def _check_keywords(keywords: list[ast.keyword], text: str, kind: str) -> None:
    if any(each.arg is None for each in keywords):
        raise SaccadeError(f"cannot read the {kind} {text!r}: '**' has no meaning here")
    names = [str(each.arg) for each in keywords]
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise SaccadeError(f"cannot read the {kind} {text!r}: {twice[0]!r} is given twice")


def _operate(operate: Callable[..., Any], operands: tuple[Any, ...], text: str, kind: str) -> Any:
    try:
        return operate(*operands)
    except TypeError:
        raise SaccadeError(f"a {kind} cannot be combined with '&', '|' or '~': {text!r}") from None


def _literal(node: ast.expr, text: str, kind: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise SaccadeError(f"the {kind} is nested more than {DEEPEST} deep")
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_literal(each, text, kind, depth + 1) for each in elements)
    raise SaccadeError(
        f"cannot read the argument {_source(node, text)!r} in the {kind} {text!r}: arguments are plain values"
    )


def _source(node: ast.expr, text: str) -> str:
    return (ast.get_source_segment(text.strip(), node) or text)[:60]


def _make(
    name: str, args: tuple[Any, ...], named: dict[str, Any], table: Table, kind: str, given: dict[str, Any]
) -> Any:
    if name in _brought and not isinstance(_brought[name], type):
        return _make_brought(name, args, named, kind)
    table = {**table, **_brought}
    if name not in table:
        raise SaccadeError(f"no {kind} is called {name!r}; {nearest(name, table)}")
    factory = table[name]
    signature = inspect.signature(factory)
    known = {key: value for key, value in given.items() if key in signature.parameters}
    written = signature.replace(  # the arguments that are left for the text to give
        parameters=[
            each.replace(annotation=inspect.Parameter.empty)
            for key, each in signature.parameters.items()
            if key not in given
        ],
        return_annotation=inspect.Signature.empty,
    )
    filled = sorted(named.keys() & known.keys())
    try:
        if filled:
            raise TypeError(f"{filled[0]!r} is filled in by the layer")
        bound = written.bind(*args, **named)
        if known:
            args, named = (), {**_by_name(bound), **known}
        signature.bind(*args, **named)  # before the call, so that a TypeError of the factory itself is not hidden
    except TypeError as problem:
        raise SaccadeError(f"{kind} {name}: {problem}; it is written {name}{written}") from None
    return factory(*args, **named)


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments by name: where the layer fills in some, the places of the others in the signature have shifted."""
    names = [key for key, each in bound.signature.parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return {**dict(zip(names, bound.args, strict=False)), **bound.kwargs}


def _make_brought(name: str, args: tuple[Any, ...], named: dict[str, Any], kind: str) -> Any:
    """An object of `knowing`; one with weights is copied, so that each layer has its own."""
    if args or named:
        raise SaccadeError(f"the {kind} {name!r} was brought along as an object and takes no arguments; bring a class")
    part = _brought[name]
    return copy.deepcopy(part) if hasattr(part, "parameters") else part
