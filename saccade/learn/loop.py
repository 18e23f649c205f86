"""`Loop`: one step after another, from any step on.

Everything random in a step depends on the seed and the step's number alone, and a batch on its epoch and position; so a
run that was killed and goes on takes the same steps as one that was not, bit for bit on one machine.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade import disk
from saccade.attend.feature import redraw
from saccade.data.report import counted
from saccade.error import SaccadeError
from saccade.heap import keep_heap
from saccade.learn.average import make_average
from saccade.learn.device import device_of
from saccade.learn.optimiser import Optimiser
from saccade.learn.prepare import Prepared
from saccade.learn.progress import MetricsLog, Progress
from saccade.learn.schedule import share
from saccade.learn.signals import stop_signals
from saccade.learn.validate import NOTHING, mean_loss
from saccade.model.dropout import evaluating
from saccade.store.checkpoint import Checkpoint, CheckpointWriter
from saccade.task.batch import Batch
from saccade.task.decode_options import within, without_beam
from saccade.task.segment_memory import SegmentMemory

SNAPSHOTS = 20  # about so many a run
LOGGED = 20  # lines of metrics between two validations, about
MOST = 50  # broken steps in a row before the run stops
USUAL = 0.98  # decay of the moving average of gradient lengths


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM (number) stopped the run in this folder after a step, and a checkpoint was saved."""

    def __init__(self, number: int, step: int, folder: Path) -> None:
        super().__init__(
            f"stopped at step {step}, saved: saccade.train({str(folder)!r}) goes on from there, and "
            f"saccade.load({str(folder)!r}) opens it as it is"
        )
        self.number, self.step, self.folder = number, step, folder


class StepReport(NamedTuple):
    """What is logged of a step; loaded: how many of its seconds went into its data."""

    loss: float
    terms: Mapping[str, float]
    norm: float  # of the gradient
    predictions: int
    seconds: float
    loaded: float


