"""Hugging Face folders: config.json and safetensors, read and written strictly.

A tensor that is missing, left over or of another shape is an error that names it; weights are never silently random.
Nothing in the folder is executed, and pickles are not opened.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from saccade import spec
from saccade.attend.position import POSITIONS, rotary, scaled
from saccade.config import ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.model.model import Model
from saccade.zoo.families import FAMILIES
from saccade.zoo.family import Family, parameters


class Folder(NamedTuple):
    """What a folder holds: the model, its family and the options of its config.json."""

    model: Model
    family: Family
    options: dict[str, Any]


def is_folder(path: Path) -> bool:
    """Whether it looks like a Hugging Face folder."""
    return (path / "config.json").is_file()


def read_folder(path: str | Path, *, dtype: torch.dtype | None = None, scaling: str | None = None) -> Folder:
    """The model of a folder, with the head its checkpoint has, in the checkpoint's type or in `dtype`.

    scaling: of its rotary positions, "ntk(4)", to read farther than it was trained to.
    """
    path = Path(path)
    options = _options(path)
    family = _family(options)
    config = family.config(options)
    if scaling is not None:
        config = config.model_copy(update={"position": scaled(config.position, scaling)})
    with torch.device("meta"):
        model = Model(config)
    _fill(model, family, _tensors(path), dtype)
    return Folder(model.eval(), family, options)


def write_folder(path: str | Path, model: Model, family: str, options: dict[str, Any] | None = None) -> None:
    """The model as a folder that `transformers` opens; of `options` what the model does not say itself is kept."""
    if family not in FAMILIES:
        raise SaccadeError(f"no family is called {family!r}; {nearest(family, FAMILIES)}")
    kind = FAMILIES[family]
    kept = {key: value for key, value in (options or {}).items() if key not in ("dtype", "torch_dtype")}
    config = written(kind, model.config, kept)
    config["dtype"] = str(next(model.parameters()).dtype).removeprefix("torch.")
    own = parameters(model)
    tensors = {theirs: row.give(own, number) for theirs, row, number in kind.pairs(model.config)}
    path = Path(path)
    if path.exists() and any(path.iterdir()):
        raise SaccadeError(f"{path} is not empty: give a new folder")
    path.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def _options(path: Path) -> dict[str, Any]:
    if not is_folder(path):
        raise SaccadeError(f"{path} has no config.json: it is no Hugging Face folder")
    try:
        options = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise SaccadeError(f"{path / 'config.json'} is not JSON: {problem}") from None
    if not isinstance(options, dict):
        raise SaccadeError(f"{path / 'config.json'} holds no table of options")
    return options


def _family(options: dict[str, Any]) -> Family:
    kind = options.get("model_type")
    if kind not in FAMILIES:
        raise SaccadeError(f"config.json: the model_type {kind!r} is unknown; {nearest(str(kind), FAMILIES)}")
    return FAMILIES[kind]


def _tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a folder, from one file or from the shards its index names."""
    index = path / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise SaccadeError(f"{index} is no index of shards") from None
        if any(Path(name).name != name for name in names):
            raise SaccadeError(f"{index} names files outside its folder")
    elif (path / "model.safetensors").is_file():
        names = ["model.safetensors"]
    else:
        pickles = sorted(each.name for each in path.glob("*.bin")) + sorted(each.name for each in path.glob("*.pt"))
        if pickles:
            raise SaccadeError(
                f"{path} holds its weights as a pickle ({pickles[0]}), which can run code when it is opened: "
                f"convert it to safetensors first"
            )
        raise SaccadeError(f"{path} has no model.safetensors")
    tensors: dict[str, Tensor] = {}
    for name in names:
        try:
            with safe_open(path / name, "pt") as file:
                tensors |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise SaccadeError(f"{path} lacks the shard {name} that its index names") from None
        except SafetensorError as problem:
            raise SaccadeError(f"{path / name} cannot be read: {problem}") from None
    return tensors


