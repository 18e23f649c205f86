"""Mixup: pairs of examples blended into one, against its formula; drawn again alike, and not at use."""

from __future__ import annotations

import numpy as np
import photos
import pytest
import torch
import torch.nn.functional as F

import saccade
from saccade.data.rows import Picked
from saccade.field.image import Image, ImageConfig
from saccade.field.label import Label, LabelConfig
from saccade.field.numbers import Numbers, NumbersConfig, Spread
from saccade.learn import loop
from saccade.recipe import TrainConfig
from saccade.recipes.read import from_values
from saccade.task.batch import states_of
from saccade.task.task import Task

COUNT, NAMES = 7, ["a", "b", "c"]
DRAW = np.random.default_rng(3)
PIXELS = DRAW.integers(0, 256, (COUNT, 3, 8, 12)).astype(np.uint8)


def image():
    config = ImageConfig(embed="patches(4)")
    raws = list(PIXELS.transpose(0, 2, 3, 1))
    return Image.load(config, {"c.image.json": Image.made(config, raws)}, "c", "pooled")


def task(y, objective="mixup(0.4)"):
    return Task("classify", {"source": image()}, "label", y, objective=objective)


def picked(**y):
    return Picked({"source": {"pixels": PIXELS}, "label": y}, None, False)


def blend(seed=5):
    draw = np.random.default_rng(seed)
    return draw.permutation(COUNT), draw.beta(0.4, 0.4, COUNT).astype(np.float32)


@pytest.mark.parametrize("keys", [{}, {"smoothing": 0.1}, {"agree": 0.7}])
def test_pictures_are_laid_over_each_other_and_both_labels_count(keys):
    made = task(Label(NAMES, LabelConfig(**keys)))
    numbers = np.array([0, 2, 1, 1, 0, 2, 2], np.uint32)
    plain, mixed = (made.batch(picked(number=numbers), draw) for draw in (None, np.random.default_rng(5)))
    other, share = blend()
    assert (share < 0.4).any()
    assert (share > 0.6).any()
    before, after = (each.x["source"].values["pixels"] for each in (plain, mixed))
    for n in range(COUNT):
        torch.testing.assert_close(after[n], float(share[n]) * before[n] + (1 - float(share[n])) * before[other[n]])
    torch.manual_seed(0)
    config = saccade.ModelConfig(width=12, heads=2, encoder=1)
    model = saccade.build(made.configure(config))
    found = made.terms(model, mixed, TrainConfig(steps=1))["label"].sum
    assert mixed.counts == {"label": COUNT}
    logs = model.say(states_of(model, mixed)).log_softmax(-1)
    smoothing, wanted = keys.get("smoothing", 0.0), 0.0
    for n, log in enumerate(logs):  # without dropout two passes agree, and `agree` adds nothing
        for label, weight in ((numbers[n], share[n]), (numbers[other[n]], 1 - share[n])):
            wanted += weight * F.cross_entropy(log, torch.tensor(int(label)), label_smoothing=smoothing)
    torch.testing.assert_close(found, wanted)


def test_numbers_are_those_between_both():
    made = task(Numbers(Spread([1.0, 0.0], [2.0, 1.0]), NumbersConfig()))
    values = DRAW.standard_normal((COUNT, 2))
    other, share = blend()
    between = share[:, None] * values + (1 - share[:, None]) * values[other]
    found = made.batch(picked(values=values), np.random.default_rng(5)).y.values["values"]
    torch.testing.assert_close(found, torch.from_numpy((between - [1, 0]) / [2, 1]).float())


def test_the_same_draw_blends_alike_and_at_use_nothing_is_blended():
    made, numbers = task(Label(NAMES)), np.arange(COUNT) % 3
    first, again, another = (made.batch(picked(number=numbers), np.random.default_rng(each)) for each in (5, 5, 6))
    assert torch.equal(first.x["source"].values["pixels"], again.x["source"].values["pixels"])
    assert not torch.equal(first.x["source"].values["pixels"], another.x["source"].values["pixels"])
    assert made.batch(picked(number=numbers)).y.values.keys() == {"number"}


def test_augmented_and_blended_training_goes_on_as_if_never_stopped(tmp_path):
    folder = photos.photos(tmp_path)
    source = {"augment": "crop(1) flip(0.2) erase(0.3) turn(10) colour(0.1)"}
    made = photos.recipe(
        folder, x={"source": {"kind": "image", "embed": "patches(4)", **source}}, train={"objective": "mixup"}
    )
    values = made.model_dump(exclude_none=True)
    long = from_values({**values, "train": {**values["train"], "schedule": "constant"}})
    whole = saccade.train(long, run=tmp_path / "whole")

    def stop(self, *args, before=loop.Loop._finish_step):
        self.stop = 2 if self.state["step"] == 3 else 0
        before(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Loop, "_finish_step", stop)
        with pytest.raises(loop.Stopped):
            saccade.train(long, run=tmp_path / "parts")
    parts = saccade.train(tmp_path / "parts")
    assert parts.step == whole.step == 6
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("objective", "told"), [("mixup(0)", "alpha above 0; got 0"), ("mixup(some)", "got some"), ("mixups", "'mixup'")]
)
def test_a_wrong_alpha_is_told_before_anything_is_read(tmp_path, objective, told):
    made = photos.recipe(photos.photos(tmp_path), train={"objective": objective})
    with pytest.raises(saccade.SaccadeError, match=told):
        saccade.train(made, run=tmp_path / "run")


def test_texts_cannot_be_blended(tmp_path):
    (tmp_path / "texts.tsv").write_text("good film\tyes\nbad film\tno\n" * 20)
    with pytest.raises(saccade.SaccadeError, match="with text that cannot be done"):
        saccade.train("classify", files=tmp_path / "texts.tsv", run=tmp_path / "run", options=["train.objective=mixup"])
