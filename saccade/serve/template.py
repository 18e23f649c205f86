"""`Template`: how a chat becomes a text, by the template that a checkpoint brought.

It is a program by somebody else: it runs in jinja2's sandbox, for a bounded time, and its output is bounded too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from jinja2.visitor import NodeTransformer

from saccade.error import SaccadeError
from saccade.serve.refusal import Refusal

LONGEST = 1 << 20  # characters that a template may make
INDENT = 16  # spaces of JSON's indent
# Filters and methods that make much out of little; no template of a chat needs them.
GREEDY_FILTERS = ("center", "format", "indent", "wordwrap", "urlize", "pprint", "xmlattr", "random", "replace", "batch")
GREEDY_METHODS = ("center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "translate")


class Bounded(ImmutableSandboxedEnvironment):
    """The sandbox, without the operations that fill the memory in one step."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Texts that are put together by ~, which is no operator to jinja2, are joined by our own `join`."""
        made: nodes.Template = _Joining().visit(super()._parse(source, name, filename))
        return made

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Products and sums of bounded size."""
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise SecurityError(f"a template may not use {operator} here")
        if operator == "*":
            sizes = [len(each) if hasattr(each, "__len__") else abs(each) for each in (left, right)]
            if sizes[0] * sizes[1] > LONGEST:
                raise SecurityError("a template may not make anything that large")
        if operator == "+" and hasattr(left, "__len__") and len(left) > LONGEST:
            raise SecurityError("a template may not make anything that large")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Methods of texts, but for those whose results may be far larger than what they are given."""
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if isinstance(owner, str):
            if name in GREEDY_METHODS:
                raise SecurityError(f"a template may not use {name} here")
            if name == "replace":
                function = partial(_replaced, owner)
            elif name == "join":
                function = partial(_joined, owner)
        return super().call(context, function, *args, **kwargs)


class _Joining(NodeTransformer):
    """a ~ b -> [a, b] | join."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        parts = nodes.List([self.visit(each) for each in node.nodes])
        return nodes.Filter(parts, "join", [], [], None, None, lineno=node.lineno)


class Template:
    """How a chat becomes a text: the template of a checkpoint, and the special tokens that it names."""

    def __init__(self, source: str, tokens: Mapping[str, str], seconds: float) -> None:
        self._tokens, self._seconds = dict(tokens), seconds
        self.end = self._tokens.get("eos_token")
        made = Bounded(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        made.filters |= {name: partial(_greedy, name) for name in GREEDY_FILTERS}
        made.filters |= {"tojson": _tojson, "replace": _replaced, "join": lambda parts, by="": _joined(by, parts)}
        made.globals |= {"raise_exception": _refuse, "strftime_now": time.strftime}
        try:
            self._template = made.from_string(source)
        except (TemplateError, RecursionError) as problem:
            raise SaccadeError(f"the chat template cannot be read: {problem}") from None

    def render(self, messages: list[dict[str, str]]) -> str:
        """The text that the model goes on from; a template that refuses, or takes too long, is answered with 400."""
        context = {"messages": messages, "add_generation_prompt": True, **self._tokens}
        try:
            with _deadline(self._seconds):
                pieces: list[str] = []
                length = 0
                for piece in self._template.generate(context):
                    length += len(piece)
                    if length > LONGEST:
                        raise SecurityError("the chat becomes too long a text")
                    pieces.append(piece)
                return "".join(pieces)
        except TimeoutError:
            raise Refusal(400, "the chat template took too long for these messages", "messages") from None
        except Exception as problem:  # whatever the template does wrong with these messages
            raise Refusal(400, f"the chat template refuses these messages: {problem}", "messages") from None


class _deadline:
    """Ends whatever this thread computes after some seconds: every line of the template's code looks at the clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        end = time.monotonic() + self._seconds

        def look(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            if time.monotonic() > end:
                raise TimeoutError
            return look

        self._before = sys.gettrace()
        sys.settrace(look)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


def template_of(files: Mapping[str, bytes], seconds: float) -> Template | None:
    """The chat template among a run's files, if there is one."""
    try:
        config = json.loads(files.get("tokenizer_config.json", b"{}"))
    except ValueError:
        config = {}
    config = config if isinstance(config, dict) else {}
    source = files["chat_template.jinja"].decode() if "chat_template.jinja" in files else config.get("chat_template")
    if isinstance(source, list):  # several, by their names
        named = {each.get("name"): each.get("template") for each in source if isinstance(each, dict)}
        source = named.get("default")
    if not isinstance(source, str):
        return None
    tokens = {name: _content(value) for name, value in config.items() if name.endswith("_token")}
    return Template(source, {name: value for name, value in tokens.items() if value is not None}, seconds)


def _content(token: Any) -> str | None:
    """A special token, which configurations write as a text or as an object."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None


def _greedy(name: str, *_: Any, **__: Any) -> NoReturn:
    raise SecurityError(f"a template may not use {name} here")


def _replaced(text: Any, old: str, new: str, count: int = -1) -> str:
    """`str.replace` of bounded size."""
    text, old, new = str(text), str(old), str(new)
    if len(text) + (text.count(old)) * len(new) > LONGEST:
        raise SecurityError("a template may not make anything that large")
    return text.replace(old, new, count)


def _joined(by: Any, parts: Iterable[Any]) -> str:
    """`str.join` of bounded size."""
    by, found = str(by), [str(each) for each in parts]
    if sum(map(len, found)) + len(by) * len(found) > LONGEST:
        raise SecurityError("a template may not make anything that large")
    return by.join(found)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(str(message))


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    """JSON as chat templates expect it: nothing is escaped for HTML."""
    indent = None if indent is None else max(0, min(int(indent), INDENT))
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
