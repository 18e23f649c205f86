"""The real sizes, once: gpt2 and bert-base against `transformers`, all positions."""

from __future__ import annotations

import pytest
import torch
import transformers as hf

from saccade.zoo.folder import read_folder

MODELS = {
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config()),
    "bert-base": lambda: hf.BertForMaskedLM(hf.BertConfig()),
}


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.proof
def test_full_size(name, tmp_path):
    torch.manual_seed(0)
    theirs = MODELS[name]().eval()
    theirs.save_pretrained(tmp_path)
    ours = read_folder(tmp_path).model
    x = torch.randint(0, 30000, (2, 61))
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x).logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours.double()(x), theirs.double()(x).logits, rtol=1e-9, atol=1e-9)
