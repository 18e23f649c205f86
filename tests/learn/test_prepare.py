"""From a recipe to the first step: what is counted, told and refused on the way."""

from __future__ import annotations

import pytest
from tiny import translate, write

from saccade.learn.prepare import prepare, say_report


@pytest.mark.parametrize(
    ("name", "text", "data", "count"),
    [
        ("t.txt", "One eye  sees\nmore\n", {}, 19),
        ("t.txt", "One eye  sees\nmore\n", {"lower": True}, 0),
        ("t.txt", "one eye  sees\nmore\n", {"lower": True}, 19),
        ("t.txt", "One eye  sees\nmore\n", {"tokenizer": "split"}, 0),
        ("t.tsv", "text\nOne eye\nsees more\n", {}, 18),
        ("t.tsv", "text\nOne eye\nsees more\n", {"tokenizer": "split"}, 18),
    ],
)
def test_characters_are_counted_where_tokens_say_all_of_them(name, text, data, count, tmp_path):
    """The end of a text of a table is a character too: it is among what is predicted."""
    files = {"files": [str(tmp_path / name)], "validation": [str(tmp_path / name)]}
    (tmp_path / name).write_text(text)
    assert prepare(write(tmp_path, data={**data, **files}), lambda _: None).extent == count


def test_of_one_text_no_examples_are_told(tmp_path):
    said: list[str] = []
    say_report(prepare(write(tmp_path), lambda _: None), said.append)
    assert said[0] == "train: one text"
    assert not any("example" in line or "median" in line for line in said)


def test_targets_that_are_learned_from_with_another_source_are_told(tmp_path):
    made = translate(tmp_path)
    sources, targets = (tmp_path / name for name in ("a.txt", "b.txt"))
    sources.write_text(sources.read_text() + "".join(f"x{line}\n" for line in sources.read_text().splitlines()))
    targets.write_text(targets.read_text() * 2)
    said: list[str] = []
    say_report(prepare(made, lambda _: None), said.append)
    (told,) = [line for line in said if line.startswith("leakage")]
    assert "targets of val are in the training data too" in told
    assert "sources" not in told


def test_a_corpus_is_made_again_for_other_fields_or_limits(tmp_path):
    def folder(**data):
        return prepare(translate(tmp_path, data), lambda _: None).train.folder

    first = folder()
    assert folder() == first
    others = [folder(vocab=9), folder(tokenizer="split"), folder(limit=5), folder(lower=True)]
    assert len({first, *others}) == 5
