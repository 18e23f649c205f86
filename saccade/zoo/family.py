"""`Family`: how a kind of checkpoint is read and written: its config.json, and a table of the names of its tensors.

The tables (`families/`) are data, used in both directions. A row says which of our tensors one of theirs holds;
"query + key + value" are three of ours, stacked along the output, and "cls_token + register_tokens" two of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError


class Row(NamedTuple):
    """One tensor of theirs and where it goes; `{}` is the number of a layer."""

    theirs: str  # names joined by " + " where several are stacked, of which `rows` says how many rows each has
    ours: str  # the same; of one of them there is but one
    turned: bool = False  # transposed: GPT-2 stores (in, out), we (out, in)
    heads: int = 0  # (C,H,D) instead of (C,H*D) (XLNet)
    leading: int = 0  # axes of size 1 before ours
    interleaved: int = 0  # heads: stacked by head, (H,3,D) instead of (3,H,D) (GPT-NeoX)
    rows: tuple[int, ...] = ()
    behind: int = 0  # so many of the last rows stand behind the first one here (YOLOS's positions of registers)

    def take(self, tensors: Sequence[Tensor], number: int | None) -> dict[str, Tensor]:
        """Ours from theirs."""
        parts = [each.reshape(each.shape[self.leading :]) if self.leading else each for each in tensors]
        tensor = torch.cat(parts) if self.rows else parts[0]
        tensor = tensor.flatten(1) if self.heads else tensor
        tensor = tensor.t() if self.turned else tensor
        tensor = _reordered(tensor, 1, tensor.shape[-2] - self.behind) if self.behind else tensor
        names = self.names(number)
        tensor = _swapped(tensor, self.interleaved, len(names)) if self.interleaved else tensor
        pieces = tensor.chunk(len(names)) if len(names) > 1 else (tensor,)
        # A transposed view is as fast a matrix as any; a piece of a stack is not, since its rows lie apart.
        pieces = tuple(each.contiguous() for each in pieces) if len(pieces) > 1 else pieces
        return dict(zip(names, pieces, strict=True))

    def give(self, parameters: Mapping[str, Tensor], number: int | None) -> list[Tensor]:
        """Theirs from ours."""
        parts = [parameters[name].detach() for name in self.names(number)]
        tensor = torch.cat(parts) if len(parts) > 1 else parts[0]
        tensor = _swapped(tensor, len(parts), self.interleaved) if self.interleaved else tensor
        tensor = tensor.t() if self.turned else tensor
        tensor = _reordered(tensor, 1, 1 + self.behind) if self.behind else tensor
        tensor = tensor.unflatten(1, (self.heads, -1)) if self.heads else tensor
        pieces = tensor.split(self.rows) if self.rows else (tensor,)
        return [each.reshape((1,) * self.leading + each.shape).contiguous() for each in pieces]

    def names(self, number: int | None) -> list[str]:
        """Our names for layer `number`."""
        return [name.format(number) for name in self.ours.split(" + ")]


def _swapped(tensor: Tensor, outer: int, inner: int) -> Tensor:
    """Rows (outer, inner, D) in the order (inner, outer, D)."""
    return tensor.unflatten(0, (outer, inner, -1)).transpose(0, 1).flatten(0, 2)


def _reordered(tensor: Tensor, first: int, last: int) -> Tensor:
    """The rows of (...,n,C) with those from `last` on before those from `first` on."""
    return torch.cat((tensor[..., :first, :], tensor[..., last:, :], tensor[..., first:last, :]), -2)


class Family(NamedTuple):
    """One kind of checkpoint."""

    name: str  # model_type
    heads: Mapping[str, str | None]  # the class they name in `architectures` -> our head
    prefix: str  # before the body's names where there is a head
    body: tuple[str, ...]  # our modules that the prefix covers; all others belong to the head
    read: Callable[[dict[str, Any]], dict[str, Any]]
    write: Callable[[ModelConfig], dict[str, Any]]
    rows: Callable[[ModelConfig], Iterable[Row]]
    used: str  # the names of the options that `read` understands, separated by spaces
    fixed: Mapping[str, tuple[Any, ...]] = {}  # options of which we support these values only
    derived: str = r"(?!)"  # a pattern of tensors to ignore, since they hold nothing of their own; by default none
    copies: Mapping[str, str] = {}  # patterns of tensors that repeat one of ours, to the bit -> the name of ours
    # Tensors that follow from the options, which theirs looks for in a folder; by our configuration and the options.
    computed: Callable[[ModelConfig, dict[str, Any]], dict[str, Tensor]] = lambda config, options: {}
    zeros: tuple[str, ...] = ()  # keys of biases that they always have: a model without them has zeros there
    nameless: int = 0  # outputs of the head that `id2label` does not name: "nothing" of a detector
    renamed: Mapping[str, str] = {}  # endings of names in old checkpoints -> today's
    # Tensors with what an option does to them done already, so that the model needs no such option.
    fold: Callable[[dict[str, Any], dict[str, Tensor]], dict[str, Tensor]] = lambda options, tensors: tensors

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
        if head is not None and "(n" in head:
            head = head.replace("(n", f"({_labels(options) + self.nameless}")
        return read(ModelConfig, values | {"head": head})

    def pairs(self, config: ModelConfig) -> list[tuple[list[str], Row, int | None]]:
        """Every tensor of a model of this family: their name (or names), its row and the layer's number."""
        found: list[tuple[list[str], Row, int | None]] = []
        for row in self.rows(config):
            inside = row.ours.split(".")[0] in self.body
            prefix = self.prefix if inside and config.head is not None else ""
            depth = config.encoder if row.ours.startswith("encoder.") else config.decoder
            numbers: Iterable[int | None] = range(depth) if "{}" in row.ours else (None,)
            names = [prefix + each for each in row.theirs.split(" + ")]
            found += [([each.format(number) for each in names], row, number) for number in numbers]
        return found


# Options that do not change a forward pass: generation, training, bookkeeping.
HARMLESS = (
    r"_\w+|architectures|model_type|(torch_)?dtype|transformers_version|use_cache|\w+_token_ids?|\w*(dropout|pdrop)\w*"
    r"|initializer_\w+|init_std|id2label|label2id|num_labels|problem_type|summary_\w+|task_specific_params|finetuning_task"
    r"|pretraining_tp|num_beams|max_length|bad_words_ids|min_length|length_penalty|no_repeat_ngram_size|early_stopping"
    r"|prefix|tokenizer_class|n_ctx|gradient_checkpointing|normalize_embedding|static_position_embeddings|classif_\w+|\w+_layerdrop"
    r"|num_hidden_layers|max_position_embeddings|n_positions|is_encoder_decoder|model_max_length|output_past"
)


def parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Our parameters by name; one that is tied or shared appears once, by its first name."""
    return dict(model.named_parameters())


def _labels(options: dict[str, Any]) -> int:
    return len(options["id2label"]) if options.get("id2label") else int(options.get("num_labels", 2))
