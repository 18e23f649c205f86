"""What a folder holds twice must be the same, and what its config.json leaves out is what `transformers` takes."""

from __future__ import annotations

import json

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import saccade
from saccade import SaccadeError

LLAMA = {
    "vocab_size": 31,
    "hidden_size": 24,
    "intermediate_size": 47,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
}
MARIAN = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3}
MARIAN |= {"vocab_size": 31, "d_model": 24, "encoder_ffn_dim": 47, "decoder_ffn_dim": 47, "pad_token_id": 30}
MARIAN |= {"decoder_start_token_id": 30, "eos_token_id": 0, "forced_eos_token_id": 0, "max_position_embeddings": 41}


def change(folder, **tensors) -> None:
    """Puts other tensors into a folder; None takes one away."""
    known = load_file(folder / "model.safetensors") | tensors
    kept = {name: each for name, each in known.items() if each is not None}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def configure(folder, **options) -> None:
    """The same for config.json."""
    told = json.loads((folder / "config.json").read_text()) | options
    (folder / "config.json").write_text(json.dumps({name: each for name, each in told.items() if each != "absent"}))


@pytest.mark.parametrize(
    ("made", "name", "shape"),
    [
        (
            lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=31, n_embd=24, n_layer=2, n_head=3)),
            "lm_head.weight",
            (31, 24),
        ),
        (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA, tie_word_embeddings=True)), "lm_head.weight", (31, 24)),
        (lambda: hf.MarianMTModel(hf.MarianConfig(**MARIAN)), "model.encoder.embed_tokens.weight", (31, 24)),
    ],
)
def test_a_copy_is_one(tmp_path, made, name, shape):
    """Tied weights may lie in a file twice; if they differ, nobody knows which are meant."""
    model = made()
    model.save_pretrained(tmp_path)
    table = model.get_input_embeddings().weight.detach().clone()
    change(tmp_path, **{name: table})
    saccade.load(tmp_path)
    change(tmp_path, **{name: torch.randn(shape)})
    with pytest.raises(SaccadeError, match=f"the tensor '{name}' differs from embed.tokens.weight"):
        saccade.load(tmp_path)


def test_a_head_is_not_lost_where_no_architecture_is_named(tmp_path):
    hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)).save_pretrained(tmp_path)
    configure(tmp_path, architectures="absent")
    with pytest.raises(SaccadeError, match=r"lacks .*'embed_tokens.weight', but has 'model.embed_tokens.weight'"):
        saccade.load(tmp_path)
    known = load_file(tmp_path / "model.safetensors")
    change(tmp_path, **(dict.fromkeys(known) | {name.removeprefix("model."): each for name, each in known.items()}))
    with pytest.raises(SaccadeError, match=r"'lm_head.weight' differs from embed.tokens.weight"):
        saccade.load(tmp_path)


def test_a_translator_without_a_head(tmp_path):
    model = hf.MarianModel(hf.MarianConfig(**MARIAN)).eval()
    model.save_pretrained(tmp_path)
    tokens = torch.randint(31, (2, 7))
    with torch.no_grad():
        theirs = model(input_ids=tokens, decoder_input_ids=tokens).last_hidden_state
        torch.testing.assert_close(saccade.load(tmp_path).model(tokens, tokens), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Mistral", {}),
        ("Qwen2", {"use_sliding_window": True}),
        ("Qwen2", {"use_sliding_window": True, "max_window_layers": 1}),
        ("Qwen3", {}),
    ],
)
@pytest.mark.proof
def test_what_a_configuration_leaves_out_is_what_is_usual(tmp_path, kind, options):
    """Of 4,099 positions, so that a window of 4,096 is seen."""
    torch.manual_seed(0)
    small = LLAMA | {"num_hidden_layers": 2, "intermediate_size": 11}
    config = getattr(hf, f"{kind}Config")(**small, **options)
    model = getattr(hf, f"{kind}ForCausalLM")(config).eval()
    model.save_pretrained(tmp_path)
    left = ["sliding_window", "layer_types", *([] if "max_window_layers" in options else ["max_window_layers"])]
    configure(tmp_path, **dict.fromkeys([*left, *(["head_dim"] if kind == "Qwen3" else [])], "absent"))
    tokens = torch.randint(31, (1, 4099))
    with torch.no_grad():
        theirs = getattr(hf, f"{kind}ForCausalLM").from_pretrained(tmp_path).eval()(tokens).logits[0, -3:]
        ours = saccade.load(tmp_path).model(tokens)[0, -3:]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
