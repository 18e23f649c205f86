"""`generate`: prompts in, sequences out; the door to every search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Several
from typing import Any, overload

from saccade.decode.beam import Search, beam_options
from saccade.decode.constraint import Constraint
from saccade.decode.draft import Draft, Lookup, ModelDraft
from saccade.decode.ensemble import Ensemble
from saccade.decode.scheduler import Scheduler
from saccade.decode.sequence import End, Sequence, whole
from saccade.decode.step import Stepper, as_lists, as_stepper, as_token, at_work, fits, limited
from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.model.model import Model

Tokens = Iterable[Iterable[int]]
Writes = Model | Stepper | list[Model] | tuple[Model, ...]  # several of them write together


@overload
def generate(
    model: Writes, prompts: Tokens | None = ..., *, n: None = ..., max_tokens: int, **options: Any
) -> list[Sequence]:
    """One sequence a prompt."""


@overload
def generate(
    model: Writes, prompts: Tokens | None = ..., *, n: int, max_tokens: int, **options: Any
) -> list[list[Sequence]]:
    """The n best a prompt, or n samples."""


def generate(
    model: Writes,
    prompts: Tokens | None = None,
    *,
    n: int | None = None,
    sources: Iterable[Any] | None = None,
    begin: int | None = None,
    max_tokens: int,
    min_tokens: int = 0,
    end: End = None,
    beam: int = 1,
    length_penalty: float = 1.0,
    length_reward: float = 0.0,
    groups: int = 1,
    diversity: float = 0.0,
    temperature: float = 0.0,
    seed: int | None = None,
    text: Text | None = None,
    stop: Several[str] = (),
    constraint: Constraint | None = None,
    top: int = 0,
    draft: Draft | Model | Stepper | str | None = None,
    **choice: Any,
) -> list[Sequence] | list[list[Sequence]]:
    """One sequence a prompt, the best; with `n`, a list of the n best a prompt, or of n samples.

        saccade.generate(model, [[5, 3], [7]], max_tokens=20, end=2)
        saccade.generate(model, [[5, 3], [7]], max_tokens=20, temperature=0.8, top_p=0.9, seed=1)
        saccade.generate(model, sources=[[5, 3], [7]], begin=1, end=2, max_tokens=20, beam=5, n=3)

    model: one, or a list of models whose probabilities are averaged. prompts: lists of tokens, which every sequence
    goes on from; with sources (an encoder-decoder's inputs) they are [begin] each unless given. end: one token, or
    several, each of which ends a sequence; max_tokens counts it, min_tokens does not; without it, every sequence has
    max_tokens tokens unless a string in `stop` ends it, which takes the `text` that the tokens are of.

    beam > 1: the hypotheses are ranked by logprob / length ** length_penalty, and length_reward for each token of those
    that have ended; with groups, diverse beams.
    temperature > 0: tokens are drawn; top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty
    as in `saccade.decode.choose`. What is drawn follows from the seed (of sample i of n, seed + i) and from what is
    read, so that what a prompt writes does not depend on the others. constraint: which tokens may come. top: so
    many of the likeliest tokens are kept for each step. draft: a smaller model, or "lookup" (what followed the last
    words before): quicker, and the same tokens.
    """
    stepper = Ensemble(model) if isinstance(model, list | tuple) else as_stepper(model)
    whole("n", 1 if n is None else n, 1)
    if beam == 1 and (n or 1) > 1 and not temperature:
        raise SaccadeError(
            f"n = {n} without a temperature or a beam would be {n} times the same sequence: give one of the two"
        )
    options = beam_options(beam, (n or 1) if beam != 1 else 1, length_penalty, length_reward, groups, diversity)
    sources = None if sources is None else list(sources)
    read = _checked_prompts(stepper, prompts, sources, begin)
    sources = None if sources is None else [stepper.check(each, number) for number, each in enumerate(sources)]
    limits = {"max_tokens": max_tokens, "min_tokens": min_tokens, "end": end}
    drawn = {"temperature": temperature, "seed": seed, "stop": stop, "constraint": constraint, "top": top}
    if beam == 1:
        scheduler = Scheduler(stepper, text=text, rows=max(len(read) * (n or 1), 1), draft=_as_draft(draft))
        found = _generate_sampled(scheduler, read, sources, n or 1, {**limits, **drawn, **choice})
    else:
        wrong = [name for name, value in {**drawn, "draft": draft}.items() if value] + list(choice)
        if wrong:
            option = {"constraint": "a constraint (matching)"}.get(wrong[0], wrong[0])
            raise SaccadeError(f"a beam search does not know {option}: leave it out, or give beam = 1")
        found = _generate_beams(stepper, read, sources, limits, options) if read else []
    return found if n is not None else [first for first, *_ in found]


def stream(
    model: Writes,
    prompt: Iterable[int],
    *,
    text: Text,
    draft: Draft | Model | Stepper | str | None = None,
    **options: Any,
) -> Iterator[str]:
    """The text that goes on from one prompt, piece by piece, as soon as it is certain. options: as for `generate`."""
    stepper = Ensemble(model) if isinstance(model, list | tuple) else as_stepper(model)
    scheduler = Scheduler(stepper, text=text, rows=1, draft=_as_draft(draft))
    request = scheduler.submit(prompt, **options)
    while request.reason is None:
        scheduler.step()
        if request.problem is not None:
            raise request.problem
        if request.piece:
            yield request.piece


def _generate_sampled(
    scheduler: Scheduler, prompts: list[list[int]], sources: list[Any] | None, n: int, options: dict[str, Any]
) -> list[list[Sequence]]:
    """n requests a prompt, each with a seed of its own; the error of one is raised for all."""
    seed = options.pop("seed")
    asked = [
        scheduler.submit(
            prompt,
            source=None if sources is None else sources[number],
            seed=seed + sample if isinstance(seed, int) else seed,
            **options,
        )
        for number, prompt in enumerate(prompts)
        for sample in range(n)
    ]
    scheduler.run()
    for each in asked:
        if each.problem is not None:
            raise each.problem
    found = [each.sequence() for each in asked]
    return [found[at : at + n] for at in range(0, len(found), n)]


def _generate_beams(
    stepper: Stepper,
    prompts: list[list[int]],
    sources: list[Any] | None,
    limits: dict[str, Any],
    options: dict[str, Any],
) -> list[list[Sequence]]:
    """The beams of all prompts in one batch."""
    bounds = limited(stepper, **limits)
    for prompt in prompts:
        fits(stepper, prompt, bounds.max_tokens)
    with at_work(stepper):
        search = Search(stepper, *stepper.start(prompts, sources), bounds, **options)
        while search.step():
            pass
        return search.sequences()


def _as_draft(draft: Draft | Model | Stepper | str | None) -> Draft | None:
    if draft is None or hasattr(draft, "propose"):
        return draft  # type: ignore[return-value]
    if isinstance(draft, str):
        if draft != "lookup":
            raise SaccadeError(f"draft is a model or 'lookup'; got {draft!r}")
        return Lookup()
    return ModelDraft(as_stepper(draft))


def _checked_prompts(
    stepper: Stepper, prompts: Tokens | None, sources: list[Any] | None, begin: int | None
) -> list[list[int]]:
    if prompts is not None:
        if begin is not None:
            raise SaccadeError("begin stands in place of prompts: give one of the two")
        read = as_lists(prompts, "prompt", stepper.vocab, stepper.limit)
        if sources is not None and len(sources) != len(read):
            raise SaccadeError(f"there are {len(read)} prompts and {len(sources)} sources: give one source a prompt")
        return read
    if sources is None or begin is None:
        raise SaccadeError("generate goes on from prompts: give them, or sources and the token that begins (begin=)")
    as_token("begin", begin, stepper.vocab)
    return [[begin]] * len(sources)
