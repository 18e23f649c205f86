"""A run that finds things, on the page: a picture, the boxes on it, where each query looked, and a threshold."""

from __future__ import annotations

import numpy as np
import pytest
from address import at
from playwright.sync_api import expect
from small import serving

import saccade
from saccade import png
from saccade.data import shapes

SMALL = [
    "train.steps=2",
    "train.every=1",
    "train.batch=4",
    "data.examples=30",
    "data.held=6",
    "model.width=16",
    "model.hidden=16",
    "model.heads=2",
    "model.encoder=1",
    "model.decoder=1",
    "y.queries=9",
    "y.threshold=0",
]


@pytest.mark.proof
def test_a_picture_is_given_and_what_was_found_is_looked_at(visits, tmp_path):
    run = saccade.train("shapes-detr", run=tmp_path / "run", options=SMALL)
    with serving({"finder": run}) as house:
        _visited(visits(house.url, at("finder")), tmp_path)


def _visited(visit, tmp_path):
    page = visit.page
    picture, _ = shapes.example(1, split="test")
    (tmp_path / "mine.png").write_bytes(png.encode(np.asarray(picture)))
    page.set_input_files("#image", tmp_path / "mine.png")
    page.click("#ask")
    visit.ready()
    found = page.locator(".queries .over button")
    assert found.count() == 9
    expect(found.first).to_have_text(found.first.get_attribute("title"))
    expect(page.locator(".patches .hint")).to_have_text("what all look at, in the mean")
    slider = page.locator("#answer input[type=range]")
    slider.fill("1")
    expect(page.locator(".queries .over button:not([hidden])")).to_have_count(0)
    slider.fill("0")
    expect(page.locator(".queries .over button:not([hidden])")).to_have_count(9)
    found.last.focus()
    last = found.last.get_attribute("title")
    expect(page.locator(".patches .hint")).to_contain_text(last.split()[0])
