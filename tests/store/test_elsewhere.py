"""Models from elsewhere read and end texts as `transformers` does, and those made here do so there."""

from __future__ import annotations

import json

import pytest
import torch
import transformers as hf
from own import own_files
from rich.console import Console
from tasks import tokens_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn

import saccade
from saccade import SaccadeError
from saccade.recipes.read import from_values
from saccade.store.export import export
from saccade.zoo.fit import exportable
from saccade.zoo.special import labels, special

LLAMA = {
    "hidden_size": 24,
    "intermediate_size": 47,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
}
T5 = {"d_model": 24, "d_kv": 7, "d_ff": 47, "num_layers": 2, "num_heads": 3}
BERT = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 47,
    "max_position_embeddings": 23,
}
MARIAN = {
    "d_model": 24,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 47,
    "decoder_ffn_dim": 47,
    "max_position_embeddings": 61,
}
TEXTS = ["hello king", "the king of all", "world"]
WRITTEN = 9  # tokens


def tokenizer(names: list[str], template: str | None, **roles: str) -> hf.PreTrainedTokenizerFast:
    """Sub-words of bytes after these special tokens, with what the template puts around a text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=280, special_tokens=names, initial_alphabet=letters, show_progress=False)
    made.train_from_iterator([" ".join(TEXTS)] * 3, trainer)
    if template is not None:
        known = [(name, made.token_to_id(name)) for name in names if name in template]
        made.post_processor = processors.TemplateProcessing(single=template, special_tokens=known)
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, **roles)


def saved(model: nn.Module, words: hf.PreTrainedTokenizerFast, folder, seed: int = 1) -> nn.Module:
    """A model whose every weight is random, in a folder with its tokenizer."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:  # not Marian's sinusoids
                weight.normal_(0, 0.3)
    model.eval().save_pretrained(folder)
    words.save_pretrained(folder)
    return model


def theirs(model: nn.Module, words: hf.PreTrainedTokenizerFast, text: str) -> list[int]:
    """What `transformers` writes."""
    ids = words(text, return_tensors="pt").input_ids
    found = model.generate(input_ids=ids, max_new_tokens=WRITTEN, do_sample=False)[0].tolist()
    return found[1:] if model.config.is_encoder_decoder else found[ids.shape[1] :]


def ours(run: saccade.Run, text: str) -> list[int]:
    """What we write, with the end where there is one."""
    found = run.task.answer.example(run.model, text, run.decode(max_tokens=WRITTEN), adds=True)
    return [*found.written, *run.task.text.ends[: int(found.ended)]]


@pytest.mark.parametrize("template", [None, "<s> $A"])
def test_a_text_is_read_with_what_its_tokenizer_puts_around_it(tmp_path, template):
    words = tokenizer(["<unk>", "<s>", "</s>"], template, bos_token="<s>", eos_token="</s>")
    config = hf.LlamaConfig(**LLAMA, vocab_size=len(words), bos_token_id=1, eos_token_id=2)
    model = saved(hf.LlamaForCausalLM(config), words, tmp_path / "hf")
    run = saccade.load(tmp_path / "hf")
    for text in TEXTS:
        assert tokens_of(run, text) == words(text).input_ids
        assert ours(run, text) == theirs(model, words, text)
    run.save(tmp_path / "run")
    assert saccade.load(tmp_path / "run").predict(TEXTS, max_tokens=5) == run.predict(TEXTS, max_tokens=5)
    shown = [each.text for each in run.look(TEXTS[0]).sides["text"].tokens]
    assert len(shown) == len(words(TEXTS[0]).input_ids)


@pytest.mark.parametrize("where", ["config", "generation"])
def test_a_text_ends_where_the_configuration_says(tmp_path, where):
    """Not where a token is called the end: a chat ends with another one, and sometimes with one of several."""
    words = tokenizer(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], None)
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, vocab_size=len(words), eos_token_id=2, bos_token_id=None))
    model = saved(model, words, tmp_path)
    text = TEXTS[0]
    free = model.generate(
        words(text, return_tensors="pt").input_ids, max_new_tokens=WRITTEN, do_sample=False, eos_token_id=None
    )[0].tolist()[len(words(text).input_ids) :]
    ends = [2, free[3]] if where == "generation" else free[2]
    if where == "generation":
        model.generation_config.eos_token_id = ends
        model.generation_config.save_pretrained(tmp_path)
    else:
        (tmp_path / "generation_config.json").unlink(missing_ok=True)
        told = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(told | {"eos_token_id": ends}))
    there = hf.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    run = saccade.load(tmp_path)
    found = run.task.answer.example(run.model, text, run.decode(max_tokens=WRITTEN), adds=True)
    expected = theirs(there, words, text)
    assert len(expected) < WRITTEN
    assert (found.written, found.ended) == (expected[:-1], True)


