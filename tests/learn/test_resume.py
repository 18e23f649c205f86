"""The proof of "resumed = uninterrupted": runs are killed anywhere, go on, and end in the same bytes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from architectures import ARCHITECTURES

from saccade.recipes.write import to_toml

KILLS = int(os.environ.get("SACCADE_KILLS", "30"))  # `make chaos` raises it; `make test` kills thrice
STEPS, EVERY = 13, 3
FRESH = {"name": "copy", "fresh": True, "examples": 11, "held": 5}

VALUES = {
    "task": "translate",
    "seed": 3,
    "data": {"tokenizer": "characters", "vocab": 40, "share": 0.2},
    "model": {
        "width": 12,
        "heads": 2,
        "encoder": 1,
        "decoder": 1,
        "hidden": 16,
        "position": "rotary",
        "dropout": 0.2,
    },
    "train": {
        "steps": STEPS,
        "batch": 60,
        "rate": 1e-2,
        "every": EVERY,
        "accumulate": 2,
        "optimiser": "adamw",
        "average": "ema(0.9)",
    },
    "decode": {"max_tokens": 4},
}


class Zygote:
    """The parent of all trainings here, loaded once."""

    def __init__(self, cache: Path) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def __call__(self, recipe: Path, run: Path, **order: object) -> int:
        self.process.stdin.write(json.dumps({"recipe": str(recipe), "run": str(run), **order}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    made = Zygote(tmp_path_factory.mktemp("cache"))
    yield made
    made.process.stdin.close()
    made.process.stdout.close()
    made.process.wait(60)


def write_recipe(folder: Path, **changes: dict) -> Path:
    """The recipe, with changes by table, and the files that it reads."""
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdefg", k=draw.randint(1, 7))) for _ in range(150)]
    files = folder / "a.txt", folder / "b.txt"
    files[0].write_text("".join(f"{word}\n" for word in words))
    files[1].write_text("".join(f"{word[::-1]}\n" for word in words))
    changes.setdefault("data", {"files": list(map(str, files))})
    values = {
        name: {**each, **changes.get(name, {})} if isinstance(each, dict) else each for name, each in VALUES.items()
    }
    if "name" in changes["data"]:  # made here, and so not split
        del values["data"]["share"]
    path = folder / "recipe.toml"
    path.write_text(to_toml(values))
    return path


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_recipe(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole(zygote, recipe, tmp_path_factory):
    """A run that nobody disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert zygote(recipe, run) == 0
    return run


def same(run: Path, whole: Path) -> None:
    """The same last checkpoint, byte for byte, and the same tale of it."""
    for name in ("model.safetensors", "training.safetensors", "average.safetensors"):
        ours, theirs = (each / "checkpoints" / f"step-{STEPS}" / name for each in (run, whole))
        assert theirs.exists() == ours.exists()
        assert not theirs.exists() or ours.read_bytes() == theirs.read_bytes(), name
    assert [told(each) for each in lines(run)] == [told(each) for each in lines(whole)]
    snapshots = [sorted(each.name for each in (path / "snapshots").iterdir()) for path in (run, whole)]
    assert snapshots[0] == snapshots[1]
    assert not list(run.rglob(".*"))


