"""Sizes: the amount of training data chooses one, options win over it, and the run's recipe has what was chosen."""

from __future__ import annotations

import json
import tomllib

import pytest
from own import own_files
from tiny import classify, translate, words, write

import saccade
from saccade import SaccadeError
from saccade.learn.scale import Amount, amount_of, by_data
from saccade.recipe import plain
from saccade.recipes import read as recipes
from saccade.recipes.read import at_size, from_values, recipe
from saccade.recipes.write import as_toml, as_value, differences
from saccade.task.pair import pair_of, resolved

SMALL = {
    "name": "small",
    "up_to": 900,
    "x": {"source": {"vocab": 28}},
    "y": {"vocab": 28},
    "model": {"width": 4, "hidden": 11},
    "train": {"steps": 4, "every": 2},
}
LARGER = {"name": "larger", "up_to": 5000, "model": {"width": 8}}
OWN = [name for name in recipes.names() if recipes.recipe(name).sizes]


def amount(made, most=1 << 40):
    pair = pair_of(made)
    return amount_of(pair, pair.supply(made), most)


def learned(made, column=None):
    """The characters of the rows to learn from, of one column or of all."""
    rows = pair_of(made).supply(made).rows("train")
    return sum(len(each) for row in rows for each in (row if column is None else row[column : column + 1]))


def test_amounts_are_characters_of_every_text_and_otherwise_examples(tmp_path):
    both, label, text = translate(tmp_path), classify(tmp_path), write(tmp_path)
    assert amount(both) == Amount(learned(both), "characters", more=False)
    assert amount(both).total < 2 * sum(map(len, words(120))), "what is held out is not learned from"
    assert amount(label) == Amount(learned(label, 0), "characters", more=False)
    assert amount(text).total == learned(text) == int(len((tmp_path / "text.txt").read_text()) * 0.8)
    files = own_files("classify-images", tmp_path)
    pictures = recipe("classify-images", [f"data.files={as_value(files)}"])
    assert amount(pictures) == Amount(len([*pair_of(pictures).supply(pictures).rows("train")]), "examples", more=False)
    assert 40 < amount(pictures).total < 60


def test_counting_ends_where_no_size_is_for_more(tmp_path):
    made = translate(tmp_path)
    assert amount(made, 50) == Amount(50, "characters", more=True)
    assert str(amount(made, 50)) == "more than 50 characters"
    assert str(Amount(12345, "examples", more=False)) == "12,345 examples"


@pytest.mark.parametrize(
    ("up_to", "widths"),
    [((0, 1), [4]), ((-1, 0), [8, 4]), ((-2, -1), [12, 8, 4])],
    ids=["the small one", "the larger one", "neither"],
)
def test_the_first_size_that_covers_the_data_is_taken(tmp_path, up_to, widths):
    count = amount(translate(tmp_path)).total
    sizes = [{**each, "up_to": count + more} for each, more in zip((SMALL, LARGER), up_to, strict=True)]
    said = []
    made = translate(tmp_path, sizes=sizes)
    found = [at_size(made, name) for name in by_data(made, said.append)]
    assert [each.model.width for each in found] == widths, "and each smaller one behind it"
    assert all(not each.sizes and each.size == "auto" for each in found)
    name = {4: "small", 8: "larger", 12: "full"}[widths[0]]
    told = f"more than {count - 1:,}" if name == "full" else f"{count:,}"
    assert said[0].startswith(f"size: {name}, for {told} characters: ")
    assert ("-o size=small" in said[0]) == (name != "small")


def test_what_was_chosen_is_told_and_without_sizes_nothing_is_counted(tmp_path, monkeypatch):
    said = []
    by_data(resolved(translate(tmp_path, sizes=[{**SMALL, "up_to": 10**6}])), said.append)
    assert "characters: vocab 28, width 4, hidden 11, steps 4, every 2 (others: -o size=full)" in said[0]
    monkeypatch.setattr("saccade.learn.scale.amount_of", None)
    plain = translate(tmp_path)
    assert by_data(plain, said.append) == ["full"]
    assert at_size(plain, "full") == plain
    assert by_data(translate(tmp_path, sizes=[SMALL, LARGER], size="larger"), said.append) == ["larger"]
    assert said[-1] == "size: larger, as asked: width 8"
    made = translate(tmp_path, sizes=[SMALL], size="full")
    assert by_data(made, said.append) == ["full"]
    assert at_size(made, "full") == plain
    assert len(said) == 3


