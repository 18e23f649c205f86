"""`Parts`: makes what a block is made of, as its configuration says."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.config import ModelConfig
from saccade.model.feed import Experts, FeedForward
from saccade.model.mixer import as_mixer, knowing
from saccade.model.norm import NORMS


class Source(NamedTuple):
    """What a decoder's blocks know of the encoder: how wide its states are, and which of them knows of all others."""

    width: int
    knows: str

    @staticmethod
    def of(config: ModelConfig) -> Source:
        """The encoder of a model."""
        return Source(config.stack(decoder=False).width, knowing(config.mixers(decoder=False)))


class Parts(NamedTuple):
    """One block in words: the configuration of its stack, and what is its own in it."""

    config: ModelConfig
    mask: Mask | str | None = None
    position: Position | str | None = None
    summary: nn.Module | str | None = None
    mixer: str = "attention"
    number: int = 0
    causal: bool = False
    source: Source = Source(0, "first")

    @property
    def mixes(self) -> str:
        """The name of what mixes, and of its norm."""
        return "attention" if self.mixer == "attention" else "mixer"

    def mixing(self) -> nn.Module:
        """How its positions meet."""
        if self.mixes == "attention":
            return self._attention(self.mask, self.position, self.summary)
        return as_mixer(self.mixer, width=self.config.width, causal=self.causal, number=self.number)

    def looking(self) -> Attention:
        """Attention to the source."""
        return self._attention(context_width=self.source.width)

    def norm(self, width: int | None = None) -> nn.Module:
        """Of a vector, or of one of another width."""
        return NORMS[self.config.norm](self.config.width if width is None else width, self.config.epsilon)

    def feed(self) -> nn.Module | None:
        """What each vector does on its own; None: nothing."""
        config = self.config
        if config.feed == "none":
            return None
        if not config.experts:
            return self._feed_forward()
        return Experts(self._feed_forward, config.width, config.experts, config.chosen, config.capacity)

    def _feed_forward(self) -> FeedForward:
        config, hidden = self.config, self.config.hidden
        hidden = 4 * config.width if hidden is None else hidden
        return FeedForward(config.width, hidden, config.feed, bias=config.bias, dropout=config.dropout)

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
            dropout=config.dropout if config.attention_dropout is None else config.attention_dropout,
        )
