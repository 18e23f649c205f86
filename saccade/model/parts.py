"""`Parts`: makes the modules of a block, as its configuration says."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.config import ModelConfig
from saccade.model.feed import Experts, FeedForward
from saccade.model.mixer import as_mixer, state_to_pool
from saccade.model.norm import NORMS


class EncoderOutput(NamedTuple):
    """What blocks need to know of the states that they look at: their width, and which one to pool."""

    width: int
    pool: str  # first, last or mean

    @staticmethod
    def looked_at_by(config: ModelConfig, decoder: bool) -> EncoderOutput | None:
        """The states that a stack of this model looks at: a decoder at the encoder's, an encoder at the other inputs'
        where they are its context; None: at nothing.
        """
        if decoder and config.encoder:
            return EncoderOutput(config.encoder_width, state_to_pool(config.mixers(decoder=False)))
        if config.join == "context" and not decoder:
            return EncoderOutput(config.stack(decoder=False).width, "mean")
        return None


class Parts(NamedTuple):
    """What one block is made from: the configuration of its stack, and what differs from block to block."""

    config: ModelConfig
    mask: Mask | str | None = None
    position: Position | str | None = None
    summary: nn.Module | str | None = None
    mixer: str = "attention"
    number: int = 0
    causal: bool = False
    source: EncoderOutput = EncoderOutput(0, "first")

    @property
    def mixes(self) -> str:
        """The name of the module in which positions meet, and of its norm."""
        return "attention" if self.mixer == "attention" else "mixer"

    def mixing(self) -> nn.Module:
        """Self-attention, or another mixer."""
        if self.mixes == "attention":
            return self._attention(self.mask, self.position, self.summary)
        return as_mixer(self.mixer, width=self.config.width, causal=self.causal, number=self.number, parts=self)

    def looking(self) -> Attention:
        """Attention to the source."""
        return self._attention(context_width=self.source.width)

    def norm(self, width: int | None = None) -> nn.Module:
        """A norm of the model's width, or of another."""
        return NORMS[self.config.norm](self.config.width if width is None else width, self.config.epsilon)

    def feed(self) -> nn.Module | None:
        """The feed-forward part or experts; None: neither."""
        config = self.config
        if config.feed == "none":
            return None
        if not config.experts:
            return self._feed_forward()
        return Experts(self._feed_forward, config.width, config.experts, config.chosen, config.capacity)

    def _feed_forward(self) -> FeedForward:
        config, hidden = self.config, self.config.hidden
        hidden = 4 * config.width if hidden is None else hidden
        dropout = config.dropout if config.feed_dropout is None else config.feed_dropout
        return FeedForward(config.width, hidden, config.feed, bias=config.bias, dropout=dropout)

    def _attention(
        self,
        mask: Mask | str | None = None,
        position: Position | str | None = None,
        summary: nn.Module | str | None = None,
        context_width: int | None = None,
    ) -> Attention:
        config = self.config
        return Attention(
            config.width,
            config.heads,
            kv_heads=config.kv_heads,
            context_width=context_width,
            head_width=config.head_width,
            head_norm=self.norm if config.head_norm else None,
            score=config.score,
            normaliser=config.normaliser,
            mask=mask,
            position=position,
            summary=summary,
            bias=config.bias if config.attention_bias is None else config.attention_bias,
            project=config.project,
            gate=config.gate,
            dropout=config.dropout if config.attention_dropout is None else config.attention_dropout,
        )
