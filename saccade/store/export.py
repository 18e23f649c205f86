"""`export`: a run as a Hugging Face folder, with tokenizer and special tokens, so that it answers there as it does
here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, processors

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.field import Source
from saccade.field.kinds import SOURCES
from saccade.field.label import LABELS
from saccade.field.text.text import SPECIAL_FILE, TOKENIZER, Text
from saccade.store.run import Run, put_files
from saccade.task.pair import files_of_model
from saccade.zoo.dropout import dropout_options
from saccade.zoo.fit import nearest_fit, told
from saccade.zoo.folder import write_folder
from saccade.zoo.processor import PROCESSOR, typed

OURS = (SPECIAL_FILE, LABELS)  # left out: there config.json says the same


def export(run: Run, path: str | Path, family: str | None = None) -> None:
    """Writes a Hugging Face folder, in the family the run came from or the first one that can express its model."""
    if run.quantised is not None:
        raise SaccadeError(
            f"a Hugging Face folder cannot hold these {run.quantised} weights: export the run they were made from"
        )
    path = disk.vacant(Path(path))
    family = family or run.family or _fitting_family(run)
    options, files = run.options, run.files
    if run.family is None and run.recipe is not None:  # made here
        options, files = options | _options_of(run) | dropout_options(family, run.model.config), _files_of(run)
    sources = _sources(run)
    own = {*OURS, *(each.stored(name) for name, each in sources.items() if each.shipped)}
    own |= files_of_model(run.model.config, options, files).keys()  # which its config.json tells again
    shipped = {name: content for each in sources.values() for name, content in each.shipped.items()}
    shipped |= {PROCESSOR: typed(shipped[PROCESSOR], family)} if PROCESSOR in shipped else {}
    with disk.aside(path) as folder:
        write_folder(folder, run.model, family, options)
        put_files(folder, {name: content for name, content in (shipped | files).items() if name not in own})


def _sources(run: Run) -> dict[str, Source]:
    """What the run reads; nothing where its folder does not tell, as one without a tokenizer."""
    known = run.recipe is not None or any(each.stored("source") in run.files for each in SOURCES.values())
    return run.task.x if known else {}


def _options_of(run: Run) -> dict[str, Any]:
    """What config.json says of the fields of a run that was made here."""
    return run.task.target.published if run.task.text is None else _token_options(run)


def _token_options(run: Run) -> dict[str, Any]:
    """What config.json says of the tokens, classes and lengths of a run that was made here."""
    text = run.task.text
    assert text is not None
    ids = {"bos_token_id": text.begin, "eos_token_id": text.end, "pad_token_id": text.pad}
    found: dict[str, Any] = {name: each for name, each in ids.items() if each is not None}
    if run.model.room is None:  # a learned table says how long it is
        found["max_position_embeddings"] = _longest(run)
    return found | run.task.target.published


def _longest(run: Run) -> int:
    """The rows of a table of sinusoids that are enough for whatever the run reads or writes."""
    lengths = [each or 0 for each in run.task.limits(run.model).values()]
    return max(1024, 1 + run.decode().max_tokens, *(1 + each for each in lengths))


def _generation(run: Run) -> dict[str, Any]:
    """The search of a run in the words of generation_config.json, so that `generate` there searches as we do."""
    decode = run.decode()
    told = {name: number for name, number in _token_options(run).items() if name.endswith("_token_id")}
    told |= {"max_new_tokens": decode.max_tokens, "num_beams": decode.beam, "do_sample": decode.temperature > 0}
    if decode.min_tokens:
        told |= {"min_new_tokens": decode.min_tokens}
    if decode.beam > 1:  # "never": a search stops where nothing better can come, not where it is merely unlikely
        told |= {"length_penalty": decode.length_penalty, "early_stopping": "never"}
    if decode.temperature > 0:
        told |= {"temperature": decode.temperature, "top_k": decode.top_k, "top_p": decode.top_p, "min_p": decode.min_p}
    return told


def _files_of(run: Run) -> dict[str, bytes]:
    """The run's files, with a tokenizer that puts the same special tokens around a text as the task does here."""
    task, text = run.task, run.task.text
    if text is None:
        return run.files
    before, behind = next((each.frame for each in task.x.values()), ([], []))
    tokenizer = Tokenizer.from_str(text.to_bytes().decode())
    if before or behind:
        around = {number: tokenizer.id_to_token(number) or "" for number in (*before, *behind)}
        parts = [*(around[each] for each in before), "$A", *(around[each] for each in behind)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(parts), special_tokens=[(name, number) for number, name in around.items()]
        )
    files = {TOKENIZER: tokenizer.to_str().encode(), "tokenizer_config.json": _json(_tokenizer_config(run, text))}
    if task.answer.writes:
        files["generation_config.json"] = _json(_generation(run))
    return run.files | files


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def _tokenizer_config(run: Run, text: Text) -> dict[str, Any]:
    """The class that `transformers` opens the tokenizer with, the names of its special tokens and, where the model has
    room for so many positions alone, the longest text.
    """
    ids = {"pad_token": text.pad, "bos_token": text.begin, "eos_token": text.end, "unk_token": text.unknown}
    names: dict[str, Any] = {name: text.tokenizer.id_to_token(each) for name, each in ids.items() if each is not None}
    names |= {} if run.model.room is None else {"model_max_length": run.model.room}
    names |= {"split_special_tokens": text.tokenizer.encode_special_tokens}  # a text that says "<end>" ends nothing
    return names | {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}


def _fitting_family(run: Run) -> str:
    """The first family that can express a run's model."""
    found = nearest_fit(run.model.config)
    if found.mismatches:
        raise SaccadeError(f"no family at Hugging Face can express this model: {told(found)}")
    return found.family.name
