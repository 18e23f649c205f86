"""Elements on the page: they stand at their places, are chosen by pointer and keys, and hidden by a slider."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from playwright.sync_api import expect

from saccade.data import scenes, tones
from saccade.field.picture import as_url
from saccade.field.sound import Sound, SoundConfig
from saccade.recipe import SoundscapeConfig
from saccade.serve.page import FOLDER

BOXES = [
    {"label": "dog <b>big</b>", "score": 0.9, "place": [0.1, 0.2, 0.9, 0.9]},
    {"label": "cat", "score": 0.4, "place": [0.3, 0.4, 0.5, 0.6]},
    {"label": "cat", "score": 0.7, "place": [0.6, 0.5, 0.8, 0.8]},
]
HTML = """<!doctype html><html lang="en"><meta charset="utf-8"><title>elements</title>
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="style.css"><main id="main"></main>
<script type="module">
import {{ elements }} from "./elements.js";
window.heard = [];
window.made = {given}.map(({{ list, ...options }}) => elements(list, {{ ...options, hover: (n) => heard.push(n) }}));
for (const {{ root }} of window.made) document.getElementById("main").append(root);
</script></html>"""


class Files(SimpleHTTPRequestHandler):
    """The page's own files, and a page that shows some elements."""

    html = b""

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.html)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shown(visits) -> Iterator:
    """Opens a page with elements: a list of options of `elements`, each with its list."""
    served = []

    def opened(*given):
        kind = type("Shown", (Files,), {"html": HTML.format(given=json.dumps(given)).encode()})
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(FOLDER)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served.append(server)
        return visits(f"http://127.0.0.1:{server.server_port}")

    yield opened
    for each in served:
        each.shutdown()
        each.server_close()


def picture(**more):
    pixels = np.random.default_rng(0).integers(0, 120, (3, 30, 40)).astype(np.uint8)
    return {"kind": "patches", "title": "what was found", "address": as_url(pixels), "list": BOXES, **more}


def sound():
    recording, found = tones.example(4, SoundscapeConfig(), split="test-overlap")
    field = Sound.load(SoundConfig(), {"c.sound.json": Sound.made(SoundConfig(), iter([recording]))}, "c", "decoder")
    side = field.side(field.collate(field.encode([recording])))
    seconds = recording.seconds
    listed = [
        {"label": label, "score": 0.95 - 0.1 * n, "place": (corners / seconds).tolist()}
        for n, (label, corners) in enumerate(zip(found.labels, found.corners, strict=True))
    ]
    own = {"kind": "frames", "title": "what was heard", "address": side.shown["picture"], "seconds": seconds}
    return {**own, "list": listed}


def space():
    points, found = scenes.example(3)
    listed = [
        {"label": label, "place": (corners / 10).tolist()}
        for label, corners in zip(found.labels, found.corners, strict=True)
    ]
    return {"kind": "points", "title": "from above", "places": (points[:, :2] / 10).tolist(), "list": listed}


def shares(page, selector):
    """Where the buttons are, as shares of an element: left, top, right, bottom."""
    return page.evaluate(
        """(selector) => {
          const whole = document.querySelector(selector).getBoundingClientRect();
          return [...document.querySelectorAll(".elements button")].map((each) => {
            const { left, top, right, bottom } = each.getBoundingClientRect();
            const x = [left, right].map((at) => (at - whole.left) / whole.width);
            const y = [top, bottom].map((at) => (at - whole.top) / whole.height);
            return [x[0], y[0], x[1], y[1]];
          });
        }""",
        selector,
    )


def test_boxes_stand_at_their_places(shown):
    page = shown(picture()).page
    expect(page.locator(".elements button")).to_have_count(3)
    page.wait_for_function("document.querySelector('.elements img').complete")
    for found, each in zip(shares(page, ".elements img"), BOXES, strict=True):
        assert found == pytest.approx(each["place"], abs=0.01)
    expect(page.locator(".elements button").first).to_have_text("dog <b>big</b> 0.90")
    colours = page.locator(".elements button").evaluate_all(
        "(all) => all.map((b) => b.style.getPropertyValue('--own'))"
    )
    assert colours[1] == colours[2] != colours[0]


def test_one_is_chosen_by_pointer_and_by_keys(shown):
    page = shown(picture()).page
    buttons = page.locator(".elements button")
    page.wait_for_function("document.querySelector('.elements img').complete")
    box = buttons.nth(1).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.evaluate("heard.at(-1)") == 1, "the smaller box lies above the larger one"
    page.mouse.move(1, 1)
    assert page.evaluate("heard.at(-1)") is None
    page.keyboard.press("Tab")
    assert page.evaluate("heard.at(-1)") == 0
    page.keyboard.press("ArrowRight")
    assert page.evaluate("heard.at(-1)") == 1
    expect(buttons.nth(1)).to_be_focused()
    expect(buttons.nth(1)).to_have_class("chosen")
    page.keyboard.press("End")
    assert page.evaluate("heard.at(-1)") == 2
    page.keyboard.press("Tab")
    expect(page.locator("input[type=range]")).to_be_focused()
    assert page.evaluate("heard.at(-1)") is None


def test_the_slider_hides_those_that_are_less_sure(shown):
    page = shown(picture(threshold=0.5)).page
    buttons = page.locator(".elements button")
    expect(buttons.nth(1)).to_be_hidden()
    expect(page.locator("output")).to_have_text("0.50: 2 of 3")
    page.locator(".elements button").first.focus()
    page.keyboard.press("ArrowRight")
    expect(buttons.nth(2)).to_be_focused()
    slider = page.locator("input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    expect(buttons.nth(1)).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator("output")).to_have_text("1.00: 0 of 3")
    assert page.locator(".elements button:visible").count() == 0


def test_events_lie_below_their_sound_in_lanes(shown):
    given = sound()
    page = shown(given).page
    page.wait_for_function("document.querySelector('.elements img').complete")
    found = shares(page, ".elements img")
    for each, wanted in zip(found, given["list"], strict=True):
        assert [each[0], each[2]] == pytest.approx(wanted["place"], abs=0.01)
        assert each[1] > 1
    for n, one in enumerate(found):
        for other in found[:n]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    mark = page.locator(".mark")
    expect(mark).to_be_hidden()
    page.locator(".elements button").nth(1).hover()
    expect(mark).to_be_visible()
    assert "to" in page.locator(".elements button").nth(1).get_attribute("title")


def test_boxes_in_space_are_seen_from_above(shown):
    given = space()
    page = shown(given).page
    assert page.locator("circle").count() == len(given["places"])
    for each, wanted in zip(shares(page, ".elements svg"), given["list"], strict=True):
        x0, y0, _, x1, y1, _ = wanted["place"]
        assert each == pytest.approx([x0, y0, x1, y1], abs=0.02)
    expect(page.locator("input[type=range]")).to_be_hidden()


@pytest.mark.proof
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_kinds_are_seen(shown, keep, scheme):
    visit = shown(picture(), sound(), space())
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.locator(".elements button").nth(4).focus()
    expect(visit.page.locator(".elements")).to_have_count(3)
    keep(visit, f"elements-{scheme}")
