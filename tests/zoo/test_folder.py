"""Weights in and out: every family against `transformers` with random weights at small odd sizes."""

from __future__ import annotations

import copy
import json

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from texts import texts
from torch import Tensor, nn

import saccade
from saccade.attend.position import scaled, sinusoid
from saccade.store.export import export
from saccade.zoo.folder import read_folder, write_folder

LLAMA = {
    "vocab_size": 59,
    "hidden_size": 24,
    "intermediate_size": 47,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
}
BERT = {
    "vocab_size": 59,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 47,
    "max_position_embeddings": 37,
}
GPT2 = {"vocab_size": 59, "n_positions": 37, "n_embd": 24, "n_layer": 2, "n_head": 3}
NEOX = {
    "vocab_size": 59,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 47,
    "rotary_pct": 0.5,
}
T5 = {"vocab_size": 59, "d_model": 24, "d_kv": 7, "d_ff": 47, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3}
MARIAN = {
    "vocab_size": 59,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 47,
    "decoder_ffn_dim": 47,
    "max_position_embeddings": 37,
    "pad_token_id": 58,
    "decoder_start_token_id": 58,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "scale_embedding": True,
    "activation_function": "swish",
}
PEGASUS = MARIAN | {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "activation_function": "relu"}
LLAMA3 = {"factor": 4.0, "original_max_position_embeddings": 40, "low_freq_factor": 1.0, "high_freq_factor": 3.0}
XLNET = {"vocab_size": 59, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 47, "mem_len": 8}


def rope(kind: str, **numbers: float) -> dict:
    """Their words for rotary positions that turn more slowly."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, **numbers}}


def longer(kind: str, **numbers: float) -> nn.Module:
    """A LLaMA whose heads are wide enough for fast and slow pairs."""
    return hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, head_dim=16, **rope(kind, **numbers)))


MODELS = {
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2)),
    "gpt2 body": lambda: hf.GPT2Model(hf.GPT2Config(**GPT2, n_inner=41, activation_function="relu")),
    "gpt2 untied": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, tie_word_embeddings=False)),
    "gpt2 inverse": lambda: hf.GPT2LMHeadModel(
        hf.GPT2Config(**GPT2 | {"n_layer": 4}, scale_attn_by_inverse_layer_idx=True)
    ),
    "gpt2 label": lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**GPT2, num_labels=5, pad_token_id=58)),
    "bert masked": lambda: hf.BertForMaskedLM(hf.BertConfig(**BERT)),
    "bert pretraining": lambda: hf.BertForPreTraining(hf.BertConfig(**BERT)),
    "bert masked untied": lambda: hf.BertForMaskedLM(hf.BertConfig(**BERT, tie_word_embeddings=False)),
    "bert pretraining untied": lambda: hf.BertForPreTraining(hf.BertConfig(**BERT, tie_word_embeddings=False)),
    "bert body": lambda: hf.BertModel(hf.BertConfig(**BERT)),
    "bert next": lambda: hf.BertForNextSentencePrediction(hf.BertConfig(**BERT)),
    "bert label": lambda: hf.BertForSequenceClassification(hf.BertConfig(**BERT, num_labels=5)),
    "bert tags": lambda: hf.BertForTokenClassification(hf.BertConfig(**BERT, num_labels=5)),
    "roberta tags": lambda: hf.RobertaForTokenClassification(hf.RobertaConfig(**BERT, num_labels=5)),
    "bert span": lambda: hf.BertForQuestionAnswering(hf.BertConfig(**BERT)),
    "roberta masked": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**BERT, type_vocab_size=1)),
    "roberta masked untied": lambda: hf.RobertaForMaskedLM(
        hf.RobertaConfig(**BERT, type_vocab_size=1, tie_word_embeddings=False)
    ),
    "roberta label": lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**BERT, num_labels=3)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)),
    "llama biased": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, attention_bias=True, tie_word_embeddings=True)),
    "llama mlp biased": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, mlp_bias=True)),
    "llama all biased": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, mlp_bias=True, attention_bias=True)),
    "llama label": lambda: hf.LlamaForSequenceClassification(hf.LlamaConfig(**LLAMA, num_labels=5, pad_token_id=58)),
    "mistral label": lambda: hf.MistralForSequenceClassification(
        hf.MistralConfig(**LLAMA, num_labels=3, pad_token_id=58)
    ),
    "qwen3 label": lambda: hf.Qwen3ForSequenceClassification(
        hf.Qwen3Config(**LLAMA, head_dim=10, num_labels=3, pad_token_id=58)
    ),
    "llama body": lambda: hf.LlamaModel(hf.LlamaConfig(**LLAMA, rope_theta=500.0)),
    "llama linear": lambda: longer("linear", factor=4.0),
    "llama yarn": lambda: longer("yarn", factor=4.0, original_max_position_embeddings=48, beta_fast=4.0),
    "llama three": lambda: longer("llama3", **LLAMA3),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=5)),
    "mistral full": lambda: hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=None, head_dim=10)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**LLAMA)),
    "qwen2 windows": lambda: hf.Qwen2ForCausalLM(
        hf.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=3, max_window_layers=1)
    ),
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**LLAMA, head_dim=10)),
    "gpt_neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**NEOX)),
    "gpt_neox body": lambda: hf.GPTNeoXModel(hf.GPTNeoXConfig(**NEOX, attention_bias=False)),
    "gpt_neox in turn": lambda: hf.GPTNeoXForCausalLM(
        hf.GPTNeoXConfig(**NEOX | {"rotary_pct": 1.0}, use_parallel_residual=False, tie_word_embeddings=True)
    ),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5)),
    "t5 gated": lambda: hf.T5ForConditionalGeneration(
        hf.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    ),
    "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**MARIAN)),
    "pegasus": lambda: hf.PegasusForConditionalGeneration(hf.PegasusConfig(**PEGASUS)),
    "pegasus body": lambda: hf.PegasusModel(hf.PegasusConfig(**PEGASUS)),
    "xlnet": lambda: hf.XLNetLMHeadModel(hf.XLNetConfig(**XLNET)),
    "xlnet body": lambda: hf.XLNetModel(hf.XLNetConfig(**XLNET, ff_activation="relu")),
}
BOTH = ("t5", "marian", "pegasus")
LAST = ("gpt2 label", "llama label", "mistral label", "qwen3 label")  # labels of the last real token
APART = ("bert masked untied", "bert pretraining untied", "roberta masked untied")
UNUSED = {"cls.predictions.bias", "lm_head.bias"}  # where the decoder has a bias of its own, nobody asks this one


def reference(name: str) -> nn.Module:
    """A model of theirs whose every weight is random, norms and biases included."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for key, weight in model.named_parameters():
        if not weight.requires_grad:  # Marian's sinusoids
            continue
        nn.init.normal_(weight, std=0.1)
        if "norm" in key.lower() or "ln_" in key:
            weight.data += 1
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_()
    if name.startswith(("marian", "pegasus")):
        model.tie_weights()
    return model


