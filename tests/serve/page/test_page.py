"""The page in a browser: asking, looking, and everything that follows the chosen token."""

from __future__ import annotations

import re

import pytest
from address import CROSS, DATE, MINUS, at, kept
from playwright.sync_api import expect

import saccade


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


@pytest.mark.proof
def test_somebody_may_ask_before_the_runs_are_known(site, visits):
    visit = visits(site)
    page = visit.page
    waiting = []
    page.route("**/v1/models", lambda route: waiting.append(route))
    page.reload()
    expect(page.locator("#text")).to_be_visible()
    page.fill("#text", DATE)
    page.click("#ask")
    waiting[0].continue_()
    visit.ready()
    assert kept(visit)["text"] == DATE
    expect(page.locator("#problem")).to_be_hidden()


@pytest.mark.proof
def test_a_first_visitor_is_offered_what_the_run_was_made_for(site, folder, visits):
    visit = visits(site)
    samples = saccade.load(folder / "runs" / "dates").samples
    offers = visit.page.locator("#samples .sample")
    expect(offers).to_have_text(samples)
    offers.first.click()
    visit.ready()
    assert visit.page.input_value("#text") == samples[0]


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


@pytest.mark.proof
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


@pytest.mark.proof
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


@pytest.mark.proof
def test_nonsense_in_the_address_is_passed_over(site, visits):
    visit = visits(
        site, "#run=nobody&text=abc&layer=%3Cb%3E&head=99&token=x:y:z&column=-4&step=77&view=%00&with=zzz&q=1,a"
    )
    visit.ready()
    assert visit.page.input_value("#layer") == "alignment"
    expect(visit.page.locator("#play-view")).to_be_hidden()


@pytest.mark.proof
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


@pytest.mark.proof
def test_a_text_of_split_characters_goes_on_as_it_is(site, visits):
    given = "a \U0001f600 \u05e9\u05dc\u05d5\u05dd cat"
    visit = visits(site, at("speller", given, tokens=1, temperature=0))
    page = visit.page
    visit.ready()
    assert f'"{given}' in page.text_content("#python")
    tokens = page.locator(".tokens[data-side=text] button")
    assert tokens.count() > len(given), "every character would be a token"
    tokens.last.click()
    choices = page.locator("#alternatives button.choice")
    choices.filter(has_text="\\x").first.click()
    expect(page.locator("#problem")).to_contain_text("part of a character")
    tokens.nth(-2).click()
    choices.get_by_text("e", exact=True).click()
    expect(page.locator("#text")).to_have_value(re.compile(f"^{given[:9]}[cat]*e$"))
    visit.ready()
    visit.forgive("400")


@pytest.mark.proof
def test_a_stream_that_breaks_off_is_told_and_no_answer(site, visits):
    visit = visits(site, at("writer"))
    page = visit.page
    page.evaluate(
        """() => {
          const said = `data: ${JSON.stringify({ id: "x", choices: [{ text: "dogs" }] })}\\n\\n`;
          const parts = [new TextEncoder().encode(said)];
          const lose = (to) => setTimeout(() => to.error(new TypeError("network error")), 200);
          const pull = (to) => (parts.length ? to.enqueue(parts.pop()) : lose(to));
          window.fetch = async () => new Response(new ReadableStream({ pull }));
        }"""
    )
    page.fill("#text", "the cat")
    page.click("#ask")
    expect(page.locator("#problem-text")).to_have_text("The server does not answer: is it still running?")
    expect(page.locator("#answer")).to_contain_text("dogs")
    expect(page.locator("#answer-live")).to_have_text("")


def test_a_classifier_says_a_class(site, visits):
    visit = visits(site, at("judge"))
    visit.ask("b b")
    expect(visit.page.locator("#answer .line")).to_have_text(re.compile("good|bad|<img"))
    assert visit.page.input_value("#layer").startswith("encoder")


@pytest.mark.proof
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


@pytest.mark.proof
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


@pytest.mark.proof
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


@pytest.mark.proof
def test_several_inputs_have_a_field_each_and_unknown_kinds_are_not_offered(site, visits, keep):
    visit = visits(site, "#view=play")
    page = visit.page
    asked = []

    def models(route) -> None:
        listed = route.fetch().json()
        runs = {each["id"]: each["saccade"]["asks"] for each in listed["data"]}
        first = {"name": "source", "kind": "text", "label": "Source"}
        runs["judge"]["inputs"] = [first, {**first, "name": "question", "label": "Question"}]
        runs["speller"]["inputs"][0]["kind"] = "scent"
        route.fulfill(json=listed)

    def predict(route) -> None:
        body = route.request.post_data_json
        asked.append(body["input"])
        route.fulfill(response=route.fetch(post_data={**body, "input": body["input"]["source"]}))

    page.route("**/v1/models", models)
    page.route("**/v1/predict", predict)
    page.goto(f"{site}/{at('judge')}")
    page.reload()
    offered = ["dates", "<b>younger</b>", "writer", "judge", "photos", "sketches", "captions"]
    expect(page.locator("#run option")).to_have_text(offered)
    page.get_by_label("Question").fill("which?")
    page.press("#text-question", "Enter")
    expect(page.get_by_label("Source")).to_be_focused()
    page.keyboard.type("b b")
    page.keyboard.press("Enter")
    visit.ready()
    assert asked == [{"source": "b b", "question": "which?"}]
    assert '{"source": "b b", "question": "which?"}' in page.text_content("#python")
    expect(page.locator("#compare-kind [value=text]")).to_be_disabled()
    keep(visit, "several")
    page.reload()
    visit.ready()
    assert page.input_value("#text") == "b b"
    assert page.input_value("#text-question") == "which?"
    page.select_option("#run", "dates")
    expect(page.locator("#inputs textarea")).to_have_count(1)


def test_a_side_is_drawn_by_its_kind(site, visits):
    """One that the page does not know is told by the names of its units."""
    visit = visits(site, "#view=play")
    found = visit.page.evaluate(
        """async () => {
          const { drawSide } = await import("/page/sides.js");
          const { weightsOf } = await import("/page/look.js");
          const side = { kind: "scent", tokens: [{ word: 0 }, { word: 1 }, { word: 2 }] };
          const button = document.createElement("button");
          const { root } = drawSide(side, [button], { name: "rose", title: "read" });
          const map = { values: [0, 0, 0.25, 0.5], columns: 2, columnPlaces: [0, 2], words: false };
          return [root.className, root.dataset.side, root.ariaLabel, root.contains(button), weightsOf(map, 1, side)];
        }"""
    )
    assert found == ["tokens", "rose", "tokens read", True, [0.25, 0.25, 0.5]]
