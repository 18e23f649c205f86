"""Named data sets, found in the folder `SACCADE_DATA` or in the cache folder; nothing is fetched.

`bccd` (Shenggan 2017), `citeseer` and `cora` (Sen et al. 2008), `easy-vqa` (Zhou 2019), `emoji-captions` (Twemoji;
names of Unicode's CLDR),
`eth-ucy` (Pellegrini et al. 2009, Lerner et al. 2007), `fashion-mnist` (Xiao et al. 2017), `fsdd` (Jackson et al.
2018), `mnist` (LeCun et al. 1998), `multi30k` (Elliott et al. 2016, 2017), `tinyshakespeare` (Karpathy 2015),
`wikitext-2` (Merity et al. 2016).
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from saccade import disk
from saccade.data import bccd, citations, emoji, fsdd, idx, npz, pedestrians, source
from saccade.data.skipped import Skipped
from saccade.error import SaccadeError, nearest


@dataclass(frozen=True)
class DataSet:
    """A named data set. splits: the files of each split (several with a space between them; `{}` stands for the
    language); files: the sha256 of each; task, kinds, what: what its rows are for, and what their columns hold;
    licence: the one that its authors state.
    """

    about: str
    origin: str
    licence: str
    splits: dict[str, str]
    files: dict[str, str]
    pairs: tuple[str, ...] = ()
    task: str = "write"
    kinds: tuple[str, ...] = ("text",)
    what: str = "texts to go on with"
    # how the files of a split are read: with the pair, where there are any, and what is held out
    read: Callable[..., Iterator[tuple[Any, ...]]] | None = None
    group: Callable[[tuple[Any, ...]], str | None] = lambda _: (
        None
    )  # what kind of example a row is, if it is of several
    by_line: bool = False  # every line is a text of its own, which has an end
    apart: str | None = None  # the key of [data] that says what is held out (speaker, place); `read` is then told it
    spans: dict[str, tuple[int, int | None]] = field(default_factory=dict)  # in characters, where splits share a file
    folder: str | None = None  # where its files lie, if not in a folder of its own name


def files(name: str, split: str = "train", pair: str | None = None) -> list[Path]:
    """The files of a split, checked: the two sides of a language pair ("en-de"), or the one file of a text."""
    known = data(name)
    if split not in known.splits:
        raise SaccadeError(f"{name} has no split {split!r}; {nearest(split, known.splits)}")
    pair = pair or next(iter(known.pairs), None)
    if pair is not None and pair not in known.pairs:
        there = nearest(pair, known.pairs) if known.pairs else "it is plain text"
        raise SaccadeError(f"{name} has no pair {pair!r}; {there}")
    sides = pair.split("-") if pair else [""]
    names = dict.fromkeys(each.format(side) for side in sides for each in known.splits[split].split())
    return [_found(name, each) for each in names]


def rows(
    name: str, split: str = "train", pair: str | None = None, *, skipped: Skipped | None = None
) -> Iterator[tuple[str, ...]]:
    """The rows (source, target) of a split of a language pair; of a text, its lines as rows of one column."""
    start, stop = data(name).spans.get(split, (0, None))
    if (start, stop) != (0, None):
        raise SaccadeError(f"the splits of {name} are parts of one file, which are read with `text`")
    return source.rows(files(name, split, pair), skipped=skipped)


def text(name: str, split: str = "train") -> Iterator[str]:
    """The text of a split, in chunks."""
    known = data(name)
    if known.pairs:
        raise SaccadeError(f"{name} is made of language pairs, which are read with `rows`")
    start, stop = known.spans.get(split, (0, None))
    return source.text(files(name, split)[0], start=start, stop=stop)


def rows_of(
    name: str, split: str, pair: str | None, skipped: Skipped | None, apart: Mapping[str, str] | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of a split, whatever the data set holds: pairs of texts, lines, pieces of one text, or its own. apart:
    what is held out, by its key.
    """
    known = data(name)
    if known.read is not None:
        chosen = [pair or known.pairs[0]] if known.pairs else []
        held = [] if known.apart is None else [(apart or {}).get(known.apart)]
        return known.read(files(name, split, pair), split, *chosen, *held)
    if known.pairs:
        return rows(name, split, pair, skipped=skipped)
    if known.by_line:
        return ((line,) for path in files(name, split) for line in source.lines(path))
    return ((piece,) for piece in text(name, split))


