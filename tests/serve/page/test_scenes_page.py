"""A run that foretells tracks, on the page: a scene as JSON, its futures, and whom an agent looks at."""

from __future__ import annotations

import json

import pytest
from address import at
from playwright.sync_api import expect
from small import serving

import saccade

SCENE = [[[0, 0], [1, 0], [2, 0]], [[5, 5], [5, 4], None], [None, [3, 3], [3, 2]]]


@pytest.mark.proof
def test_a_scene_is_foretold_and_its_agents_are_looked_at(visits, tmp_path):
    keys = ["data.examples=60", "data.held=10", "model.encoder=1", "train.steps=2", "train.every=1", "train.warmup=1"]
    run = saccade.train("lanes-tracks", run=tmp_path / "run", options=[*keys, "y.count=3", "y.spread=0"])
    with serving({"lanes": run}) as house:
        visit = visits(house.url, at("lanes"))
        page = visit.page
        expect(page.locator("#give")).to_have_text("Give a scene above")
        first = page.locator("#samples .sample").first
        expect(first).to_contain_text("8 steps")
        first.click()
        visit.ready()
        agents = page.locator(".network .over .token")
        given = json.loads(page.locator("#tracks").input_value())
        assert agents.count() == len(given)
        assert page.locator(".network .ways .came").count() == len(given)
        assert page.locator(".network .ways .first").count() == len(given)
        page.fill("#tracks", json.dumps(SCENE))
        page.click("#ask")
        visit.ready()
        expect(agents).to_have_count(3)
        expect(page.locator("#answer")).to_contain_text(run.predict([saccade_scene()])[0].text)
        expect(page.locator(".network .ways .first")).to_have_count(2)  # the second was not seen last
        assert page.locator(".network .looks line").count() == 0, "all together have no lines"
        agents.nth(0).hover()
        expect(page.locator(".network .hint")).to_have_text("what \u20181\u2019 looks at")
        expect(page.locator(".network .looks line").first).to_be_attached()
        page.fill("#tracks", '[[[0, 1], [2, "x"]]]')
        page.click("#ask")
        expect(page.locator("#problem")).to_contain_text("a place is numbers, or null where it is not there")
        visit.forgive("400")


def saccade_scene():
    from saccade.field.tracks.scene import checked

    return checked(SCENE, "this")
