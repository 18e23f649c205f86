"""The bag of words: counts, weights by rarity, and how alike two texts are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from saccade.error import SaccadeError
from saccade.words import Bag

TEXTS = ["the cat sat", "the dog sat", "the cat saw the dog"]


def test_counts_whatever_the_order():
    bag = Bag.of(TEXTS)
    assert bag.names == ["the", "cat", "dog", "sat", "saw"]
    assert bag.vector("Dog, the dog! What a dog.").tolist() == [1, 0, 3, 0, 0]
    assert bag.vector("").tolist() == [0] * 5
    assert (bag.vector("the cat saw") == bag.vector("saw cat the")).all()


def test_rare_words_weigh_more():
    bag = Bag.of(TEXTS, rarity=True)
    having = np.array([3, 2, 2, 2, 1])
    assert bag.weights == pytest.approx(np.log(4 / (1 + having)) + 1)
    assert bag.vector("the saw the") == pytest.approx([2, 0, 0, 0, math.log(2) + 1])


def test_how_alike_two_texts_are():
    bag = Bag.of(TEXTS)
    assert bag.similarity("the cat", "cat the") == pytest.approx(1)
    assert bag.similarity("cat dog", "cat sat") == pytest.approx(0.5)
    assert bag.similarity("cat", "unheard of") == 0.0
    assert bag.nearest("a cat sat", TEXTS, 2) == [
        ("the cat sat", pytest.approx(2 / math.sqrt(6))),
        ("the dog sat", pytest.approx(1 / math.sqrt(6))),
    ]
    with pytest.raises(SaccadeError, match="one at least"):
        bag.nearest("a", TEXTS, 0)


def test_seldom_words_are_left_out():
    assert Bag.of(TEXTS, least=2).names == ["the", "cat", "dog", "sat"]
    with pytest.raises(SaccadeError, match="lower `least`"):
        Bag.of(TEXTS, least=9)


def test_a_bag_of_one_word_and_a_text_that_stands_alone():
    assert Bag.of(["hello hello"]).vector("hello, hello").tolist() == [2]
    with pytest.raises(SaccadeError, match="put this one between brackets"):
        Bag.of("the cat sat on")