def data(name: str) -> DataSet:
    """The data set of this name."""
    if name not in DATA:
        raise SaccadeError(f"there is no data set {name!r}; {nearest(name, DATA)}")
    return DATA[name]


def folders() -> list[Path]:
    """Where data sets are looked for: `SACCADE_DATA` if it is set, then the cache folder."""
    own = os.environ.get("SACCADE_DATA")
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saccade"
    return [Path(own), cached] if own else [cached]


class FileState(NamedTuple):
    """A file of a data set: state is `there`, `missing`, or `another` where its sha256 is not the expected one; path:
    where it is, or where it is looked for first.
    """

    file: str
    sha256: str
    state: str
    path: str


def states(name: str) -> list[FileState]:
    """What there is of a data set, file by file."""
    return [_state(name, file, sha256) for file, sha256 in data(name).files.items()]


def _state(name: str, file: str, sha256: str) -> FileState:
    path = _place(name, file)
    if path is None:
        return FileState(file, sha256, "missing", str(folders()[0] / _folder(name) / file))
    return FileState(file, sha256, "there" if disk.known_digest(path) == sha256 else "another", str(path))


def _place(name: str, file: str) -> Path | None:
    """Where a file lies, in the first of the folders that has it."""
    paths = (folder / _folder(name) / file for folder in folders())
    return next((path for path in paths if path.is_file()), None)


def _folder(name: str) -> str:
    """The name of the folder that holds a data set's files."""
    return DATA[name].folder or name


def _found(name: str, file: str) -> Path:
    sha256 = DATA[name].files[file]
    path = _place(name, file)
    if path is not None:
        if disk.known_digest(path) != sha256:
            raise SaccadeError(f"{path} is not the file of {name}: its sha256 should be {sha256}; replace it")
        return path
    raise SaccadeError(
        f"{name} needs {folders()[0] / _folder(name) / file} (sha256 {sha256}): put the file there, "
        f"or set SACCADE_DATA to a folder that has {_folder(name)}/{file}; it comes from {DATA[name].origin}"
    )


def _pictures(names: Sequence[str]) -> Callable[[list[Path], str], Iterator[tuple[Any, ...]]]:
    """How pictures of ten classes are read: the last 5,000 of the training files are the validation split."""

    def rows(paths: list[Path], split: str) -> Iterator[tuple[Any, ...]]:
        start, stop = {"train": (0, 55_000), "val": (55_000, None)}.get(split, (0, None))
        return islice(idx.pairs(paths, names), start, stop)

    return rows


def _digits(paths: list[Path], split: str, speaker: str | None) -> Iterator[tuple[Any, ...]]:
    """How spoken digits are read: all splits lie in one archive."""
    return fsdd.rows(paths[0], split, speaker)


def _citations(about: str, files: dict[str, str]) -> DataSet:
    """A graph of papers, whose nodes are split."""
    return DataSet(
        about=about,
        origin="github.com/kimiyoung/planetoid, data, as arrays without pickles",
        licence="MIT, as the repository says; the papers' own collections state none",
        splits=dict.fromkeys(("train", "val", "test"), next(iter(files))),
        task="classify",
        kinds=("graph", "labels"),
        what="a graph with labels of its nodes",
        read=lambda paths, split: citations.rows(paths[0], split),
        files=files,
        folder="cora",
    )


EMOJI = {
    "captions.tsv.gz": "67d60fd87afd7a25dfa9f37f77696b7419ef1750cf11dc74b2c2b6032359e401",
    "images.webp": "89469f2ee5c5fec67b479bd86002bcf2e55db81b37dc374dc698a0397c5fb436",
}
EMOJI_ORIGIN = "npm: pictures of emoji-datasource-twitter 16.0.0 at 32 x 32, names of emojibase-data 17.0.0"
EMOJI_LICENCE = "Twemoji CC BY 4.0; emojibase-data MIT; CLDR's names Unicode-3.0"


