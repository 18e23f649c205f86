"""The rows a recipe asks for: from own files, a generator, or a named data set."""

from __future__ import annotations

import json

import pytest

from saccade import SaccadeError
from saccade.data import source
from saccade.data.leakage import leaks
from saccade.data.split import split
from saccade.data.supply import Supply, language_of
from saccade.field.label import Label
from saccade.field.text.source import SourceText
from saccade.field.text.stream import StreamedText
from saccade.field.text.target import TargetText
from saccade.recipe import DataConfig
from saccade.recipes.read import from_values

MODEL = {"width": 6, "heads": 3, "encoder": 1, "decoder": 1}
KINDS = {
    "translate": {"source": SourceText, "target": TargetText},
    "write": {"text": StreamedText},
    "classify": {"source": SourceText, "label": Label},
}


def supply(task="translate", **data):
    return Supply(from_values({"task": task, "data": data, "model": MODEL, "train": {"steps": 1}}), KINDS[task])


@pytest.fixture
def pairs(tmp_path):
    for name, mark in (("a", ""), ("b", "!")):
        (tmp_path / f"{name}.txt").write_text("".join(f"line {number % 80}{mark}\n" for number in range(100)))
    return [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]


def test_the_split_is_complete_and_clean(pairs):
    made = supply(files=pairs, share=0.3)
    train, val = list(made.rows("train")), list(made.rows("val"))
    assert len(train) + len(val) == 100
    assert 10 < len(val) < 50
    assert all(target == f"{source}!" for source, target in [*train, *val])
    assert not {row[0] for row in train} & {row[0] for row in val}
    assert leaks(made)["source"]["val"] == 0
    assert made.splits == ("train", "val")


def test_pairs_may_be_learned_from_in_both_directions(pairs):
    one, both = supply(files=pairs, share=0.3), supply(files=pairs, share=0.3, both=True)
    assert list(both.rows("val")) == list(one.rows("val"))
    turned = [each for source, target in one.rows("train") for each in ((source, target), (target, source))]
    found = list(both.rows("train"))
    assert found == list(
        split(turned, "train", lambda row: SourceText.identity(row[0]), share=0.3)
    )  # a target that were held back as a source is not one
    assert len(found) > 1.5 * len(list(one.rows("train")))
    given = supply(files=pairs, validation=pairs, both=True)
    assert list(given.rows("train")) == [each for row in given.rows("val") for each in (row, row[::-1])]
    assert list(both.once()) == list(one.once())
    assert leaks(both)["source"]["val"] == 0
    assert both.reading() != one.reading()  # their tokens are not each other's


def test_turned_pairs_keep_what_is_held_back(tmp_path):
    """Where targets are sources too, as in a file that holds its pairs both ways."""
    texts = [(f"{n}", f"{n}!") for n in range(60)]
    for column, name in enumerate(("a.txt", "b.txt")):
        pairs = [*texts, *(each[::-1] for each in texts)]
        (tmp_path / name).write_text("".join(f"{each[column]}\n" for each in pairs))
    made = supply(files=[str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], share=0.3, both=True)
    train, val = set(made.rows("train")), set(made.rows("val"))
    assert len(val) > 20
    assert not {row[0] for row in train} & {row[0] for row in val}
    assert leaks(made)["source"]["val"] == 0
    kept = {row[0] for row in train}
    assert {row[::-1] for row in train if row[1] in kept} <= train


def test_given_validation_files_are_checked_for_leakage(pairs, tmp_path):
    (tmp_path / "v.txt").write_text("line 3\nnever seen\nline 5\n")
    made = supply(files=pairs, validation=[str(tmp_path / "v.txt")] * 2)
    assert len(list(made.rows("train"))) == 100
    assert leaks(made)["source"]["val"] == 2
    assert leaks(supply(files=pairs, test=[str(tmp_path / "v.txt")] * 2))["source"]["test"] == 2


def test_targets_that_have_another_source_too(tmp_path):
    """As where sources were written back: of a target that is held out one pair is learned from."""
    texts = [f"line {number}" for number in range(40)]
    (tmp_path / "a.txt").write_text("".join(f"{each}\n" for each in (*texts, *(f"a {each}" for each in texts))))
    (tmp_path / "b.txt").write_text("".join(f"{each}!\n" for each in (*texts, *texts)))
    made = supply(files=[str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], share=0.3)
    learned = {target for _, target in made.rows("train")}
    assert leaks(made)["source"]["val"] == 0
    assert leaks(made)["target"]["val"] == len({target for _, target in made.rows("val")} & learned) > 5


