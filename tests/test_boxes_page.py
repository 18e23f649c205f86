"""What docs/boxes.md says of a backbone from crops can be done as it is written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch
from absent import data_set

import saccade
from saccade.recipes import read as recipes

PAGE = (Path(__file__).parents[1] / "docs" / "boxes.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
EMBED = "x.source.embed=convolutions((5, 7), steps=(2, 2, 2))"
SHAPE = ["model.width=8", "model.hidden=11", "model.heads=2", "model.encoder=1"]
SHORT = ["train.every=1", "train.warmup=0"]


def test_the_classifier_of_the_page_sees_as_the_detector_does():
    recipe = recipes.recipe("bccd-detr")
    assert f"'x.source.embed={recipe.x['source']['embed']}'" in PAGE
    assert recipe.model is not None
    for name in ("width", "heads", "hidden", "encoder"):
        assert f"-o model.{name}={getattr(recipe.model, name)}" in PAGE


@pytest.mark.proof
def test_a_backbone_from_crops(tmp_path, monkeypatch, command):
    monkeypatch.setenv("SACCADE_DATA", str(data_set("bccd").parent))
    monkeypatch.chdir(tmp_path)

    def run(block):
        (tmp_path / "block.py").write_text(BLOCKS[block])
        runpy.run_path(str(tmp_path / "block.py"))

    def train(*words, options):
        done = command("train", *words, *(part for each in options for part in ("-o", each)))
        assert done.returncode == 0, done.stderr

    run(0)
    counts = {each.name: len(list(each.iterdir())) for each in (tmp_path / "cells").iterdir()}
    assert counts == {"RBC": 197, "WBC": 214, "Platelets": 209}
    cells = [EMBED, *SHAPE, *SHORT, "x.source.size=16", "train.steps=2"]
    train("classify", "--files", "cells", "--run", "runs/cells", options=cells)
    seen = [*SHORT, "data.first=7", "train.batch=4"]
    train("bccd-detr", "--run", "runs/cold", options=[*seen, EMBED, *SHAPE, "model.decoder=1", "train.steps=1"])
    run(1)
    learned, warm = saccade.load("runs/cells"), saccade.load("runs/warm")
    for name, weights in warm.model.state_dict().items():
        if name.startswith(("embed.", "encoder.")):
            assert torch.equal(weights, learned.model.state_dict()[name])
    train("bccd-detr", "--run", "runs/boxes", options=[*seen, "train.steps=2", "start=runs/warm"])
