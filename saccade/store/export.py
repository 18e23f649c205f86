"""`export`: a run as a Hugging Face folder, with all that others need to use it as it is used here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, processors

from saccade import disk
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field.label import LABELS
from saccade.field.text.text import SPECIAL_FILE, TOKENIZER, Text
from saccade.store.run import Run, put_files
from saccade.zoo.families import FAMILIES
from saccade.zoo.folder import write_folder, written

OURS = (SPECIAL_FILE, LABELS)  # what config.json says there


def export(run: Run, path: str | Path, family: str | None = None) -> None:
    """Writes a Hugging Face folder, in the family the run came from or the one that can express its model."""
    if run.quantised is not None:
        raise SaccadeError(
            f"a Hugging Face folder cannot hold these {run.quantised} weights: export the run they were made from"
        )
    if run.model.config.embed != "tokens":
        raise SaccadeError(f"the families that are written here read tokens, and this model {run.model.config.embed!r}")
    path = disk.vacant(Path(path))
    family = family or run.family or _fitting(run.model.config)
    made_here = run.family is None and TOKENIZER in run.files and run.recipe is not None
    options, files = (run.options | _options(run), _files(run)) if made_here else (run.options, run.files)
    with disk.aside(path) as folder:
        write_folder(folder, run.model, family, options)
        put_files(folder, {name: content for name, content in files.items() if name not in OURS})


def _options(run: Run) -> dict[str, Any]:
    """What config.json says of the tokens and classes of a run that was made here."""
    text = run.task.text
    assert text is not None
    told = {"bos_token_id": text.begin, "eos_token_id": text.end, "pad_token_id": text.pad}
    found: dict[str, Any] = {name: each for name, each in told.items() if each is not None}
    return found | run.task.target.published


def _files(run: Run) -> dict[str, bytes]:
    """Its tokenizer, which puts around a text there what the task puts around it here."""
    task, text = run.task, run.task.text
    assert text is not None
    before, behind = next((each.frame for each in task.x.values()), ([], []))
    tokenizer = Tokenizer.from_str(text.to_bytes().decode())
    if before or behind:
        around = {number: tokenizer.id_to_token(number) or "" for number in (*before, *behind)}
        parts = [*(around[each] for each in before), "$A", *(around[each] for each in behind)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(parts), special_tokens=[(name, number) for number, name in around.items()]
        )
    told = json.dumps(_tokenizer_config(text), indent=2, sort_keys=True) + "\n"
    return run.files | {TOKENIZER: tokenizer.to_str().encode(), "tokenizer_config.json": told.encode()}


def _tokenizer_config(text: Text) -> dict[str, Any]:
    """How `transformers` opens the tokenizer, and what its special tokens are called."""
    ids = {"pad_token": text.pad, "bos_token": text.begin, "eos_token": text.end, "unk_token": text.unknown}
    names = {name: text.tokenizer.id_to_token(each) for name, each in ids.items() if each is not None}
    return names | {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}


def _fitting(config: ModelConfig) -> str:
    """The first family that can express a model."""
    mixers = config.mixers(decoder=True) + config.mixers(decoder=False)
    reasons = [f"its positions meet by {each!r}, and theirs attend" for each in mixers if each != "attention"]
    for name, family in FAMILIES.items():
        try:
            written(family, config, {})
        except (SaccadeError, KeyError, ValueError) as problem:
            reasons.append(f"{name}: {problem}")
        else:
            return name
    raise SaccadeError(f"no family at Hugging Face can express this model: {reasons[0]}")
