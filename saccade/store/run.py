"""`Run`: a model with its recipe, fields and task, to predict with, look into and save. `load` opens one.

A run folder has `recipe.toml`, `fields/`, `manifest.json` (versions, and the hashes of the former) and
`checkpoints/step-N/`, each with a manifest of its own; training adds `metrics.jsonl` and `snapshots/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

import saccade
from saccade import disk, spec
from saccade.attend.feature import redraw
from saccade.attend.mask import as_mask
from saccade.config import ModelConfig, read
from saccade.decode.quantise import is_quantised, parameters_of, quantise
from saccade.error import SaccadeError, nearest
from saccade.field.result import Result
from saccade.look.look import Look, look
from saccade.model.model import Model
from saccade.number import finite
from saccade.recipe import DecodeConfig, Recipe, idle
from saccade.recipes.write import as_toml, to_toml
from saccade.store import checkpoint
from saccade.store.weights import compact, model_of
from saccade.task.pair import pair_of
from saccade.task.task import Task, task_of, task_of_model

FORMATS = ("hf",)  # that `export` writes


class Run:
    """A model and where it came from. files: of its fields, by name. about: what else its manifest says, such as the
    data it was trained on. path: the folder it was loaded from. task: where the caller has it already. parts: of the
    user's own, by name, for whatever is built later (a task, the model of a snapshot).
    """

    def __init__(
        self,
        model: Model,
        *,
        step: int = 0,
        recipe: Recipe | None = None,
        family: str | None = None,
        options: dict[str, Any] | None = None,
        files: dict[str, bytes] | None = None,
        about: dict[str, Any] | None = None,
        path: Path | None = None,
        task: Task | None = None,
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.step, self.recipe, self.family, self.path = model, step, recipe, family, path
        self.options: dict[str, Any] = options or {}
        self.files: dict[str, bytes] = files or {}
        self.about: dict[str, Any] = about or {}
        self.parts: dict[str, Any] = dict(parts or {})
        if task is not None:
            self.task = task
        redraw(model, max(step - 1, 0))  # random features as the last step of training had them

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
        """The recipe's task or, for a folder from elsewhere, the one that its model's stacks allow."""
        if self.recipe is None:
            return task_of_model(self.model.config, self.files)
        with spec.knowing(self.parts):
            return task_of(self.recipe, self.files, self.model.config)

    @property
    def meaning(self) -> dict[str, Any]:
        """What an input's encoding depends on: of each X (or of a Y without an X) its kind, its file and its
        `encoding`. Runs that agree in it read an input the same way.
        """
        fields = self.task.x or self.task.fields
        return {name: (each.kind, self.files.get(each.stored(name)), each.encoding) for name, each in fields.items()}

    @property
    def quantised(self) -> str | None:
        """What the weights are quantised to; None: they are not."""
        return "int8" if is_quantised(self.model) else None

    @property
    def limit(self) -> int | None:
        """The longest input that the model was made for, in the unit of its field."""
        return self.task.limit(self.model)

    def predict(self, inputs: Any, **options: Any) -> list[Result]:
        """A result for each input, in their order. An input is a text, or a picture as a path, a PIL image or an array;
        several inputs of one example are a table by name. options: those of [decode], over the recipe's.
        """
        given = list(inputs) if isinstance(inputs, Iterable) and not _is_one(inputs) else [inputs]
        return self.task.predict(self.model, given, self.decode(**options))

    def stream(self, raw: Any, **options: Any) -> Iterator[str]:
        """The result for one input, piece by piece while it is written; never half a character."""
        return self.task.answer.stream(self.model, raw, self.decode(**options))

    def look(self, raw: Any, target: str | None = None, *, max_tokens: int = 0) -> Look:
        """An input through the model, and what every layer looked at.

        target: a text to take instead of what the model would write; max_tokens: without an X, how many tokens the
        model adds to the text.
        """
        decode = self.decode(max_tokens=max_tokens) if max_tokens else self.decode()
        return look(self.task, self.model, raw, decode, target=target, adds=bool(max_tokens))

    def evaluate(
        self,
        split: str | None = None,
        *,
        file: str | Path | None = None,
        against: str | Path | None = None,
        out: str | Path | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """How good the run is on a split of its data (the last there is by default), or on files of your own: what
        `saccade evaluate --json` says. out: a file for inputs, answers and references, or for a confusion matrix.
        options: those of [decode], over the recipe's.

        The rooms that measure and write stand above this one, so they are reached through the package's own names.
        """
        inputs, references = (None if path is None else str(path) for path in (file, against))
        decode = self.decode(**options)
        with spec.knowing(self.parts):
            found = saccade.evaluate(self, split, file=inputs, against=references, out=out, decode=decode)
        name = {} if self.path is None else {"run": str(self.path)}
        return {**name, **finite(found)}

    def export(self, path: str | Path, *, format: str = "hf", family: str | None = None) -> Path:
        """Writes the run for others to open, and gives the folder. "hf": one that `transformers` opens; family: the
        kind to write, where the run does not tell.
        """
        if format not in FORMATS:
            raise SaccadeError(f"there is no format {format!r}; {nearest(format, FORMATS)}")
        with spec.knowing(self.parts):
            saccade.export(self, path, family)
        return Path(path)

    def __repr__(self) -> str:
        """Where it is, what it does, its step, its size and its last validation."""
        what = (self.family or "model") if self.recipe is None else self.recipe.task
        where = "" if self.path is None else f"{self.path}: "
        step = f", step {self.step:,}" if self.step else ""
        score = "".join(f", {name} {value:.4g}" for name, value in self.validation.items())
        return (
            f"<Run {where}{what}{step}, {parameters_of(self.model):,} parameters{score and f'; validation{score[1:]}'}>"
        )

    @property
    def validation(self) -> dict[str, float]:
        """The loss and the metrics of the last validation up to this step, while it was trained; empty where there was
        none.
        """
        known = (each for each in self._logged("validation") if each["step"] <= self.step)
        found: dict[str, Any] = max(known, key=lambda each: int(each["step"]), default={"validation": {}})["validation"]
        return {str(name): value for name, value in found.items() if isinstance(value, int | float)}

    @property
    def snapshots(self) -> list[int]:
        """The steps whose weights were kept while training."""
        found = [] if self.path is None else (self.path / "snapshots").glob("step-*.safetensors")
        names = (each.stem.removeprefix("step-") for each in found)
        return sorted(int(each) for each in names if each.isdecimal())

    @property
    def samples(self) -> list[str]:
        """Example inputs: those of the last validation while it was trained."""
        lines = self._logged("samples")
        try:
            return [str(given) for given, _ in lines[-1]["samples"]] if lines else []
        except (ValueError, TypeError):
            return []

    def _logged(self, key: str) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl that have this key; they are only told, so a torn line is no error."""
        metrics = None if self.path is None else self.path / "metrics.jsonl"
        if metrics is None or not metrics.is_file():
            return []
        found = []
        for line in metrics.read_bytes().split(b"\n"):
            with suppress(ValueError):
                found += [json.loads(line)] if f'"{key}"'.encode() in line else []
        return [each for each in found if isinstance(each, dict) and key in each and "step" in each]

    def at(self, step: int) -> Run:
        """The same run with the weights of a snapshot."""
        if self.path is None or step not in self.snapshots:
            raise SaccadeError(f"there is no snapshot of step {step}; there are {self.snapshots or 'none'}")
        weights = disk.load_tensors(self.path / "snapshots" / f"step-{step}.safetensors")
        dtype = self.model.dtype if self.model.dtype.is_floating_point else None
        with spec.knowing(self.parts):
            made = self._with_model(model_of(self.model.config, weights, f"step {step}", dtype), step)
        return made if self.quantised is None else made.quantise(self.quantised)

    def masked(self, mask: str) -> Run:
        """The same weights, whose self-attention may look where this mask allows it, too: "window(1)", each at itself
        alone. What attention to others is worth is the difference of both on the same data.
        """
        as_mask(mask)  # refuses what is none
        config, own = self.model.config, self.model.config.mask
        changed = read(ModelConfig, config.model_dump() | {"mask": mask if own is None else f"({own}) & ({mask})"})
        dtype = self.model.dtype if self.model.dtype.is_floating_point else None
        with spec.knowing(self.parts):
            made = model_of(changed, self.model.tensors(), "the run", dtype, self.quantised)
            return self._with_model(made, self.step)

    def quantise(self, kind: str = "int8") -> Run:
        """The same run with quantised weights, for use alone."""
        with spec.knowing(self.parts):
            return self._with_model(quantise(self.model, kind), self.step)

    def _with_model(self, model: Model, step: int) -> Run:
        own = {name: getattr(self, name) for name in ("recipe", "family", "options", "files", "about", "path", "parts")}
        return Run(model, step=step, **own)

    def decode(self, **options: Any) -> DecodeConfig:
        """The recipe's [decode], with changes. Refuses an option that would have no effect, unless the option it
        depends on is given too: a loop over beam=1, 2, 4 may set length_penalty each time.
        """
        made = self.search(**options)
        decides = set(options) if self.recipe is None else pair_of(self.recipe).y.kind.decides
        for name in options.keys() - decides:
            raise SaccadeError(
                f"{name} changes nothing where the task is {self.recipe and self.recipe.task}: leave it out"
            )
        for name, whose in idle(made).items():
            if name in options and whose not in options:
                raise SaccadeError(f"{name} belongs to {whose} and does nothing without it: give both, or neither")
        return made

    def search(self, **options: Any) -> DecodeConfig:
        """The same, without checking that the changes have an effect."""
        known = {} if self.recipe is None else self.recipe.decode.model_dump()
        return read(DecodeConfig, {**known, **options})

    def save(self, path: str | Path) -> Path:
        """Writes the run folder; refuses a folder that holds anything else."""
        path = disk.vacant(Path(path))
        state = {"step": self.step} | ({} if self.quantised is None else {"quantised": self.quantised})
        with disk.aside(path) as folder:
            self.fill(folder, without=("asked",))  # training cannot go on from it: the optimiser's state is not saved
            checkpoint.path_of(folder, self.step).mkdir(parents=True)
            tensors = {"model": {name: compact(tensor) for name, tensor in self.model.tensors().items()}}
            checkpoint.fill(checkpoint.path_of(folder, self.step), self.step, tensors, state)
        return path

    def fill(self, folder: Path, without: tuple[str, ...] = ()) -> None:
        """Writes all of a run folder but its checkpoints: recipe, fields and manifest; without: keys of `about` to
        leave out of the manifest.
        """
        fields = folder / "fields"
        fields.mkdir()
        (folder / "recipe.toml").write_text(self._recipe_text(), encoding="utf-8")
        put_files(fields, self.files)
        if self.family is not None:
            source = {"family": self.family, "options": self.options}
            (fields / "source.json").write_text(json.dumps(source, indent=2, sort_keys=True))
        about = {key: value for key, value in self.about.items() if key not in without}
        about |= {"folder": os.path.relpath(about["folder"], os.path.realpath(folder))} if "folder" in about else {}
        about = {"saccade": saccade.__version__, "torch": torch.__version__, **about}
        disk.seal(folder, about, without=("checkpoints",))

    def _recipe_text(self) -> str:
        """The content of recipe.toml; without a recipe, the model alone."""
        if self.recipe is None:
            return to_toml({"model": self.model.config.model_dump(exclude_none=True)})
        start = self.about.get("asked", {}).get("start")
        if not start:
            return as_toml(self.recipe)
        note = f"# Begun from the weights and the tokenizer of {json.dumps(start)}: anew, it begins without them.\n"
        return note + as_toml(self.recipe)


def put_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by their names, which may begin with a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def _is_one(inputs: Any) -> bool:
    """Whether this is an input, and not several: a text, bytes, a path, a picture, an array, a table by name."""
    return isinstance(inputs, str | bytes | Path | Mapping) or any(
        hasattr(inputs, name) for name in ("__array__", "__array_interface__")
    )