def test_a_translator_begins_and_ends_as_its_configuration_says(tmp_path):
    words = tokenizer(["<pad>", "</s>", "<unk>"], "$A </s>", pad_token="<pad>", eos_token="</s>")
    config = hf.T5Config(**T5, vocab_size=len(words), decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)
    model = saved(hf.T5ForConditionalGeneration(config), words, tmp_path / "t5")
    last = len(words) - 1
    config = hf.MarianConfig(**MARIAN, vocab_size=len(words), pad_token_id=last, decoder_start_token_id=last)
    config.eos_token_id, config.forced_eos_token_id = 1, None
    other = saved(hf.MarianMTModel(config), words, tmp_path / "marian")
    for each, folder in ((model, tmp_path / "t5"), (other, tmp_path / "marian")):
        run = saccade.load(folder)
        assert [ours(run, text) for text in TEXTS] == [theirs(each, words, text) for text in TEXTS]


ENDS = {"eos_token_id": 1, "forced_eos_token_id": None}
BEAMS = {
    "t5": lambda vocab: hf.T5ForConditionalGeneration(
        hf.T5Config(**T5, vocab_size=vocab, decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)
    ),
    "marian": lambda vocab: hf.MarianMTModel(
        hf.MarianConfig(
            **MARIAN,
            vocab_size=vocab,
            pad_token_id=0,
            decoder_start_token_id=0,
            eos_token_id=1,
            forced_eos_token_id=None,
        )
    ),
    "pegasus": lambda vocab: hf.PegasusForConditionalGeneration(hf.PegasusConfig(**MARIAN, **ENDS, vocab_size=vocab)),
}


@pytest.mark.parametrize(
    ("name", "seed", "end"),
    [("t5", 2, 3.0), ("t5", 3, 3.0), ("marian", 1, 1.0), ("marian", 3, 1.0), ("pegasus", 2, 1.8), ("pegasus", 3, 2.1)],
)
def test_a_beam_finds_the_best_and_theirs_may_stop_before(tmp_path, name, seed, end):
    """With early_stopping="never" theirs finds the same. Their default stops as soon as no open beginning, ended *now*,
    would be better, though a longer one may be: an untrained model hardly prefers a length, so its texts come out much
    shorter, and with a lower score by the definition of both. end: makes the end of a text likelier.
    """
    words = tokenizer(["<pad>", "</s>", "<unk>"], "$A </s>", pad_token="<pad>", eos_token="</s>")
    model = saved(BEAMS[name](len(words)), words, tmp_path, seed)
    with torch.no_grad():
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias[0, 1] = end
        else:
            model.get_input_embeddings().weight[1] *= end
    model.save_pretrained(tmp_path)
    run, lengths = saccade.load(tmp_path), []
    for text in TEXTS:
        ids = words(text, return_tensors="pt").input_ids
        found = run.task.answer.example(run.model, text, run.decode(beam=2, max_tokens=19), adds=True)
        written = [*found.written, *[1] * int(found.ended)]
        for stopping in ("never", False):
            how = {"num_beams": 2, "early_stopping": stopping, "max_new_tokens": 19, "return_dict_in_generate": True}
            theirs = model.generate(ids, output_scores=True, **how)
            row = theirs.sequences[0, 1:].tolist()
            row = row[: row.index(1) + 1] if 1 in row else row
            if stopping == "never":
                assert row == written
                best = float(theirs.sequences_scores[0])
        assert float(theirs.sequences_scores[0]) <= best + 1e-6
        assert (len(row) < len(written)) == (float(theirs.sequences_scores[0]) < best - 1e-6)
        lengths.append((len(row), len(written)))
    assert any(default < ours for default, ours in lengths) == (seed == 3)