def exactness(name: str) -> float:
    """How near float64 answers must be: their norms, rotary tables and XLNet's sinusoids compute in float32."""
    if name == "gpt2 inverse":  # queries are divided in the checkpoint's own type
        return 1e-6
    return (
        1e-6
        if name.startswith(("t5", "llama", "mistral", "qwen", "gpt_neox"))
        else 1e-8
        if name.startswith("xlnet")
        else 1e-9
    )


def wide(theirs: nn.Module) -> nn.Module:
    """Their model in float64; Marian's sinusoids, kept in float32, are given exactly."""
    theirs = copy.deepcopy(theirs).double()
    for module in theirs.modules():
        if "Sinusoidal" in type(module).__name__:
            length, width = module.weight.shape
            exact = sinusoid(layout="half").on_input(torch.zeros(1, length, width, dtype=torch.float64))[0]
            torch.testing.assert_close(module.weight.data, exact, rtol=0, atol=1e-6)
            module.weight.data = exact
    return theirs


@pytest.fixture(scope="module", params=list(MODELS))
def pair(request, tmp_path_factory):
    """Their model, the folder it saved, and its name."""
    theirs = reference(request.param)
    path = tmp_path_factory.mktemp("hf") / "model"
    theirs.save_pretrained(path)
    return request.param, theirs, path


def tokens(B: int, T: int, seed: int = 0) -> Tensor:
    return torch.randint(3, 57, (B, T), generator=torch.Generator().manual_seed(seed))


def answer(output) -> Tensor:
    """Their first tensor, whatever it is called."""
    if "start_logits" in output:
        return torch.stack((output.start_logits, output.end_logits), -1)
    for key in ("prediction_logits", "logits", "last_hidden_state"):
        if key in output:
            return output[key]
    raise AssertionError(list(output))


