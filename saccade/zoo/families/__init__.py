"""The families of checkpoints, one readable table a file: theirs on the left, ours on the right."""

from __future__ import annotations

from saccade.zoo.families.bert import BERT, ROBERTA
from saccade.zoo.families.dinov2 import DINOV2, DINOV2_REGISTERS
from saccade.zoo.families.gpt2 import GPT2
from saccade.zoo.families.gpt_neox import NEOX
from saccade.zoo.families.llama import LLAMA, MISTRAL, QWEN2, QWEN3
from saccade.zoo.families.marian import MARIAN
from saccade.zoo.families.pegasus import PEGASUS
from saccade.zoo.families.swin import SWIN
from saccade.zoo.families.t5 import T5
from saccade.zoo.families.vit import DEIT, VIT
from saccade.zoo.families.xlnet import XLNET
from saccade.zoo.families.yolos import YOLOS

OF_TEXT = (GPT2, BERT, ROBERTA, LLAMA, MISTRAL, QWEN2, QWEN3, NEOX, T5, MARIAN, PEGASUS, XLNET)
OF_PICTURES = (VIT, DEIT, DINOV2, DINOV2_REGISTERS, SWIN, YOLOS)
FAMILIES = {each.name: each for each in (*OF_TEXT, *OF_PICTURES)}
