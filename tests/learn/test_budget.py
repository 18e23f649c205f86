"""`train.minutes`: the arithmetic under a clock of our own, and that measuring leaves no trace in the run."""

from __future__ import annotations

import pytest
from tiny import translate

import saccade
from saccade import SaccadeError
from saccade.config import read
from saccade.learn import budget
from saccade.learn.budget import MARGIN, Course, Pace, course
from saccade.learn.loop import Loop
from saccade.recipe import TrainConfig
from saccade.recipes import read as recipes
from saccade.recipes.write import as_toml

TRAIN = {"steps": 2500, "warmup": 300, "every": 500}
SMALL = {"name": "small", "up_to": 1, "model": {"width": 4}, "train": {"steps": 40, "every": 20, "warmup": 4}}
MIDDLE = {"name": "middle", "up_to": 2, "model": {"width": 8}, "train": {"steps": 60, "every": 20}}


@pytest.mark.parametrize(
    ("step", "validation", "seconds", "found"),
    [
        (0.41, 0.0, 300, Course(int(300 * MARGIN / 0.41), round(300 * 695 / 2500), 139)),
        (0.41, 4.0, 300, Course(int((300 * MARGIN - 5 * 4) / 0.41), 78, 130)),  # five validations, as in the recipe
        (0.41, 40.0, 300, Course(int((300 * MARGIN - 40) / 0.41), 72, 597)),  # one alone takes no more than a quarter
        (0.1, 4.0, 300, Course(2500, 300, 500)),  # never more than the recipe's
        (0.1, 40.0, 300, Course(2450, 294, 2450)),
        (0.05, 40.0, 300, Course(2500, 300, 2500)),  # all steps, but one validation
        (100.0, 0.0, 300, Course(2, 0, 1)),
    ],
)
def test_as_many_steps_as_there_is_time_for(step, validation, seconds, found):
    assert course(read(TrainConfig, TRAIN), Pace(step, validation), seconds) == found
    validations = -(-found.steps // found.every)
    assert found.steps * step + validations * validation <= seconds


def test_no_time_for_a_single_step_is_refused():
    with pytest.raises(SaccadeError, match=r"no time for one step: it takes 5e\+02 s, a validation 0 s.*more minutes"):
        course(read(TrainConfig, TRAIN), Pace(500.0, 0.0), 300)
    with pytest.raises(SaccadeError, match=r"0 s are left"):
        course(read(TrainConfig, TRAIN), Pace(0.1, 0.0), -3)


class Clock:
    """Stands still, but for steps and validations, which take as long as we say."""

    def __init__(self, monkeypatch, step=lambda width: 1.0, validation=2.0):
        self.now, self.steps = 1000.0, 0
        advance, validate = Loop.advance, Loop.validate

        def timed_advance(loop, *arguments):
            advance(loop, *arguments)
            self.steps += 1
            self.now += step(loop.model.config.width)

        def timed_validate(loop, *arguments):
            validate(loop, *arguments)
            self.now += validation

        monkeypatch.setattr(Loop, "advance", timed_advance)
        monkeypatch.setattr(Loop, "validate", timed_validate)
        monkeypatch.setattr(budget, "clock", lambda: self.now)


class Said:
    """A console that remembers."""

    def __init__(self):
        self.lines = []

    is_terminal = False

    def print(self, text, **_):
        self.lines.append(text)


def test_steps_are_fixed_by_the_clock_and_told(tmp_path, monkeypatch):
    clock, said = Clock(monkeypatch), Said()
    made = translate(tmp_path, train={"steps": 50, "every": 10, "warmup": 20})
    run = saccade.train(made, run=tmp_path / "run", minutes=0.5, console=said)
    timed = 3  # steps before the first; then a validation, of two seconds
    left = (30 - timed - 2) * MARGIN
    steps = int(left - 2 * 2)  # two validations take less than a quarter of it
    assert (run.step, run.recipe.train.steps, run.recipe.train.minutes) == (steps, steps, None)
    assert (run.recipe.train.warmup, run.recipe.train.every) == (round(20 * steps / 50), -(-steps // 2))
    assert f"0.5 minutes: 1 s a step, so {steps} of 50 steps" in said.lines
    assert clock.now - 1000 <= 30
    with pytest.raises(SaccadeError, match=r"train\.minutes differs"):
        saccade.train(made, run=tmp_path / "run", minutes=0.6)


def test_where_there_is_time_enough_nothing_changes(tmp_path, monkeypatch):
    Clock(monkeypatch)
    said, made = Said(), translate(tmp_path)
    run = saccade.train(made, run=tmp_path / "run", options=["train.minutes=5"], console=said)
    assert run.recipe.train == made.train
    assert "5 minutes: 1 s a step, so all 6 steps" in said.lines


@pytest.mark.parametrize(("minutes", "width", "steps"), [(9.0, 8, 36), (3.0, 4, 28)])
def test_a_smaller_size_where_there_is_no_time_for_half_of_the_steps(tmp_path, monkeypatch, minutes, width, steps):
    Clock(monkeypatch, step=lambda width: {12: 25.0, 8: 11.0, 4: 2.0}[width])
    said, made = Said(), translate(tmp_path, train={"steps": 70, "every": 35}, sizes=[SMALL, MIDDLE])
    run = saccade.train(made, run=tmp_path / "run", minutes=minutes, console=said)
    assert run.model.config.width == width
    assert run.recipe.train.steps == steps
    tried = [line for line in said.lines if "next smaller size" in line]
    assert len(tried) == {12: 0, 8: 1, 4: 2}[width]
    assert any(line.startswith(f"{minutes:g} minutes: ") and " so " in line for line in said.lines)


def test_a_size_that_was_asked_for_stays(tmp_path, monkeypatch):
    Clock(monkeypatch)
    made = translate(tmp_path, train={"steps": 200, "every": 100}, sizes=[SMALL], size="full")
    run = saccade.train(made, run=tmp_path / "run", minutes=0.5)
    assert (run.model.config.width, run.recipe.train.steps) == (12, int((30 - 5) * MARGIN - 2 * 2))


def last(folder, steps):
    files = ("model", "training", "average")
    return [(folder / "checkpoints" / f"step-{steps}" / f"{each}.safetensors").read_bytes() for each in files]


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.proof
def test_measuring_leaves_no_trace_and_a_killed_run_goes_on_without(tmp_path, monkeypatch, optimiser):
    Clock(monkeypatch, validation=0.25)
    train = {"steps": 40, "every": 13, "warmup": 5, "batch": 60, "average": "ema(0.9)", "optimiser": optimiser}
    made = translate(tmp_path, train=train, model={"dropout": 0.2})
    timed = saccade.train(made, run=tmp_path / "timed", minutes=0.25)
    chosen = timed.recipe.train
    assert (chosen.steps, chosen.every) == (10, 3)
    given = [f"train.{key}={getattr(chosen, key)}" for key in ("steps", "warmup", "every")]
    plain = saccade.train(made, run=tmp_path / "plain", options=given)
    assert plain.recipe == timed.recipe
    assert last(tmp_path / "plain", chosen.steps) == last(tmp_path / "timed", chosen.steps)

    advance = Loop.advance

    def killed(loop, *arguments):
        if loop.folder.name == "killed" and loop.state["step"] == 5:
            raise MemoryError
        advance(loop, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "advance", killed)
        with pytest.raises(MemoryError):
            saccade.train(made, run=tmp_path / "killed", minutes=0.25)
    monkeypatch.setattr(budget, "within_minutes", None)  # nothing is measured again
    assert saccade.train(made, run=tmp_path / "killed", minutes=0.25).step == chosen.steps
    assert last(tmp_path / "killed", chosen.steps) == last(tmp_path / "timed", chosen.steps)
    assert recipes.recipe(tmp_path / "killed" / "recipe.toml").train == chosen


def test_minutes_on_the_command_line(tmp_path, monkeypatch, command):
    Clock(monkeypatch)
    file = tmp_path / "mine.toml"
    file.write_text(as_toml(translate(tmp_path, train={"steps": 50, "every": 50})))
    done = command("train", str(file), "--run", str(tmp_path / "run"), "--minutes", "0.3")
    assert "0.3 minutes: 1 s a step, so 10 of 50 steps" in done.stdout
    wrong = command("train", str(file), "--run", str(tmp_path / "other"), "--minutes", "0")
    assert wrong.returncode == 2
    assert "train.minutes should be a number > 0; got 0.0" in wrong.stderr