def call(name: str, theirs: nn.Module, x: Tensor, lengths: list[int] | None = None, side: str = "right") -> Tensor:
    """Their answer; where they would count padding as positions (gpt2, bert), they are told the positions."""
    inputs = {"input_ids": x}
    if lengths is not None:
        mask = saccade.padding(lengths, side)(1, x.shape[1])[:, 0, 0].long()
        inputs["attention_mask"] = mask
        if name.startswith(("gpt", "bert", "llama", "mistral", "qwen")):
            inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        if name.startswith("roberta") or name in LAST:  # finds padding by its token
            inputs["input_ids"] = x.masked_fill(mask == 0, theirs.config.pad_token_id)
    if name.startswith(BOTH):
        inputs["decoder_input_ids"] = tokens(x.shape[0], 11, seed=7)
    with torch.no_grad():
        return answer(theirs(**inputs))


def ours(name: str, model: saccade.Model, x: Tensor, lengths: list[int] | None = None, side: str = "right") -> Tensor:
    target = tokens(x.shape[0], 11, seed=7) if name.startswith(BOTH) else None
    with torch.no_grad():
        return model(texts(x, lengths, side), target)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_answers_are_theirs(pair, dtype):
    name, theirs, path = pair
    theirs = wide(theirs) if dtype == torch.float64 else theirs
    model = read_folder(path, dtype=dtype).model
    tolerance = 1e-4 if dtype == torch.float32 else exactness(name)
    x, lengths = tokens(3, 13), [13, 5, 9]
    torch.testing.assert_close(ours(name, model, x), call(name, theirs, x), rtol=tolerance, atol=tolerance)
    for side in ("right",) if name.startswith(("marian", "pegasus")) else ("right", "left"):
        a, b = ours(name, model, x, lengths, side), call(name, theirs, x, lengths, side)
        if a.dim() == 3 and not name.startswith(BOTH):  # what stands at padding is nobody's answer
            real = saccade.padding(lengths, side)(1, 13)[:, 0, 0]
            a, b = a[real], b[real]
        elif a.dim() == 2 and side == "left" and name not in LAST:
            continue  # they pool the first place even if it is padding
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_cached_steps_are_theirs(pair):
    name, theirs, path = pair
    model = read_folder(path, dtype=torch.float64).model
    if model.decoder is None or name in LAST:
        assert model.config.encoder or model.head.pooled
        return
    theirs = wide(theirs)
    x = tokens(2, 13)
    expected = call(name, theirs, x)
    with torch.no_grad():
        state = model.start(x) if name.startswith(BOTH) else model.start()
        sequence = tokens(2, 11, seed=7) if name.startswith(BOTH) else x
        parts = sequence.split([4, 1, 1, sequence.shape[1] - 6], 1)
        steps = torch.cat([model.decode_step(part, state) for part in parts], 1)
    tolerance = exactness(name)
    torch.testing.assert_close(steps, expected, rtol=tolerance, atol=tolerance)
    if not name.startswith(BOTH):
        padded = torch.stack((x[0, :9].new_zeros(13).index_copy(0, torch.arange(4, 13), x[0, :9]), x[1]))
        with torch.no_grad():
            state = model.start()
            first = model.decode_step(padded[:, :11], state, padding=saccade.padding([7, 11], "left"))
            rest = model.decode_step(padded[:, 11:], state)
            whole = model(texts(padded, [9, 13], "left"))
        torch.testing.assert_close(torch.cat((first, rest), 1)[0, 4:], whole[0, 4:], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(whole[:1, 4:], model(x[:1, :9]), rtol=1e-9, atol=1e-9)


def test_round_trip_is_bit_for_bit(pair, tmp_path):
    name, theirs, path = pair
    folder = read_folder(path)
    write_folder(tmp_path / "out", folder.model, folder.family.name, folder.options)
    before, after = load_file(path / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() - after.keys() == (UNUSED & before.keys() if name in APART else set())
    made = {key for key in after if key.endswith("embed_positions.weight")}  # Pegasus writes its sinusoids
    folded = {key for key in after if name == "gpt2 inverse" and ".attn.c_attn." in key}
    assert all(torch.equal(before[key], after[key]) for key in after.keys() - made - folded)
    assert all(torch.allclose(before[key], after[key], rtol=0, atol=1e-6) for key in made)
    again = type(theirs).from_pretrained(tmp_path / "out").eval()
    x = tokens(2, 7)
    torch.testing.assert_close(call(name, again, x), call(name, theirs, x), rtol=0, atol=1e-5 if made | folded else 0)
    write_folder(tmp_path / "alone", folder.model, folder.family.name)
    config = read_folder(tmp_path / "alone").model.config
    for key in ("width", "heads", "hidden", "position", "head", "tie"):
        assert getattr(config, key) == getattr(folder.model.config, key)


@pytest.fixture
def small(tmp_path):
    """A good folder to spoil."""
    reference("gpt2").save_pretrained(tmp_path / "good")
    return tmp_path / "good"


def spoil(path, **changes) -> None:
    options = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(options | changes))


def test_shards_are_read(tmp_path):
    theirs = reference("llama")
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="10KB")
    assert (tmp_path / "shards" / "model.safetensors.index.json").exists()
    x = tokens(2, 7)
    torch.testing.assert_close(
        ours("llama", read_folder(tmp_path / "shards").model, x), call("llama", theirs, x), rtol=1e-4, atol=1e-4
    )
    next((tmp_path / "shards").glob("model-00002*")).unlink()
    with pytest.raises(saccade.SaccadeError, match="lacks the shard"):
        read_folder(tmp_path / "shards")


