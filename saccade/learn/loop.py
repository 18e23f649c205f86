"""`Loop`: one step after another, from any step on.

Everything random in a step depends on the seed and the step's number alone, and a batch on its epoch and position; so a
run that was killed and goes on takes the same steps as one that was not, bit for bit on one machine.
"""

from __future__ import annotations

import math
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade import disk
from saccade.attend.feature import redraw
from saccade.error import SaccadeError
from saccade.learn.average import make_average
from saccade.learn.optimiser import Optimiser
from saccade.learn.prepare import Prepared
from saccade.learn.progress import Metrics, Progress
from saccade.learn.schedule import share
from saccade.learn.validate import NOTHING, mean_loss
from saccade.memory import keep_memory
from saccade.model.dropout import at_rest
from saccade.store.checkpoint import Checkpoint, Writer
from saccade.task.batch import Batch
from saccade.task.carry import Carry
from saccade.task.search import piecewise, within

SNAPSHOTS = 20  # about so many a run
LOGGED = 20  # lines of metrics between two validations, about
MOST = 50  # steps in a row that may be left out
USUAL = 0.98  # how slowly the usual length of a gradient changes


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM (the signal's number and the step); what was learned is saved."""


class Loop:
    """A run while it learns. Its whole state is the model, what it remembers, optimiser, average and a few numbers."""

    def __init__(self, prepared: Prepared, folder: Path, progress: Progress) -> None:
        recipe = prepared.run.recipe
        assert recipe is not None
        self.prepared, self.folder, self.progress = prepared, folder, progress
        self.config, self.seed, self.task = recipe.train, recipe.seed, prepared.task
        self.decode = piecewise(recipe.decode)  # a quick look is greedy
        self.device = device_of(self.config.device)
        keep_memory()
        self.model = prepared.run.model.to(self.device, _dtype(self.config.precision))
        if self.config.compile:
            states = torch.compile(self.model.states, dynamic=self.task.target.rows == "records")
            self.model.states = states  # type: ignore[method-assign]
        self.weights: dict[str, Tensor] = dict(self.model.named_parameters())
        self.kept = self.model.tensors()  # the weights, and state that has no gradient
        self.optimiser = Optimiser(self.model, self.config)
        self.average = make_average(self.config.average, self.model, folder)
        self.carry = Carry(self.model)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.config.precision == "float16")
        self.state: dict[str, Any] = {
            "step": 0,
            "epoch": 0,
            "position": 0,
            "tokens": 0,
            "seconds": 0.0,
            "skipped": 0,
            "in_a_row": 0,
            "usual": 0.0,
            "best": math.inf,
            "best_step": 0,
            "since_best": 0,
        }
        self.pace = 0.0  # seconds a step, lately
        self.stop = 0  # the number of the signal that asked to

    def try_out(self) -> None:
        """Draws a batch of each split, and searches for a token: what cannot be trained, validated or searched for is
        told before a folder is made.
        """
        next(self.batches())
        if not any(batch.count for batch in self.task.whole(self.prepared.val, self.config)):
            raise SaccadeError(NOTHING)
        recipe = self.prepared.run.recipe
        assert recipe is not None
        shown = [self.task.glimpse(self.prepared.rows)]
        with at_rest(self.model):
            for decode in (recipe.decode, self.decode):
                short = within(decode, 1) if decode.min_tokens <= decode.max_tokens else decode  # that is refused
                self.task.predict(self.model, shown, short)

    def restore(self, found: Checkpoint) -> None:
        """Goes on from a checkpoint."""
        with torch.no_grad():
            for name, each in self.kept.items():
                each.copy_(found.tensors["model"][name])
        training = found.tensors.get("training", {})
        self.optimiser.restore({name: each for name, each in training.items() if not name.startswith("ema:")})
        average = {f"average:{name}": each for name, each in found.tensors.get("average", {}).items()}
        numbers = dict(found.state)
        self.average.restore({**training, **average}, numbers, self.progress.say)
        self.carry.restore(found.tensors.get("memory", {}))
        self.state |= numbers
        self.scaler.load_state_dict(self.state.pop("scaler", {}))
        self.state["best"] = math.inf if self.state["best"] is None else self.state["best"]

    def run(self) -> None:
        """All steps that are left; raises `Stopped` after saving if a signal asked to stop."""
        writer, metrics = Writer(self.folder, self.config.keep), Metrics(self.folder, self.state["step"] or -1)
        batches = self.batches()
        try:
            with self._signals():
                if self.task.objective is not None and not self.state["step"]:
                    self._validate(metrics)  # what an objective brings is seen beside what was there before
                while self.state["step"] < self.config.steps and not self._enough():
                    self.advance(batches, metrics)
                    step = self.state["step"]
                    due = step % self.config.every == 0 or step == self.config.steps
                    if due or self.stop or step in self._snapshots():
                        self._finite()
                    if step in self._snapshots():
                        disk.write_tensors(self.folder / "snapshots" / f"step-{step}.safetensors", self.kept)
                    if due:
                        self.average.keep(step)
                        self._validate(metrics)
                        self._save(writer)
                    elif self.stop:
                        self._save(writer)
                    if self.stop:
                        writer.wait()
                        raise Stopped(self.stop, step)
        finally:
            try:
                writer.wait()
            finally:
                metrics.close()

    def advance(self, batches: Iterator[tuple[int, int, Batch]], metrics: Metrics) -> None:
        """One step: its batches, their gradients, a check, the optimiser."""
        begin = time.perf_counter()
        step = self.state["step"] + 1
        drawn = [next(batches) for _ in range(self.config.accumulate)]
        loaded = time.perf_counter() - begin
        redraw(self.model, step - 1)
        counts, told = added(batch.counts for _, _, batch in drawn), Counter[str]()
        for number, (_, _, batch) in enumerate(drawn):
            self._seed(step, number)
            told.update(self._backward(self.carry.along(batch.to(self.device)), counts))
        loss, count = told.pop("loss"), next(iter(counts.values()))
        norm = self._length()
        if self._sound(f"step {step} ({_where(drawn)})", loss, norm):
            self._clip(norm)
            self.optimiser.step(share(self.config, step))
            self.model.settle()
            self.average.update()
            self.state["usual"] = _usual(self.state["usual"], norm)
            self.state["in_a_row"] = 0
        else:
            self.state["skipped"] += 1
            self.carry.empty()
        if self.scaler.is_enabled():
            self.scaler.update()
        for each in self.weights.values():
            each.grad = None
        epoch, place, _ = drawn[-1]
        self.state |= {"step": step, "epoch": epoch, "position": place + 1}
        self.state["tokens"] += count
        seconds = time.perf_counter() - begin
        self.state["seconds"] += seconds
        self._tell(metrics, loss, told, norm, count, seconds, loaded)

    def _backward(self, batch: Batch, counts: Mapping[str, int]) -> dict[str, float]:
        """The gradients of one batch, as its part of the means over all predictions of the step (counts, by term);
        gives the loss that is told and, where several terms are told, each of them.
        """
        with self._autocast():
            terms = self.task.terms(self.model, batch, self.config)
        main = next(iter(counts))
        sizes = {name: max(counts.get(name, counts[main]), 1) for name in terms}
        parts = [(each.sum if each.weight == 1 else each.weight * each.sum) / sizes[n] for n, each in terms.items()]
        self.scaler.scale(sum(parts[1:], start=parts[0])).backward()
        told = {name: float(each.sum.detach() / sizes[name]) for name, each in terms.items() if each.told}
        if len(told) == 1:
            return {"loss": next(iter(told.values()))}
        return {"loss": sum(terms[name].weight * each for name, each in told.items()), **told}

    def _length(self) -> float:
        """The length of the whole gradient, at its true scale."""
        for part in self.optimiser.parts:
            if self.scaler.is_enabled():
                self.scaler.unscale_(part)
        return float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(self._gradients()))))

    def _sound(self, name: str, loss: float, norm: float) -> bool:
        """Whether a step may be taken; a broken one is left out, or stops the run, as the recipe says."""
        problem = self._broken(loss, norm)
        if problem is None:
            return True
        overflow = self.scaler.is_enabled() and self.scaler.get_scale() > 1 and math.isfinite(loss)
        if overflow and not math.isfinite(norm):
            return False  # of float16: its scale shrinks now, and the next step fits
        self.state["in_a_row"] += 1
        skips = self.config.broken == "skip"
        if skips and self.state["in_a_row"] < MOST:
            self.progress.say(f"{name}: {problem}; the step was not taken")
            return False
        advice = f"{MOST} in a row; lower train.rate" if skips else "lower train.rate, or set train.broken = 'skip',"
        raise self._wrong(f"{name}: {problem}; the step was not taken", advice)

    def _finite(self) -> None:
        """Stops before broken weights are kept: a step whose gradient was finite can still be too long."""
        lengths = torch.stack(torch._foreach_norm(list(self.weights.values())))
        if not lengths.isfinite().all():
            raise self._wrong(f"step {self.state['step']}: weights are no longer finite, and were not saved")

    def _wrong(self, problem: str, advice: str = "lower train.rate") -> SaccadeError:
        return SaccadeError(
            f"{problem}; the checkpoints before it are whole: {advice} in a new run (start = {str(self.folder)!r} "
            "begins it with these weights)"
        )

    def _broken(self, loss: float, norm: float) -> str | None:
        """What is wrong with this step, found before it is taken."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if not math.isfinite(norm):
            return f"the gradient is {norm}"
        usual = self.state["usual"]
        if self.config.spike is not None and usual and norm > self.config.spike * usual:
            return f"a spike: the gradient is {norm:.3g} long, usually {usual:.3g}"
        return None

    def _clip(self, norm: float) -> None:
        if 0 < self.config.clip < norm:
            torch._foreach_mul_(self._gradients(), self.config.clip / norm)

    def _validate(self, metrics: Metrics) -> None:
        """The loss on all of the validation split, a quick metric and a few outputs; with averaged weights if any."""
        with self._averaged(), at_rest(self.model):
            loss, terms, count = mean_loss(self.task, self.model, self.prepared.val, self.config, self.device)
            if not math.isfinite(loss):
                raise self._wrong(f"step {self.state['step']}: the loss on the validation split is {loss}")
            found, shown = self.task.quick(self.model, self.prepared.rows, self.decode)
            aim = self.task.objective
            reached = {} if aim is None else aim.measure(self.model, self.prepared.rows)
        measures = self.task.target.measures(loss, count, self.prepared.extent)
        values = {**measures, **terms, **found, **reached}
        step = self.state["step"]
        metrics.write(step, validation=values, samples=[(self.task.sample(given), said) for given, said in shown])
        judged = loss if aim is None else -reached[aim.judged]  # with an objective, the best checkpoint is by that
        better = judged < self.state["best"]
        self.state |= {"best": judged, "best_step": step, "since_best": 0} if better else {}
        self.state["since_best"] += 0 if better else 1
        told = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        self.progress.say(f"step {step:>6}  validation: {told}")
        for given, said in shown:
            self.progress.say(f"    {self.task.shown(given).strip()[:60]!r} -> {said.strip()[:60]!r}")

    def _enough(self) -> bool:
        """Whether patience is over."""
        return self.config.patience is not None and self.state["since_best"] >= self.config.patience

    def _save(self, writer: Writer) -> None:
        writer.wait()  # the average reads what the last one wrote
        apart = [self.state["best_step"]] if self.config.patience is not None else []
        writer.write(self.state["step"], self.tensors(), self.numbers(), apart)

    def numbers(self) -> dict[str, Any]:
        """All of the state that is not tensors, as JSON can hold it."""
        best = self.state["best"] if math.isfinite(self.state["best"]) else None
        scaler = {"scaler": self.scaler.state_dict()} if self.scaler.is_enabled() else {}
        return {**self.state, "best": best, **scaler, **self.average.numbers()}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """A copy of all that a checkpoint holds."""
        training, average = {**self.optimiser.state(), **self.average.state()}, self.average.weights()
        parts = {"model": self.kept, "training": training, "average": {**self.kept, **average} if average else {}}
        parts |= {"memory": self.carry.state()}
        return {name: {key: each.detach().clone() for key, each in part.items()} for name, part in parts.items()}

    def _gradients(self) -> list[Tensor]:
        return [each.grad for each in self.weights.values() if each.grad is not None]

    def _seed(self, step: int, micro: int) -> None:
        """All that is random in a micro-batch depends on the seed, the step's number and its own."""
        mixed = self.seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro * 0x94D049BB133111EB
        number = mixed % (1 << 63)  # far apart for neighbours
        torch.default_generator.manual_seed(number)  # `torch.manual_seed` would note a stack trace
        if torch.device(self.device).type != "cpu":  # every device of the kind: the run's need not be the current one
            torch.get_device_module(self.device).manual_seed_all(number)

    def batches(self) -> Iterator[tuple[int, int, Batch]]:
        """Epoch, position and batch without end, from where the run is."""
        place = self.state["epoch"], self.state["position"]
        return self.task.walk(self.prepared.train, self.config, self.seed, *place)

    def _snapshots(self) -> set[int]:
        """The steps after which the weights are kept for later looking, spaced logarithmically."""
        steps = self.config.steps
        return {round(steps ** (number / (SNAPSHOTS - 1))) for number in range(SNAPSHOTS)}

    def _tell(
        self,
        metrics: Metrics,
        loss: float,
        terms: Mapping[str, float],
        norm: float,
        count: int,
        seconds: float,
        loaded: float,
    ) -> None:
        step = self.state["step"]
        rate = self.config.rate * share(self.config, step)
        plain = step % max(1, self.config.every // LOGGED) == 0 or step == 1
        # A step during which the machine slept counts as a slow one, no more: what is left is told by the others.
        self.pace = 0.95 * self.pace + 0.05 * min(seconds, 4 * self.pace) if self.pace else seconds
        left = (self.config.steps - step) * self.pace
        self.progress.show(step, loss, rate, count / seconds, self.task.target.unit, left, plain)
        if plain:
            values = {"loss": loss, **terms, "rate": rate, "norm": norm, "tokens": self.state["tokens"]}
            metrics.write(
                step, epoch=self.state["epoch"], **values, seconds=self.state["seconds"], data_share=loaded / seconds
            )

    def _autocast(self) -> Any:
        if self.config.precision in ("bfloat16", "float16"):
            return torch.autocast(self.device, getattr(torch, self.config.precision))
        return nullcontext()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The average in the place of the weights, where there is one: it is what will be used."""
        average = self.average.weights()
        own = {name: each.detach().clone() for name, each in self.weights.items()} if average else {}
        try:
            self._put(average)
            yield
        finally:
            self._put(own)

    def _put(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, each in weights.items():
                self.weights[name].copy_(each)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and Ctrl-C let the step end and save; only where this is the main thread."""

        def asked(number: int, _: Any) -> None:
            self.stop = number

        before = {}
        for each in (signal.SIGTERM, signal.SIGINT):
            try:
                before[each] = signal.signal(each, asked)
            except ValueError:  # not the main thread: whoever runs it decides about signals
                break
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by name, in the order of the first."""
    first, *others = counts
    return {name: value + sum(each[name] for each in others) for name, value in first.items()}


def _where(drawn: list[tuple[int, int, Batch]]) -> str:
    return ", ".join(f"epoch {epoch} batch {place}" for epoch, place, _ in drawn)


def device_of(name: str) -> str:
    """The device that a recipe names; refuses one that is not to be had."""
    if name != "auto":
        try:
            torch.zeros(1, device=name)
        except (RuntimeError, AssertionError) as problem:
            raise SaccadeError(
                f"train.device = {name!r} is not to be had here: {str(problem).splitlines()[0]}"
            ) from None
        if name == "meta":
            raise SaccadeError("train.device = 'meta' computes nothing: nothing is learned there")
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _dtype(precision: str) -> torch.dtype:
    return torch.float64 if precision == "float64" else torch.float32


def _usual(usual: float, norm: float) -> float:
    return norm if not usual else USUAL * usual + (1 - USUAL) * norm
