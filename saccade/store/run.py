"""`Run`: a model with what belongs to it, and the folders it lives in.

A run folder has `recipe.toml`, `fields/`, `manifest.json` (versions, and the hashes of the former) and
`checkpoints/step-N/`, each with a manifest of its own; training adds `metrics.jsonl` and `snapshots/`.
"""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

import saccade
from saccade import disk
from saccade.attend.feature import redraw
from saccade.attend.position import scaled
from saccade.config import ModelConfig, read
from saccade.decode.quantise import is_quantised, quantise
from saccade.error import SaccadeError
from saccade.field.label import LABELS, Label
from saccade.field.result import Result
from saccade.field.text.text import SPECIAL_FILE as SPECIAL
from saccade.look.look import Look, look
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, Recipe, as_toml, from_values, idle, to_toml
from saccade.store import checkpoint
from saccade.task.pair import pair_of, resolved
from saccade.task.task import Task, task_of, task_of_model
from saccade.zoo.folder import is_folder, read_folder
from saccade.zoo.special import labels, special

# What goes along with the weights of a Hugging Face folder: the tokenizer's files, how to generate and to chat, terms.
ALONG = (
    "tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.json merges.txt vocab.txt "
    "*.model *.spm generation_config.json chat_template.* additional_chat_templates/*.jinja LICENSE* NOTICE*"
)
USED = ("average", "model")  # what a checkpoint holds for use, the former before the latter