def test_a_text_is_measured_once(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("0123456789" * 7)
    read = []
    whole = source.text
    monkeypatch.setattr(source, "text", lambda path, **span: read.append(span) or whole(path, **span))
    made = supply("write", files=[str(tmp_path / "a.txt")], share=0.3)
    assert ["".join(row[0] for row in made.rows(name)) for name in ("train", "val", "train")] == [
        "0123456789" * 4 + "012345678",
        "9" + "0123456789" * 2,
        "0123456789" * 4 + "012345678",
    ]
    assert read.count({}) == 1


def test_a_text_is_cut_at_its_end(tmp_path):
    text = "".join(f"this is the long line with the number {number} in it\n" for number in range(50))
    (tmp_path / "t.txt").write_text(text)
    made = supply("write", files=[str(tmp_path / "t.txt")], share=0.25)
    train, val = ("".join(row[0] for row in made.rows(each)) for each in ("train", "val"))
    assert train + val == text
    assert len(val) == pytest.approx(len(text) * 0.25, abs=1)
    assert not made.by_line


def test_texts_and_tables_are_not_mixed(tmp_path):
    (tmp_path / "t.txt").write_text("a text\n")
    (tmp_path / "t.jsonl").write_text('{"text": "a text"}\n')
    with pytest.raises(SaccadeError, match="tables, and others texts"):
        supply("write", files=[str(tmp_path / "t.txt")], validation=[str(tmp_path / "t.jsonl")])


@pytest.mark.parametrize("key", ["files", "validation", "test", "columns"])
def test_what_belongs_to_files_is_refused_beside_a_name(key):
    with pytest.raises(SaccadeError, match=rf"give a name or files, not both: there is a name, '\w+', and data\.{key}"):
        supply(name="dates", **{key: ["mine"]})


def test_labels_are_the_same_with_blanks_around_them(tmp_path):
    (tmp_path / "t.tsv").write_text("good\tpos\nfine\tpos \nbad\t neg\n")
    assert {row[1] for row in supply("classify", files=[str(tmp_path / "t.tsv")]).everything()} == {"pos", "neg"}


def test_documents_of_jsonl(tmp_path):
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": f"document {n}"}) + "\n" for n in range(40)))
    made = supply("write", files=[str(tmp_path / "t.jsonl")], share=0.25)
    assert made.by_line
    assert len([*made.rows("train"), *made.rows("val")]) == 40


def test_dates_depend_on_all_that_makes_them():
    made = supply(name="dates", examples=30, held=7)
    assert [len(list(made.rows(each))) for each in ("train", "val", "test")] == [30, 7, 7]
    assert made.made_of() != supply(name="dates", examples=30, held=8).made_of()
    assert "babel" in made.made_of()


def test_the_language_of_the_targets():
    assert language_of(DataConfig(name="multi30k")) == "de"
    assert language_of(DataConfig(name="multi30k", pair="de-en")) == "en"
    assert language_of(DataConfig(files=["a", "b"], pair="en-fr")) == "fr"
    assert language_of(DataConfig(files=["a", "b"])) == "en"
    assert language_of(DataConfig(files=["x/a.en", "x/a.fr.gz"])) == "fr"
    assert language_of(DataConfig(files=["a.en", "a.fr"], pair="en-de")) == "de"
    assert language_of(DataConfig(files=["a.txt", "b.de"])) == language_of(DataConfig(files=["a.de"])) == "en"


@pytest.mark.parametrize(
    ("task", "data", "why"),
    [
        ("translate", {}, "names no data"),
        ("translate", {"name": "multi"}, "did you mean 'multi30k'"),
        ("classify", {"name": "dates"}, "its task is translate"),
        ("write", {"name": "multi30k"}, "multi30k has pairs of texts: its task is translate, not write"),
        ("write", {"files": ["a.txt", "b.txt"]}, "2 texts: give one"),
        ("translate", {"files": ["only.txt"]}, "not there"),
    ],
)
def test_what_does_not_go_together(task, data, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a text\n")
    with pytest.raises(SaccadeError, match=why):
        list(supply(task, **data).rows("train"))
    if data.get("name") == "dates":
        return
    with pytest.raises(SaccadeError):
        list(supply(task, **data).rows("nope"))
