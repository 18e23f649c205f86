"""A run that reads pictures, on the page: chosen, answered, looked into part by part."""

from __future__ import annotations

import numpy as np
from address import at, kept
from playwright.sync_api import expect

import saccade
from saccade import png


def test_a_sample_is_asked_and_its_parts_are_looked_at(site, folder, visits, keep):
    visit = visits(site, at("photos"))
    page = visit.page
    expect(page.locator("#give")).to_have_text("Choose a picture above")
    expect(page.locator("#run-about")).to_contain_text("classifies")
    expect(page.locator("#samples .sample img")).to_have_count(3)
    page.locator("#samples .sample").first.click()
    visit.ready()
    run = saccade.load(folder / "runs" / "photos")
    parts = page.locator(".patches[data-side=picture] button")
    expect(parts).to_have_count(6)
    expect(page.locator("#answer")).to_contain_text(run.predict(_read(page))[0].text)
    parts.nth(4).click()
    visit.still()
    shades = parts.evaluate_all("(all) => all.map((each) => getComputedStyle(each).backgroundColor)")
    weights = run.look(_read(page)).map().values[4]
    assert len(set(shades)) > 1
    assert shades[int(weights.argmax())] == _strongest(page, shades), "the largest weight has the strongest colour"
    boxes = parts.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().toJSON())")
    whole = page.locator(".patches img").bounding_box()
    assert abs(boxes[4]["x"] - whole["x"] - whole["width"] / 3) < 2
    assert abs(boxes[4]["y"] - whole["y"] - whole["height"] / 2) < 2
    keep(visit, "picture")


def test_a_file_is_chosen_and_another_kind_of_file_is_told(site, folder, visits, tmp_path):
    visit = visits(site, at("photos"))
    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[:, 6:] = 250
    (tmp_path / "mine.png").write_bytes(png.encode(pixels))
    (tmp_path / "notes.txt").write_text("no picture")
    visit.page.set_input_files("#image", tmp_path / "notes.txt")
    expect(visit.page.locator(".chooser .hint")).to_have_text("This file is no picture.")
    visit.page.set_input_files("#image", tmp_path / "mine.png")
    expect(visit.page.locator(".picked")).to_be_visible()
    visit.page.click("#ask")
    visit.ready()
    (result,) = saccade.load(folder / "runs" / "photos").predict(pixels)
    expect(visit.page.locator("#answer")).to_contain_text(result.text)
    assert kept(visit)["text"].startswith("picture-"), "the address keeps a name, no picture"
    visit.page.locator("details summary", has_text="Take along").first.click()
    expect(visit.page.locator("#python")).to_contain_text('"mine.png"')


def test_an_address_whose_picture_is_gone_asks_for_it_again(site, visits):
    visit = visits(site, at("photos", "picture-0-1"))
    expect(visit.page.locator(".chooser .hint")).to_have_text("This picture is gone: choose it again.")


def _read(page):
    """The pixels of the picture that was read, as the page shows it."""
    values = page.evaluate(
        """() => {
          const image = document.querySelector(".patches img");
          const size = { width: image.naturalWidth, height: image.naturalHeight };
          const canvas = Object.assign(document.createElement("canvas"), size);
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          return [canvas.height, canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
        }"""
    )
    height, width, *rest = values
    return np.array(rest, np.uint8).reshape(height, width, 4)[:, :, :3]


def _strongest(page, shades):
    """The colour of the largest weight: the darkest of a light theme."""
    return page.evaluate(
        """(all) => {
          const sum = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).reduce((total, each) => total + Number(each), 0);
          return all.reduce((best, each) => (sum(each) < sum(best) ? each : best));
        }""",
        shades,
    )
