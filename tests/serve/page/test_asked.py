"""A run that reads a picture and a question, on the page: chosen, typed, answered, and looked into word by word."""

from __future__ import annotations

import pytest
from address import at
from playwright.sync_api import expect
from small import serving

import saccade
from saccade import png
from saccade.data import relations

OPTIONS = ["data.examples=60", "data.held=20", "train.steps=4", "train.every=4", "train.warmup=1", "train.batch=200"]
MANNERS = [
    pytest.param({}, id="desktop"),
    pytest.param({"viewport": {"width": 390, "height": 844}, "has_touch": True}, id="phone", marks=pytest.mark.proof),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return saccade.train("relations-vqa", run=tmp_path_factory.mktemp("asked") / "relations", options=OPTIONS)


@pytest.mark.parametrize("manner", MANNERS)
def test_a_picture_is_chosen_a_question_typed_and_a_word_shows_where_it_looked(run, visits, keep, tmp_path, manner):
    pixels, question, _ = relations.example(4, split="test")
    (tmp_path / "shapes.png").write_bytes(png.encode(pixels))
    with serving({"relations": run}) as house:
        visit = visits(house.url, at("relations"), **manner)
        page = visit.page
        expect(page.locator("#run-about")).to_contain_text("answers")
        expect(page.locator("#samples .sample img").first).to_be_visible()
        page.click("#ask")
        expect(page.locator("#image")).to_be_focused()
        page.locator("#samples .sample").first.click()
        visit.ready()
        expect(page.locator(".patches[data-side=picture] button")).to_have_count(36)
        page.set_input_files("#image", tmp_path / "shapes.png")
        field = page.locator("#inputs .typed")
        field.fill("")
        page.click("#ask")
        expect(field).to_be_focused()
        field.fill(question)
        field.press("Enter")
        visit.ready()
        (result,) = run.predict({"picture": pixels, "question": question})
        shares = page.locator(".likely li").evaluate_all("(all) => all.map((each) => each.innerText.split(/\\s+/))")
        assert [each[0] for each in shares] == list(result.probabilities)[: len(shares)]
        seen = run.look({"picture": pixels, "question": question})
        expect(page.locator("#answer")).to_contain_text(f"says{result.text}")
        words = page.locator(".tokens[data-side=question] button")
        expect(words).to_have_count(len(seen.sides["question"]))
        parts = page.locator(".patches[data-side=picture] button")
        expect(parts).to_have_count(36)
        words.nth(3).click()
        visit.still()
        word = seen.sides["question"].tokens[3].text.strip()
        expect(page.locator(".patches .hint")).to_have_text(f"what \u2018{word}\u2019 looks at")
        shades = parts.evaluate_all("(all) => all.map((each) => getComputedStyle(each).backgroundColor)")
        weights = seen.map().values[3]
        assert len(set(shades)) > 1
        assert shades[int(weights.argmax())] != shades[int(weights.argmin())]
        assert page.locator("#answer .wrote").count() == 0, "a question is read, not written"
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        assert "note" not in page.locator("#answer").inner_text()
        keep(visit, f"asked-{page.viewport_size['width']}")
        field.fill("what shape is the zorgle?")
        field.press("Enter")
        expect(page.locator("#answer")).to_contain_text("not known: 'zorgle'")
        page.goto("about:blank")  # before the server goes: the page still fetches the maps of this answer
