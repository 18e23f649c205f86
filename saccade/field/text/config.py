"""The keys of a text in a recipe: as X, as Y after an X, and as Y alone, one long stream."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from saccade.config import Config

Written = Literal[
    "exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio", "wer", "cer"
]  # metrics of texts


class TextConfig(Config):
    """What every text has."""

    kind: Literal["text"] = Field("text", description="text")
    tokenizer: Literal["characters", "words", "split", "bpe"] = Field(
        "bpe", description="words: with their punctuation apart; split: at spaces alone; bpe: sub-words of bytes"
    )
    vocab: int = Field(8000, ge=5, description="tokens at most, the four special ones included")
    lower: bool = Field(False, description="texts are read in lower case")


class SourceTextConfig(TextConfig):
    """A text as X."""

    limit: int | None = Field(256, ge=1, description="tokens of the longest example")
    unmerge: float = Field(
        0.0, ge=0, lt=1, description="share of sub-words shown as the two they were merged from, anew in each epoch"
    )


class TargetTextConfig(SourceTextConfig):
    """A text as Y, written after an X."""

    language: str | None = Field(
        None, pattern=r"^\w+$", description="of Moses' rules, for BLEU; told by the data where it is left out"
    )
    smoothing: float = Field(0.0, ge=0, lt=1, description="of labels: the share that all tokens have alike")
    agree: float = Field(
        0.0,
        ge=0,
        description="how much two passes under dropout should say the same (R-Drop); a step takes twice as long",
    )
    ctc: float = Field(
        0.0,
        ge=0,
        description="weight of a second loss: X alone tells the text, letter by letter along its states (CTC)",
    )
    metrics: list[Written] | None = Field(
        None, min_length=1, description="those that are shown; by default BLEU only where references have four words"
    )


class StreamedTextConfig(TextConfig):
    """A text as Y alone: windows of one long stream of tokens."""

    window: int = Field(256, ge=1, description="tokens of a window")
    ask: str | None = Field(
        None, description="this token and the next are a question; what follows, the answers, alone counts"
    )
    smoothing: float = Field(0.0, ge=0, lt=1, description="of labels: the share that all tokens have alike")
    agree: float = Field(
        0.0,
        ge=0,
        description="how much two passes under dropout should say the same (R-Drop); a step takes twice as long",
    )
