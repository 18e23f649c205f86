"""`Settings`: how word vectors are trained. The names are those of `saccade words -o name=value`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from saccade.config import Config

Kind = Literal["skipgram", "cbow", "glove"]


class Settings(Config):
    """How word vectors are trained; what is None depends on the kind."""

    kind: Kind = "skipgram"
    width: int = Field(100, ge=1, le=10_000, description="numbers of a vector")
    window: int = Field(5, ge=1, le=100, description="words on either side, at most, that are a word's context")
    negative: int = Field(5, ge=1, description="words drawn by chance against each true one (skipgram, cbow)")
    epochs: int | None = Field(None, ge=1, description="times that the text is gone through: 5, or 25 for glove")
    least: int = Field(5, ge=1, description="occurrences of a word that is kept")
    sample: float = Field(
        1e-3, ge=0, description="share of the text from which a word is thinned out; 0: none is (skipgram, cbow)"
    )
    rate: float | None = Field(None, gt=0, description="the learning rate: 0.025, or 0.05 for glove")
    enough: float = Field(10.0, gt=0, description="co-occurrences from which a pair counts in full (glove)")
    seed: int = Field(0, ge=0, lt=1 << 63)
    cut: Literal["words", "split"] = Field("words", description="split: at spaces alone, for a tokenised text")
    lower: bool = True

    @model_validator(mode="after")
    def _check_used(self) -> Self:
        """Refuses settings that have no effect for the kind."""
        others = ("negative", "sample") if self.kind == "glove" else ("enough",)
        unused = next((name for name in others if name in self.model_fields_set), None)
        if unused is not None:
            raise ValueError(f"{unused} does nothing for {self.kind}: leave it out")
        return self

    @property
    def passes(self) -> int:
        """The epochs; those of the kind by default."""
        return self.epochs or (25 if self.kind == "glove" else 5)

    @property
    def pace(self) -> float:
        """The learning rate; that of the kind by default."""
        return self.rate or (0.05 if self.kind == "glove" else 0.025)
