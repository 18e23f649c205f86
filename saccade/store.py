"""`Run`: a model with what belongs to it, and the folders it lives in.

A run folder has `recipe.toml`, `fields/`, `checkpoints/step-N/model.safetensors` and `manifest.json` (versions and
hashes). Everything is written aside, hashed, flushed to disk and renamed, so that a folder is there whole or not at
all. No pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

import saccade
from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.zoo.families import FAMILIES
from saccade.zoo.folder import is_folder, read_folder, write_folder, written

FORMAT = 1  # of run folders
# What goes along with the weights of a Hugging Face folder: the tokenizer's files and how to generate.
ALONG = (
    "tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json chat_template.jinja vocab.json "
    "merges.txt vocab.txt spiece.model source.spm target.spm sentencepiece.bpe.model generation_config.json"
)


class Run:
    """A model, where it came from, and the files of its tokenizer."""

    def __init__(
        self, model: Model, *, step: int = 0, family: str | None = None, options: dict[str, Any] | None = None
    ) -> None:
        self.model, self.step, self.family, self.options = model, step, family, options or {}
        self.files: dict[str, bytes] = {}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that came along (tokenizer.json), if one did."""
        content = self.files.get("tokenizer.json")
        if content is None:
            return None
        try:
            return Tokenizer.from_buffer(content)
        except Exception as problem:  # the library raises nothing narrower
            raise SaccadeError(f"tokenizer.json cannot be read: {problem}") from None

    def save(self, path: str | Path) -> Path:
        """Writes the run folder; refuses a folder that holds anything else."""
        path = Path(path).absolute()
        _vacant(path)
        aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
        shutil.rmtree(aside, ignore_errors=True)
        step = f"checkpoints/step-{self.step}/model.safetensors"
        (aside / step).parent.mkdir(parents=True)
        (aside / "fields").mkdir()
        own = {name: each.detach().contiguous() for name, each in self.model.named_parameters()}
        save_file(own, aside / step, metadata={"format": "pt"})
        (aside / "recipe.toml").write_text(_toml({"model": _set_values(self.model.config)}))
        for name, content in self.files.items():
            (aside / "fields" / name).write_bytes(content)
        if self.family is not None:
            source = {"family": self.family, "options": self.options}
            (aside / "fields" / "source.json").write_text(json.dumps(source, indent=2, sort_keys=True))
        _seal(aside, {"format": FORMAT, "saccade": saccade.__version__, "torch": torch.__version__, "step": self.step})
        if path.exists():
            path.rmdir()
        aside.replace(path)
        _flush(path.parent)
        return path


def load(path: str | Path, *, dtype: torch.dtype | None = None) -> Run:
    """A run from a run folder or a Hugging Face folder (config.json and safetensors), ready to use."""
    path = Path(path)
    if not path.is_dir():
        raise SaccadeError(f"{path} is no folder")
    if (path / "manifest.json").is_file():
        return _load_run(path, dtype)
    if not is_folder(path):
        raise SaccadeError(f"{path} is neither a run (manifest.json) nor a Hugging Face folder (config.json)")
    model, family, options = read_folder(path, dtype=dtype)
    run = Run(model, family=family.name, options=options)
    run.files = {name: (path / name).read_bytes() for name in ALONG.split() if (path / name).is_file()}
    return run


def export(run: Run, path: str | Path, family: str | None = None) -> None:
    """Writes a Hugging Face folder, in the family the run came from or the one that can express its model."""
    path = Path(path).absolute()
    _vacant(path)
    family = family or run.family or _fitting(run.model.config)
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        write_folder(aside, run.model, family, run.options)
        for name, content in run.files.items():
            (aside / name).write_bytes(content)
        if path.exists():
            path.rmdir()
        aside.replace(path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _load_run(path: Path, dtype: torch.dtype | None) -> Run:
    try:
        manifest = json.loads((path / "manifest.json").read_text())
        version, step, hashes = int(manifest["format"]), int(manifest["step"]), dict(manifest["sha256"])
    except (ValueError, KeyError, TypeError):
        raise SaccadeError(f"{path / 'manifest.json'} is damaged") from None
    if version > FORMAT:
        raise SaccadeError(f"{path} was written by a newer saccade (format {version}, here {FORMAT}): update saccade")
    for name, digest in hashes.items():
        file = path / name
        if not file.is_file():
            raise SaccadeError(f"{path} lacks {name}")
        if _digest(file) != digest:
            raise SaccadeError(f"{file} is damaged: its hash is not the one in the manifest")
    config = read(ModelConfig, tomllib.loads((path / "recipe.toml").read_text())["model"])
    with torch.device("meta"):
        model = Model(config)
    weights = load_file(path / f"checkpoints/step-{step}/model.safetensors")
    weights = weights if dtype is None else {name: each.to(dtype) for name, each in weights.items()}
    names = dict(model.named_parameters()).keys()
    if names != weights.keys():
        raise SaccadeError(f"{path}: the weights are those of another model ({sorted(names ^ weights.keys())[0]})")
    for name, tensor in weights.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, torch.nn.Parameter(tensor))
    model.tie()
    run = Run(model.eval(), step=step)
    source = path / "fields" / "source.json"
    if source.is_file():
        known = json.loads(source.read_text())
        run.family, run.options = known["family"], known["options"]
    fields = [name for name in hashes if name.startswith("fields/") and name != "fields/source.json"]
    run.files = {name.removeprefix("fields/"): (path / name).read_bytes() for name in fields}
    return run


def _fitting(config: ModelConfig) -> str:
    """The first family that can express a model."""
    reasons = []
    for name, family in FAMILIES.items():
        try:
            written(family, config, {})
        except (SaccadeError, KeyError, ValueError) as problem:
            reasons.append(str(problem))
        else:
            return name
    raise SaccadeError(f"no family at Hugging Face can express this model: {reasons[0]}")


def _vacant(path: Path) -> None:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SaccadeError(f"{path} is there already and not empty: give a new folder")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def _seal(folder: Path, about: dict[str, Any]) -> None:
    """The manifest last, with the hash of every file; all of it on the disk before anybody sees it."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    about["sha256"] = {each.relative_to(folder).as_posix(): _digest(each) for each in files}
    (folder / "manifest.json").write_text(json.dumps(about, indent=2, sort_keys=True))
    for each in [*files, folder / "manifest.json"]:
        _flush(each)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _set_values(config: ModelConfig) -> dict[str, Any]:
    return {key: value for key, value in config.model_dump().items() if value is not None}


def _toml(tables: dict[str, dict[str, Any]]) -> str:
    """Plain tables of plain values as TOML (JSON's strings and numbers are TOML's too)."""
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
