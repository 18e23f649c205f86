"""The page in a browser: asking, looking, and everything that follows the chosen token."""

from __future__ import annotations

import csv
import io
import os
import re
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
import torch

import saccade

if not os.environ.get("SACCADE_CI"):
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect

DATE = "fr: samedi 3 mai 1979"
MINUS = "\N{MINUS SIGN}"
CROSS = "decoder.blocks.0.cross"


def at(run: str, text: str = "", **more: object) -> str:
    """A fragment of the page's address."""
    values = {"run": run, "text": text, **more}
    return "#" + "&".join(f"{name}={quote(str(value))}" for name, value in values.items() if value != "")


def kept(visit) -> dict[str, str]:
    """What the address says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(visit.page.url).fragment).items()}


def test_a_text_is_asked_its_answer_streams_in_and_is_looked_into(site, folder, visits, keep):
    visit = visits(site)
    page = visit.page
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator("#run-about")).to_contain_text("translates")
    keep(visit, "empty")
    page.evaluate(
        """() => {
          window.arrivals = 0;
          const watch = new MutationObserver((all) => {
            if (all.some((each) => each.target.classList.contains("stream"))) window.arrivals++;
          });
          watch.observe(document.getElementById("answer"), { childList: true, subtree: true });
        }"""
    )
    page.fill("#text", DATE)
    page.press("#text", "Enter")
    visit.ready()
    assert page.evaluate("window.arrivals") > 1, "the answer came at once"
    (result,) = saccade.load(folder / "runs" / "dates").predict([DATE], beam=1)
    written = page.locator(".tokens[data-side=written] button:not(.special)")
    assert "".join(written.all_text_contents()) == result.text.replace(" ", "·")
    assert "".join(page.locator(".tokens[data-side=source] button:not(.special)").all_text_contents()) == DATE.replace(
        " ", "·"
    )
    expect(page.locator("#answer-live")).to_contain_text("The answer")
    assert kept(visit)["text"] == DATE
    keep(visit, "looked")


def test_a_first_visitor_is_offered_what_the_run_was_made_for(site, folder, visits):
    visit = visits(site)
    samples = saccade.load(folder / "runs" / "dates").samples
    offers = visit.page.locator("#samples .sample")
    expect(offers).to_have_text(samples)
    offers.first.click()
    visit.ready()
    assert visit.page.input_value("#text") == samples[0]


def test_the_weight_under_the_cross_hair_is_the_models(site, folder, visits):
    visit = visits(site, at("dates", DATE, layer=CROSS, head=1, token="written:2", column=5))
    visit.ready()
    expect(visit.page.locator("#reading")).to_contain_text("weight")
    run = saccade.load(folder / "runs" / "dates")
    (result,) = run.predict([DATE], beam=1)
    values = run.look(DATE, target=result.text).map(CROSS, head=1).values
    assert float(re.search(r"weight (\S+)", visit.reading())[1]) == pytest.approx(float(values[2, 5]), abs=1.1e-3)
    visit.page.focus("canvas.matrix")
    visit.page.press("#map canvas", "m")
    best = int(values[2].argmax())
    expect(visit.page.locator("#reading-live")).to_contain_text(f"weight {float(values[2, best]):.2f}"[:-1])
    assert kept(visit)["column"] == str(best)


def test_one_chosen_token_drives_everything(site, visits, keep):
    visit = visits(site, at("dates", DATE, layer=CROSS, head=0))
    page = visit.page
    visit.ready()
    token = page.locator(".tokens[data-side=written] button").nth(3)
    token.click()
    expect(token).to_have_attribute("aria-pressed", "true")
    assert kept(visit)["token"] == "written:3"
    expect(page.locator("#alternatives li")).to_have_count(5)
    expect(page.locator("#reading")).to_contain_text("row")
    expect(page.locator("#lines text.chosen")).to_have_count(2)
    expect(page.locator("#lines path.chosen").first).to_be_attached()
    expect(page.locator("#pair .steps tr")).to_have_count(4)
    width = 24 // 2
    expect(page.locator("#pair .bars").first.locator(".slot")).to_have_count(width)
    shown = [float(each.replace(MINUS, "-")) for each in page.locator("#pair .steps td.number").all_text_contents()]
    assert shown[1] == pytest.approx(shown[0] / width**0.5, abs=2e-3)
    assert shown[3] == pytest.approx(float(visit.reading().split()[-1]), abs=2e-3)
    keep(visit, "token")
    page.locator("#lines text.asks").nth(1).click()
    assert kept(visit)["token"] == "written:1"


def test_alternatives_come_with_the_keyboard_too(site, visits):
    visit = visits(site, at("dates", DATE))
    visit.ready()
    first = visit.page.locator(".tokens[data-side=written] button").first
    first.focus()
    expect(visit.page.locator("#alternatives li")).to_have_count(5)
    before = visit.page.text_content("#alternatives")
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.locator(".tokens[data-side=written] button").nth(1)).to_be_focused()
    assert visit.page.text_content("#alternatives") != before
    stops = visit.page.locator(".tokens[data-side=written] button[tabindex='0']")
    expect(stops).to_have_count(1)


def test_the_map_zooms_pans_and_fits_again(site, visits):
    visit = visits(site, at("dates", DATE))
    page = visit.page
    visit.ready()
    canvas = page.locator("#map canvas")
    page.wait_for_timeout(300)
    whole = picture(page)
    page.click("#zoom-in")
    page.click("#zoom-in")
    page.wait_for_timeout(100)
    near = picture(page)
    assert near != whole
    canvas.hover()
    page.mouse.wheel(60, 40)
    page.mouse.move(2, 2)
    page.wait_for_timeout(150)
    moved = picture(page)
    assert moved not in (near, whole)
    canvas.focus()
    page.keyboard.press("0")
    page.wait_for_timeout(150)
    assert picture(page) == whole


def picture(page) -> str:
    return page.evaluate("document.querySelector('#map canvas').toDataURL()")


def test_a_click_on_the_map_chooses_the_cell_under_it(site, visits):
    visit = visits(site, at("dates", DATE, layer=CROSS, head=0))
    visit.ready()
    canvas = visit.page.locator("#map canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] - 5, "y": box["height"] - 5})
    rows = visit.page.locator(".tokens[data-side=written] button").count()
    columns = visit.page.locator(".tokens[data-side=source] button").count()
    assert (kept(visit)["token"], kept(visit)["column"]) == (f"written:{rows - 1}", str(columns - 1))


def test_layers_heads_words_and_what_is_hidden(site, visits):
    visit = visits(site, at("dates", DATE))
    page = visit.page
    visit.ready()
    assert page.input_value("#layer") == "alignment"
    page.select_option("#layer", CROSS)
    page.select_option("#head", "1")
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_count(1)
    rows = page.locator("#lines text.asks")
    letters = rows.count()
    page.check("#words")
    expect(rows).not_to_have_count(letters)
    page.uncheck("#words")
    page.check("#hide-special")
    expect(rows).to_have_count(letters - page.locator(".tokens[data-side=written] .special").count())
    assert kept(visit)["hide"] == "special"
    page.select_option("#layer", "rollout:encoder")
    expect(page.locator("#pair")).to_contain_text("Choose a cell")
    page.check("#rows")
    expect(page.locator("#scale-top")).to_contain_text("each row")


def test_the_atlas_sorts_and_silenced_heads_tell_whether_they_matter(site, folder, visits, keep):
    visit = visits(site, at("dates", DATE))
    page = visit.page
    visit.ready()
    thumbs = page.locator(".thumb")
    expect(thumbs).to_have_count(8)
    expect(page.locator(".thumb canvas:not([width='1'])").first).to_be_attached()
    page.click("#ablate")
    expect(page.locator(".matter .number")).to_have_count(8)
    expect(page.locator("#ablate-told")).to_contain_text("blue")
    page.select_option("#atlas-sort", "importance")
    expect(page.locator(".stratum")).to_have_count(0)
    shown = [
        float(each.replace(MINUS, "-").replace("+", "")) for each in page.locator(".matter .number").all_text_contents()
    ]
    assert shown == sorted(shown)
    assert shown[0] < 0
    run = saccade.load(folder / "runs" / "dates")
    seen = run.look(DATE, target=run.predict([DATE], beam=1)[0].text)
    found = min(change for layer in seen.layers for change in seen.ablation(layer.name).heads)
    assert shown[0] == pytest.approx(found, rel=0.05, abs=2e-3)
    page.select_option("#atlas-sort", "entropy")
    told = [
        float(each.split("entropy ")[1].split(",")[0]) for each in thumbs.evaluate_all("all => all.map(e => e.title)")
    ]
    assert told == sorted(told)
    keep(visit, "atlas")
    thumbs.nth(4).click()
    assert "head" in kept(visit)


def test_the_time_lapse_shows_the_snapshots(site, folder, visits, keep):
    run = saccade.load(folder / "runs" / "dates")
    step = run.snapshots[3]
    last, early = (each.look(DATE, target=run.predict([DATE], beam=1)[0].text) for each in (run, run.at(step)))
    moved = (last.map(CROSS, head=0).values - early.map(CROSS, head=0).values).abs()[:9]
    row, column = divmod(int(moved.argmax()), moved.shape[1])
    visit = visits(site, at("dates", DATE, layer=CROSS, head=0, token=f"written:{row}", column=column))
    page = visit.page
    visit.ready()
    before = visit.reading()
    slider = page.locator("#lapse-slider")
    slider.evaluate("(slider) => { slider.value = 3; slider.dispatchEvent(new Event('input')); }")
    expect(page.locator("#lapse-step")).to_have_text(f"step {step}")
    expect(page.locator("#reading")).not_to_have_text(before)
    values = early.map(CROSS, head=0).values
    assert float(visit.reading().split()[-1]) == pytest.approx(float(values[row, column]), abs=1.1e-3)
    assert kept(visit)["step"] == str(step)
    keep(visit, "lapse")
    page.click("#lapse-play")
    expect(page.locator("#lapse-play")).to_have_text("Pause")
    expect(page.locator("#lapse-step")).to_have_text(f"step {run.snapshots[5]}")
    page.click("#lapse-play")
    expect(page.locator("#lapse-play")).to_have_text("Play")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#lapse-step")).to_contain_text("the trained run")
    expect(page.locator("#reading")).to_have_text(before)
    page.click("#lapse-play")
    expect(page.locator("#lapse-step")).to_have_text("step 2")
    visit.ask("en_GB: 5/3/79")
    page.wait_for_timeout(800)
    assert "step" not in kept(visit), "what played went on under the next text"
    expect(page.locator("#lapse-play")).to_have_text("Play")


def test_comparing_with_another_step_run_and_text(site, visits, keep):
    visit = visits(site, at("dates", DATE, layer=CROSS, head=0, token="written:1"))
    page = visit.page
    visit.ready()
    page.select_option("#compare-kind", "step")
    page.click("#compare-form [type=submit]")
    expect(page.locator("#compare-between canvas")).to_be_visible()
    expect(page.locator("#compare-told")).to_contain_text(f"B {MINUS} A")
    page.select_option("#compare-kind", "run")
    page.select_option("#compare-run", "<b>younger</b>")
    page.click("#compare-form [type=submit]")
    expect(page.locator("#compare-other-name")).to_contain_text("<b>younger</b>")
    expect(page.locator("#compare-between canvas")).to_be_visible()
    keep(visit, "compare")
    page.select_option("#compare-kind", "text")
    page.fill("#compare-text", "en_GB: 5/3/79")
    page.click("#compare-form [type=submit]")
    expect(page.locator("#compare-told")).to_contain_text("different shapes")
    expect(page.locator("#compare-between-figure")).to_be_hidden()
    page.reload()
    visit.ready()
    expect(page.locator("#compare-other-name")).to_contain_text("en_GB")
    page.click("#compare-close")
    expect(page.locator("#compare-maps")).to_be_hidden()


def test_taking_along_pictures_numbers_and_python(site, folder, visits, monkeypatch):
    visit = visits(site, at("dates", DATE, layer=CROSS, head=1))
    page = visit.page
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.ready()
    page.click("summary")
    files = {}
    for form in ("svg", "png", "csv", "npz"):
        with page.expect_download() as caught:
            page.click(f"[data-format={form}]")
        assert caught.value.suggested_filename == f"dates-{CROSS}-head-1.{form}"
        files[form] = caught.value.path().read_bytes()
    assert files["svg"].lstrip().startswith((b"<svg", b"<?xml"))
    assert files["png"].startswith(b"\x89PNG")
    page.click("#copy-python")
    expect(page.locator("#copied")).to_have_text("Copied.")
    lines = page.evaluate("navigator.clipboard.readText()").rstrip().splitlines()
    monkeypatch.chdir(folder)
    names: dict = {}
    exec("\n".join([*lines[:-1], f"made = {lines[-1]}"]), names)
    values = names["made"].values
    rows = list(csv.reader(io.StringIO(files["csv"].decode())))
    table = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[1:]])
    assert torch.allclose(table, values, atol=1e-5)
    with np.load(io.BytesIO(files["npz"]), allow_pickle=False) as arrays:
        assert np.allclose(arrays["values"], values.numpy(), atol=1e-5)


def test_the_address_restores_what_was_seen(site, visits):
    fragment = at("dates", DATE, layer=CROSS, head=1, token="written:2", column=4, hide="special", sort="entropy")
    visit = visits(site, fragment)
    page = visit.page
    visit.ready()
    expect(page.locator("#reading")).to_contain_text("weight")
    seen = visit.reading()
    page.reload()
    visit.ready()
    expect(page.locator("#reading")).to_have_text(seen)
    values = [page.input_value(name) for name in ("#text", "#layer", "#head", "#atlas-sort")]
    assert values == [DATE, CROSS, "1", "entropy"]
    assert page.is_checked("#hide-special")
    page.select_option("#head", "0")
    expect(page.locator("#reading")).not_to_have_text(seen)
    page.select_option("#layer", "alignment")
    page.go_back()
    page.go_back()
    expect(page.locator("#reading")).to_have_text(seen)
    assert page.input_value("#head") == "1"


def test_nonsense_in_the_address_is_passed_over(site, visits):
    visit = visits(
        site, "#run=nobody&text=abc&layer=%3Cb%3E&head=99&token=x:y:z&column=-4&step=77&view=%00&with=zzz&q=1,a"
    )
    visit.ready()
    assert visit.page.input_value("#layer") == "alignment"
    expect(visit.page.locator("#play-view")).to_be_hidden()


def test_runs_are_switched_and_a_decoder_goes_on_with_a_text(site, folder, visits, keep):
    visit = visits(site, at("dates", DATE), color_scheme="dark")
    page = visit.page
    visit.ready()
    page.select_option("#run", "writer")
    expect(page.locator("#run-about")).to_contain_text("goes on with texts")
    expect(page.locator("#looking")).to_be_hidden()
    page.fill("#tokens", "17")
    page.fill("#temperature", "1.1")
    page.evaluate("Math.random = () => 0.37")  # of which the page makes its seeds
    visit.ask("the cat")
    tokens = page.locator(".tokens[data-side=text] button")
    expect(tokens).to_have_count(19)
    expect(page.locator(".token.wrote")).to_have_count(17)
    written = tokens.all_text_contents()
    page.reload()
    visit.ready()
    assert tokens.all_text_contents() == written, "the seed is in the address"
    tokens.nth(5).click()
    keep(visit, "writer-dark")
    choice = page.locator("#alternatives button.choice").first
    other = choice.text_content()
    choice.click()
    visit.ready()
    expect(tokens.nth(5)).to_have_text(other)
    assert tokens.all_text_contents()[:5] == written[:5]
    page.go_back()
    expect(tokens).to_have_text(written)


def test_a_classifier_says_a_class(site, visits):
    visit = visits(site, at("judge"))
    visit.ask("b b")
    expect(visit.page.locator("#answer .line")).to_have_text(re.compile("good|bad|<img"))
    assert visit.page.input_value("#layer").startswith("encoder")


def test_tokens_that_look_like_markup_are_text(site, visits, keep, hostile):
    markup, turned = hostile
    visit = visits(site, at("writer", f"the {markup} {turned} <b>x</b>", tokens=3, seed=1))
    page = visit.page
    visit.ready()
    tokens = page.locator(".tokens button").all_text_contents()
    assert any(each.endswith(markup) for each in tokens)
    assert any("\u2039202E\u203a" in each for each in tokens)
    assert page.locator("img").count() == 0
    assert page.locator("b", has_text="x").count() == 0
    assert "<b>younger</b>" in page.locator("#run option").all_text_contents()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".tokens button").nth(1).click()
    keep(visit, "hostile")


def test_a_refusal_is_told_in_the_servers_words(site, visits):
    visit = visits(site, at("dates", "x" * 500))
    expect(visit.page.locator("#problem")).to_be_visible()
    assert "500" in visit.page.text_content("#problem-text")
    visit.page.click("#problem-close")
    expect(visit.page.locator("#problem")).to_be_hidden()
    expect(visit.page.locator("#ask")).to_be_enabled()
    visit.forgive("400")


def test_an_answer_can_be_stopped(site, visits):
    visit = visits(site, at("writer"))
    page = visit.page
    page.fill("#tokens", "4000")
    page.fill("#text", "the cat")
    page.click("#ask")
    page.wait_for_selector(".stream span")
    page.click("#stop")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#looking")).to_be_hidden()
    page.fill("#tokens", "5")
    visit.ask("the cat")


def test_the_key_is_asked_for_kept_for_the_tab_and_never_in_the_address(locked, visits, keep):
    visit = visits(locked)
    page = visit.page
    expect(page.locator("#key")).to_be_visible()
    keep(visit, "key")
    page.fill("#key-input", "open-19")
    page.click("#key-form [type=submit]")
    expect(page.locator("#key-told")).to_contain_text("did not accept")
    page.fill("#key-input", "sesame-73")
    page.keyboard.press("Enter")
    expect(page.locator("#run-about")).to_contain_text("goes on")
    page.fill("#tokens", "5")
    visit.ask("the cat")
    page.reload()
    visit.ready()
    expect(page.locator("#key")).to_be_hidden()
    assert "sesame" not in page.url
    assert page.evaluate("Object.keys(localStorage).length") == 0
    visit.forgive("401")


def test_a_map_of_a_million_cells_moves_smoothly(site, visits):
    visit = visits(site, "#view=play")
    found = visit.page.evaluate(
        """async () => {
          const { Matrix } = await import("/page/matrix.js");
          const n = 1000;
          const values = Float32Array.from({ length: n * n }, (_, i) => ((i * 7919) % 997) / 997);
          const names = Array.from({ length: n }, (_, i) => `token ${i}`);
          const root = document.createElement("div");
          document.querySelector("main").prepend(root);
          const matrix = new Matrix(root, { label: "large", height: 700 });
          matrix.show({ rows: n, columns: n, values, rowNames: names, columnNames: names, top: 1, signed: false });
          const times = [];
          let [last, widest] = [null, 0];
          for (let frame = 0; frame < 150; frame++) {
            const now = await new Promise(requestAnimationFrame);
            if (last !== null) times.push(now - last);
            last = now;
            const box = matrix.canvas.getBoundingClientRect();
            const [zoom, way] = [frame < 50 || frame >= 100, frame < 50 ? -18 : 18];
            matrix.canvas.dispatchEvent(new WheelEvent("wheel", {
              deltaX: zoom ? 0 : 13, deltaY: zoom ? way : 17, ctrlKey: zoom, cancelable: true,
              clientX: box.left + 311, clientY: box.top + 307,
            }));
            widest = Math.max(widest, matrix.view.cell);
          }
          times.sort((a, b) => a - b);
          return { median: times[times.length >> 1], widest, back: matrix.view.fits };
        }"""
    )
    assert found["widest"] > 10
    assert found["median"] < 16, f"a frame takes {found['median']:.1f} ms"
