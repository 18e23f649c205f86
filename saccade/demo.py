"""`saccade demo`: the lecture's party, a sentence with its masks, and an attention that is learned while you watch."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn

import saccade
from saccade.attend.score import gate
from saccade.look.terminal import grid, heat

GUESTS = ("Musician", "Lawyer", "Shopkeeper", "Chef", "Scientist")
#          fun  exam  food  law
TRAITS = torch.tensor(
    [
        [3.0, 0.2, 0.0, 0.0],
        [0.1, 0.8, 0.0, 3.0],
        [0.4, 0.1, 1.0, 0.3],
        [1.6, 0.0, 3.0, 0.0],
        [0.3, 3.0, 0.0, 0.2],
    ]
)
QUESTIONS = {
    "Who will help me on my exam?": [0.0, 1.4, 0.0, 0.3],
    "I want to have fun": [1.4, 0.0, 0.4, 0.0],
    "What is for dinner?": [0.2, 0.0, 1.4, 0.0],
}
SENTENCE = ["the", "cat", "that", "chased", "the", "dogs", "sleeps"]


def demo(console: Console, steps: int = 250) -> float:
    """Shows all three; gives the share of letters that the learned attention copies right at the end."""
    _party(console)
    _sentence(console)
    return _learn(console, steps)


def _party(console: Console) -> None:
    console.rule("[bold]The party: whom do you remember?")
    guests = TRAITS.view(1, 1, 5, 4)
    memory = gate(width=4)
    with torch.no_grad():
        memory.weight.copy_(torch.tensor([1.0, 0.2, 0.1, 0.1]).view(1, 4, 1))
        memory.bias.fill_(2.0)
        anyone = torch.zeros(1, 1, 1, 4)  # a gate looks at the guests alone, whoever asks
        rows = [
            saccade.weights(anyone, guests, score=memory, normaliser=each)[0, 0, 0] for each in ("sigmoid", "softmax")
        ]
    console.print(heat(torch.stack(rows), ["sigmoid: attend to everyone", "softmax: a finite span"], GUESTS))
    console.print()
    queries = torch.tensor(list(QUESTIONS.values())).view(1, 1, 3, 4)
    for name in ("softmax", "softmax(beta=4)", "sparsemax", "hard"):
        weights = saccade.weights(queries, guests, score="dot", normaliser=name)[0, 0]
        console.print(heat(weights, list(QUESTIONS), GUESTS, title=f"keys and queries, {name}"))
        console.print()


def _sentence(console: Console) -> None:
    console.rule("[bold]A sentence: who may look at whom, and with what position")
    T = len(SENTENCE)
    generator = torch.Generator().manual_seed(0)
    words = {word: torch.randn(16, generator=generator) * 0.7 for word in SENTENCE}
    x = torch.stack([words[word] for word in SENTENCE]).view(1, 1, T, 16)
    for mask, position in (("causal", None), ("causal & window(3)", None), ("causal", "alibi")):
        weights = saccade.weights(x, x, mask=mask, position=position)[0, 0]
        console.print(heat(weights, SENTENCE, SENTENCE, title=f"mask {mask!r}, position {position}"))
        console.print()
    console.print("bigbird(block=2, window=3, globals=1, random=1) on 16 positions")
    console.print(grid(saccade.bigbird(2, 3, 1, 1)(16)))
    console.print()


class Reader(nn.Module):
    """Letters in, the word backwards out: queries are output places, keys and values the letters."""

    def __init__(self, width: int = 32, length: int = 9, letters: int = 26) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.3)
        self.questions = nn.Parameter(torch.randn(length, width) * 0.3)
        self.attention = saccade.Attention(width, heads=1)
        self.out = nn.Linear(width, letters)

    def forward(self, word: Tensor) -> Tensor:
        x = self.letters(word) + self.places
        asked = self.questions.expand(word.shape[0], -1, -1)
        return self.out(self.attention(asked, x))


def _learn(console: Console, steps: int) -> float:
    console.rule("[bold]Attention, learned now: write the word backwards")
    torch.manual_seed(0)
    model = Reader()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    begin = time.perf_counter()
    for _ in range(steps):
        word = torch.randint(26, (128, 9))
        loss = F.cross_entropy(model(word).flatten(0, 1), word.flip(1).flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    took = time.perf_counter() - begin
    word = torch.tensor([[ord(letter) - ord("a") for letter in "attention"]])
    fresh = torch.randint(26, (1000, 9))
    with torch.no_grad():
        right = (model(fresh).argmax(-1) == fresh.flip(1)).float().mean().item()
        with saccade.watch(model) as seen:
            answer = "".join(chr(ord("a") + letter) for letter in model(word)[0].argmax(-1).tolist())
    console.print(
        f"{steps} steps in {took:.1f} s, loss {loss.item():.3f}: {right:.1%} of letters of 1000 new words right\n"
    )
    console.print(heat(seen.weights("attention")[0, 0], list(answer), list("attention"), title="what it looked at"))
    return right
