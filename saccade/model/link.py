"""`Link`: a part of a model on the way from an input to an answer, with what it promises and one of its calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.model.block import Block
from saccade.model.model import Model
from saccade.model.move import SYMMETRIES, Applied
from saccade.model.reading import Reading, unordered
from saccade.model.stack import Stack


class Link(NamedTuple):
    """A module of a model on the way from an input to an answer. where: embed, encoder, decoder, context or answer;
    told: what it is, in a spec's words.
    """

    where: str
    told: str
    module: nn.Module
    breaks: Mapping[str, str]
    context_breaks: Mapping[str, str]
    call: Applied | None = None


def links_of(model: Model, readings: list[Reading], x: Any, y: Any) -> Iterator[Link]:
    """The parts between the embeds and the answer, with their calls."""
    listed, last = [*_listed(model)], readings[-1].where
    with _recorded([module for _, _, module in listed]) as calls:
        states = run(model, x, y)
        answers(model, states)
    for where, told, module in listed:
        if module not in calls:
            continue
        arguments, output = calls[module]
        read = [each.first for each in readings if each.where == (last if where == "answer" else where)]
        extras = read[0] if len(read) == 1 else 0
        alone = getattr(module, "breaks", None) == {} or arguments.get("context") is not None
        reach = getattr(module, "reach", 0 if alone and not hasattr(module, "window") else None)
        reach = (0 if alone else None) if isinstance(module, Attention) else reach
        pairs = bool(getattr(module, "pairs", False))
        mask = arguments.get("mask")
        told = f"{told}, in {type(mask).__name__}" if isinstance(mask, Mask) else told
        placed = any(each.placed for each in readings if each.where == where)
        call = Applied(_runner(module), arguments, output, extras, reach, pairs, placed)
        yield Link(where, told, module, _breaks(told, module, arguments, placed), _context_breaks(told, module), call)


def _listed(model: Model) -> Iterator[tuple[str, str, nn.Module]]:
    """Where each part stands, what it is and the part: those of blocks, between stages, and behind the last state."""
    stacks = [("encoder", model.encoder), ("decoder", model.decoder)]
    if model.context is not None:
        stacks.insert(0, ("context", model.context.layers))
    for where, stack in stacks:
        if isinstance(stack, Stack):
            yield from _of_stack(model, where, stack)
    if model.context is not None and model.context.pool is not None:
        yield "context", f"pool({model.context.pool.name})", model.context.pool
    yield "answer", f"pool({model.pooling.name})", model.pooling
    if model.head is not None:
        yield "answer", f"{model.config.head}", model.head
    for name, head in model.heads.items():
        yield "answer", f"{name}: {model.config.named_heads[name]}", head


def _of_stack(model: Model, where: str, stack: Stack) -> Iterator[tuple[str, str, nn.Module]]:
    mixers, config = model.config.mixers(where == "decoder"), model.config.stack(where == "decoder")
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        named = {
            block.mixes: mixers[min(number, len(mixers) - 1)],
            "into": "the source as one vector",
            "cross": "looking across",
            "feed": config.feed,
        }
        for role, told in named.items():
            module = getattr(block, role, None)
            if isinstance(module, nn.Module):
                yield where, _told(module, told), module
    for merge in getattr(stack, "merges", ()):
        yield where, f"merge {model.config.merge}", merge
    inside = [id(each) for block in stack.blocks for each in block.modules()]
    inside += [id(each) for merge in getattr(stack, "merges", ()) for each in merge.modules()]
    for each in stack.modules():  # whatever else of a stack makes promises
        if hasattr(each, "breaks") and id(each) not in inside:
            yield where, type(each).__name__, each
            inside += [id(part) for part in each.modules()]


def _told(module: nn.Module, text: str) -> str:
    """A part in words: of attention, also where it may look and how it knows positions."""
    if not isinstance(module, Attention):
        return text
    masked = [] if module.mask is None else [f"mask {module.mask}"]
    placed = [] if module.position is None else [type(module.position).__name__]
    return ", ".join([text, *masked, *placed])


def _breaks(told: str, module: nn.Module, arguments: Mapping[str, Any], placed: bool) -> Mapping[str, str]:
    """What a part does not keep; beside it, what the mask of its call does not. placed: whether places come along with
    what is read, so that a position tells nothing of the order.
    """
    if isinstance(module, Attention) and arguments.get("context") is not None:
        return {}  # each vector looks for itself
    own: Mapping[str, str] | None = getattr(module, "breaks", None)
    if own is None:
        return dict.fromkeys(SYMMETRIES, f"{told} does not say whether it keeps it")
    if placed and isinstance(module, Attention):
        own = unordered(own, module.position, module.mask)
    mask = arguments.get("mask")
    given = {name: why for name, why in mask.breaks.items() if name != "causality"} if isinstance(mask, Mask) else {}
    return {**given, **own}


def _context_breaks(told: str, module: nn.Module) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(module, "context_breaks", {"permutation": f"{told} does not say it"})
    return found


@contextmanager
def _recorded(modules: list[nn.Module]) -> Iterator[dict[nn.Module, tuple[dict[str, Any], Any]]]:
    """What each module is given in its first call inside, by name, and what it gives."""
    found: dict[nn.Module, tuple[dict[str, Any], Any]] = {}

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        bound = inspect.signature(module.forward).bind(*given, **named).arguments
        loose = {
            name for name, each in inspect.signature(module.forward).parameters.items() if each.kind == each.VAR_KEYWORD
        }
        held = {name: each for name, each in bound.items() if name not in loose}
        for name in loose & bound.keys():
            held |= bound[name]
        found.setdefault(module, (held, output))

    hooks = [each.register_forward_hook(note, with_kwargs=True) for each in modules]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _runner(module: nn.Module) -> Callable[..., Any]:
    """A part as a function of what it was given by name."""
    signature = inspect.signature(module.forward)

    def run(**given: Any) -> Any:
        names = [name for name, each in signature.parameters.items() if each.kind == each.POSITIONAL_ONLY]
        return module(*(given.pop(name) for name in names), **given)

    return run


def run(model: Model, x: Any, y: Any) -> Any:
    """The states of one pass."""
    return model.states(y) if model.encoder is None else model.states(x, *([] if y is None else [y]))


def answers(model: Model, states: Any) -> dict[str | None, Tensor]:
    """What each head says, by its name; the unnamed one is None."""
    named: list[str | None] = [*model.heads]
    return {name: model.say(states, name) for name in [*([] if model.head is None else [None]), *named]}
