"""What a run reports while it learns: a moving line on a terminal or plain lines in a log, `metrics.jsonl`, and
TensorBoard where it is installed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from saccade import disk
from saccade.number import finite


class MetricsLog:
    """`metrics.jsonl`: one JSON object a line, in the order of the steps."""

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / "metrics.jsonl"
        self._cut(step)
        with disk.explaining(self.path):
            self.file = self.path.open("a", encoding="utf-8")
        self.board = _board(run)

    def write(self, step: int, **values: Any) -> None:
        """One line, flushed at once, so that a killed process loses none."""
        with disk.explaining(self.path):
            self.file.write(json.dumps({"step": step, **finite(values)}, ensure_ascii=False) + "\n")
            self.file.flush()
        if self.board is not None:
            for name, value in _numbers(values):
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        """Closes the files; errors of the disk are ignored here, since `write` has raised them."""
        with suppress(OSError):
            self.file.close()
        if self.board is not None:
            self.board.close()

    def _cut(self, step: int) -> None:
        """Keeps the lines up to the step that the run goes on from; a torn last line goes too."""
        if self.path.exists():
            kept = [line for line in self.path.read_bytes().split(b"\n") if _step(line) <= step]
            disk.write(self.path, b"".join(line + b"\n" for line in kept))


def say(console: Console, text: str) -> None:
    """A line on a console. A full disk under a log, or a closed pipe (on which rich exits), does not end the training:
    `metrics.jsonl` has the same numbers.
    """
    with suppress(OSError, SystemExit):
        console.print(text, highlight=False, markup=False, soft_wrap=True)


class Progress:
    """The line that says how far a run is: a moving one on a terminal, a plain one now and then elsewhere."""

    def __init__(self, console: Console, steps: int) -> None:
        self.console, self.steps = console, steps
        self.status = console.status("") if console.is_terminal else None
        if self.status is not None:
            self.status.start()

    def show(self, step: int, loss: float, rate: float, speed: float, unit: str, left: float, plain: bool) -> None:
        """Step, loss, learning rate, predictions a second (in the unit of Y) and time left."""
        line = (
            f"step {step:>6}/{self.steps}  loss {loss:.4f}  rate {rate:.2e}  {speed:>7,.0f} {unit}/s  "
            f"{clock(left)} left"
        )
        if self.status is not None:
            self.status.update(line)
        elif plain:
            self.say(line)

    def say(self, text: str) -> None:
        """A line that stays."""
        say(self.console, text)

    def close(self) -> None:
        """Removes the moving line."""
        if self.status is not None:
            self.status.stop()


def clock(seconds: float) -> str:
    """2:05, or 1:02:05."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _step(line: bytes) -> float:
    """The step of a line; infinite where the line is torn, so that it is cut off."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _numbers(values: dict[str, Any], before: str = "") -> list[tuple[str, float]]:
    """All numbers of nested values, named as TensorBoard groups them: validation/loss."""
    found: list[tuple[str, float]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _numbers(value, f"{before}{key}/")
        elif isinstance(value, int | float):
            found.append((f"{before}{key}", value))
    return found


def _board(run: Path) -> Any:
    """TensorBoard's writer, where it is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(run / "tensorboard"))
