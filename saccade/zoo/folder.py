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

from saccade.attend.position import scaled
from saccade.error import SaccadeError, nearest
from saccade.model.model import Model
from saccade.zoo.families import FAMILIES
from saccade.zoo.family import Family, parameters
from saccade.zoo.fit import fit


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
    _fill(model, family, family.fold(options, _tensors(path)), dtype)
    return Folder(model.eval(), family, options)


def write_folder(path: str | Path, model: Model, family: str, options: dict[str, Any] | None = None) -> None:
    """Writes the model as a folder that `transformers` opens; `options` fill in what the model does not determine."""
    if family not in FAMILIES:
        raise SaccadeError(f"no family is called {family!r}; {nearest(family, FAMILIES)}")
    kind = FAMILIES[family]
    kept = {key: value for key, value in (options or {}).items() if key not in ("dtype", "torch_dtype")}
    found = fit(kind, model.config, kept)
    if found.mismatches:
        raise SaccadeError(f"{family} cannot express this model: {', '.join(found.mismatches)}")
    config = found.options
    config["dtype"] = str(next(model.parameters()).dtype).removeprefix("torch.")
    own = _parameters_and_zeros(kind, model)
    given = ((theirs, row.give(own, number)) for theirs, row, number in kind.pairs(model.config))
    tensors = {name: each for names, parts in given for name, each in zip(names, parts, strict=True)}
    tensors |= {name: each.to(model.dtype) for name, each in kind.computed(model.config, config).items()}
    path = Path(path)
    if path.exists() and any(path.iterdir()):
        raise SaccadeError(f"{path} is not empty: give a new folder")
    path.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def _parameters_and_zeros(family: Family, model: Model) -> dict[str, Tensor]:
    """Our parameters by name, and zeros for the biases that the family always has and this model does not."""
    found: dict[str, Tensor] = {**parameters(model)}
    names = [name for _, row, number in family.pairs(model.config) for name in row.names(number) if name not in found]
    for name in names:
        weight = model.get_parameter(f"{name.removesuffix('.bias')}.weight")
        found[name] = weight.new_zeros(weight.shape[0])
    return found


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
    """Puts every tensor in its place; refuses a checkpoint in which one is missing, left over or of another shape."""
    for old, new in family.renamed.items():
        tensors = {key.replace(old, new): value for key, value in tensors.items()}
    expected = parameters(model)
    left = dict(tensors)
    filled: dict[str, Tensor] = {}
    for theirs, row, number in family.pairs(model.config):
        found = [_found(each, left, family.prefix) for each in theirs]
        taken = row.take([left.pop(each) for each in found], number)
        for name, part in taken.items():
            if part.shape != expected[name].shape:
                wanted, got = tuple(expected[name].shape), tuple(part.shape)
                raise SaccadeError(f"the tensor {found[0]!r} gives {name} the shape {got}; the model has {wanted}")
        filled |= taken
    extra = [
        key for key in left if not re.fullmatch(family.derived, key) and not _is_copy(left[key], key, family, filled)
    ]
    if extra:
        raise SaccadeError(f"the checkpoint has a tensor that this model does not: {extra[0]!r} ({len(extra)} in all)")
    unfilled = [name for name in expected if name not in filled]
    if unfilled:
        raise SaccadeError(f"{family.name} has no tensor for {unfilled[0]!r} of this model")
    for name, tensor in filled.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, nn.Parameter(tensor if dtype is None else tensor.to(dtype)))
    model.tie()


def _found(theirs: str, tensors: dict[str, Tensor], prefix: str) -> str:
    """The name under which a checkpoint has a tensor: a model with a head may be stored without the prefix."""
    found = theirs if theirs in tensors else theirs.removeprefix(prefix)
    if found not in tensors:
        raise SaccadeError(f"the checkpoint lacks the tensor {theirs!r}{_hint(prefix + theirs, tensors)}")
    return found


def _hint(headed: str, tensors: dict[str, Tensor]) -> str:
    """The end of the sentence about a missing tensor that is there under the name it has in a model with a head."""
    if headed not in tensors:
        return ""
    return f", but has {headed!r}, as a model with a head: config.json should name its class"


def _is_copy(tensor: Tensor, name: str, family: Family, filled: dict[str, Tensor]) -> bool:
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