def test_old_names_are_read(tmp_path):
    theirs = reference("bert masked")
    theirs.save_pretrained(tmp_path)
    old = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma"): v
        for k, v in load_file(tmp_path / "model.safetensors").items()
    }
    old = {k.replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in old.items()}
    save_file(old | {"bert.embeddings.position_ids": torch.arange(37)[None]}, tmp_path / "model.safetensors")
    x = tokens(2, 7)
    torch.testing.assert_close(
        ours("bert", read_folder(tmp_path).model, x), call("bert", theirs, x), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model_type": "gtp2"}, "did you mean 'gpt2'"),
        ({"scale_attn_weights": False}, "scale_attn_weights = False of gpt2 is not supported"),
        ({"alien_option": 3}, "alien_option = 3 is no option of gpt2"),
        ({"activation_function": "mish"}, "the activation 'mish' is not supported"),
        ({"architectures": ["GPT2DoubleHeadsModel"]}, "architecture 'GPT2DoubleHeadsModel' is not supported"),
        ({"n_embd": 48}, "gives .* the shape"),
        ({"n_layer": 3}, r"lacks the tensor 'transformer\.h\.2"),
        ({"n_layer": 1}, r"has a tensor that this model does not: 'transformer\.h\.1.*12 in all"),
    ],
)
def test_what_we_do_not_have_is_named(small, changes, why):
    spoil(small, **changes)
    with pytest.raises(saccade.SaccadeError, match=why):
        read_folder(small)


def test_rope_scaling_that_is_refused(tmp_path):
    reference("llama").save_pretrained(tmp_path)
    for kind, why in (("longrope", "'longrope' is not supported"), ("dynamic", "by what comes after it.*='ntk")):
        spoil(tmp_path, **rope(kind, factor=4.0))
        with pytest.raises(saccade.SaccadeError, match=why):
            read_folder(tmp_path)
    for extra in ({"truncate": False}, {"partial_rotary_factor": 0.5}):
        spoil(tmp_path, **rope("yarn", factor=4.0, original_max_position_embeddings=64, **extra))
        with pytest.raises(saccade.SaccadeError, match="partial_rotary_factor and truncate"):
            read_folder(tmp_path)
    spoil(tmp_path, **rope("llama3", factor=4.0))
    with pytest.raises(saccade.SaccadeError, match="'low_freq_factor' is missing"):
        read_folder(tmp_path)


