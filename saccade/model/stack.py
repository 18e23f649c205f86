"""A stack of blocks with one position and, where the order asks for it, a last norm."""

from __future__ import annotations

from torch import Tensor, nn

from saccade.attend.mask import Mask, as_mask
from saccade.attend.position import Position, as_position
from saccade.config import ModelConfig
from saccade.model.block import Block, BlockCache
from saccade.model.norm import NORMS


class Stack(nn.Module):
    """(B,T,C) -> (B,T,C). A decoder is causal, and looks at a context if there is an encoder."""

    def __init__(self, config: ModelConfig, *, decoder: bool) -> None:
        super().__init__()
        depth = config.decoder if decoder else config.encoder
        cross = decoder and config.encoder > 0
        alpha, _ = deep(config.encoder, config.decoder, decoder) if config.order == "deep" else (1.0, 1.0)
        position: Position | str | None = layer_position(config, decoder)
        if config.share_position:
            head_width = config.width // config.heads if config.head_width is None else config.head_width
            position = as_position(position, head_width=head_width, heads=config.heads, input_width=config.width)
        self.blocks = nn.ModuleList(
            Block(config, mask=_mask(config, decoder, number), position=position, cross=cross, alpha=alpha)
            for number in range(depth)
        )
        last = config.order in ("pre", "parallel") if config.final_norm is None else config.final_norm
        self.norm = NORMS[config.norm](config.width, config.epsilon) if last else None

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Mask | None = None,
        context_mask: Mask | None = None,
        caches: list[BlockCache] | None = None,
    ) -> Tensor:
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            x = block(x, context, mask=mask, context_mask=context_mask, cache=cache)
        return x if self.norm is None else self.norm(x)


def layer_position(config: ModelConfig, decoder: bool) -> str | None:
    """The position that layers use; those of the input belong to the embedding. A decoder's t5 looks one way."""
    name = None if config.position is None else config.position.partition("(")[0].strip()
    if name in (None, "sinusoid", "learned"):
        return None
    if name == "t5" and decoder and config.position is not None:
        arguments = config.position.partition("(")[2].rstrip(") ")
        return f"t5({arguments + ', ' if arguments else ''}bidirectional=False)"
    return config.position


def deep(encoder: int, decoder: int, is_decoder: bool) -> tuple[float, float]:
    """DeepNet's alpha (of the residual) and beta (of the initial weights), for N encoder and M decoder layers."""
    N, M = encoder, decoder
    if N and M:
        if is_decoder:
            return (3 * M) ** 0.25, (12 * M) ** -0.25
        return 0.81 * (N**4 * M) ** (1 / 16), 0.87 * (N**4 * M) ** (-1 / 16)
    return (2 * (N + M)) ** 0.25, (8 * (N + M)) ** -0.25


def _mask(config: ModelConfig, decoder: bool, number: int) -> Mask | None:
    """What layer `number` may look at: causal in a decoder, the model's mask, and its letter of the pattern."""
    specs = ["causal"] if decoder else []
    specs += [config.mask] if config.mask else []
    specs += [config.masks[config.pattern[number % len(config.pattern)]]] if config.pattern else []
    mask = None
    for each in specs:
        mask = as_mask(each) if mask is None else mask & as_mask(each)
    return mask
