"""Word vectors as the beginning of a model's embedding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import saccade
from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.recipes.read import from_values
from saccade.store.run import Run
from saccade.words import Vectors
from saccade.words.embedding import begin

TEXT = "the cat saw the dog and the dog saw the cat again\n" * 23
NAMES = ["the", "cat", "dog", "elsewhere"]


def vectors(width: int = 12) -> Vectors:
    return Vectors(NAMES, np.random.default_rng(0).normal(size=(4, width)).astype(np.float32) * 7)


def recipe(tmp_path, **train):
    (tmp_path / "a.txt").write_text(TEXT)
    values = {
        "task": "write",
        "data": {"files": [str(tmp_path / "a.txt")], "tokenizer": "words", "vocab": 30, "share": 0.2},
        "model": {"width": 12, "heads": 2, "hidden": 16, "decoder": 1, "position": "rotary"},
        "train": {"steps": 3, "batch": 34, "length": 17, "every": 3, "rate": 1e-9, **train},
    }
    return from_values(values)


def row(run: Run, word: str) -> torch.Tensor:
    assert run.tokenizer is not None
    return run.model.embed.tokens.weight[run.tokenizer.token_to_id(word)].detach()


def test_the_rows_of_known_words_begin_with_their_vectors(tmp_path):
    vectors().save(tmp_path / "vectors")
    run = saccade.train(recipe(tmp_path, embedding=str(tmp_path / "vectors")), run=tmp_path / "run")
    plain = saccade.train(recipe(tmp_path), run=tmp_path / "plain")
    known = torch.from_numpy(vectors().matrix[:3])
    found = torch.stack([row(run, word) for word in NAMES[:3]])
    spread = plain.model.embed.tokens.weight.std()
    torch.testing.assert_close(found, known / known.std() * spread, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(row(run, "saw"), row(plain, "saw"))
    again = saccade.load(tmp_path / "run")
    assert again.recipe is not None
    assert again.recipe.train.embedding == str(tmp_path / "vectors")


def test_a_run_goes_on_without_its_vectors(tmp_path):
    folder = vectors().save(tmp_path / "vectors")
    asked = recipe(tmp_path, embedding=str(folder))
    saccade.train(asked, run=tmp_path / "run")
    folder.rename(tmp_path / "gone")
    assert saccade.train(asked, run=tmp_path / "run").step == 3


def test_tokens_of_bytes_are_words_without_their_space():
    text = Text.train([TEXT], "bpe", vocab=290)
    table = torch.randn(text.vocab, 5, generator=torch.Generator().manual_seed(0))
    before = table.clone()
    count = begin(table, text, vectors(5))
    changed = {text.spell(each).decode() for each in (table != before).any(1).nonzero().flatten().tolist()}
    assert {" the", " cat", " dog"} <= changed
    assert {each.strip() for each in changed} <= set(NAMES)
    assert count == len(changed)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (vectors(7), "width 7 and the model has 12: set model.width = 7"),
        (Vectors(["x", "y"], np.eye(2, 12, dtype=np.float32)), "no token is a word"),
    ],
)
def test_vectors_that_do_not_fit_are_told(tmp_path, made, message):
    made.save(tmp_path / "vectors")
    with pytest.raises(SaccadeError, match=message):
        saccade.train(recipe(tmp_path, embedding=str(tmp_path / "vectors")), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(SaccadeError, match="no folder of word vectors"):
        saccade.train(recipe(tmp_path, embedding=str(tmp_path / "nowhere")), run=tmp_path / "run")


def test_start_and_embedding_exclude_each_other(tmp_path):
    values = recipe(tmp_path, embedding="x").model_dump(exclude_none=True)
    del values["model"]
    with pytest.raises(SaccadeError, match=r"leave out train\.embedding"):
        from_values({**values, "start": "somewhere"})
