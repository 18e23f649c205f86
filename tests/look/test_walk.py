"""Where a model looked for each word that it wrote of a picture: the weights of what a beam found, strips and walks."""

from __future__ import annotations

import io

import captions
import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.error import SaccadeError
from saccade.look.excerpt import Excerpt
from saccade.look.map import Map
from saccade.look.overlay import Overlay
from saccade.look.part import Cells, Lettering
from saccade.look.picture import picture
from saccade.look.walk import ACROSS, strip, walk, written
from saccade.model.input import Input

PIXELS = np.random.default_rng(3).integers(0, 256, (16, 16, 3)).astype(np.uint8)


@pytest.fixture(scope="module", params=["transformer", "grid alone"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("captions")
    return saccade.train(captions.recipe(folder, request.param, decode={"beam": 3}), run=folder / "run")


def test_the_weights_of_what_a_beam_found_are_those_of_the_same_text(run):
    """A beam writes several texts at once: the look is of the one it found, as if it had been given."""
    (found,) = run.predict([PIXELS], beam=3)
    assert found.text
    seen = run.look(PIXELS)
    assert seen.output == found.text
    again = run.look(PIXELS, found.text)
    one, other = (each.map("alignment").values for each in (seen, again))
    assert torch.allclose(one[: len(other)], other[: len(one)], atol=1e-6)
    assert torch.allclose(one.sum(1), torch.ones(len(one)), atol=1e-5), "each word looks at the picture alone"


def test_the_weights_are_those_of_the_definition(run):
    """The decoder's cross-attention over the cells of the grid, in one pass over what was written."""
    seen = run.look(PIXELS)
    layers = [each.name for each in seen.layers if each.kind == "cross"]
    x = {"source": run.task.x["source"].collate({"pixels": np.stack(run.task.x["source"].encode([PIXELS])["pixels"])})}
    with torch.no_grad(), saccade.watch(run.model) as watched:
        run.model.eval().states(x["source"], Input({"tokens": torch.tensor([seen.shown.target])}))
        mean = torch.stack([watched.weights(name)[0].mean(0) for name in layers]).mean(0)
    assert torch.allclose(seen.map("alignment").values, mean.float(), atol=1e-6)
    assert mean.shape[1] == 4 * 4, "a vector for each cell of the grid"


def test_a_strip_has_a_picture_for_each_word(run, tmp_path):
    seen = run.look(PIXELS, "it is bright above, left")
    drawn = seen.save(tmp_path / "strip.svg").read_text()
    words = ["it", "is", "bright", "above", ",", "left"]
    places = [drawn.index(f">{each}<") for each in words]
    assert places == sorted(places)
    assert drawn.count("<image") == 1 + len(words), "the picture, and one for each word; none for the end"
    with Image.open(seen.save(tmp_path / "strip.png")) as made:
        assert made.width > made.height / 2
    assert "<image" in seen._repr_html_()
    assert "<svg" in seen.save(tmp_path / "strip.html").read_text()


def test_a_walk_is_an_animation(run, tmp_path):
    seen = run.look(PIXELS, "it is bright below, right")
    with Image.open(seen.save(tmp_path / "walk.gif")) as made:
        assert made.n_frames == 1 + 6 + 1, "the picture, its words, and all of it"
        assert made.info["loop"] == 0
        shown = []
        for number in range(made.n_frames):
            made.seek(number)
            shown.append(made.convert("RGB").tobytes())
    assert len(set(shown)) == len(shown)


def test_sub_words_are_one_word():
    side, cut = _side(), Map(torch.rand(3, 4), ["cap", "tion", "<end>"], ["a"] * 4, [0, 1, 2], [0, 1, 2, 3])
    asked = []

    class Look:
        def map(self, *_, **options):
            asked.append(options)
            return cut

    written(Look(), Excerpt())
    assert asked[0]["words"] is True
    assert "special" in asked[0]["hide"]
    assert asked[0]["size"] is None
    assert len(strip(cut, Overlay(side)).parts) > 0


def test_long_texts_go_over_several_lines_and_all_drawings_have_one_size():
    names = [f"word{number}" for number in range(17)]
    cut = Map(torch.rand(17, 4), names, ["a"] * 4, list(range(17)), [0, 1, 2, 3], "alignment")
    overlay = Overlay(_side())
    sheets = walk(cut, overlay)
    assert len(sheets) == 1 + 17 + 1
    assert len({(each.width, each.height) for each in sheets}) == 1
    for number, sheet in enumerate(sheets):
        told = [part for part in sheet.parts if isinstance(part, Lettering)]
        assert [part.text for part in told] == names
        assert [part.text for part in told if part.bold] == names[number - 1 : number] if number else True
        assert all(part.x >= 0 and part.y < sheet.height for part in told)
        assert len({part.y for part in told}) > 1
    pictures = [part for part in strip(cut, overlay).parts if isinstance(part, Cells)]
    assert len(pictures) == 18
    assert len({part.y for part in pictures}) == -(-18 // ACROSS)


def test_where_no_words_look_at_a_picture_there_is_no_walk(run, tmp_path):
    seen = run.look(PIXELS)
    own = [each.name for each in seen.layers if each.kind == "self" and each.stack == "encoder"]
    for layer in [*own[:1], "atlas"]:
        with pytest.raises(SaccadeError, match="picture"):
            seen.save(tmp_path / "walk.gif", layer)
    mask = CliRunner().invoke(app, ["look", "causal", "--out", str(tmp_path / "mask.gif")])
    assert isinstance(mask.exception, SaccadeError)
    assert not list(tmp_path.glob("*.gif"))


def test_the_command_writes_a_walk(run, tmp_path):
    made = run.save(tmp_path / "saved")
    Image.fromarray(PIXELS).save(tmp_path / "one.png")
    given = [str(made.path if hasattr(made, "path") else made), str(tmp_path / "one.png")]
    found = CliRunner().invoke(app, ["look", *given, "--target", "it is bright", "--out", str(tmp_path / "walk.gif")])
    assert found.exit_code == 0, (found.output, found.exception)
    with Image.open(tmp_path / "walk.gif") as walked:
        assert walked.n_frames == 1 + 3 + 1
    with Image.open(io.BytesIO(picture(run.look(PIXELS, "it is"), Excerpt(), "gif"))) as walked:
        assert walked.n_frames == 1 + 2 + 1


def _side():
    from saccade.field.picture import as_url
    from saccade.field.unit import Side, Unit

    units = [Unit(n, str(n), n, False, (n % 2 / 2, n // 2 / 2, 0.5, 0.5)) for n in range(4)]
    shown = {"picture": as_url(np.zeros((3, 8, 8), np.uint8)), "grid": [2, 2]}
    return Side(units, [], "", "patches", shown)
