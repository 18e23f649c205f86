"""`load`: a run from a run folder, or from a Hugging Face folder."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from saccade import disk, spec
from saccade.attend.position import scaled
from saccade.config import ModelConfig, read
from saccade.error import SaccadeError, SaccadeWarning
from saccade.field.label import LABELS, Label
from saccade.field.text.text import SPECIAL_FILE
from saccade.recipe import Recipe
from saccade.recipes.read import from_values
from saccade.store import checkpoint
from saccade.store.run import Run
from saccade.store.weights import model_of
from saccade.task.pair import files_of_model, resolved
from saccade.zoo.folder import is_folder, read_folder
from saccade.zoo.special import labels, special

# The files of a Hugging Face folder that a run keeps beside the weights: of texts, of pictures, of licences.
ALONG = (
    "tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.json merges.txt vocab.txt "
    "*.model *.spm preprocessor_config.json generation_config.json chat_template.* additional_chat_templates/*.jinja "
    "LICENSE* NOTICE*"
)
USED = ("average", "model")  # the files of a checkpoint that a run is used with; the average is preferred
PARTS = "parts"  # the key of a manifest that names the user's own parts
VERSIONS = ("format", "sha256", "saccade", "torch")  # keys of a manifest that are about itself, not about the run


def load(
    path: str | Path,
    *,
    parts: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
    quantise: str | None = None,
    scaling: str | None = None,
) -> Run:
    """A run from a run folder or a Hugging Face folder (config.json and safetensors), ready to use.

    parts: what a run was trained with beside what there is here, by the names its recipe calls them, {"mine": score};
    the run keeps them. Nothing in a folder is ever imported. quantise="int8" makes the weights integers, a quarter as
    large; a folder that holds such weights needs no option. scaling="ntk(4)" (or interpolate(4), yarn(4, 2048),
    llama3(8, 8192)) slows rotary positions, so that a model reads farther than it was trained to; `save` keeps it.
    """
    if dtype is not None and quantise is not None:
        raise SaccadeError("beside integers all numbers are float32: give dtype or quantise, not both")
    path = Path(path)
    if not path.is_dir():
        raise SaccadeError(f"{path} is no folder")
    with spec.knowing(parts):
        if (path / disk.MANIFEST).is_file():
            run = _from_run_folder(path, dtype, scaling)
        elif is_folder(path):
            run = _from_hugging_face(path, dtype, scaling)
        else:
            raise SaccadeError(f"{path} is neither a run (manifest.json) nor a Hugging Face folder (config.json)")
        run.path, run.parts = path, spec.brought()
        return run if quantise is None else run.quantise(quantise)


def _from_hugging_face(path: Path, dtype: torch.dtype | None, scaling: str | None) -> Run:
    model, family, options = read_folder(path, dtype=dtype, scaling=scaling)
    found = [each for pattern in ALONG.split() for each in sorted(path.glob(pattern)) if each.is_file()]
    files = {each.relative_to(path).as_posix(): each.read_bytes() for each in found}
    run = Run(model, family=family.name, options=options, files=files)
    run.files |= _special_files(run)
    run.files |= files_of_model(model.config, options, files)
    return run


def _from_run_folder(path: Path, dtype: torch.dtype | None, scaling: str | None) -> Run:
    about = disk.verify(path)
    if "recipe.toml" not in about["sha256"]:
        raise SaccadeError(f"{path} is no run: it holds {about.get('kind', 'no recipe')}, and no model")
    values = tomllib.loads((path / "recipe.toml").read_text(encoding="utf-8"))
    recipe = recipe_of(path) if "task" in values else None
    found = _used_checkpoint(path, best=recipe is not None and recipe.train.patience is not None)
    config = read(ModelConfig, values["model"])
    if scaling is not None:
        config = config.model_copy(update={"position": scaled(config.position, scaling)})
        recipe = None if recipe is None else recipe.model_copy(update={"model": config})
    kind = found.state.get("quantised")
    if kind is not None and dtype is not None:
        raise SaccadeError(f"{path} holds {kind} weights, beside which all numbers are float32: load it without dtype")
    weights = found.tensors.get("average") or found.tensors["model"]
    with asking_for_parts(path, about):
        model = model_of(config, weights, str(path), dtype, kind)
    run = Run(model, step=found.step, recipe=recipe, files=fields_in(path, about), **_family_of(path))
    run.about = {key: value for key, value in about.items() if key not in VERSIONS}
    run.about |= {"folder": begun} if (begun := begun_in(path, about)) else {}
    if run.family is not None and SPECIAL_FILE not in run.files:  # a folder from before it was kept
        run.files |= _special_files(run)
    return run


@contextmanager
def asking_for_parts(path: Path, about: Mapping[str, Any]) -> Iterator[None]:
    """Inside, what cannot be built for want of the user's own parts is told with their names."""
    try:
        yield
    except SaccadeError as problem:
        missing = [name for name in about.get(PARTS, ()) if name not in spec.brought()]
        if not missing:
            raise
        named = ", ".join(missing)
        raise SaccadeError(
            f"{problem} ({path} was trained with parts of its user's own, {named}: bring them, with "
            f"parts={{{missing[0]!r}: ...}} in Python or --parts MODULE:{missing[0]} on the command line)"
        ) from None


