"""`Fit`: how well a family of checkpoints expresses a model. It does if the family reads the same model back from the
config.json it writes; where it does not, every difference is told, and `nearest_fit` finds the family with the fewest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from saccade import spec
from saccade.attend.position import POSITIONS, rotary
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.embed import EMBEDS
from saccade.model.mixer import state_to_pool
from saccade.zoo.families import FAMILIES
from saccade.zoo.family import Family

NO_PART = (
    "dropout",
    "attention_dropout",
    "feed_dropout",
    "path_dropout",
)  # of how a model is trained, not of what it computes

IN_WORDS = ("head", "mixer", "encoder_mixer")  # told in sentences of their own


class Fit(NamedTuple):
    """config.json of the model nearest to ours that a family has, and in what that differs from ours."""

    family: Family
    options: dict[str, Any]
    mismatches: list[str]
    distance: tuple[bool, int]  # whether it has other stacks, and the number of mismatches


def fit(family: Family, config: ModelConfig, options: dict[str, Any] | None = None) -> Fit:
    """How a family expresses a model; options: of config.json, where the model does not determine them."""
    others = _other_mixers(config)
    found = [f"its positions meet by {' and '.join(map(repr, others))}, and theirs attend"] if others else []
    ours, theirs = _stacks(config.encoder, config.decoder), _stacks("encoder" in family.body, "decoder" in family.body)
    if ours != theirs:
        found.append(f"it has {ours}, and {family.name} {theirs}")
        return Fit(family, {}, found, (True, len(found)))
    named = [name for name, head in family.heads.items() if _numberless(config.head) == head]
    if not named:
        found.append(f"{family.name} has no head {config.head!r}")
        named = [name for name, head in family.heads.items() if head is None]  # its body, for all other differences
    content = (options or {}) | {"model_type": family.name, "architectures": named[:1]}
    try:
        content |= family.write(config)
        content |= {key: options[key] for key in KEPT if options and options.get(key) is not None}
        if "(" in (config.head or ""):
            content |= {"id2label": content.get("id2label") or _unnamed_labels(config, family.nameless)}
        found += _differences(config, family.config(content), family.zeros)
    except (SaccadeError, KeyError, ValueError) as problem:
        found.append(str(problem))
    return Fit(family, content, found, (False, len(found)))


def nearest_fit(config: ModelConfig) -> Fit:
    """The first family that expresses a model; if none does, the one with the fewest mismatches."""
    return min((fit(each, config) for each in FAMILIES.values()), key=lambda each: each.distance)


def exportable(config: ModelConfig) -> str:
    """Whether a model can be written as a Hugging Face folder, in one line: "as bert", or what stands against it."""
    found = nearest_fit(config)
    return f"not at Hugging Face: {told(found)}" if found.mismatches else f"as {found.family.name}"


def told(found: Fit) -> str:
    """The nearest family and all mismatches, as the end of a sentence."""
    return f"nearest is {found.family.name}; {', '.join(found.mismatches)}"


KEPT = ("pad_token_id", "decoder_start_token_id", "forced_eos_token_id")  # tokens, which a model does not determine


def _stacks(encoder: Any, decoder: Any) -> str:
    names = {(True, True): "an encoder and a decoder", (True, False): "an encoder alone"}
    return names.get((bool(encoder), bool(decoder)), "a decoder alone")


def _other_mixers(config: ModelConfig) -> list[str]:
    """The mixers of the stacks there are that are not attention, each once."""
    depths = {True: config.decoder, False: config.encoder}
    found = [each for decoder, depth in depths.items() if depth for each in config.mixers(decoder)]
    return [each for each in dict.fromkeys(found) if each != "attention"]


def _numberless(head: str | None) -> str | None:
    """A head as the tables name it: label(n) for label(5)."""
    return None if head is None else re.sub(r"\((\d+)", "(n", head)


def _unnamed_labels(config: ModelConfig, nameless: int) -> dict[str, str]:
    count = int((config.head or "").partition("(")[2].partition(",")[0].removesuffix(")"))
    return {str(number): f"LABEL_{number}" for number in range(count - nameless)}


def _differences(config: ModelConfig, again: ModelConfig, zeros: Iterable[str]) -> list[str]:
    """Every key of which two models have different values; what only follows from another key is not told. zeros: keys
    that may be False here, since a part that is all zeros is none.
    """
    found = []
    for key in ModelConfig.model_fields:
        here, there = getattr(config, key), getattr(again, key)
        same = here == there or _effective(config, key) == _effective(again, key)
        if same or key in (*NO_PART, *IN_WORDS) or (key in zeros and not here):
            continue
        if key == "position" and _name(here) != _name(there):
            there = _name(there)  # the family's kind; its numbers say nothing here
        found.append(f"{key} is {here!r} here and {there!r} there")
    return found


def _name(position: str | None) -> str | None:
    return None if position is None else position.partition("(")[0]


def _effective(config: ModelConfig, key: str) -> Any:
    """The value of a key with its default written out, so that two ways to write the same are equal."""
    value = getattr(config, key)
    defaults = {
        "hidden": 4 * config.width,
        "kv_heads": config.heads,
        "head_width": config.width // config.heads,
        "attention_bias": config.bias,
        "final_norm": config.order in ("pre", "parallel"),
    }
    if key in ("chosen", "capacity") and not config.experts:
        return None
    if key == "pool" and value == "auto":
        return "last" if config.decoder else state_to_pool(config.mixers(decoder=False))
    if key == "pattern" and value is not None:
        return (value * config.decoder)[: config.decoder]
    if key == "embed" and isinstance(value, str):
        return spec.arguments(value, EMBEDS, "embed")
    if key == "position" and value is not None:
        name, found = spec.arguments(value, POSITIONS, "position")
        return _rotary_values(config, rotary(**found)) if name == "rotary" else (name, found)
    return defaults.get(key) if value is None else value


def _rotary_values(config: ModelConfig, position: rotary) -> tuple[Any, ...]:
    """What determines a rotary position, however it is written."""
    width = position.width or config.head_width or config.width // config.heads
    return position.layout, width, position.frequencies(width).tolist(), position.gain
