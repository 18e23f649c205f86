"""The teaching page: its formulas are those of `saccade.weights`, and it can be edited by hand."""

from __future__ import annotations

import pytest
import torch
from playwright.sync_api import expect

import saccade

SCORES = ("dot", "scaled_dot", "cosine")
NORMALISERS = ("softmax", "softmax(beta=2.5)", "sigmoid", "hard", "sparsemax", "sum", "none")
WEIGH = """async ([q, k, options]) => (await import("/page/weigh.js")).weights(q, k, options)"""
MASK = """async ([name, T, S, n]) => (await import("/page/weigh.js")).mask(name, T, S, n)"""


@pytest.fixture(scope="module")
def played(chromium, site):
    """A page whose modules are asked directly."""
    page = chromium.new_page()
    page.goto(f"{site}/#view=play")
    yield page
    page.close()


@pytest.fixture(scope="module")
def weigh(played):
    """The page's own law, evaluated in the browser."""

    def weights(q, k, **options):
        return torch.tensor(played.evaluate(WEIGH, [q.tolist(), k.tolist(), options]), dtype=torch.float64)

    return weights


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_the_pages_formulas_are_those_of_saccade(weigh, score, normaliser):
    generator = torch.Generator().manual_seed(31)
    q = torch.randn(5, 3, dtype=torch.float64, generator=generator) * 2
    k = torch.randn(6, 3, dtype=torch.float64, generator=generator) * 2
    q[2], k[1] = 0.0, 0.0  # a zero vector, and scores that tie
    may = torch.rand(5, 6, generator=generator) < 0.6
    may[3] = False
    name, _, beta = normaliser.partition("(beta=")
    given = {"score": score, "normaliser": name, "beta": float(beta.rstrip(")") or 1)}
    for mask in (None, may):
        ours = saccade.weights(q[None, None], k[None, None], score=score, normaliser=normaliser, mask=mask)[0, 0]
        told = {} if mask is None else {"may": mask.tolist()}
        theirs = weigh(q, k, **given, **told)
        assert torch.allclose(ours, theirs, atol=1e-6, rtol=1e-6)
        if mask is not None:
            assert torch.all(theirs[3] == 0)
            assert torch.all(theirs[~may] == 0)


@pytest.mark.parametrize(("name", "n"), [("causal", 1), ("window", 2), ("window", 3), ("prefix", 2)])
def test_the_pages_masks_are_those_of_saccade(played, name, n):
    spec = name if name == "causal" else f"{name}({n})"
    q, k = torch.zeros(3, 2), torch.zeros(5, 2)
    may = saccade.weights(q[None, None], k[None, None], mask=spec, normaliser="sigmoid")[0, 0] > 0
    assert played.evaluate(MASK, [name, 3, 5, n]) == may.tolist()


@pytest.mark.proof
def test_a_mask_by_hand_has_no_n(site, visits):
    page = visits(site, "#view=play").page
    switches = page.locator("#play-may button.may")
    page.select_option("#play-mask", "window")
    page.fill("#play-reach", "1")
    page.press("#play-reach", "Tab")
    assert switches.nth(1).get_attribute("aria-pressed") == "false"
    switches.nth(1).click()
    before = switches.evaluate_all("all => all.map((each) => each.ariaPressed)")
    page.fill("#play-reach", "3")
    page.press("#play-reach", "Tab")
    expect(page.locator("#play-mask")).to_have_value("")
    assert switches.evaluate_all("all => all.map((each) => each.ariaPressed)") == before