def recipe_of(path: Path) -> Recipe:
    """The recipe in a run folder, with all its values."""
    file = path / "recipe.toml"
    return resolved(from_values(tomllib.loads(file.read_text(encoding="utf-8")), source=str(file)))


def begun_in(path: Path, about: Mapping[str, Any]) -> str | None:
    """The folder that training was started in, from which paths of the user's files go; its manifest has it relative to
    the run's own folder.
    """
    return os.path.realpath(path / about["folder"]) if "folder" in about else None


def fields_in(path: Path, about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a run's fields, as its manifest names them."""
    names = [name for name in about["sha256"] if name.startswith("fields/") and name != "fields/source.json"]
    return {name.removeprefix("fields/"): (path / name).read_bytes() for name in names}


def _family_of(path: Path) -> dict[str, Any]:
    """The family and the options of a model that came from a Hugging Face folder; empty for one made here."""
    file = path / "fields" / "source.json"
    if not file.is_file():
        return {}
    known = json.loads(file.read_text())
    return {"family": known["family"], "options": known["options"]}


def _used_checkpoint(path: Path, best: bool) -> checkpoint.Checkpoint:
    """The last checkpoint or, with `best`, the one with the best validation; its weights alone."""
    newest = checkpoint.newest(path, USED)
    judged = best and newest.state.get("best") is not None
    step = newest.state["best_step"] if judged else newest.step
    if step == newest.step:
        return newest
    problem = f"{path}: the best checkpoint, of step {step}, is gone"
    if step in checkpoint.steps(path):
        try:
            return checkpoint.read(path, step, USED)
        except disk.DamagedError as damaged:
            problem = f"{damaged}: this is the best checkpoint"
    warnings.warn(f"{problem}; the last one, of step {newest.step}, is used", SaccadeWarning, stacklevel=4)
    return newest


def _special_files(run: Run) -> dict[str, bytes]:
    """Special tokens and labels from the configuration of a Hugging Face folder, as files of a run's fields."""
    try:
        generation = json.loads(run.files.get("generation_config.json", b"{}"))
    except ValueError:
        raise SaccadeError("generation_config.json is no JSON") from None
    found = {SPECIAL_FILE: json.dumps(special(run.options, generation)).encode()}
    names, head = labels(run.options), run.model.config.head or ""
    if len(names) > 1 and head in (f"label({len(names)})", f"label({len(names)}, bare=True)"):
        found[LABELS] = Label(names).to_bytes()
    return found
