"""Unknown words of a translation become the words of the source that were looked at most (Luong et al. 2015, PosUnk).

What the model looked at while it wrote is computed afterwards, for the sequences that need it: the mean over the heads
of all layers of cross-attention, for the row of the decoder that wrote the unknown word.
"""

from __future__ import annotations

import torch

from saccade.attend import plain
from saccade.attend.layer import Attention
from saccade.attend.seen import Log
from saccade.decode.step import ModelStepper, at_work
from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.model.model import Model


def looked_at(model: Model, source: list[int], prompt: list[int], written: list[int]) -> torch.Tensor:
    """How much each written token looked at each token of the source, (T,S)."""
    named = () if model.decoder is None else model.decoder.named_modules()
    layers = [each for name, each in named if isinstance(each, Attention) and "cross" in name.split(".")]
    if not layers:
        raise SaccadeError("replace_unknown needs cross-attention, which this model does not have: leave it out")
    log = Log()
    with at_work(ModelStepper(model)):
        for layer in layers:
            layer.watchers = (*layer.watchers, log)
        try:
            model.states(torch.tensor([source]), torch.tensor([(prompt + written)[:-1]]))
        finally:
            for layer in layers:
                layer.watchers = tuple(each for each in layer.watchers if each is not log)
        seen = [plain.weights(call.q, call.k, call.meaning, call.grid) for call in log.calls]
        return torch.stack(seen).mean((0, 2))[0, len(prompt) - 1 :]


def pieces(text: Text, raw: str) -> list[str]:
    """The piece of a raw text that each of its tokens stands for."""
    return [raw[begin:end] for begin, end in text.tokenizer.encode(raw, add_special_tokens=False).offsets]


def replaced(text: Text, written: list[int], words: list[str], looks: torch.Tensor) -> str:
    """The text of what was written, each unknown token replaced by the word (S,) that it looked at most (T,S)."""
    parts: list[str] = []
    known: list[int] = []
    for token, row in zip(written, looks[:, : len(words)], strict=False):
        if token == text.unknown:
            parts += [text.decode(known), words[int(row.argmax())]]
            known = []
        else:
            known.append(token)
    return " ".join(part for part in [*parts, text.decode(known)] if part)