def test_options_win_over_sizes(tmp_path):
    made = translate(tmp_path, sizes=[SMALL, LARGER])
    given = recipe(made, ["model.width=14", "train.steps=9", "data.vocab=29"])
    found = at_size(resolved(given), "small")
    assert (found.model.width, found.model.hidden) == (14, 11)
    assert (found.train.steps, found.train.every) == (9, 2)
    assert found.x["source"]["vocab"] == found.y["vocab"] == 29
    named = at_size(recipe(made, ["model.name=transformer-base"]), "small")
    assert (named.model.width, named.train.steps) == (512, 4), "a model by its name stays as it is"


def test_an_option_may_fit_a_size_and_not_the_recipes_own_model(tmp_path):
    """A width that the recipe's own heads do not divide, and those of its sizes do."""
    sizes = [{**SMALL, "model": {"width": 4, "heads": 2, "dropout": 0.1}}, {**LARGER, "model": {"heads": 4}}]
    values, width = plain(translate(tmp_path, sizes=sizes)), 8
    made = from_values({**values, "model": {**values["model"], "width": 12, "heads": 3}})
    for start in (made, resolved(made)):
        given = resolved(recipe(start, [f"model.width={width}"]))
        for name, heads, drops in (("small", 2, 0.1), ("larger", 4, made.model.dropout)):
            found = at_size(given, name).model
            assert (found.width, found.heads, found.dropout) == (width, heads, drops)
        with pytest.raises(SaccadeError, match=f"{made.model.heads} heads do not divide a width of {width}"):
            at_size(given, "full")
    with pytest.raises(SaccadeError, match="heads do not divide a width of 7"):
        recipe(made, ["model.width=7"])


def test_the_largest_width_is_told_by_its_memory(command, tmp_path):
    """Not by the heads of a size that is not taken."""
    for name, number in (("a.en", 0), ("a.de", 1)):
        (tmp_path / name).write_text("".join(f"{number} {each}\n" for each in words(120)))
    files = (tmp_path / "a.en", tmp_path / "a.de")
    told = command("train", "translate", "--files", *files, "-o", "model.width=100000", "--run", tmp_path / "run")
    assert told.returncode == 2
    assert "size: tiny" in told.stdout
    assert "parameters and takes" in told.stderr
    assert "this machine has" in told.stderr
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_of_the_source_is_that_of_the_target_too(tmp_path):
    values = plain(translate(tmp_path, sizes=[{**SMALL, "y": {}}]))
    made = resolved(from_values({**values, "y": {}}))
    assert made.sizes[0].y == {"vocab": 28}
    assert at_size(made, "small").y["vocab"] == 28
    assert resolved(made) == made
    assert from_values(tomllib.loads(as_toml(made))) == made