def _fill(model: Model, family: Family, tensors: dict[str, Tensor], dtype: torch.dtype | None) -> None:
    """Puts every tensor in its place; what is missing, left over or misshapen is named."""
    for old, new in family.renamed.items():
        tensors = {key.replace(old, new): value for key, value in tensors.items()}
    expected = parameters(model)
    left = dict(tensors)
    filled: dict[str, Tensor] = {}
    for theirs, row, number in family.pairs(model.config):
        found = theirs if theirs in left else theirs.removeprefix(family.prefix)
        if found not in left:
            headed = f", but has {family.prefix + theirs!r}, as a model with a head: config.json should name its class"
            raise SaccadeError(
                f"the checkpoint lacks the tensor {theirs!r}{headed if family.prefix + theirs in left else ''}"
            )
        tensor = left.pop(found)
        taken = row.take(tensor, number)
        for name, part in taken.items():
            if part.shape != expected[name].shape:
                wanted, got = tuple(expected[name].shape), tuple(part.shape)
                raise SaccadeError(f"the tensor {found!r} gives {name} the shape {got}; the model has {wanted}")
        filled |= taken
    extra = [
        key for key in left if not re.fullmatch(family.derived, key) and not _copied(left[key], key, family, filled)
    ]
    if extra:
        raise SaccadeError(f"the checkpoint has a tensor that this model does not: {extra[0]!r} ({len(extra)} in all)")
    unfilled = [name for name in expected if name not in filled]
    if unfilled:
        raise SaccadeError(f"the table of {family.name} says nothing of {unfilled[0]!r}")
    for name, tensor in filled.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, nn.Parameter(tensor if dtype is None else tensor.to(dtype)))
    model.tie()


def _copied(tensor: Tensor, name: str, family: Family, filled: dict[str, Tensor]) -> bool:
    """Whether a tensor is one that the model has already; refuses one that should be and differs from it."""
    ours = next((own for pattern, own in family.copies.items() if re.fullmatch(pattern, name)), None)
    if ours is None or ours not in filled:
        return False
    if not torch.equal(tensor, filled[ours]):
        raise SaccadeError(
            f"the tensor {name!r} differs from {ours}, of which this model has it as a copy: tie_word_embeddings or "
            "architectures in config.json do not fit these weights"
        )
    return True


def written(family: Family, config: ModelConfig, options: dict[str, Any]) -> dict[str, Any]:
    """config.json of a model; refused if the family would read another model from it."""
    head = None if config.head is None else config.head.partition("(")[0]
    names = [name for name, ours in family.heads.items() if (ours or "").partition("(")[0] == (head or "")]
    if not names:
        raise SaccadeError(f"{family.name} has no head {config.head!r}")
    told = options | {"model_type": family.name, "architectures": [names[0]]} | family.write(config)
    told |= {key: options[key] for key in ("pad_token_id", "decoder_start_token_id") if options.get(key) is not None}
    if head == "label":
        count = int((config.head or "")[6:-1])
        told |= {"id2label": told.get("id2label") or {str(n): f"LABEL_{n}" for n in range(count)}}
    again = family.config(told)
    for key in ModelConfig.model_fields:
        ours, theirs = _plain(config, key), _plain(again, key)
        if ours != theirs and key not in ("dropout", "attention_dropout"):
            if key == "position":  # as they are written, not all that they mean
                ours, theirs = config.position, again.position
            raise SaccadeError(f"{family.name} cannot express this model: {key} is {ours!r} here and {theirs!r} there")
    return told


def _plain(config: ModelConfig, key: str) -> Any:
    """The value a field stands for, defaults written out."""
    value = getattr(config, key)
    meant = {
        "hidden": 4 * config.width,
        "kv_heads": config.heads,
        "head_width": config.width // config.heads,
        "attention_bias": config.bias,
        "final_norm": config.order in ("pre", "parallel"),
    }
    if key in ("chosen", "capacity") and not config.experts:
        return None
    if key == "pattern" and value is not None:
        return (value * config.decoder)[: config.decoder]
    if key == "position" and value is not None:
        name, found = spec.arguments(value, POSITIONS, "position")
        return _turned(config, rotary(**found)) if name == "rotary" else (name, found)
    return meant.get(key) if value is None else value


def _turned(config: ModelConfig, position: rotary) -> tuple[Any, ...]:
    """What a rotary position does, however it is written."""
    width = position.width or config.head_width or config.width // config.heads
    return position.layout, width, position.frequencies(width).tolist(), position.gain
