"""A real server as its own process with small runs, and a browser that looks at its page."""

from __future__ import annotations

import os
import random
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import captions
import pytest
import torch
from absent import absent
from photos import photos, recipe
from playwright.sync_api import sync_playwright

import saccade
from saccade.config import ModelConfig
from saccade.data.dates import examples
from saccade.field.text.text import Text
from saccade.recipes.read import from_values
from saccade.store.run import Run

HOSTILE = "<img/src=x/onerror=alert(1)>"
TURNED = "\u202e\u05e9\u05dc\u05d5\u05dd"  # a mark that turns the direction, and letters that run from the right
MODEL = {"width": 12, "heads": 2, "hidden": 16, "position": "rotary"}
WORDS = ["the", "cat", "sleeps", "dogs", "dream", "of", HOSTILE, TURNED, "it's"]


@pytest.fixture(scope="session")
def folder(shared) -> Path:
    """A folder with runs of every kind; `runs/dates` lies where the page's Python looks for it."""
    return shared("page", _train)


def _train(made: Path) -> None:
    dates = saccade.train(_dates(made), run=made / "runs" / "dates")
    dates.at(dates.snapshots[2]).save(made / "runs" / "younger")
    saccade.train(_writer(made), run=made / "runs" / "writer")
    saccade.train(_judge(made), run=made / "runs" / "judge")
    saccade.train(recipe(photos(made)), run=made / "runs" / "photos")
    grey = {"source": {"kind": "image", "embed": "patches(4)", "colours": "grey"}}
    saccade.train(recipe(photos(made), x=grey), run=made / "runs" / "sketches")
    saccade.train(captions.recipe(made), run=made / "runs" / "captions")
    _speller().save(made / "runs" / "speller")


def _dates(made: Path) -> saccade.Recipe:
    """A few of the dates that `saccade train dates` makes: all of them take longer than the training."""
    shown = list(examples(400))
    for name in ("source", "target"):
        (made / name).write_text("".join(f"{getattr(each, name)}\n" for each in shown))
    files = [str(made / "source"), str(made / "target")]
    data = {"files": files, "tokenizer": "characters", "vocab": 300, "share": 0.1, "limit": 64}
    model = {**MODEL, "width": 24, "encoder": 2, "decoder": 1}
    train = {"steps": 40, "batch": 700, "every": 40, "rate": 5e-3}
    return from_values(
        {"task": "translate", "data": data, "model": model, "train": train, "decode": {"max_tokens": 12}}
    )


def _writer(made: Path) -> saccade.Recipe:
    draw = random.Random(3)
    file = made / "words.txt"
    file.write_text("".join(f"{' '.join(draw.choices(WORDS, k=11))}\n" for _ in range(60)))
    data = {"files": [str(file)], "tokenizer": "split", "vocab": 60, "share": 0.2}
    # Long enough to learn that these texts never end.
    train = {"steps": 61, "batch": 130, "length": 13, "every": 61, "rate": 2e-2}
    return from_values({"task": "write", "data": data, "model": {**MODEL, "decoder": 2}, "train": train})


def _judge(made: Path) -> saccade.Recipe:
    file = made / "moods.tsv"
    file.write_text("".join(f"{word} {word}\t{mood}\n" for word in "abcdefg" for mood in ("good", "bad", HOSTILE)))
    data = {"files": [str(file)], "tokenizer": "characters", "vocab": 60, "share": 0.3}
    train = {"steps": 3, "batch": 90, "every": 3}
    return from_values({"task": "classify", "data": data, "model": {**MODEL, "encoder": 2}, "train": train})


def _speller() -> Run:
    """Untrained, by scores that are no products: it wants to write `e` or half of `\u00e9`."""
    text = Text.train(["the cat sleeps", HOSTILE], vocab=270)
    config = ModelConfig(vocab=text.vocab, decoder=2, score="additive", head="vocabulary", output_bias=True, **MODEL)
    run = Run(saccade.build(config))
    with torch.no_grad():
        run.model.head.bias[text.encode(["e\u00e9"])[0]] = 31.0
    run.files = {"tokenizer.json": text.to_bytes()}
    return run


