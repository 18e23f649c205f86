"""How the states (B,T,C) of an input become one vector (B,C), which a label or numbers are told from.

first       that of the first token (BERT), or of the class token (ViT)
last        that of the last token
mean        the mean of all; class tokens and registers do not count
attention   sum_t softmax_t(w x_t + b) x_t: a mean with learned weights (Hassani et al. 2021, "sequence pooling")
first+mean  the first, and the mean of the others beside it, (B,2C) (Oquab et al. 2023, DINOv2)
max, sum    of each channel; class tokens and registers do not count (Zaheer et al. 2017, DeepSets); a sum tells how
            many there are (Xu et al. 2019)
seeds(k)    what k learned vectors find in them: (B,C) of one, (B,k,C) of several (Lee et al. 2019, "PMA")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.ask import SeedPool
from saccade.model.mixer import state_to_pool
from saccade.model.padded import PaddedRows
from saccade.model.parts import EncoderOutput, Parts

SIDE_BY_SIDE = {"first+mean": 2}  # pools that give more than one vector


class Pool(nn.Module):
    """states (B,T,C) -> (B,C). extras: how many vectors before the input stand for no part of it."""

    def __init__(self, name: str, width: int, extras: int = 0, config: ModelConfig | None = None) -> None:
        """config: of the model, for seeds, which look as its blocks do."""
        super().__init__()
        self.name, self.extras = name, extras
        self.weigh = nn.Linear(width, 1) if name == "attention" else None
        self.seeds: SeedPool | None = None
        if config is not None and config.seeds:
            wide = config.model_copy(update={"width": width})
            self.seeds = SeedPool(Parts(wide, source=EncoderOutput(width, "mean")), config.seeds)

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        taken = {"last": "last"} if self.extras else {"first": "first", "last": "last", "first+mean": "first"}
        return {"permutation": f"the pool takes the {taken[self.name]} state"} if self.name in taken else {}

    def forward(self, states: Tensor, mask: padding | None = None) -> Tensor:
        if not states.shape[1]:
            raise SaccadeError("a pooler reads the state of a token, and these sequences have none: give one at least")
        if self.seeds is not None:
            return self.seeds(states, mask)
        rows = PaddedRows(states, mask, "a pooler")
        return POOLS[self.name](self, rows, rows.align(states))


def _mean(pool: Pool, rows: PaddedRows, states: Tensor) -> Tensor:
    return rows.mean(states, pool.extras)


def _attention(pool: Pool, rows: PaddedRows, states: Tensor) -> Tensor:
    assert pool.weigh is not None
    scores = pool.weigh(states).squeeze(2)  # (B,T)
    if rows.real is not None:
        real = rows.real.squeeze(2) | ~rows.real.any(1)  # of nothing: zeros, whatever they weigh
        scores = scores.masked_fill(~real, -torch.inf)
    return (scores.softmax(1).unsqueeze(1) @ states).squeeze(1)


def _first_and_mean(pool: Pool, rows: PaddedRows, states: Tensor) -> Tensor:
    return torch.cat((rows.first(states), rows.mean(states, pool.extras)), 1)


def pool_of(config: ModelConfig) -> str:
    """The name of a model's pool. With `auto` it is a state that has seen all tokens: the first, as in BERT; the last,
    where a state goes from one to the next; else the mean of all.
    """
    if config.pool != "auto":
        return config.pool
    return "last" if config.decoder else state_to_pool(config.mixers(decoder=False))


POOLS: dict[str, Callable[[Pool, PaddedRows, Tensor], Tensor]] = {
    "first": lambda pool, rows, states: rows.first(states),
    "last": lambda pool, rows, states: rows.last(states),
    "mean": _mean,
    "attention": _attention,
    "first+mean": _first_and_mean,
    "max": lambda pool, rows, states: rows.most(states, pool.extras),
    "sum": lambda pool, rows, states: rows.sum(states, pool.extras),
}
