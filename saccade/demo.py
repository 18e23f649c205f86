"""`saccade demo`: the lecture's party, a sentence with its masks, and a translator of dates that is trained now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from rich.console import Console
from rich.text import Text

import saccade
from saccade.attend.score import gate
from saccade.learn.alignment import looked_at
from saccade.learn.validate import evaluate
from saccade.look.terminal import grid, heat, shades
from saccade.store.run import Run

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
DATES = ("fr: samedi 3 mai 1979", "en_US: 5/3/79", "en_GB: 5/3/79", "de: Donnerstag, 3. Mai 1979")
SENTENCE = ["the", "cat", "that", "chased", "the", "dogs", "sleeps"]


def demo(console: Console, run: str | Path = "runs/dates", options: Iterable[str] = ()) -> Run:
    """Shows all three and gives the trained run; where it is there already, it goes on or is used as it is."""
    _party(console)
    _sentence(console)
    return _dates(console, run, options)


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


def _dates(console: Console, run: str | Path, options: Iterable[str]) -> Run:
    console.rule("[bold]A translator, trained now: dates as people write them, to ISO 8601")
    made = saccade.train("dates", run=run, options=options, console=console)
    console.print()
    for source in DATES:
        result, seen = looked_at(made, source)
        console.print(Text(f"{source}  ->  {result}", style="bold"))
        console.print(shades(seen.values, seen.rows, seen.columns))
        console.print()
    found = evaluate(made, "test")
    right, looked = found["metrics"]["exact_match"], found["metrics"].get("aligned", 0.0)
    console.print(f"{right:.2%} of {found['examples']:,} dates of days it never saw are right;")
    console.print(f"{looked:.1%} of the digits look most at the part of the date that they come from.")
    return made