def _questions(paths: list[Path], split: str) -> Iterator[tuple[Any, ...]]:
    """Pictures with a question and its answer; the questions of the last 400 training pictures are for validation."""
    pictures = npz.array(paths[0], "images")
    start, stop = {"train": (0, EASY), "val": (EASY, None)}.get(split, (0, None))
    chosen = range(len(pictures))[start:stop]
    rows = json.loads(gzip.decompress(paths[1].read_bytes()))
    return ((pictures[place], question, answer) for question, answer, place in rows if place in chosen)


EASY = 3600  # training pictures of easy-vqa that are learned from
UNSTATED = "none stated by its source"
IDX = {
    "train": "train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz",
    "val": "train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz",
    "test": "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz",
}
CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
QUESTIONS = {
    "train": "train_images.npz train_questions.json.gz",
    "val": "train_images.npz train_questions.json.gz",
    "test": "test_images.npz test_questions.json.gz",
}
DATA = {
    "easy-vqa": DataSet(
        about="5,000 pictures of one coloured shape, 64 x 64, and 48,248 questions with 13 answers",
        origin="github.com/vzhou842/easy-VQA (PyPI easy-vqa 1.0), its PNG files as arrays",
        licence="MIT",
        splits=QUESTIONS,
        task="answer",
        kinds=("image", "text", "label"),
        what="pictures and questions with an answer",
        read=_questions,
        group=lambda row: "yes or no" if row[2] in ("yes", "no") else "colour or shape",
        files={
            "train_images.npz": "436fc96b6c381ce7df74c5a3ca1e313d9f7490e4d4ebb5232cf6228754779a0f",
            "train_questions.json.gz": "e7ea0251d4bb0f4f0dd931fd03af7d8c641ca2f6489ba91b2c0adc4d1e440ed2",
            "test_images.npz": "af0888295dd40d0773dad2b65df195f655c4e89f7d664c795ab407dd73f2550b",
            "test_questions.json.gz": "d0c954b439279a8ef56b1effd84a6c14c3f3856461371bf530db0c4ddb468980",
        },
    ),
    "emoji-captions": DataSet(
        about="3,786 emoji in colours, 32 x 32, with their names in English, German or French; test: new combinations",
        origin=EMOJI_ORIGIN,
        licence=EMOJI_LICENCE,
        splits=dict.fromkeys(("train", "val", "test"), "captions.tsv.gz images.webp"),
        pairs=("picture-en", "picture-de", "picture-fr"),
        task="caption",
        kinds=("image", "text"),
        what="pictures with a caption",
        read=emoji.captioned,
        files=EMOJI,
    ),
    "emoji-captions-languages": DataSet(
        about="the same emoji three times, with the language that their name is to be in",
        origin=EMOJI_ORIGIN,
        licence=EMOJI_LICENCE,
        splits=dict.fromkeys(("train", "val", "test"), "captions.tsv.gz images.webp"),
        folder="emoji-captions",
        task="caption",
        kinds=("image", "text", "text"),
        what="pictures with a language and a caption in it",
        read=emoji.in_each_language,
        files=EMOJI,
    ),
    "fashion-mnist": DataSet(
        about="70,000 grey pictures of clothes, 28 x 28, in ten classes",
        origin="github.com/zalandoresearch/fashion-mnist, data/fashion",
        licence="MIT",
        splits=IDX,
        task="classify",
        kinds=("image", "label"),
        what="pictures with a label",
        read=_pictures(CLOTHES),
        files={
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    ),
    "cora": _citations(
        "2,708 papers on machine learning in seven fields, by their words and citations; 140 have a label to learn",
        {"cora.npz": "1c7d9d0a7c794368bf48fd3eb59a428a62bea470f9d0942824277b890744938e"},
    ),
    "citeseer": _citations(
        "3,327 papers on computer science in six fields, by their words and who cites whom; 120 have a label to learn",
        {"citeseer.npz": "dc3f1999d97c3db17d063f145b2e151915f08b0e4d6f26f218927d9070d96806"},
    ),
    "bccd": DataSet(
        about="364 photographs of blood under a microscope, 640 x 480, and 4,886 boxes of cells of three kinds",
        origin="github.com/Shenggan/BCCD_Dataset, packed as a tar.gz",
        licence="MIT",
        splits=dict.fromkeys(("train", "val", "test"), "bccd.tar.gz"),
        task="detect",
        kinds=("image", "boxes"),
        what="pictures with boxes",
        read=lambda paths, split: bccd.rows(paths[0], split),
        files={"bccd.tar.gz": "76123d551a20f2cf7dd66b5fceaad21ac444b0724d3186d4c10a782321e1c046"},
    ),
    "eth-ucy": DataSet(
        about="1,500 pedestrians seen from above in four places, every 0.4 s, in windows of 8 steps and 12 that come",
        origin="github.com/StanfordASL/Trajectron-plus-plus (Pellegrini et al. 2009, Lerner et al. 2007), gzip -9n",
        licence=UNSTATED,
        splits=dict.fromkeys(("train", "val", "test"), " ".join(pedestrians.FILES)),
        task="foretell",
        kinds=("tracks", "tracks"),
        what="scenes of pedestrians, and what comes",
        read=pedestrians.rows,
        apart="place",
        files=pedestrians.FILES,
    ),
    "fsdd": DataSet(
        about="3,000 spoken digits of six speakers, 8 kHz, 22 minutes",
        origin="github.com/Jakobovski/free-spoken-digit-dataset, packed as a tar.xz",
        licence="CC BY-SA 4.0",
        splits=dict.fromkeys(("train", "val", "test"), "fsdd.tar.xz"),
        task="transcribe",
        kinds=("sound", "text"),
        what="sounds with their words",
        read=_digits,
        apart="speaker",
        files={"fsdd.tar.xz": "8eb837825abea3cf38b6a64e41926cb4ae0f5af528dfcf22e6b9b450e8813fb7"},
    ),
    "mnist": DataSet(
        about="70,000 grey pictures of handwritten digits, 28 x 28",
        origin="yann.lecun.com/exdb/mnist",
        licence="CC BY-SA 3.0, as Keras' documentation says",
        splits=IDX,
        task="classify",
        kinds=("image", "label"),
        what="pictures with a label",
        read=_pictures("0123456789"),
        files={
            "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
            "train-labels-idx1-ubyte.gz": "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
            "t10k-images-idx3-ubyte.gz": "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
            "t10k-labels-idx1-ubyte.gz": "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
        },
    ),
    "multi30k": DataSet(
        about="29,000 captions of photographs in English, German and French",
        origin="github.com/multi30k/dataset, data/task1/raw",
        licence=UNSTATED,
        splits={"train": "train.{}.gz", "val": "val.{}.gz", "test": "test_2016_flickr.{}.gz"},
        pairs=("en-de", "de-en", "en-fr", "fr-en"),
        task="translate",
        kinds=("text", "text"),
        what="pairs of texts",
        files={
            "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
            "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
            "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
            "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
            "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
            "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
            "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
        },
    ),
    "tinyshakespeare": DataSet(
        about="a million characters of Shakespeare",
        origin="github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt",
        licence="public domain",
        splits={"train": "input.txt", "val": "input.txt"},
        spans={"train": (0, 1_003_854), "val": (1_003_854, None)},  # nine tenths, as nanoGPT cuts it
        files={"input.txt": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"},
    ),
    "wikitext-2": DataSet(
        about="two million words of good Wikipedia articles, tokenised, rare words as <unk>",
        origin="Merity et al. 2016 (wikitext-2-v1; the articles of train in another order), compressed with gzip -9n",
        licence="CC BY-SA 3.0",
        splits={"train": "train.txt.gz", "val": "valid.txt.gz", "test": "test.txt.gz"},
        by_line=True,
        files={
            "train.txt.gz": "0ab79876cf89ff5fea1f44c00e00acba49493ec16ea7b0729eddb61162c62644",
            "valid.txt.gz": "3ac34ae2b6509075d52302c50a04a8a1970739ffe1a904f2cd374fefbea3cbf2",
            "test.txt.gz": "a2b26b5d2619cc1f6cd34c8e116a451aed09af51479346aadfbf508ceb8b192e",
        },
    ),
}
