"""Beam search against a slow and plain one, against all there is, and against `transformers`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import torch
import transformers as hf
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import saccade
from saccade import SaccadeError
from saccade.decode.beam import Search
from saccade.decode.generate import generate
from saccade.decode.scheduler import Scheduler
from saccade.decode.sequence import LengthLimits, Sequence
from saccade.zoo.folder import read_folder


class Oracle:
    """A stepper whose logits depend on all that a row has seen; it counts the rows it was asked for."""

    limit = None

    def __init__(self, vocab: int, seed: int, sharp: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.vocab, self.rows = vocab, []
        self.table = torch.randn(997, vocab, generator=generator, dtype=torch.float64) * sharp

    def logits(self, seen: Tensor) -> Tensor:
        value = torch.zeros(seen.shape[0], dtype=torch.long)
        for column in seen.T:
            value = (value * 31 + column + 7) % 997
        return self.table[value]

    def check(self, source, number=0):
        return source

    def start(self, prompts, sources=None):
        seen = [torch.tensor([each]) for each in prompts]
        return {"seen": seen}, torch.cat([self.logits(each) for each in seen])

    def step(self, tokens, state):
        state["seen"] = [torch.cat((seen, row[None]), 1) for seen, row in zip(state["seen"], tokens, strict=True)]
        self.rows.append(len(tokens))
        return torch.cat([self.logits(each) for each in state["seen"]]).unsqueeze(1)

    def parts(self, tokens, state):
        yield from self.step(tokens, state)[:, -1].split(2)

    def reorder(self, state, rows):
        state["seen"] = [state["seen"][row] for row in rows.tolist()]

    def join(self, state, other):
        state["seen"] = state["seen"] + other["seen"]

    def take(self, state, rows):
        return {"seen": [state["seen"][row] for row in rows.tolist()]}

    def forget(self, state, tokens):
        state["seen"] = [seen[:, : seen.shape[1] - n] for seen, n in zip(state["seen"], tokens.tolist(), strict=True)]


def search(stepper, state, logits, limits, **options) -> list[list[Sequence]]:
    made = Search(stepper, state, logits, limits, **options)
    while made.step():
        pass
    return made.sequences()


def score(found: Sequence, alpha: float, reward: float = 0.0) -> float:
    length = len(found.tokens) + found.finished
    return found.logprob / length**alpha + reward * length * found.finished


def slow(oracle: Oracle, prompt: list[int], limits: LengthLimits, beam: int, n: int, *lengths: float) -> list[Sequence]:
    """The definition: one prompt, lists, every step recomputed, and never stopping early."""
    going: list[tuple[float, list[int]]] = [(0.0, [])]
    aside = []
    for length in range(1, limits.max_tokens + 1):
        grown = []
        for logprob, tokens in going:
            steps = oracle.logits(torch.tensor([prompt + tokens])).log_softmax(-1)[0].tolist()
            grown += [
                (logprob + step, [*tokens, token])
                for token, step in enumerate(steps)
                if token not in limits.ends or length > limits.min_tokens
            ]
        grown.sort(key=lambda each: -each[0])
        over = length == limits.max_tokens
        for logprob, tokens in grown[:beam]:
            ended = tokens[-1] in limits.ends
            if ended or over:
                aside.append(Sequence(tokens[:-1] if ended else tokens, logprob, ended))
        going = [each for each in grown if each[1][-1] not in limits.ends][:beam]
    return sorted(aside, key=lambda each: -score(each, *lengths))[:n]


def same(found: list[Sequence], expected: list[Sequence]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in expected]
    assert [each.logprob for each in found] == pytest.approx([each.logprob for each in expected], abs=1e-9)


@examples(60)
@given(
    seed=st.integers(0, 999),
    vocab=st.sampled_from([2, 3, 7, 13]),
    beam=st.integers(2, 6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]),
    reward=st.sampled_from([0.0, 0.3, 1.7]),
    max_tokens=st.integers(1, 7),
    min_tokens=st.integers(0, 3),
    data=st.data(),
)
def test_stopping_early_changes_nothing(seed, vocab, beam, alpha, reward, max_tokens, min_tokens, data):
    n = data.draw(st.integers(1, beam))
    ends = tuple(range(vocab - data.draw(st.integers(1, max(1, vocab // 3))), vocab))
    limits = LengthLimits(max_tokens, min(min_tokens, max_tokens), ends)
    oracle, prompts = Oracle(vocab, seed), [[0], [1, 0, 1], [1, 1]]
    found = search(oracle, *oracle.start(prompts), limits, beam=beam, n=n, alpha=alpha, reward=reward)
    for prompt, each in zip(prompts, found, strict=True):
        same(each, slow(oracle, prompt, limits, beam, n, alpha, reward))
        assert len({(*one.tokens, one.finished) for one in each}) == len(each) or len(ends) > 1
        assert all(len(one.tokens) >= limits.min_tokens for one in each)


def test_a_prompt_that_is_done_leaves_the_batch():
    oracle = Oracle(7, seed=5, sharp=4.0)
    limits, prompts = LengthLimits(29, 0, (3,)), [[each] for each in range(7)]
    search(oracle, *oracle.start(prompts), limits, beam=3, n=1, alpha=0.0)
    assert oracle.rows == sorted(oracle.rows, reverse=True)
    assert oracle.rows[0] > oracle.rows[-1]
    assert len(oracle.rows) < 28


@examples(20)
@given(seed=st.integers(0, 999), min_tokens=st.integers(0, 3))
def test_a_beam_of_one_that_does_not_care_for_length_is_greedy(seed, min_tokens):
    oracle, limits = Oracle(11, seed), LengthLimits(7, min_tokens, (3,))
    prompts = [[0], [1, 2], [5]]
    alone = generate(oracle, prompts, max_tokens=7, min_tokens=min_tokens, end=3)
    one = search(oracle, *oracle.start(prompts), limits, beam=1, n=1, alpha=0.0)
    same([best for (best,) in one], alone)
    same(alone, generate(oracle, prompts, max_tokens=7, min_tokens=min_tokens, end=3, beam=1, length_penalty=2.0))


V, MOST = 5, 4
TINY = {"vocab": V, "width": 6, "heads": 2, "hidden": 7, "decoder": 2, "head": "vocabulary"}
KINDS = {"decoder": TINY | {"position": "learned(11)"}, "both": TINY | {"encoder": 1, "position": "sinusoid"}}


def model(kind: str) -> saccade.Model:
    torch.manual_seed(1)
    made = saccade.build(saccade.ModelConfig(**KINDS[kind])).double().eval()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.7)
    return made


def all_there_is(ours: saccade.Model, prompt: list[int], source: list[int] | None, end: int) -> list[Sequence]:
    """Every sequence, scored by the whole model at once, without caches."""
    rows = torch.tensor([prompt + list(each) for each in itertools.product(range(V), repeat=MOST)])
    before = () if source is None else (torch.tensor([source] * len(rows)),)
    with torch.no_grad():
        steps = ours(*before, rows[:, :-1]).log_softmax(-1)[:, len(prompt) - 1 :]
    logprobs = steps.gather(2, rows[:, len(prompt) :, None]).squeeze(2).cumsum(1)
    found = {}
    for row, sums in zip(rows[:, len(prompt) :].tolist(), logprobs.tolist(), strict=True):
        length = row.index(end) + 1 if end in row else MOST
        ended = end in row
        found[tuple(row[:length])] = Sequence(row[: length - ended], sums[length - 1], ended)
    return list(found.values())


@pytest.mark.parametrize("min_tokens", [0, 2])
@pytest.mark.parametrize(("alpha", "reward"), [(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (0.0, 1.1), (0.7, 0.4)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_beam_finds_the_best_of_all(kind, alpha, reward, min_tokens):
    ours, prompts = model(kind), [[1], [3, 4, 2]]
    sources = [[4, 2, 1], [3]] if kind == "both" else None
    options = {"max_tokens": MOST, "min_tokens": min_tokens, "end": 0, "beam": V**MOST}
    options |= {"length_penalty": alpha, "length_reward": reward}
    found = generate(ours, prompts, sources=sources, n=7, **options)
    for number, prompt in enumerate(prompts):
        every = all_there_is(ours, prompt, None if sources is None else sources[number], 0)
        every = [each for each in every if len(each.tokens) >= min_tokens]
        same(found[number], sorted(every, key=lambda each: -score(each, alpha, reward))[:7])


@pytest.mark.parametrize("beam", [10**9, 10**30])
def test_a_beam_that_no_memory_holds_is_refused_before_anything_is_allocated(beam):
    ours, asked = model("both"), {"max_tokens": 30, "beam": beam}
    told = rf"^a beam of {beam:,} and texts of 30 tokens take .* GB, and this machine has"
    with pytest.raises(SaccadeError, match=told):
        generate(ours, [[1]], sources=[[4, 2, 1]], **asked)
    scheduler = Scheduler(ours, rows=2)  # a server's
    request = scheduler.submit_beam([1], source=[4, 2, 1], **asked)
    scheduler.run()
    assert re.match(told, str(request.problem))


def test_a_beam_wider_than_all_texts_together_takes_no_more_than_they_do():
    wide, all_of_them = ({"max_tokens": 2, "end": 0, "beam": beam} for beam in (10**12, V**2))
    same(*(generate(model("decoder"), [[1]], n=5, **options)[0] for options in (wide, all_of_them)))


def test_fewer_than_n_where_there_are_no_more():
    oracle = Oracle(2, seed=3)
    (found,) = generate(oracle, [[0]], max_tokens=2, end=1, beam=5, n=5)
    assert sorted((each.tokens, each.finished) for each in found) == [([], True), ([0], True), ([0, 0], False)]
    assert sum(torch.tensor(each.logprob).exp() for each in found) == pytest.approx(1)


GPT2 = {"vocab_size": 13, "n_positions": 37, "n_embd": 24, "n_layer": 2, "n_head": 3, "tie_word_embeddings": False}
T5 = {"vocab_size": 13, "d_model": 24, "d_kv": 7, "d_ff": 47, "num_layers": 2, "num_heads": 3, "eos_token_id": 2}
MARIAN = {
    "vocab_size": 13,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 47,
    "decoder_ffn_dim": 47,
    "max_position_embeddings": 37,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
}
THEIRS = {
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, eos_token_id=2)),
    "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**MARIAN)),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5, decoder_start_token_id=0, pad_token_id=0)),
}


INPUTS = [[5, 3, 7], [4, 8, 9, 9, 6], [3]]


def pair(name: str, folder: Path) -> tuple[saccade.Model, nn.Module]:
    """The same random weights on both sides."""
    torch.manual_seed(3)
    theirs = THEIRS[name]().eval()
    for key, weight in theirs.named_parameters():
        if "embed_positions" not in key:  # Marian's sinusoids are no weights
            nn.init.normal_(weight, std=0.4)
    theirs.save_pretrained(folder)
    return read_folder(folder)[0].double(), theirs.double()


@pytest.mark.parametrize("name", THEIRS)
def test_greedy_as_transformers(name, tmp_path):
    ours, theirs = pair(name, tmp_path)
    if name == "gpt2":
        found = generate(ours, INPUTS, max_tokens=20, end=2)
    else:
        found = generate(ours, sources=INPUTS, begin=0, max_tokens=20, end=2)
    for given_tokens, one in zip(INPUTS, found, strict=True):
        ids = torch.tensor([given_tokens])
        skip = len(given_tokens) if name == "gpt2" else 1
        row = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, pad_token_id=0)[0, skip:]
        assert one.tokens + [2] * one.finished == row.tolist()


@pytest.mark.parametrize("name", THEIRS)
def test_as_transformers(name, tmp_path):
    """early_stopping="never" is their name for stopping when nothing better can come; the length counts the end."""
    ours, theirs = pair(name, tmp_path)
    inputs, ended = INPUTS, set()
    for alpha, beam in ((0.0, 3), (0.6, 5), (1.0, 2), (2.0, 3)):
        options = {"max_tokens": 9, "end": 2, "beam": beam, "n": 2, "length_penalty": alpha}
        if name == "gpt2":
            found = generate(ours, inputs, **options)
        else:
            found = generate(ours, sources=inputs, begin=0, **options)
        for given_tokens, each in zip(inputs, found, strict=True):
            ids = torch.tensor([given_tokens])
            expected = theirs.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=9,
                num_beams=beam,
                num_return_sequences=2,
                length_penalty=alpha,
                early_stopping="never",
                pad_token_id=0,
                return_dict_in_generate=True,
                output_scores=True,
            )
            skip = len(given_tokens) if name == "gpt2" else 1
            for one, row in zip(each, expected.sequences[:, skip:].tolist(), strict=True):
                assert one.tokens + [2] * one.finished == row[: len(one.tokens) + one.finished]
                ended.add(one.finished)
            assert [score(one, alpha) for one in each] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-5)
    assert ended == {True, False}


def test_diverse_beams_against_a_plain_search():
    """One step at a time by the definition: groups choose in turn, and what others chose costs."""
    oracle, end, groups, width, diversity, steps = Oracle(11, seed=8), 10, 3, 2, 0.7, 5
    options = {"beam": groups * width, "n": groups * width, "groups": groups, "diversity": diversity}
    (found,) = generate(oracle, [[4]], max_tokens=steps, end=end, length_penalty=0.0, **options)
    going = [[(0.0, [])] for _ in range(groups)]
    aside: list[list[tuple[float, list[int]]]] = [[] for _ in range(groups)]
    for length in range(1, steps + 1):
        counts = [0] * 11
        for group in range(groups):
            grown = []
            for logprob, tokens in going[group]:
                steps_ = oracle.logits(torch.tensor([[4, *tokens]])).log_softmax(-1)[0].tolist()
                grown += [(logprob + step, [*tokens, token]) for token, step in enumerate(steps_)]
            grown.sort(key=lambda each: -(each[0] - diversity * counts[each[1][-1]]))
            for _, tokens in grown[:width]:
                counts[tokens[-1]] += 1
            ended = [each for each in grown[:width] if each[1][-1] == end or length == steps]
            aside[group] += ended
            going[group] = [each for each in grown[: 2 * width] if each[1][-1] != end][:width]
    ranked = [sorted(group, key=lambda each: -each[0]) for group in aside]
    expected = [ranked[group][rank] for rank in range(width) for group in range(groups)]
    unique = {tuple(tokens): logprob for logprob, tokens in expected}
    assert [(*each.tokens, *([end] if each.finished else [])) for each in found] == list(unique)
    assert [each.logprob for each in found] == pytest.approx(list(unique.values()), abs=1e-9)
    apart = generate(oracle, [[4]], max_tokens=steps, length_penalty=0.0, beam=6, n=3, groups=3, diversity=10)[0]
    assert all(len({each.tokens[place] for each in apart}) == 3 for place in range(steps))