def lightness(scale: list[int]) -> torch.Tensor:
    """OKLab of 8-bit colours, (n,3), by Ottosson's matrices."""
    rgb = torch.tensor(scale, dtype=torch.float64).view(-1, 3) / 255
    linear = torch.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = torch.tensor(
        [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
         [0.0883024619, 0.2817188376, 0.6299787005]], dtype=torch.float64,
    )  # fmt: skip
    opponent = torch.tensor(
        [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
         [0.0259040371, 0.7827717662, -0.8086757660]], dtype=torch.float64,
    )  # fmt: skip
    return (linear @ cones.T) ** (1 / 3) @ opponent.T


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_colours_are_even_steps_that_lightness_alone_tells_apart(played, theme):
    scales = """async (theme) => {
      const { sequential, diverging } = await import("/page/colour.js");
      return [[...sequential(theme)], [...diverging(theme)]];
    }"""
    sequential, diverging = (lightness(each) for each in played.evaluate(scales, theme))
    way = -1 if theme == "light" else 1
    assert torch.all(way * sequential[:, 0].diff() > -2e-3)  # a byte of rounding
    assert abs(float(sequential[-1, 0] - sequential[0, 0])) > 0.6
    steps = sequential[::8].diff(dim=0).norm(dim=1)
    assert float(steps.max() / steps.min()) < 1.5
    cold, warm = diverging[:128].flip(0), diverging[128:]
    for side in (cold, warm):
        assert torch.all(way * side[:, 0].diff() > -2e-3)
    assert float((cold[:, 0] - warm[:, 0]).abs().max()) < 0.05
    assert cold[-1, 2] < -0.05 < 0.05 < warm[-1, 2]  # blue against orange


def table(page, name: str) -> torch.Tensor:
    rows = page.locator(f"#play-{name} tbody tr")
    cells = [row.locator("td:not(.sum)").all_text_contents() for row in rows.all()]
    return torch.tensor([[float(cell) for cell in row] for row in cells])


@pytest.mark.proof
def test_the_weights_follow_what_is_typed_dragged_and_masked(site, visits, keep):
    visit = visits(site)
    page = visit.page
    page.click("nav [data-view=play]")
    before = table(page, "weights")
    assert before.shape == (3, 5)
    assert torch.allclose(before.sum(1), torch.ones(3), atol=0.03)
    page.get_by_label("query exam?, fun").fill("3")
    after = table(page, "weights")
    assert after[0, 0] > before[0, 0]
    assert torch.equal(after[1:], before[1:])
    cell = page.get_by_label("key Musician, fun")
    box = cell.bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 10, steps=5)
    page.mouse.up()
    assert float(cell.input_value()) == 4.0
    page.get_by_role("button", name="fun? may look at Musician").click()
    assert table(page, "weights")[1, 0] == 0
    page.select_option("#play-normaliser", "hard")
    assert set(table(page, "weights").flatten().tolist()) == {0.0, 1.0}
    keep(visit, "play")
    seen = table(page, "weights")
    page.reload()
    assert torch.equal(table(page, "weights"), seen)


@pytest.mark.proof
def test_presets_sizes_and_rows_that_see_nothing(site, visits, keep):
    visit = visits(site, "#view=play", color_scheme="dark", viewport={"width": 390, "height": 844})
    page = visit.page
    page.get_by_role("button", name="Causal").click()
    weights = table(page, "weights")
    assert torch.all(weights.triu(1) == 0)
    assert weights.shape == (5, 5)
    page.fill("#play-keys", "6")
    page.press("#play-keys", "Enter")
    expect(page.locator("#play-may .may")).to_have_count(30)
    page.fill("#play-width", "3")
    page.press("#play-width", "Enter")
    expect(page.locator("#play-q input")).to_have_count(15)
    page.fill("#play-reach", "1")
    page.select_option("#play-mask", "prefix")
    for name in page.locator("#play-weights tbody th").all_text_contents():
        page.get_by_role("button", name=f"{name} may look at the", exact=True).click()
    assert torch.all(table(page, "weights") == 0)
    expect(page.locator("#play-note")).to_contain_text("5 queries look at nothing")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    keep(visit, "play-phone-dark")
    page.go_back()
    expect(page.locator("#play-q input")).to_have_count(10)
