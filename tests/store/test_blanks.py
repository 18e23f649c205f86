"""Models of masked tokens fill blanks with the words and the probabilities that `transformers` gives."""

from __future__ import annotations

import json

import pytest
import torch
import transformers as hf
from test_elsewhere import BERT, saved, tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import saccade
from saccade import SaccadeError

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "capital",
    "of",
    "france",
    "is",
    "paris",
    "king",
    "a",
    "cat",
    "sat",
    "on",
    "mat",
    "##s",
    "##ing",
    ".",
    ",",
]
ROLES = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def word_pieces() -> hf.PreTrainedTokenizerFast:
    made = Tokenizer(models.WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(WORDS[:5])
    around = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, **ROLES)


def bert(kind=hf.BertForMaskedLM):
    words = word_pieces()
    return kind(hf.BertConfig(**BERT, vocab_size=len(words))), words


def roberta():
    words = tokenizer(
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        "<s> $A </s>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )
    keys = {**BERT, "max_position_embeddings": 61, "pad_token_id": 1}
    return hf.RobertaForMaskedLM(hf.RobertaConfig(**keys, vocab_size=len(words))), words


MODELS = {"bert": bert, "bert with both questions": lambda: bert(hf.BertForPreTraining), "roberta": roberta}


@pytest.fixture(params=MODELS)
def filling(request, tmp_path):
    model, words = MODELS[request.param]()
    return saved(model, words, tmp_path), words, tmp_path


def theirs(model, words, text):
    """Of each blank, the five likeliest tokens as they are written, and their probabilities."""
    given = words(text, return_tensors="pt")
    with torch.no_grad():
        said = model(**given)
    logits = said.logits if hasattr(said, "logits") else said.prediction_logits
    places = (given["input_ids"][0] == words.mask_token_id).nonzero()[:, 0]
    best = logits[0, places].softmax(-1).topk(5, -1)
    return [
        {words.decode([token]): chance for token, chance in zip(tokens.tolist(), chances.tolist(), strict=True)}
        for tokens, chances in zip(best.indices, best.values, strict=True)
    ]


def test_blanks_are_filled_as_transformers_fills_them(filling):
    model, words, folder = filling
    run, sign = saccade.load(folder), words.mask_token
    texts = [f"The capital of France is {sign}.", f"a {sign} sat on the {sign}", f"{sign}"]
    for text, found in zip(texts, run.predict(texts), strict=True):
        expected = theirs(model, words, text)
        assert len(found.probabilities) == text.count(sign)
        for chances, other in zip(found.probabilities, expected, strict=True):
            assert sum(chances.values()) == pytest.approx(sum(other.values()), abs=1e-5)
            for word, chance in other.items():
                if "\ufffd" not in word:  # half a character, which goes by the name of its token here
                    assert chances[word] == pytest.approx(chance, abs=1e-5)
        likely = torch.tensor([next(iter(each.values())) for each in found.probabilities]).log().sum().item()
        assert found.score == pytest.approx(likely, abs=1e-4)
        assert sign not in found.text
        assert found.value == found.text
    alone = run.predict(texts[1])[0]
    assert alone.text == run.predict(texts)[1].text
    run.save(folder / "run")
    assert saccade.load(folder / "run").predict(texts[0])[0].text == run.predict(texts[0])[0].text


def test_the_command_shows_the_alternatives(filling, command):
    _, words, folder = filling
    sign = words.mask_token
    told = command("predict", folder, f"the {sign} of {sign}")
    first, *blanks = told.stdout.splitlines()
    assert sign not in first
    assert len(blanks) == 2
    assert all(len(each.split(",")) >= 5 for each in blanks)
    found = json.loads(command("predict", folder, f"the {sign} of {sign}", "--json").stdout)
    assert [len(each) for each in found["probabilities"]] == [5, 5]
    several = command("predict", folder, f"the {sign}", "no blank", f"{sign} of")
    assert len(several.stdout.splitlines()) == 3, "a line for each"
    assert f"without a blank: write {sign} where a word is missing" in several.stderr
    refused = command("predict", folder, "no blank")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert sign in refused.stderr


def test_filled_texts_are_judged(filling, command, tmp_path):
    _, words, folder = filling
    run, sign = saccade.load(folder), words.mask_token
    texts = [f"the {sign} of", f"a {sign}", f"the {sign}"]
    (tmp_path / "x").write_text("".join(f"{each}\n" for each in texts))
    answers = [each.text for each in run.predict(texts)]
    (tmp_path / "y").write_text("".join(f"{each}\n" for each in (*answers[:2], "something else")))
    found = json.loads(
        command("evaluate", folder, "--file", tmp_path / "x", "--against", tmp_path / "y", "--json").stdout
    )
    assert found["metrics"] == {"exact_match": pytest.approx(2 / 3)}
    assert run.look(texts[0]).sides, "it can be looked into as before"


@pytest.mark.parametrize(("word", "text"), [("paris", "it is paris."), ("##s", "it iss."), (" Paris", "it is Paris.")])
def test_a_word_joins_what_it_goes_on_with(word, text, tmp_path):
    saved(*bert(), tmp_path)
    assert saccade.load(tmp_path).task.target._filled("it is [MASK].", [word]) == text


def test_a_bare_encoder_says_what_it_is(tmp_path, command):
    saved(*bert(hf.BertModel), tmp_path)
    told = command("predict", tmp_path, "the king")
    assert told.returncode == 2
    for part in ("an encoder without a head", "saccade look", "run.model.encode", "start=FOLDER"):
        assert part in told.stderr
    run = saccade.load(tmp_path)
    with pytest.raises(SaccadeError, match="without a head"):
        run.predict("the king")
    field = run.task.x["source"]
    vectors = run.model.encode(field.collate(field.encode(["the king"])))
    assert vectors.shape == (1, 4, 24), "the vectors that the sentence names"