def lines(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def told(line: dict) -> dict:
    """A line of metrics without the clock."""
    return {key: value for key, value in line.items() if key not in ("seconds", "data_share")}


def test_the_run_crosses_an_epoch_and_learns(whole):
    losses = [each["loss"] for each in lines(whole) if "loss" in each]
    assert losses[-1] < losses[0]
    assert lines(whole)[-2]["epoch"] >= 1
    assert len(lines(whole)) == STEPS + -(-STEPS // EVERY)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("most", [3, pytest.param(KILLS * 3 // 5, marks=pytest.mark.proof)])
def test_killed_at_each_call_of_writing(zygote, recipe, whole, tmp_path, most):
    kills, call = 0, 0
    while kills < most:
        call = call % 60 + 1 if KILLS > 60 else call + 3  # the making of the folder has 15, a checkpoint 10
        run = tmp_path / f"run{kills}"
        assert zygote(recipe, run, call=call) == -9
        kills += 1 + (zygote(recipe, run, call=max(call // 2, 2)) == -9)  # twice in a row
        assert zygote(recipe, run) == 0
        same(run, whole)
        assert not list(tmp_path.glob(".*partial"))


@pytest.mark.timeout(3000)
@pytest.mark.proof
def test_killed_at_random_moments(zygote, recipe, whole, tmp_path):
    draw, kills, count = random.Random(11), 0, 0
    begin = time.monotonic()
    assert zygote(recipe, tmp_path / "measured") == 0
    length = time.monotonic() - begin
    while kills < KILLS * 2 // 5:
        run, count = tmp_path / f"run{count}", count + 1
        for _ in range(2):
            kills += zygote(recipe, run, after=draw.uniform(0.1, 0.8) * length) == -9
        assert zygote(recipe, run) == 0
        same(run, whole)
        assert count <= KILLS, "the machine is too fast for these moments"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"train": {"optimiser": "muon", "average": "last(3)"}}, id="muon", marks=pytest.mark.proof),
        pytest.param({"train": {"optimiser": "sgd", "average": "none"}}, id="sgd"),
        pytest.param({"train": {"optimiser": "adam", "average": "last(2)"}}, id="adam", marks=pytest.mark.proof),
        pytest.param({"data": FRESH, "train": {"batch": 250}}, id="rows drawn anew"),
        *(
            pytest.param(
                {"model": {"encoder": 2, "decoder": 2, "position": "sinusoid", **values}},
                id=name,
                marks=pytest.mark.proof,  # `make test` stops each of them once (test_architectures_train.py)
            )
            for name, values in ARCHITECTURES.items()
        ),
    ],
)
def test_other_optimisers_averages_and_architectures_go_on_too(zygote, tmp_path, changes):
    recipe = write_recipe(tmp_path, **changes)
    assert zygote(recipe, tmp_path / "whole") == 0
    for call in (30, 55):
        assert zygote(recipe, tmp_path / "run", call=call) == -9
    assert zygote(recipe, tmp_path / "run") == 0
    same(tmp_path / "run", tmp_path / "whole")


def test_a_full_disk(zygote, recipe, whole, tmp_path):
    run = tmp_path / "run"
    zygote(recipe, run, call=30)
    size = max(each.stat().st_size for each in run.rglob("*.safetensors"))
    assert zygote(recipe, run, limit=size - 100) == 2
    assert "the disk is full" in (tmp_path / "run.said").read_text()
    assert not list(run.rglob(".*partial"))
    assert zygote(recipe, run) == 0
    same(run, whole)


def test_a_damaged_checkpoint_is_put_aside(zygote, recipe, whole, tmp_path):
    run = tmp_path / "run"
    assert zygote(recipe, run, call=90) == -9
    newest = max((run / "checkpoints").glob("step-*"), key=lambda each: int(each.name.split("-")[1]))
    file = newest / "training.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    assert zygote(recipe, run) == 0
    assert newest.with_name(f"{newest.name}.damaged").is_dir()
    same(run, whole)


def test_no_checkpoint_left_is_refused(zygote, recipe, tmp_path):
    run = tmp_path / "run"
    assert zygote(recipe, run, call=60) == -9
    for each in (run / "checkpoints").glob("step-*"):
        (each / "state.json").write_text("{}")
    assert zygote(recipe, run) == 2
    assert "has no checkpoint that is whole" in (tmp_path / "run.said").read_text()
    assert zygote(recipe, run) == 2  # and it stays so


def test_another_recipe_or_other_data_are_refused(zygote, tmp_path):
    recipe, run = write_recipe(tmp_path), tmp_path / "run"
    assert zygote(recipe, run, call=60) == -9
    assert zygote(recipe, run, options=["train.rate=0.02", "train.clip=2.0"]) == 2
    said = (tmp_path / "run.said").read_text()
    assert "train.clip, train.rate differ" in said
    (tmp_path / "b.txt").write_text((tmp_path / "b.txt").read_text().replace("a", "b"))
    assert zygote(recipe, run) == 2
    assert "have changed since it was begun (data.files[1])" in (tmp_path / "run.said").read_text()


@pytest.mark.timeout(600)
@pytest.mark.proof
def test_killed_and_stopped_through_the_real_command(recipe, tmp_path, zygote):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "from saccade.cli import main; main()", "train", str(recipe), "--run"]

    def start(run: Path) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*command, str(run)], env=env, text=True, **pipes)

    def stopped(run: Path, step: int, number: int) -> tuple[int, str]:
        step = max(step, _last(run) + 1)  # what is there already says nothing of the process that starts now
        process = start(run)
        deadline = time.monotonic() + 120
        while _last(run) < step and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(number)
        said = process.communicate(timeout=120)[1]
        return process.returncode, said

    whole, run = tmp_path / "whole", tmp_path / "run"
    assert stopped(whole, STEPS + 1, 0)[0] == 0
    assert [stopped(run, step, signal.SIGKILL)[0] for step in (2, 5, 7)] == [-9, -9, -9]
    for number, step in ((signal.SIGTERM, 8), (signal.SIGINT, 9)):
        code, said = stopped(run, step, number)
        assert code == 128 + number
        assert re.fullmatch(r"stopped at step (\d+), saved: the same command goes on from there", said.strip()), said
        assert (run / "checkpoints" / f"step-{said.split()[3].rstrip(',')}").is_dir()
    assert stopped(run, STEPS + 1, 0)[0] == 0
    same(run, whole)


def _last(run: Path) -> int:
    try:
        return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["step"]
    except (OSError, ValueError, IndexError):
        return -1