def test_the_run_has_what_was_chosen_and_the_same_command_goes_on(tmp_path):
    made, folder = translate(tmp_path, sizes=[{**SMALL, "up_to": 10**6}]), tmp_path / "run"
    run = saccade.train(made, run=folder)
    assert (run.step, run.model.config.width, run.model.config.hidden) == (4, 4, 11)
    kept = recipes.recipe(folder / "recipe.toml")
    assert (kept.sizes, kept.model.width, kept.train.steps, kept.x["source"]["vocab"]) == ([], 4, 4, 28)
    plain = saccade.train(at_size(resolved(made), "small"), run=tmp_path / "plain")
    ours, theirs = (each / "checkpoints" / "step-4" / "model.safetensors" for each in (folder, tmp_path / "plain"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert plain.recipe == run.recipe
    assert saccade.train(made, run=folder).step == 4
    assert saccade.train(folder / "recipe.toml", run=folder).step == 4, "the run's own recipe is the same run"
    with pytest.raises(SaccadeError, match=r"another recipe; train\.steps differs: .*train\.steps=2 .*start="):
        saccade.train(folder / "recipe.toml", run=folder, options=["train.steps=6"])
    with pytest.raises(SaccadeError, match=r"another recipe; train\.steps differs: .*start="):
        saccade.train(made, run=folder, options=["train.steps=6"])
    with pytest.raises(SaccadeError, match=r"another recipe; size differs"):
        saccade.train(made, run=folder, options=["size=full"])
    with pytest.raises(SaccadeError, match=r"another recipe; sizes differs"):
        saccade.train(translate(tmp_path, sizes=[SMALL]), run=folder)


def test_a_run_from_before_there_were_sizes_goes_on(tmp_path):
    folder = tmp_path / "run"
    saccade.train(translate(tmp_path), run=folder)
    manifest = folder / "manifest.json"
    about = json.loads(manifest.read_text())
    assert (about["asked"].pop("sizes"), about["asked"].pop("size")) == ([], "auto")
    manifest.write_text(json.dumps(about))
    assert saccade.train(translate(tmp_path, sizes=[SMALL]), run=folder).step == 6


def test_with_a_start_a_size_is_its_training_alone(tmp_path):
    saccade.train(translate(tmp_path), run=tmp_path / "first")
    made = recipe(translate(tmp_path, sizes=[{**SMALL, "up_to": 10**6}]), [f"start={tmp_path / 'first'}"])
    said = []
    assert by_data(resolved(made), said.append) == ["small"]
    assert at_size(made, "small").train.steps == 4
    assert "characters: steps 4, every 2 (" in said[0]
    run = saccade.train(made, run=tmp_path / "second")
    assert (run.step, run.model.config.width) == (4, 12)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": {"widht": 3}}, r"sizes\.0: model\.widht is unknown; did you mean 'width'\?"),
        ({"model": {"width": 9, "heads": 2}}, r"sizes\.0: model: 2 heads do not divide a width of 9"),
        ({"train": {"steps": 0}}, r"sizes\.0: train\.steps should be .*got 0"),
        ({"train": {"stesp": 1}}, r"sizes\.0: train\.stesp is unknown; did you mean 'steps'\?"),
        ({"x": {"source": {"vocb": 3}}}, r"sizes\.0: x\.source\.vocb is unknown; did you mean 'vocab'\?"),
        ({"x": {"sorce": {"vocab": 3}}}, r"sizes\.0\.x\.sorce: no input has this name; did you mean 'source'\?"),
        ({"y": {"smothing": 3}}, r"sizes\.0: y\.smothing is unknown; did you mean 'smoothing'\?"),
        ({"upto": 3}, r"sizes\.0\.upto is unknown; did you mean 'up_to'\?"),
        ({"up_to": 0}, r"sizes\.0\.up_to should be .*got 0"),
        ({"up_to": 7000}, r"sizes\.1\.up_to: sizes stand from small to large"),
        ({"name": "larger"}, r"sizes\.1\.name: 'larger' is taken"),
        ({"name": "full"}, r"sizes\.0\.name: 'full' is taken"),
        ({"model": 3}, r"sizes\.0\.model should be a table"),
    ],
)
def test_wrong_sizes_are_told_with_their_path(tmp_path, change, problem):
    with pytest.raises(SaccadeError, match=problem):
        resolved(translate(tmp_path, sizes=[{**SMALL, **change}, LARGER]))


def test_wrong_sizes_are_told_with_their_line(tmp_path):
    file = tmp_path / "mine.toml"
    text = as_toml(translate(tmp_path)).replace("sizes = []\n", "")
    lines = [*text.splitlines(), "[[sizes]]", "name = 'a'", "up_to = 5", "[[sizes]]", "name = 'b'", "up_to = 'x'"]
    file.write_text("\n".join(lines))
    with pytest.raises(SaccadeError, match=rf"mine\.toml, line {len(lines)}: sizes\.1\.up_to should be a whole number"):
        recipe(file)
    file.write_text("\n".join([*lines[:-1], "up_to = 6", "train = {stesp = 2}"]))
    with pytest.raises(SaccadeError, match=rf"mine\.toml, line {len(lines) - 2}: sizes\.1: train\.stesp is unknown"):
        recipe(file)
    with pytest.raises(SaccadeError, match=r"no size is called 'smal'; did you mean 'small'\?"):
        translate(tmp_path, sizes=[SMALL], size="smal")
    with pytest.raises(SaccadeError, match=r"size small: model: 3 heads do not divide .*-o size=full"):
        at_size(translate(tmp_path, sizes=[{**SMALL, "model": {"width": 8}}], model={"heads": 3}), "small")


def test_differences_name_the_key_whatever_size_it_is_in(tmp_path):
    made = resolved(translate(tmp_path, sizes=[SMALL, LARGER]))
    assert differences(made, made) == []
    assert differences(made, recipe(made, ["model.width=14"])) == ["model.width"]
    assert differences(made, recipe(made, ["model.width=12"])) == ["model.width"], "as the recipe has it without sizes"


def test_the_recipes_for_own_files_have_sizes_that_can_be_built():
    texts, others = (
        {"translate", "write", "classify", "regress"},
        {"answer", "caption", "classify-graphs", "classify-sounds", "read", "transcribe"},
    )
    assert {*texts, *others, "classify-images", "regress-images"} == set(OWN)
    for name in OWN:
        made = resolved(recipe(name))
        for size in made.sizes:
            small = at_size(made, size.name)
            assert small.train.steps * small.train.batch < made.train.steps * made.train.batch
            assert small.train.warmup < small.train.steps / 3
            kept = small.model.model_dump(exclude={"width", "hidden", "heads", "encoder", "decoder", "dropout"})
            assert kept == made.model.model_dump(exclude={"width", "hidden", "heads", "encoder", "decoder", "dropout"})