@contextmanager
def opened(folder: Path, *arguments: str) -> Iterator[str]:
    """The address of `saccade serve`, while it runs."""
    command = [sys.executable, "-c", "from saccade.cli import main; main()", "serve", *arguments, "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "COLUMNS": "400"}
    errors = folder / f"serve-{os.getpid()}-{len(arguments)}.log"  # each worker has servers of its own
    with errors.open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield _address(process, errors)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _address(process: subprocess.Popen[str], errors: Path) -> str:
    assert process.stdout is not None
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            found = re.search(r"http://\S+", process.stdout.readline())
            if found:
                return found.group()
    raise AssertionError(f"the server did not begin: {errors.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def site(folder) -> Iterator[str]:
    """A server with runs of every kind, one of them under a name that looks like markup."""
    named = ["runs/dates", "<b>younger</b>=runs/younger", "runs/writer", "runs/judge", "runs/speller", "runs/photos"]
    named += ["runs/sketches", "runs/captions"]
    with opened(folder, *named) as address:
        yield address


@pytest.fixture
def hostile() -> tuple[str, str]:
    """Tokens of the writing run that must stay text: markup, and what would turn the line around."""
    return HOSTILE, TURNED


@pytest.fixture(scope="session")
def locked(folder) -> Iterator[str]:
    """A server that asks for a key."""
    with opened(folder, "runs/writer", "--api-key", "sesame-73") as address:
        yield address


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window. Frames come as fast as they are drawn, so that their time can be measured."""
    browser = shutil.which("chromium")
    if browser is None:  # apt could not install it, as `make test` has said
        absent("the browser chromium")
    options = ["--no-sandbox", "--disable-frame-rate-limit", "--disable-gpu-vsync"]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=options)
        yield launched
        launched.close()


class Visit:
    """A page that is watched: what went wrong in it, and whom it spoke to."""

    def __init__(self, browser, **options) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))
        self.page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        self.page.on("dialog", lambda dialog: (self.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def forgive(self, words: str) -> None:
        """A problem that the test itself caused."""
        assert any(words in each for each in self.problems), self.problems
        self.problems = [each for each in self.problems if words not in each]

    def ask(self, text: str) -> None:
        """Types a text, runs it and waits until it is looked into."""
        self.page.fill("#text", text)
        self.page.click("#ask")
        self.ready()

    def ready(self) -> None:
        """Waits until the map is there."""
        self.page.wait_for_selector("#looking:not([hidden]) #layer option", state="attached")
        self.page.wait_for_selector("#stop", state="hidden")

    def still(self) -> None:
        """Waits until what was asked of the page is painted and no colour is on its way any more."""
        self.page.evaluate(
            """async () => {
              const frame = () => new Promise(requestAnimationFrame);
              await frame(); await frame();
              const moving = document.getAnimations().filter((each) => each instanceof CSSTransition);
              await Promise.allSettled(moving.map((each) => each.finished));
              await frame();
            }"""
        )

    def reading(self) -> str:
        """What the cross-hair stands on, in words."""
        return self.page.text_content("#reading")


@pytest.fixture
def visits(chromium) -> Iterator[Callable[..., Visit]]:
    """Opens pages; in the end none of them may have had a problem or spoken to a stranger."""
    made: list[tuple[Visit, str]] = []

    def visit(address: str, fragment: str = "", **options) -> Visit:
        each = Visit(chromium, **options)
        made.append((each, urlsplit(address).netloc))
        each.page.goto(f"{address}/{fragment}")
        return each

    yield visit
    for each, host in made:
        each.context.close()
        assert each.problems == []
        assert each.hosts <= {host, ""}, "the page spoke to another host"


@pytest.fixture(scope="session")
def keep(tmp_path_factory) -> Callable[[Visit, str], None]:
    """Keeps a picture of a page, in SACCADE_SHOTS or among pytest's own files."""
    place = os.environ.get("SACCADE_SHOTS")
    shots = Path(place) if place else tmp_path_factory.mktemp("shots")
    shots.mkdir(parents=True, exist_ok=True)
    return lambda visit, name: visit.page.screenshot(path=shots / f"{name}.png", full_page=True)
