"""The small grammar of the house: Python's call syntax over a closed table.

`"causal & window(64)"`, `"softmax(beta=2)"`, `"feature(favor, 256, seed=0)"`. The text is parsed with `ast` and
walked by hand; nothing is ever evaluated. The same text serves Python, TOML and the command line.

    expression := name | name(arguments) | ~ expression | expression & expression | expression "|" expression
    argument   := number | string | True | False | None | name (read as a string) | [arguments] | (arguments)
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


_known: dict[tuple[str, str], Any] = {}
_own: dict[str, Any] = {}  # names that somebody brought along (a plain dictionary: compiled code reads it too)


@contextmanager
def knowing(parts: Mapping[str, Any] | None) -> Iterator[None]:
    """While it lasts, every table knows these names too: a class is made anew wherever it is named, with the arguments
    written there; a module is copied; anything else (a function of q and k, a mask) is what the name means.
    """
    for name in parts or {}:
        if not name.isidentifier():
            raise SaccadeError(f"a part's name is one word, as Python's names are; got {name!r}")
    before = dict(_own)
    _own.update(parts or {})
    try:
        yield
    finally:
        _own.clear()
        _own.update(before)


def recall(text: str, table: Table, kind: str) -> Any:
    """The same as `read`, for objects without weights: the same text gives the same object."""
    if _own:
        return read(text, table, kind)
    made = _known.get((kind, text))
    if made is None:
        made = read(text, table, kind)
        if len(_known) < 1000:
            _known[kind, text] = made
    return made


def read(text: str, table: Table, kind: str, **given: Any) -> Any:
    """The object that `text` describes. `kind` names it in errors; `given` goes to every factory that asks for it."""
    return _walk(_parse(text, kind), text, table, kind, given, 0)


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
            raise SaccadeError(f"the {kind} {text!r} is no single name or call")
    table = {**table, **_own}
    if name not in table:
        raise SaccadeError(f"no {kind} is called {name!r}; {nearest(name, table)}")
    if name in _own and not isinstance(_own[name], type):
        return name, {}  # as it is, and takes none
    try:
        bound = inspect.signature(table[name]).bind_partial(*values, **named)
    except TypeError as problem:
        raise SaccadeError(f"{kind} {name}: {problem}") from None
    bound.apply_defaults()
    return name, dict(bound.arguments)


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
            if any(each.arg is None for each in keywords):
                raise SaccadeError(f"cannot read the {kind} {text!r}: '**' has no meaning here")
            names = [str(each.arg) for each in keywords]
            if len(set(names)) < len(names):
                twice = next(each for each in names if names.count(each) > 1)
                raise SaccadeError(f"cannot read the {kind} {text!r}: {twice!r} is given twice")
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
        f"cannot read {_shown(node, text)!r} in the {kind} {text!r}: only names, calls, '&', '|' and '~' are read"
    )


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
        f"cannot read the argument {_shown(node, text)!r} in the {kind} {text!r}: arguments are plain values"
    )


def _shown(node: ast.expr, text: str) -> str:
    return (ast.get_source_segment(text.strip(), node) or text)[:60]


def _make(
    name: str, args: tuple[Any, ...], named: dict[str, Any], table: Table, kind: str, given: dict[str, Any]
) -> Any:
    if name in _own and not isinstance(_own[name], type):
        return _brought(name, args, named, kind)
    table = {**table, **_own}
    if name not in table:
        raise SaccadeError(f"no {kind} is called {name!r}; {nearest(name, table)}")
    factory = table[name]
    signature = inspect.signature(factory)
    known = {key: value for key, value in given.items() if key in signature.parameters}
    written = signature.replace(  # what is left for the text to say
        parameters=[
            each.replace(annotation=inspect.Parameter.empty)
            for key, each in signature.parameters.items()
            if key not in given
        ],
        return_annotation=inspect.Signature.empty,
    )
    try:
        for key in sorted(named.keys() & known.keys()):
            raise TypeError(f"{key!r} is filled in by the layer")
        bound = written.bind(*args, **named)
        signature.bind(*([] if known else args), **(_by_name(bound) if known else named), **known)
    except TypeError as problem:
        raise SaccadeError(f"{kind} {name}: {problem}; it is written {name}{written}") from None
    return factory(**_by_name(bound), **known) if known else factory(*args, **named)


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments by their names, so that the places of those that the layer fills in do not count."""
    names = [key for key, each in bound.signature.parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return {**dict(zip(names, bound.args, strict=False)), **bound.kwargs}


def _brought(name: str, args: tuple[Any, ...], named: dict[str, Any], kind: str) -> Any:
    """An object that was brought along, copied where it has weights."""
    if args or named:
        raise SaccadeError(f"the {kind} {name!r} was brought along as it is and takes no arguments; bring a class")
    part = _own[name]
    return copy.deepcopy(part) if hasattr(part, "parameters") else part
