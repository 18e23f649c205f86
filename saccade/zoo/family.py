"""How weights are named elsewhere: a family is a reading of config.json, a writing of it, and a table of names.

The tables (`families/`) are data, used in both directions. A row says which of our tensors one of theirs holds;
"query + key + value" are three of ours, stacked along the output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError


class Row(NamedTuple):
    """One tensor of theirs and where it goes; `{}` is the number of a layer."""

    theirs: str
    ours: str  # names joined by " + " where several are stacked
    turned: bool = False  # transposed (GPT-2 keeps its matrices the other way round)
    heads: int = 0  # (C,H,D) instead of (C,H*D) (XLNet)
    leading: int = 0  # axes of size 1 before ours

    def take(self, tensor: Tensor, number: int | None) -> dict[str, Tensor]:
        """Ours from theirs."""
        tensor = tensor.reshape(tensor.shape[self.leading :]) if self.leading else tensor
        tensor = tensor.flatten(1) if self.heads else tensor
        tensor = tensor.t() if self.turned else tensor
        names = self.names(number)
        parts = tensor.chunk(len(names)) if len(names) > 1 else (tensor,)
        # A transposed view is as good a matrix as any; a part of a stack is not, since its rows lie apart.
        parts = tuple(part.contiguous() for part in parts) if len(parts) > 1 else parts
        return dict(zip(names, parts, strict=True))

    def give(self, parameters: Mapping[str, Tensor], number: int | None) -> Tensor:
        """Theirs from ours."""
        parts = [parameters[name].detach() for name in self.names(number)]
        tensor = torch.cat(parts) if len(parts) > 1 else parts[0]
        tensor = tensor.t() if self.turned else tensor
        tensor = tensor.unflatten(1, (self.heads, -1)) if self.heads else tensor
        return tensor.reshape((1,) * self.leading + tensor.shape).contiguous()

    def names(self, number: int | None) -> list[str]:
        """Our names for layer `number`."""
        return [name.format(number) for name in self.ours.split(" + ")]


class Family(NamedTuple):
    """One kind of checkpoint."""

    name: str  # model_type
    heads: Mapping[str, str | None]  # the class they name in `architectures` -> our head
    prefix: str  # before the body's names where there is a head
    body: tuple[str, ...]  # our rooms that the prefix covers: what is not in them belongs to the head
    read: Callable[[dict[str, Any]], dict[str, Any]]
    write: Callable[[ModelConfig], dict[str, Any]]
    rows: Callable[[ModelConfig], Iterable[Row]]
    used: str  # the options that `read` understands, in words
    fixed: Mapping[str, tuple[Any, ...]] = {}  # options we have in these values only
    derived: str = r"(?!)"  # a pattern of tensors that hold nothing of their own
    copies: Mapping[str, str] = {}  # patterns of tensors that are ours again, each to the bit
    renamed: Mapping[str, str] = {}  # endings that old checkpoints use for others

    def config(self, options: dict[str, Any]) -> ModelConfig:
        """Our configuration from config.json; an option we do not have is refused by name."""
        for key, value in options.items():
            if key in self.fixed:
                if value not in self.fixed[key]:
                    raise SaccadeError(f"config.json: {key} = {value!r} of {self.name} is not supported")
            elif key not in self.used.split() and not re.fullmatch(HARMLESS, key) and value not in (None, False):
                raise SaccadeError(f"config.json: {key} = {value!r} is no option of {self.name} that is known here")
        named = (options.get("architectures") or [None])[0]
        if named is not None and named not in self.heads:
            known = ", ".join(self.heads)
            raise SaccadeError(f"config.json: the architecture {named!r} is not supported; {self.name} has: {known}")
        try:
            values = self.read(options)
        except KeyError as missing:
            raise SaccadeError(f"config.json: {missing} is missing, which {self.name} needs") from None
        head = None if named is None else self.heads[named]
        if head == "label(n)":
            head = f"label({_labels(options)})"
        return read(ModelConfig, values | {"head": head})

    def pairs(self, config: ModelConfig) -> list[tuple[str, Row, int | None]]:
        """Every tensor of a model of this family: their name, its row and the layer's number."""
        found: list[tuple[str, Row, int | None]] = []
        for row in self.rows(config):
            inside = row.ours.split(".")[0] in self.body
            prefix = self.prefix if inside and config.head is not None else ""
            depth = config.encoder if row.ours.startswith("encoder.") else config.decoder
            numbers: Iterable[int | None] = range(depth) if "{}" in row.ours else (None,)
            found += [(prefix + row.theirs.format(number), row, number) for number in numbers]
        return found


# What says nothing about the mathematics of a forward pass: generation, training, book-keeping.
HARMLESS = (
    r"_\w+|architectures|model_type|(torch_)?dtype|transformers_version|use_cache|\w+_token_ids?|\w*(dropout|pdrop)\w*"
    r"|initializer_\w+|init_std|id2label|label2id|num_labels|problem_type|summary_\w+|task_specific_params|finetuning_task"
    r"|pretraining_tp|num_beams|max_length|bad_words_ids|min_length|length_penalty|no_repeat_ngram_size|early_stopping"
    r"|prefix|tokenizer_class|n_ctx|gradient_checkpointing|normalize_embedding|static_position_embeddings|classif_\w+|\w+_layerdrop"
    r"|num_hidden_layers|max_position_embeddings|n_positions|is_encoder_decoder|model_max_length|output_past"
)


def parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Our parameters by name; what is tied or shared has its first name alone."""
    return dict(model.named_parameters())


def _labels(options: dict[str, Any]) -> int:
    return len(options["id2label"]) if options.get("id2label") else int(options.get("num_labels", 2))
