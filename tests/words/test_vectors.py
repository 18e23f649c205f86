"""Vectors: asked, judged, kept and opened again; and all that can be wrong with them."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from saccade import disk
from saccade.error import SaccadeError
from saccade.words import Vectors, judge, load
from saccade.words.rank import ranks, spearman

NAMES = ["king", "queen", "man", "woman", "apple"]
MATRIX = np.array([[1, 1, 0], [1, -0.9, 0.1], [0, 1, 0], [0, -1, 0], [0, 0, 3]], dtype=np.float32)


@pytest.fixture
def vectors():
    return Vectors(NAMES, MATRIX, {"kind": "skipgram"})


def test_neighbours_similarities_and_analogies(vectors):
    assert vectors.vector("queen") == pytest.approx([1, -0.9, 0.1])
    assert vectors.similarity("king", "man") == pytest.approx(0.5**0.5)
    assert [word for word, _ in vectors.nearest("king", 2)] == ["man", "queen"]
    assert len(vectors.nearest("king", 99)) == 4
    assert vectors.analogy("man", "king", "woman")[0][0] == "queen"
    assert [word for word, _ in vectors.analogy("man", "king", "woman", n=99)] == ["queen", "apple"]
    assert "KING" in vectors, "a word that is not there as it is written is looked for in lower case"


def test_questions_are_answered_as_one_by_one(vectors):
    asked = [("man", "king", "woman", "queen"), ("man", "king", "woman", "apple"), ("man", "king", "woman", "pear")]
    assert vectors.solve(asked) == (1, 2)
    assert vectors.solve([]) == (0, 0)
    draw = np.random.default_rng(0)
    many = Vectors([f"w{each}" for each in range(53)], draw.normal(size=(53, 7)).astype(np.float32))
    questions = [tuple(f"w{each}" for each in draw.choice(53, 4, replace=False)) for _ in range(1201)]
    right = sum(many.analogy(*each[:3])[0][0] == each[3] for each in questions)
    assert many.solve(questions) == (right, 1201)
    assert right > 0


def test_agreement_counts_the_pairs_that_are_known(vectors):
    pairs = [("king", "man", 9.0), ("king", "apple", 4.0), ("man", "woman", 1.0), ("king", "pear", 5.0)]
    assert vectors.evaluate(pairs) == (pytest.approx(1.0), 3, 4)
    with pytest.raises(SaccadeError, match="1 of 1 pairs are known"):
        vectors.evaluate(pairs[:1])


def test_ranks_with_ties():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [2.5, 0.0, 2.5, 1.0]
    assert spearman(np.array([1, 2, 3]), np.array([1, 10, 11])) == pytest.approx(1)
    assert spearman(np.array([1, 2, 3]), np.array([5, 4, 3])) == pytest.approx(-1)
    assert spearman(np.array([1, 2, 3]), np.array([7, 7, 7])) == 0.0
    assert spearman(np.array([1, 2, 2, 4]), np.array([1, 3, 2, 4])) == pytest.approx(0.9486833)


def test_rank_correlation_is_scipys():
    from scipy import stats

    draw = np.random.default_rng(0)
    for _ in range(5):
        a, b = draw.integers(0, 9, 101), draw.normal(size=101).round(1)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_what_is_kept_is_opened_again(vectors, tmp_path):
    vectors.save(tmp_path / "kept")
    again = load(tmp_path / "kept")
    assert again.names == NAMES
    assert (again.matrix == MATRIX).all()
    assert again.about == {"kind": "skipgram"}
    assert sorted(each.name for each in (tmp_path / "kept").iterdir()) == [
        "manifest.json",
        "vectors.safetensors",
        "words.json",
    ]
    with pytest.raises(SaccadeError, match="not empty"):
        vectors.save(tmp_path / "kept")


def test_words_that_no_encoding_has_are_kept(tmp_path):
    names = ["\ud800", "\x85", "é", "😀"]
    Vectors(names, np.eye(4, dtype=np.float32)).save(tmp_path / "odd")
    assert load(tmp_path / "odd").names == names


def test_a_folder_that_holds_something_else_is_refused(vectors, tmp_path):
    with pytest.raises(SaccadeError, match="no folder of word vectors"):
        load(tmp_path)
    vectors.save(tmp_path / "damaged")
    (tmp_path / "damaged" / "words.json").write_text(json.dumps(NAMES[::-1]))
    with pytest.raises(disk.DamagedError, match=r"words\.json is damaged"):
        load(tmp_path / "damaged")
    (tmp_path / "other").mkdir()
    disk.seal(tmp_path / "other", {})
    with pytest.raises(SaccadeError, match="holds no word vectors"):
        load(tmp_path / "other")


def test_bad_questions_are_told(vectors):
    with pytest.raises(SaccadeError, match="'quen' is not among the 5 words; did you mean 'queen'"):
        vectors.nearest("quen")
    with pytest.raises(SaccadeError, match="did not occur often enough"):
        vectors.similarity("xyzzy", "king")
    with pytest.raises(SaccadeError, match="ask for one at least"):
        vectors.nearest("king", 0)


@pytest.mark.parametrize(
    ("names", "matrix", "message"),
    [
        (["a"], np.zeros((2, 3)), "as many rows"),
        ([], np.zeros((0, 3)), "as many rows"),
        (["a", "a"], np.zeros((2, 3)), "twice"),
        (["a", "b"], np.array([[1.0], [np.nan]]), "not finite"),
    ],
)
def test_bad_vectors_are_refused(names, matrix, message):
    with pytest.raises(SaccadeError, match=message):
        Vectors(names, matrix)


def test_a_vector_of_zeros_is_like_nothing():
    made = Vectors(["a", "b"], np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert made.similarity("a", "b") == 0.0


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """The judgement's files in small, in a data folder."""
    folder = tmp_path / "data" / judge.FOLDER
    folder.mkdir(parents=True)
    (folder / "s.tsv").write_text("# people\nking\tman\t9.0\nking\tapple\t2.5\nKing\tqueen\t1\nking\tpear\t1\n")
    text = ": royal\nMan King Woman Queen\nman king woman apple\n: fruit\nman king woman pear\n"
    (folder / "q.txt.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(judge, "SIMILARITY", {"small": ("s.tsv", disk.digest(folder / "s.tsv"))})
    monkeypatch.setattr(judge, "QUESTIONS", ("q.txt.gz", disk.digest(folder / "q.txt.gz")))
    return folder


def test_the_judgement(vectors, sets):
    found = judge.judge(vectors)
    assert found["similarity"]["small"] == {"rho": pytest.approx(0.5), "known": 3, "pairs": 4}
    assert found["analogy"] == {
        "right": 1,
        "known": 2,
        "asked": 3,
        "accuracy": 0.5,
        "sections": {"royal": {"right": 1, "known": 2}, "fruit": {"right": 0, "known": 0}},
    }


def test_files_of_the_judgement_that_are_wrong_are_told(vectors, sets):
    (sets / "s.tsv").write_text("another")
    with pytest.raises(SaccadeError, match=r"s\.tsv is another file"):
        judge.judge(vectors)
    (sets / "s.tsv").unlink()
    with pytest.raises(SaccadeError, match="set SACCADE_DATA to a folder that has it"):
        judge.judge(vectors)
    (sets / "bad.tsv").write_text("# x\nking man 3\n")
    with pytest.raises(SaccadeError, match="line 2: word, word and number"):
        judge.pairs(sets / "bad.tsv")
    (sets / "bad.txt").write_text(": a\none two three\n")
    with pytest.raises(SaccadeError, match="line 2: four words were expected, here are 3"):
        judge.analogies(sets / "bad.txt")
