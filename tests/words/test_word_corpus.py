"""Words of texts: cut, counted, numbered from the commonest on, and left out where they are rare."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from saccade.error import SaccadeError
from saccade.words.word_corpus import cutter, lines, read

TEXTS = ["The cat saw the dog.", "", "A dog saw   the cat!", "rare"]


def test_words_are_numbered_from_the_commonest_on():
    corpus = read(TEXTS, least=2)
    assert corpus.names == ["the", "cat", "dog", "saw"]
    assert corpus.counts.tolist() == [3, 2, 2, 2]
    assert " ".join(corpus.names[each] for each in corpus.tokens) == "the cat saw the dog dog saw the cat"
    assert corpus.texts.tolist() == [0] * 5 + [2] * 4
    assert corpus.total == 13


def test_a_list_of_words_is_taken_as_it_is():
    corpus = read([["New York", "The"], ["The", "New York"]], least=1)
    assert corpus.names == ["New York", "The"]


def test_cuts():
    assert cutter()("Don't: 3.5") == ["don", "'", "t", ":", "3", ".", "5"]
    assert cutter("split", lower=False)("Don't @-@ <unk>") == ["Don't", "@-@", "<unk>"]


def test_words_take_their_marks_along():
    assert cutter()("हिन्दी, ภาษาที่!") == ["हिन्दी", ",", "ภาษาที่", "!"]
    assert cutter()("كِتَابٌ.") == ["كِتَابٌ", "."]
    composed, apart = "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"
    assert cutter()(f"{apart} {composed}") == [composed, composed]


def test_plain_words_are_cut_as_before():
    text = "It's 3.5%, an_e-mail... (or) <unk> @-@ naïve?!"
    assert cutter(lower=False)(text) == re.findall(r"\w+|[^\w\s]+", text)


def test_lines_of_files_and_of_named_data(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"eins zwei\ndrei\n"))
    assert list(lines([str(file), str(file)])) == ["eins zwei", "drei"] * 2
    with pytest.raises(SaccadeError, match=r"b\.txt is not there"):
        list(lines([str(tmp_path / "b.txt")]))


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ("a text", {}, "put this one between brackets"),
        ([], {}, "only 0 of 0 words occur 5 times"),
        (["a b c"], {"least": 2}, "only 0 of 3 words occur 2 times"),
        (["a b"], {"cut": "word"}, "did you mean 'words'"),
    ],
)
def test_what_cannot_be_read_is_told(texts, options, message):
    with pytest.raises(SaccadeError, match=message):
        read(texts, **options)


def test_reading_holds_numbers_of_the_right_kind():
    corpus = read(TEXTS, least=1)
    assert corpus.tokens.dtype == np.int64
    assert len(corpus.tokens) == len(corpus.texts) == corpus.total