def test_classes_are_called_as_the_configuration_says(tmp_path):
    """In the order of their numbers, which is not that of the alphabet."""
    words = tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "[CLS] $A [SEP]", pad_token="[PAD]")
    names = {0: "zebra", 1: "apple", 2: "mango"}
    config = hf.BertConfig(**BERT, vocab_size=len(words), id2label=names, label2id={v: k for k, v in names.items()})
    model = saved(hf.BertForSequenceClassification(config), words, tmp_path / "hf")
    run = saccade.load(tmp_path / "hf")
    with torch.no_grad():
        scores = [model(words(text, return_tensors="pt").input_ids).logits[0].log_softmax(-1) for text in TEXTS]
    found = run.predict(TEXTS)
    assert [each.text for each in found] == [names[int(each.argmax())] for each in scores]
    assert [each.score for each in found] == pytest.approx([float(each.max()) for each in scores], abs=1e-5)
    assert run.look(TEXTS[0]).output == found[0].text
    long = " ".join(["king"] * 40)
    assert "too long" in run.predict([long])[0].note
    full = run.task.text.encode([long])[0][:21]
    assert run.limit == len(full) == 21, "two of the 23 positions are for what stands around"
    export(run, tmp_path / "back")
    told = json.loads((tmp_path / "back" / "config.json").read_text())
    assert told["id2label"] == {str(number): name for number, name in names.items()}
    assert not (tmp_path / "back" / "special.json").exists()


DECODERS = {
    "gpt2": lambda **own: hf.GPT2ForSequenceClassification(
        hf.GPT2Config(n_positions=23, n_embd=24, n_layer=2, n_head=3, **own)
    ),
    "llama": lambda **own: hf.LlamaForSequenceClassification(hf.LlamaConfig(**LLAMA, **own)),
}


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_that_names_classes(tmp_path, family):
    """It reads the last token of a text, whatever is padded behind it."""
    words = tokenizer(["<pad>", "<s>", "</s>"], "<s> $A", pad_token="<pad>")
    names = {0: "zebra", 1: "apple", 2: "mango"}
    own = {"vocab_size": len(words), "id2label": names, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = saved(DECODERS[family](**own), words, tmp_path / "hf")
    run = saccade.load(tmp_path / "hf")
    with torch.no_grad():
        scores = model(**words(TEXTS, return_tensors="pt", padding=True)).logits.log_softmax(-1)
    found = run.predict(TEXTS)
    assert [each.text for each in found] == [names[int(each)] for each in scores.argmax(-1)]
    assert [each.score for each in found] == pytest.approx(scores.amax(-1).tolist(), abs=1e-5)
    assert run.look(TEXTS[0]).output == found[0].text
    run.save(tmp_path / "run")
    export(saccade.load(tmp_path / "run"), tmp_path / "back")
    again = type(model).from_pretrained(tmp_path / "back").eval()
    ids = words(TEXTS[1], return_tensors="pt").input_ids
    assert torch.equal(again(ids).logits, model(ids).logits)


def test_a_model_without_biases_has_zeros_there(tmp_path):
    """GPT-2, BERT and Marian have biases; one that is all zeros is none."""
    small = {"vocab": 59, "width": 24, "heads": 3, "bias": False}
    x = torch.randint(3, 57, (2, 7))
    run = saccade.Run(saccade.build("gpt2", head="vocabulary", decoder=2, **small))
    export(run, tmp_path / "gpt2")
    theirs = hf.GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2").eval()
    torch.testing.assert_close(theirs(x).logits, run.model(x), rtol=1e-4, atol=1e-4)
    half = {"encoder": 1, "decoder": 1, "position": "sinusoid(layout=half)", "order": "post", "head": "vocabulary"}
    run = saccade.Run(saccade.build(saccade.ModelConfig(**small, **half)))
    export(run, tmp_path / "marian")
    theirs = hf.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    torch.testing.assert_close(
        theirs(x, decoder_input_ids=x[:, :3]).logits, run.model(x, x[:, :3]), rtol=1e-4, atol=1e-4
    )


def test_all_that_stands_against_the_nearest_family_is_told(tmp_path):
    keys = {"vocab": 59, "width": 24, "heads": 3, "head": "vocabulary"}
    own = {"decoder": 1, "norm": "rms", "position": "alibi", "normaliser": "sparsemax", "feed": "swiglu", "bias": False}
    told = "nearest is llama; normaliser is 'sparsemax' here and 'softmax' there, "
    told += "position is 'alibi' here and 'rotary' there"
    config = saccade.ModelConfig(**keys, **own)
    assert exportable(config) == f"not at Hugging Face: {told}"
    with pytest.raises(SaccadeError, match=f"no family at Hugging Face can express this model: {told}$"):
        export(saccade.Run(saccade.build(config)), tmp_path / "out")
    with pytest.raises(
        SaccadeError, match="t5 cannot express this model: it has a decoder alone, and t5 an encoder and"
    ):
        export(saccade.Run(saccade.build(config)), tmp_path / "out", "t5")
    pictures = saccade.ModelConfig(width=24, heads=3, encoder=1, embed="patches(4)", pooler=True, head="label(3)")
    assert exportable(pictures).startswith("not at Hugging Face: nearest is vit; class_tokens is 0 here and 1 there")
    numbers = saccade.build("bert-base", vocab=59, width=24, heads=3, encoder=1, head="numbers(2)")
    assert "nearest is bert; bert has no head 'numbers(2)'" in exportable(numbers.config)
    assert not (tmp_path / "out").exists()


def test_what_is_told_of_tokens_and_classes():
    options = {"bos_token_id": 3, "eos_token_id": [4, 5], "pad_token_id": None, "decoder_start_token_id": None}
    assert special(options, {}) == {"begin": [3], "end": [4, 5]}
    assert special(options, {"eos_token_id": 7, "decoder_start_token_id": 0}) == {"begin": [0], "end": [7]}
    assert special({"eos_token_id": "x", "pad_token_id": True, "bos_token_id": -1}, {}) == {}
    assert labels({"id2label": {"1": "b", "0": "c"}}) == ["c", "b"]
    assert labels({"id2label": {"1": "b", "2": "c"}}) == labels({}) == labels({"id2label": {"0": "b", "1": "b"}}) == []


def test_what_goes_along(tmp_path):
    words = tokenizer(["<unk>", "<s>", "</s>"], "<s> $A")
    saved(hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, vocab_size=len(words))), words, tmp_path / "hf")
    along = {"tokenizer.model", "chat_template.json", "additional_chat_templates/tools.jinja", "LICENSE.txt"}
    (tmp_path / "hf" / "additional_chat_templates").mkdir()
    for name in along | {"pytorch_model.bin", "code.py"}:
        (tmp_path / "hf" / name).write_bytes(name.encode())
    saccade.load(tmp_path / "hf").save(tmp_path / "run")
    export(saccade.load(tmp_path / "run"), tmp_path / "back")
    for name in along:
        assert (tmp_path / "back" / name).read_bytes() == name.encode()
    assert not (tmp_path / "back" / "code.py").exists()


