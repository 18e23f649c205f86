"""The families of checkpoints, one readable table a file: theirs on the left, ours on the right."""

from __future__ import annotations

from saccade.zoo.families.bert import BERT, ROBERTA
from saccade.zoo.families.gpt2 import GPT2
from saccade.zoo.families.llama import LLAMA, MISTRAL, QWEN2, QWEN3
from saccade.zoo.families.marian import MARIAN
from saccade.zoo.families.t5 import T5
from saccade.zoo.families.xlnet import XLNET

FAMILIES = {each.name: each for each in (GPT2, BERT, ROBERTA, LLAMA, MISTRAL, QWEN2, QWEN3, T5, MARIAN, XLNET)}
