"""Connectionist temporal classification (Graves et al. 2006): the probability of a text under all ways in which its
letters can lie along the states of an encoder, each letter on one or more states, with blanks between them.

Beside the loss of a decoder that attends, it tells the encoder early where letters are (Kim et al. 2017). The blank is
the token of the padding, which no text has.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.model.hidden import States
from saccade.model.model import Model

HEAD = "ctc"  # the name of the head, and of the term of the loss


def ctc_loss(model: Model, states: States, wanted: Tensor, blank: int) -> Tensor:
    """The nats of texts, summed; wanted (B,T): their tokens, then the end, then -1. A text that needs more states than
    there are adds nothing.
    """
    scores = model.say(states, HEAD)
    if states.encoder_grid is not None:  # of a picture: its columns, each the mean of its rows
        scores = scores.unflatten(1, states.encoder_grid).mean(1)
    passes = len(scores) // len(wanted)
    lengths = state_lengths(states, scores)
    sizes = (wanted >= 0).sum(1) - 1
    tokens = wanted[:, :-1].clamp(min=0)
    losses = ctc_losses(scores, lengths, tokens.repeat(passes, 1), sizes.repeat(passes), blank)
    return losses.sum() / passes


def ctc_losses(scores: Tensor, lengths: Tensor, tokens: Tensor, sizes: Tensor, blank: int) -> Tensor:
    """-log p of each text, (B,): scores (B,S,V), of which each row has `lengths` (B,); tokens (B,T), of which it has
    `sizes` (B,). 0 where a text needs more states than there are.
    """
    logs = scores.float().log_softmax(-1).transpose(0, 1)
    fits = needed(tokens, sizes) <= lengths
    losses = F.ctc_loss(logs, tokens, lengths, sizes, blank=blank, reduction="none", zero_infinity=True)
    return losses.masked_fill(~fits, 0.0)


def needed(tokens: Tensor, sizes: Tensor) -> Tensor:
    """The states that each text needs, (B,): one for each letter, and a blank between two that are equal."""
    inside = torch.arange(1, tokens.shape[1], device=tokens.device) < sizes.unsqueeze(1)
    return sizes + ((tokens[:, 1:] == tokens[:, :-1]) & inside).sum(1)


def state_lengths(states: States, scores: Tensor) -> Tensor:
    """How many states each row of scores (B,S,V) has, (B,)."""
    B, S = scores.shape[:2]
    if states.encoder_padding is None or states.encoder_grid is not None:
        return torch.full((B,), S, device=scores.device)
    return states.encoder_padding.held(S, scores.device).expand(B)