def test_a_generation_config_that_is_none(tmp_path):
    words = tokenizer(["<unk>", "<s>", "</s>"], None)
    saved(hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, vocab_size=len(words))), words, tmp_path)
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(SaccadeError, match=r"generation_config.json is no JSON"):
        saccade.load(tmp_path)


PAIRS = [(f"the king of {n}", f"{n} of all") for n in range(40)]
SHAPES = {
    "translate": {
        "encoder": 1,
        "decoder": 1,
        "order": "post",
        "position": "sinusoid(layout=half)",
        "output_bias": True,
        "scale_embedding": True,
    },
    "classify": {"encoder": 1, "order": "post", "position": "learned(41)", "norm_embedding": True, "segments": 2},
    "write": {"decoder": 1, "position": "learned(41)", "feed": "gelu_tanh"},
}


@pytest.mark.parametrize("task", SHAPES)
def test_a_run_made_here_is_used_there_as_it_is_here(tmp_path, task):
    """Its tokenizer frames texts and its configuration names the tokens that begin and end them."""
    rows = [(a, str(len(b) % 2)) for a, b in PAIRS] if task == "classify" else PAIRS
    file = tmp_path / "rows.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    if task == "write":
        file = tmp_path / "text.txt"
        file.write_text("\n".join(a for a, _ in rows))
    recipe = {
        "task": task,
        "data": {"files": [str(file)], "tokenizer": "words", "share": 0.2},
        "model": {"width": 12, "heads": 3, **SHAPES[task]},
        "train": {"steps": 30, "every": 30, "batch": 200, "rate": 0.02, **({"length": 8} if task == "write" else {})},
    }
    run = saccade.train(from_values(recipe), run=tmp_path / "run")
    export(run, tmp_path / "hf")
    words = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    back, texts = saccade.load(tmp_path / "hf"), [a for a, _ in PAIRS[:3]]
    for text in texts:
        assert words(text).input_ids == tokens_of(run, text) == tokens_of(back, text)
    if task == "classify":
        model = hf.BertForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
        scores = model(**words(texts, return_tensors="pt", padding=True)).logits
        assert [model.config.id2label[int(each)] for each in scores.argmax(-1)] == [
            each.text for each in run.predict(texts)
        ]
    else:
        kind = hf.MarianMTModel if task == "translate" else hf.GPT2LMHeadModel
        model = kind.from_pretrained(tmp_path / "hf").eval()
        assert [ours(run, text) for text in texts] == [theirs(model, words, text) for text in texts]
    options = {} if task == "classify" else {"max_tokens": 5}
    told = [[each.text for each in made.predict(texts, **options)] for made in (run, back)]
    assert told[0] == told[1]