def test_yarn_with_all_its_numbers(tmp_path):
    """The two scales of DeepSeek, and a length that is the whole table's."""
    theirs, x = reference("llama yarn"), tokens(2, 13)
    theirs.save_pretrained(tmp_path)
    numbers = {"factor": 8.0, "mscale": 0.7, "mscale_all_dim": 1.3, "beta_fast": 8, "beta_slow": 2}
    spoil(tmp_path, max_position_embeddings=64, **rope("yarn", **numbers))
    again = hf.LlamaForCausalLM.from_pretrained(tmp_path)
    torch.testing.assert_close(
        ours("llama", read_folder(tmp_path, dtype=torch.float64).model, x),
        call("llama", wide(again), x),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("scaling", ["interpolate(3)", "ntk(4)", "yarn(4, 64, 6)", "llama3(4, 64)"])
def test_a_folder_is_opened_with_slower_positions(scaling, tmp_path):
    """Theirs says the same in config.json; what is saved and written again keeps it."""
    theirs, x = reference("llama linear"), tokens(2, 13)
    theirs.save_pretrained(tmp_path / "old")
    run = saccade.load(tmp_path / "old", scaling=scaling)
    assert not torch.allclose(run.model(x), saccade.load(tmp_path / "old").model(x), atol=1e-3)
    run.save(tmp_path / "run")
    export(run, tmp_path / "new")
    for path in ("run", "new"):
        assert torch.equal(saccade.load(tmp_path / path).model(x), run.model(x))
    wanted = call("llama", hf.LlamaForCausalLM.from_pretrained(tmp_path / "new").eval(), x)
    torch.testing.assert_close(run.model(x), wanted, rtol=1e-4, atol=1e-4)
    slower = saccade.load(tmp_path / "run", scaling="interpolate(2)")  # another in its place
    assert slower.model.config.position == "rotary(half, 500.0, None, interpolate=2)"


def test_only_rotary_positions_are_slowed(small):
    with pytest.raises(saccade.SaccadeError, match=r"slows rotary positions; the model's position is 'learned"):
        saccade.load(small, scaling="ntk(4)")
    for wrong, why in (
        ("ntc(4)", "no scaling is called 'ntc'"),
        ("yarn(4)", "length"),
        ("ntk(0.5)", "from 1; got 0.5"),
    ):
        with pytest.raises(saccade.SaccadeError, match=why):
            scaled("rotary", wrong)


def test_broken_folders(small, tmp_path):
    with pytest.raises(saccade.SaccadeError, match=r"no config\.json"):
        read_folder(tmp_path)
    data = (small / "model.safetensors").read_bytes()
    (small / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(saccade.SaccadeError, match="cannot be read"):
        read_folder(small)
    (small / "model.safetensors").unlink()
    with pytest.raises(saccade.SaccadeError, match=r"no model\.safetensors"):
        read_folder(small)
    (small / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(saccade.SaccadeError, match="pickle"):
        read_folder(small)
    (small / "config.json").write_text("{")
    with pytest.raises(saccade.SaccadeError, match="is not JSON"):
        read_folder(small)


def test_other_models_cannot_be_written_as_gpt2(tmp_path):
    for changes, why in (
        ({"norm": "rms"}, "cannot express this model: norm is 'rms' here and 'layer' there$"),
        ({"position": "rotary"}, "position is 'rotary' here and 'learned' there$"),
        ({"feed": "swiglu"}, "feed is 'swiglu' here and 'gelu_tanh' there$"),
        ({"feed": "relu", "norm": "rms", "kv_heads": 1}, "norm is .* there, kv_heads is 1 here and None there$"),
    ):
        model = saccade.build("gpt2", vocab=59, width=24, heads=3, decoder=1, **changes)
        with pytest.raises(saccade.SaccadeError, match=why):
            write_folder(tmp_path / "out", model, "gpt2")


def test_published_bert_carries_more_than_its_head(tmp_path):
    """A masked model with the pooler and the second question beside it, as the well-known checkpoints have."""
    theirs = reference("bert pretraining")
    theirs.save_pretrained(tmp_path)
    spoil(tmp_path, architectures=["BertForMaskedLM"], tokenizer_class="BertTokenizer")
    x = tokens(2, 7)
    found = ours("bert", read_folder(tmp_path).model, x)
    torch.testing.assert_close(found, call("bert", theirs, x), rtol=1e-4, atol=1e-4)


def test_old_qwen_windows_are_read(tmp_path):
    reference("qwen2 windows").save_pretrained(tmp_path)
    before = read_folder(tmp_path).model.config
    options = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in options.items() if k != "layer_types"}))
    assert read_folder(tmp_path).model.config == before
    assert before.pattern == "fss"


def test_the_type_written_is_the_type_there_is(tmp_path):
    model = saccade.build("gpt2", vocab=59, width=24, heads=3, decoder=1)
    write_folder(tmp_path / "out", model, "gpt2", {"torch_dtype": "bfloat16"})
    options = json.loads((tmp_path / "out" / "config.json").read_text())
    assert options["dtype"] == "float32"
    assert "torch_dtype" not in options


def test_masks_with_data_do_not_end_on_meta():
    text = "document([0, 0, 1, 1])"
    saccade.build(saccade.ModelConfig(vocab=9, width=8, heads=2, encoder=1, mask=text), device="meta")
    q = torch.randn(1, 2, 4, 8)
    assert saccade.attention(q, q, q, mask=text).isfinite().all()