class Loop:
    """A run while it learns. Its whole state is the model, segment memory, optimiser, average and a few numbers."""

    def __init__(self, prepared: Prepared, folder: Path, progress: Progress) -> None:
        recipe = prepared.run.recipe
        assert recipe is not None
        self.prepared, self.folder, self.progress = prepared, folder, progress
        self.config, self.seed, self.task = recipe.train, recipe.seed, prepared.task
        self.decode = without_beam(recipe.decode)  # validations while training are greedy: a beam takes longer
        self.device = device_of(self.config.device)
        keep_heap()
        self.model = prepared.run.model.to(self.device, _dtype(self.config.precision))
        if self.config.compile:
            self.model.compile(dynamic=self.task.target.rows == "records")
        self.weights: dict[str, Tensor] = dict(self.model.named_parameters())
        self.kept = self.model.tensors()  # the weights, and state that has no gradient
        self.optimiser = Optimiser(self.model, self.config)
        self.average = make_average(self.config.average, self.model, folder)
        self.segment_memory = SegmentMemory(self.model)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.config.precision == "float16")
        self.state: dict[str, Any] = {
            "step": 0,
            "epoch": 0,
            "position": 0,
            "tokens": 0,
            "seconds": 0.0,
            "skipped": 0,
            "in_a_row": 0,  # broken steps
            "usual": 0.0,  # length of a gradient, a moving average
            "best": math.inf,  # validation loss; where an objective has a metric, minus that
            "best_step": 0,
            "since_best": 0,  # validations
        }
        self.pace = 0.0  # seconds a step, lately
        self.stop = 0  # the number of the signal that asked to stop

    def try_out(self) -> None:
        """Draws a batch of each split, and generates one token: a recipe that cannot be trained, validated or decoded
        is refused before a folder is made.
        """
        next(self.batches())
        if not any(batch.count for batch in self.task.whole(self.prepared.val, self.config)):
            raise SaccadeError(NOTHING)
        recipe = self.prepared.run.recipe
        assert recipe is not None
        shown = [self.task.glimpse(self.prepared.rows)]
        with evaluating(self.model):
            for decode in (recipe.decode, self.decode):
                contradictory = decode.min_tokens > decode.max_tokens  # `within` would mend it: it is to be refused
                short = decode if contradictory else within(decode, 1)
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
        self.segment_memory.restore(found.tensors.get("memory", {}))
        self.state |= numbers
        self.scaler.load_state_dict(self.state.pop("scaler", {}))
        self.state["best"] = math.inf if self.state["best"] is None else self.state["best"]

    def run(self) -> None:
        """All remaining steps; if a signal asks to stop, saves a checkpoint and raises `Stopped`."""
        writer = CheckpointWriter(self.folder, self.config.keep)
        metrics = MetricsLog(self.folder, self.state["step"] or -1)
        try:
            with stop_signals(self._ask_to_stop):
                self._run(writer, metrics)
        finally:
            try:
                writer.wait()
            finally:
                metrics.close()

    def _run(self, writer: CheckpointWriter, metrics: MetricsLog) -> None:
        batches = self.batches()
        if self.task.judged is not None and not self.state["step"]:
            self.validate(metrics)  # the metric of an objective before its first step, to compare later ones with
        while self.state["step"] < self.config.steps and not self._enough():
            self.advance(batches, metrics)
            self._finish_step(writer, metrics)
            if self.stop:
                writer.wait()
                raise Stopped(self.stop, self.state["step"], self.folder)

    def _finish_step(self, writer: CheckpointWriter, metrics: MetricsLog) -> None:
        """What is due after a step: a snapshot, a validation, a checkpoint."""
        step = self.state["step"]
        validates = step % self.config.every == 0 or step == self.config.steps
        snapshot = step in self._snapshots()
        if validates or snapshot or self.stop:
            self._check_weights()
        if snapshot:
            disk.write_tensors(self.folder / "snapshots" / f"step-{step}.safetensors", self.kept)
        if validates:
            self.average.keep(step)
            self.validate(metrics)
        if validates or self.stop:
            self._save(writer)

    def _ask_to_stop(self, number: int) -> None:
        self.stop = number

    def advance(self, batches: Iterator[tuple[int, int, Batch]], metrics: MetricsLog) -> None:
        """One step: its batches, their gradients, a check, the optimiser."""
        begin = time.perf_counter()
        step = self.state["step"] + 1
        drawn = [next(batches) for _ in range(self.config.accumulate)]
        loaded = time.perf_counter() - begin
        counts = added(batch.counts for _, _, batch in drawn)
        terms = self._accumulate(step, drawn, counts)
        loss, count, norm = terms.pop("loss"), next(iter(counts.values())), self._gradient_norm()
        if self._may_update(f"step {step} ({_batch_names(drawn)})", loss, norm):
            self._update(step, norm)
        else:
            self.state["skipped"] += 1
            self.segment_memory.clear()  # its states may not be finite
        if self.scaler.is_enabled():
            self.scaler.update()
        for each in self.weights.values():
            each.grad = None
        epoch, place, _ = drawn[-1]
        self.state |= {"step": step, "epoch": epoch, "position": place + 1}
        self.state["tokens"] += count
        seconds = time.perf_counter() - begin
        self.state["seconds"] += seconds
        self._log(metrics, StepReport(loss, terms, norm, count, seconds, loaded))

    def _accumulate(self, step: int, drawn: list[tuple[int, int, Batch]], counts: Mapping[str, int]) -> Counter[str]:
        """Adds up the gradients of all batches of a step; gives the loss and, where there are several, its terms."""
        redraw(self.model, step - 1)  # random features are drawn anew now and then, by the steps taken so far
        terms = Counter[str]()
        for number, (_, _, batch) in enumerate(drawn):
            self._seed(step, number)
            terms.update(self._backward(self.segment_memory.attach(batch.to(self.device)), counts))
        return terms

    def _update(self, step: int, norm: float) -> None:
        """Clips the gradient and moves weights and average."""
        self._clip(norm)
        self.optimiser.step(share(self.config, step))
        self.model.settle()
        self.average.update()
        usual = self.state["usual"]
        self.state["usual"] = USUAL * usual + (1 - USUAL) * norm if usual else norm
        self.state["in_a_row"] = 0

    def _backward(self, batch: Batch, counts: Mapping[str, int]) -> dict[str, float]:
        """Adds the gradients of one batch. A term is its sum over the batch, divided by the predictions of the whole
        step (counts, by term), so that it does not matter how a step is cut into batches. Gives the loss of the
        reported terms and, where there are several, each of them.
        """
        with self._autocast():
            terms = self.task.terms(self.model, batch, self.config)
        main = next(iter(counts))
        sizes = {name: max(counts.get(name, counts[main]), 1) for name in terms}
        parts = [(each.sum if each.weight == 1 else each.weight * each.sum) / sizes[n] for n, each in terms.items()]
        self.scaler.scale(sum(parts[1:], start=parts[0])).backward()
        values = {name: float(each.sum.detach() / sizes[name]) for name, each in terms.items() if each.reported}
        if len(values) == 1:
            return {"loss": next(iter(values.values()))}
        return {"loss": sum(terms[name].weight * each for name, each in values.items()), **values}

    def _gradient_norm(self) -> float:
        """The length of the whole gradient; that of float16 is first divided by the scaler's factor."""
        for part in self.optimiser.parts:
            if self.scaler.is_enabled():
                self.scaler.unscale_(part)
        return float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(self._gradients()))))

    def _may_update(self, name: str, loss: float, norm: float) -> bool:
        """Whether a step may be taken; a broken one is left out, or stops the run, as train.broken says."""
        problem = self._problem_of(loss, norm)
        if problem is None:
            return True
        scaled = self.scaler.is_enabled() and self.scaler.get_scale() > 1
        if scaled and math.isfinite(loss) and not math.isfinite(norm):
            return False  # scaled float16 gradients overflowed: the scaler lowers its factor now, so that the next fit
        self.state["in_a_row"] += 1
        skips = self.config.broken == "skip"
        if skips and self.state["in_a_row"] < MOST:
            self.progress.say(f"{name}: {problem}; the step was not taken")
            return False
        advice = f"{MOST} in a row; lower train.rate" if skips else "lower train.rate, or set train.broken = 'skip',"
        raise self._error(f"{name}: {problem}; the step was not taken", advice)

    def _check_weights(self) -> None:
        """Stops before broken weights are saved: a step can overflow though its gradient was finite."""
        lengths = torch.stack(torch._foreach_norm(list(self.weights.values())))
        if not lengths.isfinite().all():
            raise self._error(f"step {self.state['step']}: weights are no longer finite, and were not saved")

    def _error(self, problem: str, advice: str = "lower train.rate") -> SaccadeError:
        return SaccadeError(
            f"{problem}; the checkpoints before it are whole: {advice} in a new run (start = {str(self.folder)!r} "
            "begins it with these weights)"
        )

    def _problem_of(self, loss: float, norm: float) -> str | None:
        """What is wrong with a step, by its loss and gradient, before the weights move; None: nothing."""
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

    def validate(self, metrics: MetricsLog) -> None:
        """The loss on the whole validation split, cheap metrics and a few outputs, by the averaged weights if there are
        any; also keeps the count for train.patience.
        """
        with self._averaged(), evaluating(self.model):
            loss, terms, count = mean_loss(self.task, self.model, self.prepared.val, self.config, self.device)
            if not math.isfinite(loss):
                raise self._error(f"step {self.state['step']}: the loss on the validation split is {loss}")
            found, shown = self.task.quick(self.model, self.prepared.rows, self.decode)
            aim = self.task.objective
            reached = {} if aim is None else aim.measure(self.model, self.prepared.rows)
        measures = self.task.target.measures(loss, count, self.prepared.extent)
        values = {**measures, **terms, **found, **reached}
        step = self.state["step"]
        metrics.write(step, validation=values, samples=[(self.task.sample(given), said) for given, said in shown])
        # Where an objective has a metric, the best checkpoint is the one with the highest; otherwise the lowest loss.
        judged = loss if self.task.judged is None else -reached[self.task.judged]
        if judged < self.state["best"]:
            self.state |= {"best": judged, "best_step": step, "since_best": 0}
        else:
            self.state["since_best"] += 1
        self.progress.say(f"step {step:>6}  validation: {self._told({**measures, **terms}, {**found, **reached})}")
        for given, said in shown:
            self.progress.say(f"    {self.task.shown(given).strip()[:60]!r} -> {said.strip()[:60]!r}")

    def _told(self, whole: Mapping[str, float], quick: Mapping[str, float]) -> str:
        """The numbers of a validation in one line: of the whole split, and of the few examples that were answered."""
        parts = ["  ".join(f"{name} {value:.4f}" for name, value in each.items()) for each in (whole, quick)]
        few = f" (on {counted(len(self.prepared.rows), 'example')})" if quick else ""
        return "  ".join(each for each in parts if each) + few

    def _enough(self) -> bool:
        """Whether train.patience validations in a row were no better than the best."""
        return self.config.patience is not None and self.state["since_best"] >= self.config.patience

    def _save(self, writer: CheckpointWriter) -> None:
        writer.wait()  # the average reads what the last one wrote
        apart = [self.state["best_step"]] if self.config.patience is not None else []
        writer.write(self.state["step"], self.tensors(), self.numbers(), apart)

    def numbers(self) -> dict[str, Any]:
        """The part of the state that is not tensors, as JSON."""
        best = self.state["best"] if math.isfinite(self.state["best"]) else None
        scaler = {"scaler": self.scaler.state_dict()} if self.scaler.is_enabled() else {}
        return {**self.state, "best": best, **scaler, **self.average.numbers()}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """A copy of all tensors of a checkpoint, by file."""
        training, average = {**self.optimiser.state(), **self.average.state()}, self.average.weights()
        parts = {"model": self.kept, "training": training, "average": {**self.kept, **average} if average else {}}
        parts |= {"memory": self.segment_memory.state()}
        return {name: {key: each.detach().clone() for key, each in part.items()} for name, part in parts.items()}

    def _gradients(self) -> list[Tensor]:
        return [each.grad for each in self.weights.values() if each.grad is not None]

    def _seed(self, step: int, micro: int) -> None:
        """Everything random in a batch depends on the run's seed, the step's number and the batch's own in the step.

        They are multiplied by large odd numbers, so that neighbouring steps get seeds that are far apart.
        """
        mixed = self.seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro * 0x94D049BB133111EB
        number = mixed % (1 << 63)
        torch.default_generator.manual_seed(number)  # `torch.manual_seed` also records a stack trace, which is slow
        if torch.device(self.device).type != "cpu":  # all devices of the kind: the run's may not be the current one
            torch.get_device_module(self.device).manual_seed_all(number)

    def batches(self) -> Iterator[tuple[int, int, Batch]]:
        """Epoch, position and batch without end, from where the run stands."""
        place = self.state["epoch"], self.state["position"]
        return self.task.walk(self.prepared.train, self.config, self.seed, *place)

    def _snapshots(self) -> set[int]:
        """The steps after which the weights are kept, to look into later; spaced logarithmically."""
        steps = self.config.steps
        return {round(steps ** (number / (SNAPSHOTS - 1))) for number in range(SNAPSHOTS)}

    def _log(self, metrics: MetricsLog, report: StepReport) -> None:
        """Shows the progress and, now and then, writes a line of metrics."""
        step = self.state["step"]
        rate = self.config.rate * share(self.config, step)
        plain = step % max(1, self.config.every // LOGGED) == 0 or step == 1
        # A step during which the machine slept counts four times the usual at most: the time left is an estimate.
        self.pace = 0.95 * self.pace + 0.05 * min(report.seconds, 4 * self.pace) if self.pace else report.seconds
        left = (self.config.steps - step) * self.pace
        speed = report.predictions / report.seconds
        self.progress.show(step, report.loss, rate, speed, self.task.target.unit, left, plain)
        if plain:
            values = {"loss": report.loss, **report.terms, "rate": rate, "norm": report.norm}
            times = {"seconds": self.state["seconds"], "data_share": report.loaded / report.seconds}
            metrics.write(step, epoch=self.state["epoch"], **values, tokens=self.state["tokens"], **times)

    def _autocast(self) -> Any:
        if self.config.precision in ("bfloat16", "float16"):
            return torch.autocast(self.device, getattr(torch, self.config.precision))
        return nullcontext()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The average in the place of the weights, where there is one: the run will be used with it."""
        average = self.average.weights()
        own = {name: each.detach().clone() for name, each in self.weights.items()} if average else {}
        try:
            self._set_weights(average)
            yield
        finally:
            self._set_weights(own)

    def _set_weights(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, each in weights.items():
                self.weights[name].copy_(each)


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by name, in the order of the first."""
    first, *others = counts
    return {name: value + sum(each[name] for each in others) for name, value in first.items()}


def _batch_names(drawn: list[tuple[int, int, Batch]]) -> str:
    return ", ".join(f"epoch {epoch} batch {place}" for epoch, place, _ in drawn)


def _dtype(precision: str) -> torch.dtype:
    """Of the weights; lower precisions are for the products alone."""
    return torch.float64 if precision == "float64" else torch.float32
