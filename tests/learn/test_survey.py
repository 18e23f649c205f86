"""What one reading of the training rows tells."""

from __future__ import annotations

import pytest
from tiny import classify, translate

from saccade.error import SaccadeError
from saccade.learn.prepare import prepare, say_report
from saccade.learn.survey import survey
from saccade.task.pair import pair_of


@pytest.mark.parametrize("make", [classify, translate])
def test_the_training_rows_are_read_once(make, tmp_path, monkeypatch):
    recipe = make(tmp_path)
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    opened, seen = [], supply.seen
    monkeypatch.setattr(supply, "seen", lambda every: opened.append(every) or seen(every))
    monkeypatch.setattr(supply, "once", lambda once=supply.once: opened.append("once") or once())
    found = survey(pair, supply)
    assert opened in ([True], [False, "once"])
    assert set(found.files) == {part.kind.stored(name) for name, part in pair.parts.items()}
    assert found.header is None
    assert all(count == 0 for each in list(found.leaks.values())[:1] for count in each.values())


def test_fields_that_come_along_are_not_learned_again(tmp_path, monkeypatch):
    recipe = translate(tmp_path)
    pair = pair_of(recipe)
    monkeypatch.setattr(pair.y.kind, "made", lambda *_: pytest.fail("a vocabulary was made"))
    assert survey(pair, pair.supply(recipe), {"tokenizer.json": b"theirs"}).files == {"tokenizer.json": b"theirs"}


def test_labels_of_rows_that_are_split_off_are_labels_too(tmp_path):
    recipe = classify(tmp_path)
    (tmp_path / "texts.tsv").write_text("".join(f"text {n}\tlabel {n}\n" for n in range(40)))
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    labels = survey(pair, supply).files["labels.json"].decode()
    held = [row[1] for row in supply.rows("val")]
    assert held
    assert all(f'"{label}"' in labels for label in held)
    first = recipe.model_copy(update={"data": recipe.data.model_copy(update={"first": 7})})
    some = pair_of(first).supply(first)
    assert [each.row for each in some.seen(every=True) if each.learned] == list(some.once())
    assert len(list(some.once())) == 7
    assert len(list(some.everything())) == 40


def test_rows_that_stand_twice_are_counted(tmp_path):
    """A row is a copy where all its columns are, however they are spaced; the same text with another label is none."""
    recipe = classify(tmp_path)
    rows = [f"text {n}\tlabel {n % 2}\n" for n in range(40)]
    more = ["text 1\tlabel 1\n", "text  1\tlabel 1\n", "text 1\tlabel 0\n", "text 2\tlabel 0\n"]
    (tmp_path / "texts.tsv").write_text("".join([*rows, *more]))
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    learned = [(" ".join(text.split()), label) for text, label in supply.rows("train")]
    assert survey(pair, supply).duplicates == len(learned) - len(set(learned)) > 1


def test_the_report_tells_what_was_skipped_and_what_stands_twice(tmp_path):
    lines = [f"word {n}" for n in range(40)]
    lines[4] = lines[30] = ""
    lines[7:10] = ["the same", "the same", "the same"]
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{each}\n" for each in lines))
    said = []
    say_report(prepare(translate(tmp_path), said.append), said.append)
    assert "  skipped 2: blank line (lines 5 and 31)" in said
    assert "duplicates: 2 training rows are copies of an earlier one" in said
    refusing = translate(tmp_path, {"limit": 6, "skip": False})
    (tmp_path / "a.txt").write_text("".join(f"{each or 'full'}\n" for each in lines))
    (tmp_path / "b.txt").write_text("".join(f"{each or 'full'}\n" for each in lines))
    with pytest.raises(SaccadeError, match=r"examples are longer than 6 tokens \(lines \d+, .* more\)"):
        prepare(refusing, said.append)
