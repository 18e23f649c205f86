"""Questions about pictures of shapes: each answer is true of the shapes that are drawn, and no question tells it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from saccade.data import relations
from saccade.data.relations import COLOURS, ONE, SHAPES, SIDES, TWO, drawn, example, examples, kind_of, placed
from saccade.error import SaccadeError
from saccade.recipes.read import recipe
from saccade.task.pair import pair_of


def things_of(number):
    """The shapes of a picture and its pixels, by the draws that the generator makes."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([0, 0, number])))
    things = placed(random)
    return things, drawn(things, random)


def named(things, name):
    (found,) = [each for each in things if each.name == name]
    return found


def true_answer(question, things):
    """What is so, found out by itself: from the words of the question and the places of the shapes."""
    words = question.rstrip("?")
    if found := re.fullmatch(r"what colour is the (\w+)", words):
        (one,) = [each for each in things if each.shape == found[1]]
        return one.colour
    if found := re.fullmatch(r"what shape is the (\w+) one", words):
        (one,) = [each for each in things if each.colour == found[1]]
        return one.shape
    if found := re.fullmatch(r"how many others have the (\w+) of the (.+)", words):
        one = named(things, found[2])
        return str(sum(getattr(each, found[1]) == getattr(one, found[1]) for each in things if each is not one))
    side = next(each for each in SIDES if each in words)
    axis, way = {"left of": ("x", -1), "right of": ("x", 1), "above": ("y", -1), "below": ("y", 1)}[side]
    before, name = words.split(f" {side} the ")
    other = named(things, name)
    there = [each for each in things if way * (getattr(each, axis) - getattr(other, axis)) > 0]
    if before.startswith("is the "):
        return "yes" if named(things, before.removeprefix("is the ")) in there else "no"
    (one,) = there
    return one.colour if "colour" in before else one.shape


def test_every_answer_is_true():
    kinds = Counter()
    for number, (pixels, question, answer) in enumerate(examples(600)):
        things, same = things_of(number // 5)
        assert np.array_equal(pixels, same)
        assert answer == true_answer(question, things), question
        kinds[kind_of(question), question.split()[0]] += 1
    assert {kind for kind, _ in kinds} == {ONE, TWO}
    assert min(kinds.values()) > 20


def test_shapes_lie_apart_and_are_drawn_where_they_are():
    for number in range(40):
        things, pixels = things_of(number)
        assert pixels.shape == (48, 48, 3)
        assert 2 <= len(things) <= 5
        assert len({each.name for each in things}) == len(things)
        for each in things:
            middle = pixels[round(each.y), round(each.x)].astype(int)
            nearest = min(COLOURS, key=lambda name: np.abs(middle - COLOURS[name]).sum())
            assert nearest == each.colour
            assert each.shape in SHAPES
            apart = [np.hypot(each.x - o.x, each.y - o.y) for o in things if o is not each]
            assert min(apart) >= relations.APART


def test_the_question_alone_tells_little():
    learned, asked = list(examples(8000)), list(examples(1000, split="test"))
    counts: dict[str, Counter[str]] = {}
    for _, question, answer in learned:
        counts.setdefault(question, Counter())[answer] += 1
    for kind, most in ((ONE, 0.35), (TWO, 0.5)):
        rows = [(question, answer) for _, question, answer in asked if kind_of(question) == kind]
        right = [question in counts and counts[question].most_common(1)[0][0] == answer for question, answer in rows]
        assert np.mean(right) < most


def test_the_same_number_gives_the_same_and_splits_share_none():
    rows = list(examples(60))
    picture, *words = example(17)
    assert np.array_equal(picture, rows[17][0])
    assert words == list(rows[17][1:])
    assert rows[15][0] is rows[19][0], "the questions of a picture share it"
    pictures = {each[0].tobytes() for split in ("train", "val", "test") for each in examples(60, split=split)}
    pictures |= {each[0].tobytes() for each in examples(60, seed=1)}
    assert len(pictures) == 4 * 12
    with pytest.raises(SaccadeError, match="the split 'dev' is unknown"):
        example(0, split="dev")


def test_a_recipe_names_it_and_knows_its_kinds():
    made = recipe("relations-vqa", ["data.examples=7", "data.held=3"])
    supply = pair_of(made).supply(made)
    assert [len(list(supply.rows(split))) for split in supply.splits] == [7, 3, 3]
    assert {supply.group(row) for row in supply.rows("train")} == {ONE, TWO}
    with pytest.raises(SaccadeError, match="its task is answer, not classify"):
        recipe_for_another_task()


def recipe_for_another_task():
    made = recipe("mnist-vit", ["data.name=relations"])
    return pair_of(made).supply(made)
