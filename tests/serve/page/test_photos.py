"""A run that reads pictures, on the page: chosen, answered, looked into part by part."""

from __future__ import annotations

import numpy as np
import pytest
from address import at, kept
from placed import place, raster
from playwright.sync_api import expect
from small import serving

import saccade
from saccade import png
from saccade.attend.sparse import windows


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


@pytest.mark.proof
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


@pytest.mark.proof
def test_an_address_whose_picture_is_gone_asks_for_it_again(site, visits):
    visit = visits(site, at("photos", "picture-0-1"))
    expect(visit.page.locator(".chooser .hint")).to_have_text("This picture is gone: choose it again.")


def test_a_picture_is_drawn_by_mouse_and_its_probabilities_are_bars(site, folder, visits, keep):
    visit = visits(site, at("sketches"))
    page = visit.page
    paper = page.locator("#image-drawn").bounding_box()
    page.mouse.move(paper["x"] + 0.7 * paper["width"], paper["y"] + 0.2 * paper["height"])
    page.mouse.down()
    page.mouse.move(paper["x"] + 0.8 * paper["width"], paper["y"] + 0.9 * paper["height"], steps=9)
    page.mouse.up()
    page.click("#ask")
    visit.ready()
    drawn = _read(page)
    assert drawn.shape == (8, 12, 3), "as large as the run reads it"
    right, left = drawn[:, 6:], drawn[:, :6]
    assert len(np.unique(left)) == 1 < len(np.unique(right)), "the pen went over the right half alone"
    (result,) = saccade.load(folder / "runs" / "sketches").predict(drawn)
    shares = page.locator(".likely li").evaluate_all("(all) => all.map((each) => each.innerText.split(/\\s+/))")
    assert [share[0] for share in shares] == list(result.probabilities)
    assert float(shares[0][1].rstrip("%")) == pytest.approx(100 * result.probabilities[result.text], abs=0.6)
    keep(visit, "drawing")
    page.click(".sketch >> text=Clear")
    expect(page.locator(".picked")).to_be_hidden()


@pytest.mark.proof
def test_a_picture_is_drawn_by_keys_alone(site, visits):
    visit = visits(site, at("sketches"))
    page = visit.page
    page.focus("#image-drawn")
    for key in ("ArrowLeft", "ArrowLeft", "Space", "ArrowUp", "ArrowUp", "Space", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    before = page.evaluate("document.querySelector('#image-drawn').toDataURL()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('#image-drawn').toDataURL()") == before, "a lifted pen draws nothing"
    page.keyboard.press("Enter")
    visit.ready()
    values = _read(page)[..., 0].astype(int)
    row, column = np.unravel_index(np.abs(values - np.median(values)).argmax(), values.shape)
    assert (row, column) in {(y, x) for y in (2, 3) for x in (3, 4)}, "two to the left of the middle, and up"
    page.focus("#image-drawn")
    page.keyboard.press("Delete")
    expect(page.locator(".picked")).to_be_hidden()


@pytest.mark.proof
def test_only_small_grey_pictures_are_drawn(site, visits):
    visit = visits(site, at("photos"))
    expect(visit.page.locator("#image")).to_be_visible()
    expect(visit.page.locator(".sketch")).to_have_count(0)
    visit.page.select_option("#run", "sketches")
    expect(visit.page.locator(".sketch")).to_have_count(1)


@pytest.mark.proof
def test_a_training_is_played_over_a_picture(site, folder, visits):
    """Each snapshot has its own probabilities and its own weights over the picture."""
    visit = visits(site, at("photos"))
    page = visit.page
    page.locator("#samples .sample").first.click()
    visit.ready()
    run = saccade.load(folder / "runs" / "photos")
    pixels = _read(page)
    for number, step in enumerate(run.snapshots):
        page.locator("#lapse-slider").fill(str(number))
        expect(page.locator("#lapse-step")).to_contain_text(f"step {step}")
        (result,) = run.at(step).predict(pixels)
        expect(page.locator(".likely li").first).to_contain_text(next(iter(result.probabilities)))
        wanted = f"{100 * next(iter(result.probabilities.values())):.0f}%"
        expect(page.locator(".likely li").first).to_contain_text(wanted)
    assert len(run.snapshots) > 1


@pytest.mark.proof
@pytest.mark.parametrize("manner", [{}, {"viewport": {"width": 390, "height": 844}, "has_touch": True}])
def test_a_class_token_is_chosen_and_windows_are_drawn(folder, visits, monkeypatch, keep, manner):
    run = saccade.load(folder / "runs" / "photos")
    place(monkeypatch, run.model, [raster(2, 3), raster(2, 2, 2)], mask=windows(2, 3, 2))
    with serving({"photos": run}) as house:
        visit = visits(house.url, at("photos"), **manner)
        page = visit.page
        page.locator("#samples .sample").first.click()
        visit.ready()
        parts = page.locator(".patches[data-side='patches 2 x 2'] button")
        expect(parts).to_have_count(6)
        expect(page.locator(".patches .hint")).to_have_text("what \u2018class\u2019 looks at")
        expect(page.locator(".beside button")).to_have_text(["class", "register 1"])
        page.locator(".beside button").last.click()
        expect(page.locator(".patches .hint")).to_have_text("what \u2018register 1\u2019 looks at")
        assert page.locator(".borders span").count() == 1
        names = page.locator("#layer option").all_inner_texts()
        assert not any("rollout" in each for each in names), "there is no way through grids of two sizes"
        page.select_option("#layer", "encoder.blocks.0.attention")
        expect(page.locator(".patches[data-side=picture] button")).to_have_count(6)
        expect(page.locator(".patches .hint")).to_have_text("what all look at, in the mean")
        page.locator(".patches button").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(".patches .hint")).to_have_text("what \u20182,1\u2019 looks at")
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        keep(visit, f"class-token-{page.viewport_size['width']}")


@pytest.mark.parametrize("manner", [{}, {"viewport": {"width": 390, "height": 844}}])
def test_a_word_that_is_pointed_at_shows_where_it_looked(site, folder, visits, keep, manner):
    visit = visits(site, at("captions"), **manner)
    page = visit.page
    sent = []
    page.on("request", lambda request: sent.append(request.post_data) if "/v1/predict" in request.url else None)
    page.locator("#samples .sample").first.click()
    visit.ready()
    assert '"stream":true' in sent[0], "words appear as they come"
    words = page.locator(".tokens[data-side=written] button")
    parts = page.locator(".patches button")
    expect(parts).to_have_count(16)
    run = saccade.load(folder / "runs" / "captions")
    seen = run.look(_read(page))
    expect(words).to_have_count(len(seen.sides["written"]))
    page.mouse.move(1, 1)  # away from where the sample was
    expect(page.locator(".patches .hint")).to_have_text("what all look at, in the mean")
    for number in (0, words.count() - 1):
        words.nth(number).hover()
        name = seen.sides["written"].tokens[number].text.strip()
        expect(page.locator(".patches .hint")).to_have_text(f"what \u2018{name}\u2019 looks at")
        shades = parts.evaluate_all("(all) => all.map((each) => getComputedStyle(each).backgroundColor)")
        weights = seen.map("alignment").values[number]
        assert shades[int(weights.argmax())] == _strongest(page, shades)
    page.mouse.move(1, 1)
    expect(page.locator(".patches .hint")).to_have_text("what all look at, in the mean")
    words.first.focus()
    expect(page.locator(".patches .hint")).to_contain_text("looks at")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    keep(visit, f"caption-{page.viewport_size['width']}")


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
