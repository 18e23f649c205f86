"""A run that reads sounds, on the page: a sample, a file, and where each letter listened."""

from __future__ import annotations

import numpy as np
import pytest
from address import at
from learn.heard import recipe
from playwright.sync_api import expect
from small import serving

import saccade
from saccade.field.recording import Recording


@pytest.mark.proof
def test_a_sound_is_asked_and_its_letters_are_looked_at(visits, tmp_path):
    run = saccade.train(recipe(tmp_path), run=tmp_path / "run")
    with serving({"heard": run}) as house:
        _visited(run, visits(house.url, at("heard")), tmp_path)


def _visited(run, visit, tmp_path):
    page = visit.page
    expect(page.locator("#give")).to_have_text("Choose a sound above")
    page.locator("#samples .sample").first.click()
    visit.ready()
    frames = page.locator(".frames[data-side=source] button")
    assert frames.count() > 3
    expect(page.locator(".heard")).to_be_visible()
    boxes = frames.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().x)")
    assert boxes == sorted(boxes), "along the time, from the left to the right"
    tone = Recording((8000 * np.sin(np.arange(1600) / 4)).astype(np.int16), 8000)
    (tmp_path / "mine.wav").write_bytes(tone.wav())
    (tmp_path / "notes.txt").write_text("no sound")
    page.set_input_files("#sound", tmp_path / "notes.txt")
    expect(page.locator(".chooser .hint")).to_have_text("This file is no sound.")
    page.set_input_files("#sound", tmp_path / "mine.wav")
    page.click("#ask")
    visit.ready()
    expect(page.locator("#answer")).to_contain_text(run.predict(tone)[0].text)