class Run:
    """A model, where it came from, and the files of its tokenizer."""

    def __init__(
        self,
        model: Model,
        *,
        step: int = 0,
        recipe: Recipe | None = None,
        family: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.step, self.recipe, self.family, self.options = model, step, recipe, family, options or {}
        self.files: dict[str, bytes] = {}
        self.about: dict[str, Any] = {}  # what else the manifest says: of the data it was trained on
        self.path: Path | None = None  # the folder it was loaded from
        redraw(model, max(step - 1, 0))

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

    @cached_property
    def task(self) -> Task:
        """What the run is for: its recipe's task or, of a folder from elsewhere, the one its model can do."""
        if self.recipe is None:
            return task_of_model(self.model.config, self.files)
        return task_of(self.recipe, self.files, self.model.config)

    @property
    def meaning(self) -> dict[str, Any]:
        """What decides what an input means to the run: of each X (or of a Y that stands alone) its kind, its file and
        what else its arrays depend on.
        """
        fields = self.task.x or self.task.fields
        return {name: (each.kind, self.files.get(each.stored(name)), each.encoding) for name, each in fields.items()}

    @property
    def quantised(self) -> str | None:
        """What the weights are quantised to, if they are."""
        return "int8" if is_quantised(self.model) else None

    @property
    def limit(self) -> int | None:
        """The longest input that the model was made for, in the unit of its field."""
        return self.task.limit(self.model)

    def predict(self, inputs: Any, **options: Any) -> list[Result]:
        """A result for each input, in their order: texts, paths or PIL images or arrays of pictures, tables of those by
        name where there are several. options: those of [decode], over the recipe's.
        """
        given = list(inputs) if isinstance(inputs, Iterable) and not _is_one(inputs) else [inputs]
        return self.task.predict(self.model, given, self.decode(**options))

    def stream(self, raw: Any, **options: Any) -> Iterator[str]:
        """The result for one input, piece by piece while it is written; never half a character."""
        return self.task.answer.stream(self.model, raw, self.decode(**options))

    def look(self, raw: Any, target: str | None = None, *, max_tokens: int = 0) -> Look:
        """An input through the model, and what every layer looked at: a source, a text to go on from, a picture.

        target: what was written, if not what the model writes; max_tokens: how many a decoder alone adds to the text.
        """
        decode = self.decode(max_tokens=max_tokens) if max_tokens else self.decode()
        return look(self.task, self.model, raw, decode, target=target, adds=bool(max_tokens))

    @property
    def snapshots(self) -> list[int]:
        """The steps whose weights were kept while training."""
        found = [] if self.path is None else (self.path / "snapshots").glob("step-*.safetensors")
        names = (each.stem.removeprefix("step-") for each in found)
        return sorted(int(each) for each in names if each.isdecimal())

    @property
    def samples(self) -> list[str]:
        """Inputs of the kind that the run was made for: those that were shown while it was trained."""
        metrics = None if self.path is None else self.path / "metrics.jsonl"
        if metrics is None or not metrics.is_file():
            return []
        lines = [line for line in metrics.read_bytes().split(b"\n") if b'"samples"' in line]
        try:
            return [str(given) for given, _ in json.loads(lines[-1])["samples"]] if lines else []
        except (ValueError, KeyError, TypeError):
            return []  # a hint, no more: a line that was cut off hints at nothing

    def at(self, step: int) -> Run:
        """The same run with the weights of a snapshot."""
        if self.path is None or step not in self.snapshots:
            raise SaccadeError(f"there is no snapshot of step {step}; there are {self.snapshots or 'none'}")
        weights = disk.load_tensors(self.path / "snapshots" / f"step-{step}.safetensors")
        dtype = self.model.dtype
        made = Run(
            restored(self.model.config, weights, f"step {step}", dtype if dtype.is_floating_point else None),
            step=step,
            recipe=self.recipe,
            family=self.family,
            options=self.options,
        )
        made.files, made.about, made.path = self.files, self.about, self.path
        return made if self.quantised is None else quantised(made, self.quantised)

    def decode(self, **options: Any) -> DecodeConfig:
        """How results are searched for: the recipe's way, with changes; refuses one that would do nothing, unless what
        it belongs to was said too (who tries all beams from 1 on need not leave out the penalty first).
        """
        made = self.search(**options)
        if options and self.recipe is not None and not pair_of(self.recipe).writes:
            raise SaccadeError(f"{self.recipe.task} writes no text: leave out {next(iter(options))}")
        for name, whose in idle(made).items():
            if name in options and whose not in options:
                raise SaccadeError(f"{name} belongs to {whose} and does nothing without it: give both, or neither")
        return made

    def search(self, **options: Any) -> DecodeConfig:
        """The same, whatever the changes do."""
        known = {} if self.recipe is None else self.recipe.decode.model_dump()
        return read(DecodeConfig, {**known, **options})

    def save(self, path: str | Path) -> Path:
        """Writes the run folder; refuses a folder that holds anything else."""
        path = disk.vacant(Path(path))
        state = {"step": self.step} | ({} if self.quantised is None else {"quantised": self.quantised})
        with disk.aside(path) as folder:
            fill(folder, self, without=("asked",))  # what training would go on from is not here
            checkpoint.path_of(folder, self.step).mkdir(parents=True)
            tensors = {"model": {name: _apart(tensor) for name, tensor in self.model.tensors().items()}}
            checkpoint.fill(checkpoint.path_of(folder, self.step), self.step, tensors, state)
        return path


def fill(folder: Path, run: Run, without: tuple[str, ...] = ()) -> None:
    """Writes all of a run but its checkpoints: recipe, fields and their manifest, `without` some of what it says."""
    fields = folder / "fields"
    fields.mkdir()
    model = {"model": run.model.config.model_dump(exclude_none=True)}
    begun = run.about.get("asked", {}).get("start")
    note = (
        f"# Begun from the weights and the tokenizer of {json.dumps(begun)}: anew, it begins without them.\n"
        if begun
        else ""
    )
    text = to_toml(model) if run.recipe is None else note + as_toml(run.recipe)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    put_files(fields, run.files)
    if run.family is not None:
        source = {"family": run.family, "options": run.options}
        (fields / "source.json").write_text(json.dumps(source, indent=2, sort_keys=True))
    about = {key: value for key, value in run.about.items() if key not in without}
    about |= {"folder": os.path.relpath(about["folder"], os.path.realpath(folder))} if "folder" in about else {}
    about = {"saccade": saccade.__version__, "torch": torch.__version__, **about}
    disk.seal(folder, about, without=("checkpoints",))


def load(
    path: str | Path, *, dtype: torch.dtype | None = None, quantise: str | None = None, scaling: str | None = None
) -> Run:
    """A run from a run folder or a Hugging Face folder (config.json and safetensors), ready to use.

    quantise="int8" makes the weights integers, a quarter as large; a folder that holds such weights needs no word.
    scaling="ntk(4)" (or interpolate(4), yarn(4, 2048), llama3(8, 8192)) slows rotary positions, so that a model reads
    farther than it was trained to; `save` keeps it.
    """
    if dtype is not None and quantise is not None:
        raise SaccadeError("beside integers all numbers are float32: give dtype or quantise, not both")
    run = _load(Path(path), dtype, scaling)
    run.path = Path(path)
    return run if quantise is None else quantised(run, quantise)


def quantised(run: Run, kind: str = "int8") -> Run:
    """The same run with quantised weights, for use alone."""
    made = Run(quantise(run.model, kind), step=run.step, recipe=run.recipe, family=run.family, options=run.options)
    made.path = run.path
    made.files, made.about = run.files, run.about
    return made


def _apart(tensor: Tensor) -> Tensor:
    """The tensor with memory of its own: quantised projections may be parts of one."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


def _load(path: Path, dtype: torch.dtype | None, scaling: str | None) -> Run:
    if not path.is_dir():
        raise SaccadeError(f"{path} is no folder")
    if (path / disk.MANIFEST).is_file():
        return _load_run(path, dtype, scaling)
    if not is_folder(path):
        raise SaccadeError(f"{path} is neither a run (manifest.json) nor a Hugging Face folder (config.json)")
    model, family, options = read_folder(path, dtype=dtype, scaling=scaling)
    run = Run(model, family=family.name, options=options)
    found = [each for pattern in ALONG.split() for each in sorted(path.glob(pattern)) if each.is_file()]
    run.files = {each.relative_to(path).as_posix(): each.read_bytes() for each in found}
    run.files |= _said(run)
    return run


def _said(run: Run) -> dict[str, bytes]:
    """What the configuration of a folder from elsewhere says of tokens and classes, as fields of a run."""
    try:
        generation = json.loads(run.files.get("generation_config.json", b"{}"))
    except ValueError:
        raise SaccadeError("generation_config.json is no JSON") from None
    found = {SPECIAL: json.dumps(special(run.options, generation)).encode()}
    names, head = labels(run.options), run.model.config.head or ""
    if len(names) > 1 and head == f"label({len(names)})":
        found[LABELS] = Label(names).to_bytes()
    return found


def put_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by their names, which may have a folder before them."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def _load_run(path: Path, dtype: torch.dtype | None, scaling: str | None) -> Run:
    about = disk.verify(path)
    if "recipe.toml" not in about["sha256"]:
        raise SaccadeError(f"{path} is no run: it holds {about.get('kind', 'no recipe')}, and no model")
    values = tomllib.loads((path / "recipe.toml").read_text(encoding="utf-8"))
    recipe = recipe_of(path) if "task" in values else None
    found = _used(path, best=recipe is not None and recipe.train.patience is not None)
    weights = found.tensors.get("average") or found.tensors["model"]
    config = read(ModelConfig, values["model"])
    if scaling is not None:
        config = config.model_copy(update={"position": scaled(config.position, scaling)})
        recipe = None if recipe is None else recipe.model_copy(update={"model": config})
    kind = found.state.get("quantised")
    if kind is not None and dtype is not None:
        raise SaccadeError(f"{path} holds {kind} weights, beside which all numbers are float32: load it without dtype")
    run = Run(restored(config, weights, str(path), dtype, kind), step=found.step, recipe=recipe)
    run.about = {key: value for key, value in about.items() if key not in ("format", "sha256", "saccade", "torch")}
    run.about |= {"folder": begun} if (begun := begun_in(path, about)) else {}
    source = path / "fields" / "source.json"
    if source.is_file():
        known = json.loads(source.read_text())
        run.family, run.options = known["family"], known["options"]
    run.files = fields_in(path, about)
    if run.family is not None and SPECIAL not in run.files:  # a folder from before it was kept
        run.files |= _said(run)
    return run


def recipe_of(path: Path) -> Recipe:
    """The recipe in a run folder, with all its values."""
    file = path / "recipe.toml"
    return resolved(from_values(tomllib.loads(file.read_text(encoding="utf-8")), source=str(file)))


def _is_one(inputs: Any) -> bool:
    """Whether this is an input, and not several: a text, bytes, a path, a picture, an array, a table by name."""
    return isinstance(inputs, str | bytes | Path | Mapping) or any(
        hasattr(inputs, name) for name in ("__array__", "__array_interface__")
    )


def begun_in(path: Path, about: Mapping[str, Any]) -> str | None:
    """The folder that a run was begun in, where its own files lay; told in its manifest as the way from its folder."""
    return os.path.realpath(path / about["folder"]) if "folder" in about else None


def fields_in(path: Path, about: dict[str, Any]) -> dict[str, bytes]:
    """The files of a run's fields, as its manifest names them."""
    names = [name for name in about["sha256"] if name.startswith("fields/") and name != "fields/source.json"]
    return {name.removeprefix("fields/"): (path / name).read_bytes() for name in names}


def _used(path: Path, best: bool) -> checkpoint.Checkpoint:
    """The last checkpoint or, where a run stops early, the one with the lowest validation loss; weights alone."""
    newest = checkpoint.newest(path, USED)
    judged = best and newest.state.get("best") is not None
    step = newest.state["best_step"] if judged else newest.step
    if step == newest.step:
        return newest
    if step not in checkpoint.steps(path):
        warnings.warn(f"{path}: the best checkpoint, of step {step}, is gone; the last one is used", stacklevel=5)
        return newest
    return checkpoint.read(path, step, USED)


def restored(
    config: ModelConfig,
    weights: dict[str, Tensor],
    source: str,
    dtype: torch.dtype | None = None,
    kind: str | None = None,
) -> Model:
    """A model with these weights and no others, ready to use; kind: what they are quantised to."""
    with torch.device("meta"):
        model = Model(config)
    model = model if kind is None else quantise(model, kind)
    weights = weights if dtype is None else {name: each.to(dtype) for name, each in weights.items()}
    names = model.tensors().keys()
    if names != weights.keys():
        raise SaccadeError(f"{source}: the weights are those of another model ({sorted(names ^ weights.keys())[0]})")
    for name, tensor in weights.items():
        parent, _, last = name.rpartition(".")
        module = model.get_submodule(parent)
        kept = tensor if last in module._buffers else torch.nn.Parameter(tensor, requires_grad=kind is None)
        setattr(module, last, kept)
    model.tie()
    return model.eval()
