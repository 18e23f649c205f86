"""A run that reads graphs, on the page: a sample, a graph of one's own, and where a node looks that is pointed at."""

from __future__ import annotations

import json
import math

import pytest
from address import at
from playwright.sync_api import expect
from small import serving

import saccade
from saccade.recipes.read import from_values

PATH = {"nodes": [[1], [1], [1], [1]], "edges": [[0, 1], [1, 2], [2, 3]]}


def recipe():
    return from_values(
        {
            "task": "classify",
            "data": {"name": "motifs", "examples": 60, "held": 10},
            "x": {"source": {"kind": "graph"}},
            "y": {"kind": "label"},
            "model": {"width": 12, "heads": 2, "hidden": 16, "encoder": 2, "mask": "neighbours(loops=True)"},
            "train": {"steps": 2, "batch": 100, "every": 1, "warmup": 1},
        }
    )


@pytest.mark.proof
def test_a_graph_is_asked_and_its_nodes_are_looked_at(visits, tmp_path):
    run = saccade.train(recipe(), run=tmp_path / "run")
    with serving({"motifs": run}) as house:
        _visited(run, visits(house.url, at("motifs")))


def _visited(run, visit):
    page = visit.page
    expect(page.locator("#give")).to_have_text("Give a graph above")
    first = page.locator("#samples .sample").first
    expect(first).to_contain_text("nodes")
    first.click()
    visit.ready()
    given = json.loads(page.locator("#graph").input_value())
    nodes = page.locator(".network .over .token")
    assert nodes.count() == len(given["nodes"])
    assert page.locator(".network .edges line").count() == len({tuple(sorted(each)) for each in given["edges"]})
    page.fill("#graph", json.dumps(PATH))
    page.click("#ask")
    visit.ready()
    expect(nodes).to_have_count(4)
    expect(page.locator("#answer")).to_contain_text(run.predict([PATH])[0].text)
    assert page.locator(".network .looks line").count() == 0, "all together have no lines"
    nodes.nth(1).hover()
    expect(page.locator(".network .looks line")).to_have_count(2)
    expect(page.locator(".network .hint")).to_have_text("what \u20181\u2019 looks at")
    ends = page.locator(".network .looks line").evaluate_all(
        "(all) => all.map((l) => [l.x1, l.y1].map((e) => e.baseVal.value))"
    )
    box = page.locator(".network .over").bounding_box()
    here = nodes.nth(1).bounding_box()
    for x, y in ends:
        across, down = box["x"] + x * box["width"] / 100, box["y"] + y * box["height"] / 100
        away = math.dist((across, down), (here["x"] + here["width"] / 2, here["y"] + here["height"] / 2))
        assert away < 2, "lines begin at the node that is pointed at"
    nodes.nth(0).click()
    expect(nodes.nth(0)).to_have_class("token looker")
    page.fill("#graph", '{"nodes": [[1]], "edges": [[0, 7]]}')
    page.click("#ask")
    expect(page.locator("#problem")).to_contain_text("7")
    visit.forgive("400")


@pytest.mark.proof
def test_what_is_said_of_pairs_is_a_map(visits, tmp_path):
    keys = ["train.steps=2", "train.every=1", "train.warmup=1", "model.encoder=1", "data.held=10", "data.examples=50"]
    run = saccade.train("distances", run=tmp_path / "run", options=keys)
    with serving({"distances": run}) as house:
        visit = visits(house.url, at("distances"))
        page = visit.page
        page.locator("#samples .sample").first.click()
        visit.ready()
        page.select_option("#layer", "pairs")
        expect(page.locator("#python")).to_contain_text("pairs")
        expect(page.locator("#problem")).to_be_hidden()
        visit.ready()
