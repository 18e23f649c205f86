"""Everybody can use the page: names, landmarks, the keyboard, contrast, small screens, less motion."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import expect

LOOKED = "#run=dates&text=fr%3A+samedi+3+mai+1979&layer=decoder.blocks.0.cross&head=1&token=written:2&with=step:3"
WRITTEN = "#run=writer&text=the+cat+sleeps&tokens=11&temperature=1&seed=4&token=text:1"
PLAYED = "#view=play"
OTHERS = [pytest.param(each, marks=pytest.mark.proof) for each in ("", WRITTEN, PLAYED)]  # LOOKED has most of the page
INTERACTIVE = {"button", "textbox", "combobox", "slider", "checkbox", "spinbutton", "link", "application"}
PHONE = {"width": 390, "height": 844}
# The contrast (WCAG 2) of every text that is seen, against the paper that lies behind it; canvases paint their own.
CONTRAST = """() => {
  const shown = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const paper = shown(getComputedStyle(each).backgroundColor);
      if (paper.length === 3 || paper[3] === 1) return paper;
    }
    return [255, 255, 255];
  };
  const poor = [];
  let count = 0;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const passed = element.closest("svg, :disabled, option, .unseen");
    if (!own || passed || !element.checkVisibility({ opacityProperty: true })) continue;
    const [ink, paper] = [light(shown(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    count++;
    const told = `${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}`;
    if (contrast < 4.5) poor.push(`${told} ${contrast.toFixed(2)}`);
  }
  return { count, poor };
}"""


def nodes(visit) -> list[dict]:
    """The accessibility tree as the browser tells it to a screen reader, flat."""
    session = visit.context.new_cdp_session(visit.page)
    return [each for each in session.send("Accessibility.getFullAXTree")["nodes"] if not each.get("ignored")]


def role(node: dict) -> str:
    return node["role"]["value"]


@pytest.mark.parametrize("fragment", [LOOKED, *OTHERS])
def test_everything_that_can_be_used_has_a_name_and_the_page_has_its_landmarks(site, visits, fragment):
    visit = visits(site, fragment)
    if "text=" in fragment:
        visit.ready()
    expect(visit.page.locator("#run option").first).to_be_attached()
    tree = nodes(visit)
    usable = [each for each in tree if role(each) in INTERACTIVE]
    assert len(usable) > 5
    nameless = [each for each in usable if not each.get("name", {}).get("value", "").strip()]
    assert nameless == []
    roles = [role(each) for each in tree]
    for landmark in ("banner", "navigation", "main"):
        assert roles.count(landmark) == 1
    levels = [
        int(value["value"]["value"])
        for each in tree
        if role(each) == "heading"
        for value in each["properties"]
        if value["name"] == "level"
    ]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert roles.count("region") > 1
    ids = visit.page.eval_on_selector_all("[id]", "all => all.map((each) => each.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("fragment", [LOOKED, *OTHERS[1:]])
@pytest.mark.proof
def test_every_text_has_contrast_in_light_and_dark(site, visits, keep, fragment):
    visit = visits(site, fragment)
    if "text=" in fragment:
        visit.ready()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        visit.still()
        found = visit.page.evaluate(CONTRAST)
        assert found["count"] > 40
        assert found["poor"] == []
        keep(visit, f"contrast-{scheme}-{fragment[1:9].replace('=', '-')}")


@pytest.mark.proof
def test_the_switch_of_the_theme_outlives_a_reload(site, visits):
    visit = visits(site, color_scheme="light")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = visit.page.evaluate(paper)
    visit.page.select_option("#theme", "dark")
    dark = visit.page.evaluate(paper)
    assert dark != light
    visit.page.reload()
    assert visit.page.evaluate(paper) == dark
    visit.page.select_option("#theme", "auto")
    assert visit.page.evaluate(paper) == light


@pytest.mark.proof
def test_the_page_is_used_with_the_keyboard_alone(site, visits):
    visit = visits(site)
    page = visit.page
    expect(page.locator("#run-about")).to_contain_text("translates")
    seen = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.dataset.view || document.activeElement.className"
            )
        )
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
    assert seen == ["skip", "look", "play", "run", "theme", "text", "ask"]
    page.focus("#text")
    page.keyboard.type("fr: samedi 3 mai 1979")
    page.keyboard.press("Enter")
    visit.ready()
    page.focus("#map canvas")
    for key, told in (
        ("ArrowDown", "row"),
        ("ArrowRight", "column \u2018r\u2019"),
        ("End", "column"),
        ("Home", "column \u2018f\u2019"),
    ):
        page.keyboard.press(key)
        expect(page.locator("#reading-live")).to_contain_text(told)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"ablate", "atlas-sort", "thumb", "compare-kind", "compare-text"} <= reached
    page.focus(".thumb[tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_count(1)


@pytest.mark.parametrize("fragment", [LOOKED, *OTHERS])
def test_a_phone_shows_everything_without_scrolling_sideways(site, visits, keep, fragment):
    visit = visits(site, fragment, viewport=PHONE, has_touch=True, is_mobile=True)
    if "text=" in fragment:
        visit.ready()
    visit.still()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    outside = visit.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, h2, p")]
          .filter((each) => each.checkVisibility() && !each.closest(".scroll, .unseen, .skip, #atlas"))
          .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
          .map((each) => each.id || each.textContent)"""
    )
    assert outside == []
    keep(visit, f"phone-{fragment[1:9].replace('=', '-') or 'empty'}")


@pytest.mark.proof
def test_who_asks_for_less_motion_gets_a_slower_time_lapse(site, visits):
    visit = visits(site, LOOKED, reduced_motion="reduce")
    visit.ready()
    assert (
        visit.page.evaluate("getComputedStyle(document.querySelector('.heat td') ?? document.body).transitionDuration")
        == "0s"
    )
    visit.page.click("#lapse-play")
    expect(visit.page.locator("#lapse-step")).to_have_text("step 1")
    visit.page.wait_for_timeout(700)
    expect(visit.page.locator("#lapse-step")).to_have_text("step 1")
    expect(visit.page.locator("#lapse-step")).to_have_text("step 2")
    visit.page.click("#lapse-play")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.proof
def test_nothing_reaches_out_of_its_panel(site, visits, width):
    visit = visits(site, LOOKED, viewport={"width": width, "height": 800})
    visit.ready()
    visit.page.click("summary")
    visit.page.click("#ablate")
    expect(visit.page.locator(".matter .number")).to_have_count(8)
    outside = visit.page.evaluate(
        """() => [...document.querySelectorAll("#look-view .panel:not(.empty)")].flatMap((panel) => {
          const edge = panel.getBoundingClientRect().right;
          return [...panel.querySelectorAll("*")]
            .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > edge + 1)
            .filter((each) => !each.closest(".unseen")).map((each) => `${panel.ariaLabel} ${each.tagName} ${each.id}`);
        })"""
    )
    assert outside == []
