"""What is made of what: kinds by verb or by table, what they share, and what cannot be paired."""

from __future__ import annotations

import pytest

from saccade import ModelConfig, SaccadeError
from saccade.field.label import LABELS, Label
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.learn.survey import survey
from saccade.recipe import Recipe
from saccade.recipes.read import from_values, recipe
from saccade.task.pair import VERBS, pair_of, pair_of_model, part_of_model, resolved
from saccade.task.task import task_of

MODEL = {"width": 6, "heads": 3}


def of(task: str, data=None, **tables) -> Recipe:
    stacks = {"encoder": 1, "decoder": 1}
    data = {"files": ["a.en", "a.fr"]} if data is None else data
    return from_values({"task": task, "data": data, "model": {**MODEL, **stacks}, "train": {"steps": 1}, **tables})


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("translate", {"source": SourceText, "target": TargetText}),
        ("write", {"text": StreamedText}),
        ("classify", {"source": SourceText, "label": Label}),
    ],
)
def test_a_verb_names_the_usual_pair(verb, kinds):
    pair = pair_of(of(verb))
    assert {name: part.kind for name, part in pair.parts.items()} == kinds
    assert list(pair.x) == list(kinds)[:-1]
    assert pair.name == list(kinds)[-1]
    assert pair.asks == VERBS[verb].asks


def test_a_written_text_is_as_the_texts_it_is_written_of():
    pair = pair_of(of("translate", x={"source": {"tokenizer": "words", "vocab": 37, "lower": True, "limit": 41}}))
    y = pair.y.config
    assert (y.tokenizer, y.vocab, y.lower, y.limit, y.language) == ("words", 37, True, 41, "fr")
    said = of("translate", x={"source": {"limit": 41}}, y={"limit": 43, "language": "de"})
    assert (pair_of(said).y.config.limit, pair_of(said).y.config.language) == (43, "de")


def test_a_resolved_recipe_says_all_and_means_the_same():
    made = of("translate", x={"source": {"vocab": 37, "tokenizer": "words"}})
    whole = resolved(made)
    assert pair_of(whole) == pair_of(made)
    assert whole.x["source"]["kind"] == whole.y["kind"] == "text"
    assert whole.y["vocab"] == 37


def test_a_pair_of_its_own_needs_no_verb(tmp_path):
    (tmp_path / "t.tsv").write_text("".join(f"{text}\t{text[0]}\n" for text in ("ab", "ba", "aab", "bba") * 9))
    made = of("find-the-first", {"files": [str(tmp_path / "t.tsv")]}, x={"letters": {}}, y={"kind": "label"})
    pair = pair_of(made)
    assert list(pair.parts) == ["letters", "target"]
    assert pair.asks == "answer"
    supply = pair.supply(made)
    task = task_of(made, survey(pair, supply).files)
    assert (task.verb, list(task.x), task.name, task.y.names) == ("find-the-first", ["letters"], "target", ["a", "b"])
    assert all(task.inputs(row)[0] == row[-1] for row in supply.rows("train"))


def test_several_inputs_have_names(tmp_path):
    (tmp_path / "t.tsv").write_text("".join(f"{a}\t{b}\t{a < b}\n" for a in "abcd" for b in "dcba"))
    made = of(
        "classify",
        {"files": [str(tmp_path / "t.tsv")], "columns": [1, 2, 3]},
        x={"left": {"tokenizer": "characters"}, "right": {"tokenizer": "characters"}},
    )
    pair = pair_of(made)
    task = task_of(made, survey(pair, pair.supply(made)).files)
    assert task.inputs(("a", "b", "True")) == {"left": "a", "right": "b"}
    assert task.shown({"left": "a", "right": "b"}) == "left: a; right: b"
    for wrong, why in (
        ("a", "reads left and right: give a table"),
        ({"left": "a"}, "right is missing"),
        ({"left": "a", "rigth": "b"}, "reads no 'rigth'; did you mean 'right'"),
    ):
        with pytest.raises(SaccadeError, match=why):
            task.received(wrong)