SMALLER = ["model.width=24", "model.hidden=41", "model.heads=3", "train.rate=0.02"]
SMALLER += ["train.warmup=2", "train.steps=12", "train.every=12", "train.batch=200"]
RECIPES = {  # the family a run of it is written as, and what is smaller than in the recipe
    "translate": ("pegasus", ["model.encoder=1", "model.decoder=2", "x.source.vocab=290", "decode.max_tokens=13"]),
    "write": ("gpt_neox", ["model.decoder=2", "y.vocab=290", "y.window=16", "decode.max_tokens=13"]),
    "classify": ("bert", ["model.encoder=1", "model.position=learned(57)", "x.source.vocab=290"]),
}
SENTENCES = ["eyes jump to what matters", "most eyes", "what <end> most to <pad>"]


@pytest.fixture(params=RECIPES)
def trained(request, shared):
    """A run of a built-in recipe on files of one's own, made by `train`, and the folder that `export` made of it."""
    name, (family, smaller) = request.param, RECIPES[request.param]

    def make(folder):
        options = [*SMALLER, *smaller, f"data.files={own_files(name, folder)}"]
        with (folder / "said").open("w") as file:
            run = saccade.train(name, run=folder / "run", options=options, console=Console(file=file, width=300))
        export(run, folder / "hf")

    folder = shared(f"exported-{name}", make)
    assert f"export: as {family}" in (folder / "said").read_text()
    return name, saccade.load(folder / "run"), folder / "hf"


AUTO = {"translate": hf.AutoModelForSeq2SeqLM, "write": hf.AutoModelForCausalLM}


@pytest.mark.parametrize("beam", [1, 4])
def test_a_recipe_as_it_is_answers_there_as_it_does_here(trained, beam):
    """By AutoTokenizer and an AutoModel; without options, `generate` searches as the recipe says."""
    name, run, folder = trained
    words = hf.AutoTokenizer.from_pretrained(folder)
    for text in SENTENCES:
        assert words(text).input_ids == tokens_of(run, text)
    given = words(SENTENCES, return_tensors="pt", padding=True)
    if name == "classify":
        model = hf.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        with torch.no_grad():
            scores = model(**given).logits.log_softmax(-1)
        found = run.predict(SENTENCES)
        assert [model.config.id2label[int(each)] for each in scores.argmax(-1)] == [each.text for each in found]
        assert [each.score for each in found] == pytest.approx(scores.amax(-1).tolist(), abs=1e-5)
        return
    model, told = AUTO[name].from_pretrained(folder, output_loading_info=True)
    assert not any(told.values()), told
    model.eval()
    assert model.generation_config.num_beams == run.decode().beam
    for text in SENTENCES:
        ids = words(text, return_tensors="pt").input_ids
        how = {} if beam == run.decode().beam else {"num_beams": beam, "length_penalty": 1.0, "early_stopping": "never"}
        row = model.generate(ids, **how)[0].tolist()[1 if name == "translate" else ids.shape[1] :]
        found = run.task.answer.example(run.model, text, run.decode(beam=beam), adds=name == "write")
        assert [*found.written, *run.task.text.ends[: int(found.ended)]] == row
        assert words.decode(row, skip_special_tokens=True) == run.task.text.decode(found.written)