@pytest.mark.parametrize(
    ("task", "tables", "why"),
    [
        ("translat", {}, "no task is called 'translat'; did you mean 'translate'"),
        ("translate", {"x": {"source": {"kind": "txt"}}}, "x.source.kind = 'txt' cannot be X; did you mean 'text'"),
        ("translate", {"x": {"source": {"kind": "label"}}}, "x.source.kind = 'label' cannot be X; it may be .*text"),
        ("mine", {"x": {"source": {}}, "y": {"kind": "lable"}}, "y.kind = 'lable' cannot be Y; did you mean 'label'"),
        ("mine", {"y": {"kind": "label"}}, "y.kind = 'label' cannot be Y without an X; it may be text"),
        (
            "classify",
            {"y": {"kind": "text"}},
            "classify makes a label, not text: its task is translate or transcribe or write",
        ),
        ("write", {"x": {"source": {}}}, r"write makes a text of nothing but .*: leave out \[x.source\]"),
        ("translate", {"x": {"target": {}}}, r"\[x.target\] has the name that the output has: give it another"),
        ("translate", {"x": {"source": {"limits": 9}}}, "x.source.limits is unknown; did you mean 'limit'"),
        ("classify", {"y": {"window": 9}}, "y.window is unknown"),
        ("write", {"y": {"limit": 9}}, "y.limit is unknown"),
        ("write", {"y": {"window": 0}}, "y.window should be a whole number >= 1; got 0"),
        (
            "translate",
            {"x": {"source": {"vocab": 300}}, "y": {"vocab": 400}},
            "y.vocab differs from x.source.vocab: the texts of a run share one vocabulary",
        ),
        (
            "classify",
            {"x": {"y": {"lower": True}, "z": {}}},
            "x.z.lower differs from x.y.lower: the texts of a run share one vocabulary",
        ),
        (
            "classify",
            {"x": {"source": {"tokenizer": "words", "unmerge": 0.1}}},
            "x.source.unmerge takes sub-words apart: write tokenizer = 'bpe', not 'words'",
        ),
    ],
)
def test_what_cannot_be_paired_is_told(task, tables, why):
    with pytest.raises(SaccadeError, match=why):
        pair_of(of(task, **tables))


def test_weights_to_start_from_bring_their_own_tokens():
    values = of("classify", x={"source": {"tokenizer": "words", "unmerge": 0.1}}).model_dump(exclude_none=True)
    del values["model"]
    assert pair_of(from_values({**values, "start": "run"})).x["source"].config.unmerge == 0.1


def test_data_for_another_task_are_told_before_keys_that_are():
    for made, why in (
        (
            of("write", {"name": "dates"}, x={"source": {}}),
            "dates has pairs of texts: its task is translate, not write",
        ),
        (of("classify", {"name": "recall"}, y={"window": 9}), "recall has texts to go on with: its task is write"),
    ):
        with pytest.raises(SaccadeError, match=why):
            pair_of(made)


TEXT = """\
task = "translate"

[data]
name = "dates"

[x.source]
tokenizer = "words"
vocab = 37

[y]
smoothing = 0.1

[model]
width = 6
heads = 3
encoder = 1
decoder = 1

[train]
steps = 5
"""


@pytest.mark.parametrize(
    ("before", "after", "options", "why"),
    [
        ("vocab = 37", "vocab = 3", [], r"mine.toml, line 8: x.source.vocab should be .*got 3"),
        ("vocab = 37", "vocav = 37", [], r"line 8: x.source.vocav is unknown; did you mean 'vocab'"),
        ("smoothing = 0.1", "vocab = 41", [], r"line 11: y.vocab differs from x.source.vocab"),
        ("smoothing = 0.1", 'kind = "label"', [], r"line 11: translate makes a text, not label: its task is classify"),
        ("smoothing = 0.1", "smoothing = 1.0", [], r"line 11: y.smoothing should be a number >= 0 and < 1; got 1.0"),
        ('tokenizer = "words"', "unmerge = 0.2", ["x.source.tokenizer=split"], r"line 7: x.source.unmerge takes"),
        (
            "[y]\nsmoothing = 0.1",
            '["y"]\nsmoothign = 0.1',
            [],
            r"line 11: y.smoothign is unknown; did you mean 'smoothing'",
        ),
        ("steps = 5", "steps = 5", ["x.source.vocab=3"], r"mine.toml: x.source.vocab should be .*got 3"),
        ("steps = 5", "steps = 5", ["data.vocab=3"], r"mine.toml: x.source.vocab should be .*got 3"),
    ],
)
def test_what_is_wrong_with_a_field_is_told_with_its_line(tmp_path, before, after, options, why):
    assert before in TEXT
    (tmp_path / "mine.toml").write_text(TEXT.replace(before, after))
    with pytest.raises(SaccadeError, match=why) as problem:
        pair_of(recipe(tmp_path / "mine.toml", options))
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("encoder", "decoder"), [(1, 1), (0, 1), (1, 0)])
def test_a_model_has_the_stacks_of_its_pair(encoder, decoder):
    config = ModelConfig(**MODEL, encoder=encoder, decoder=decoder)
    spread = {(1, 1): ["translate", "caption", "read", "transcribe", "detect"], (0, 1): ["write"]}
    fitting = {**spread, (1, 0): ["classify", "regress", "answer", "cluster", "foretell", "detect"]}[encoder, decoder]
    for verb in VERBS:
        if verb in fitting:
            pair_of(of(verb)).check(config)
            continue
        with pytest.raises(SaccadeError, match=f"{verb} needs an? (encoder|decoder)"):
            pair_of(of(verb)).check(config)
    source = part_of_model(config, {})
    found = pair_of_model(config, {LABELS: b"[]"}, blanks=False, source=source)
    assert found.verb == fitting[0]
    assert [part.config.limit for part in found.x.values()] == [None] * len(found.x), "as long as the model has room"
    assert (pair_of_model(config, {}, blanks=False, source=source) is None) == ("classify" in fitting)
