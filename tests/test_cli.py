"""The command line, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import saccade
from saccade import SaccadeError
from saccade.attend.kernel import KERNELS
from saccade.attend.mask import MASKS
from saccade.cli import COMMANDS
from saccade.field.result import Result
from saccade.recipes import read as recipes
from saccade.zoo.names import ZOO

TASK = SimpleNamespace(line=lambda text: text, target=None)  # of a run that reads texts


def run(*args: str, timeout: int = 120, **options: Any) -> subprocess.CompletedProcess[str]:
    """A process of its own; most tests run the command line in their own (`command`)."""
    options = {"capture_output": True, **options}
    return subprocess.run([sys.executable, "-m", "saccade", *args], text=True, timeout=timeout, **options)


def test_version():
    assert run("--version").stdout.strip() == saccade.__version__


def test_list_tells_every_name(command):
    found = json.loads(command("list", "--json").stdout)
    assert {each["name"] for each in found["masks"]} == MASKS.keys()
    assert {each["name"] for each in found["kernels"]} == KERNELS.keys()
    assert {each["name"] for each in found["models"]} == ZOO.keys()
    parts = [entry for kind, entries in found.items() if kind not in ("models", "recipes") for entry in entries]
    assert all(entry["meaning"] and entry["written"] for entry in parts)
    assert {each["name"] for each in found["recipes"]} == set(recipes.names())
    told = command("list", "recipes").stdout
    assert all(each["command"] in told for each in found["recipes"])
    assert "2 minutes; exact match" in told
    assert "3.4 minutes (one busy thread); accuracy" in told
    keys = command("list", "keys").stdout
    assert all(entry["meaning"] in keys for entry in found["keys"]), "nothing is cut"
    shown = command("list", "masks").stdout
    assert "window(n)" in shown
    assert "ids[i] == ids[j]" in shown


def test_a_folder_called_like_a_recipe_is_no_run(tmp_path, monkeypatch):
    from saccade.learn.train import _recipe_and_folder

    monkeypatch.chdir(tmp_path)
    (tmp_path / "dates").mkdir()
    assert _recipe_and_folder("dates", [], None, [])[1] == Path("runs", "dates")
    (tmp_path / "dates" / "manifest.json").touch()
    assert _recipe_and_folder("dates", [], None, []) == (None, Path("dates"))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("list", "maks"), "did you mean 'masks'"),
        (("bench", "atention"), "did you mean 'attention'"),
        (("train", "translate", "a.en", "--files", "a.de"), "'a.en' stands before --files"),
        (("evaluate", "a" * 300), "File name too long"),
        (("train", "dates", "--run", "a" * 300), "File name too long"),
    ],
)
def test_bad_input_exits_2_with_one_sentence(command, args, why):
    done = command(*args)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.startswith("saccade: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.proof
def test_a_full_disk_under_what_is_printed():
    with Path("/dev/full").open("w") as full:
        done = run("list", "masks", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "saccade: No space left on device\n"


def test_letters_that_an_output_cannot_hold():
    """Of rich's pictures and of JSON alike: escaped, and JSON stays what it is."""
    code = "import json, rich, saccade.cli\n"
    code += r"def said(): rich.print('\u2588'), print(json.dumps('\u00e9\U0001f441\udcff', ensure_ascii=False))"
    code += "\nsaccade.cli.app = said\nsaccade.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    drawn, written = done.stdout.splitlines()
    assert (drawn, done.stderr) == (r"\u2588", "")
    assert json.loads(written) == "\u00e9\U0001f441\udcff"


def test_demo_shows_the_party_and_a_sentence(command, monkeypatch):
    monkeypatch.setattr("saccade.demo._dates", lambda *_: None)
    shown = command("demo").stdout
    assert "Who will help me on my exam?" in shown
    assert "Scientist" in shown
    assert "chased" in shown


@pytest.mark.proof
def test_demo_trains_and_shows(command, tmp_path):
    small = ["train.steps=40", "train.every=20", "data.examples=2000", "data.held=40"]
    args = ["demo", "--run", str(tmp_path / "run"), *(each for option in small for each in ("-o", option))]
    done = command(*args)
    assert done.returncode == 0, done.stderr
    assert "Scientist" in done.stdout
    assert "fr: samedi 3 mai 1979  ->  " in done.stdout
    assert "of 40 dates of days it never saw are right" in done.stdout
    assert "look most at the part of the date" in done.stdout
    again = command(*args)  # what is trained is used
    assert again.returncode == 0
    assert "validation" in done.stdout
    assert "validation" not in again.stdout


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a peer, if it is installed
def test_bench_rows(monkeypatch):
    """The real bench, in which each side runs once: its lines have the promised fields."""
    from saccade.bench import attention

    def once(ours, theirs, seconds):
        ours()
        theirs()
        return 2e-3, 3e-3, 1.5

    monkeypatch.setattr(attention, "race", once)
    monkeypatch.setattr(attention, "TOKENS", 124)
    found = []
    for row in attention.rows(seconds=0.0, lengths=(31,)):
        found.append(row)
        if row["case"].startswith("watch"):
            break
    assert {"torch sdpa", "nn.MultiheadAttention", "not watched"} <= {row["peer"] for row in found}
    for row in found:
        assert set(row) == {"case", "peer", "ours", "theirs", "unit", "ratio"}
        assert [row[key] for key in ("ours", "theirs", "unit", "ratio")] == [2.0, 3.0, "ms", 1.5]


def test_a_race_is_told_by_its_medians(monkeypatch):
    """Each round times both; a round that was disturbed moves neither the times nor the ratio."""
    from saccade.bench import race

    seconds = {"ours": iter([9.0, 9.0, 9.0, 1.0, 1.0, 8.0, 1.0, 1.0]), "theirs": iter([9.0, 3.0, 3.0, 24.0, 3.0, 3.0])}
    monkeypatch.setattr(race, "spent", lambda side, repeats: next(seconds[side]))
    assert race.race("ours", "theirs", seconds=0.0) == (1.0, 3.0, 3.0)


def test_results_come_in_portions_and_in_order(tmp_path, monkeypatch, capsys):
    """What is asked for is answered before the rest of a long file is."""
    from saccade.command import learning

    texts = [f"text {number}" for number in range(7)]
    (tmp_path / "texts").write_text("".join(f"{each}\n" for each in texts))
    asked = []

    def answer(some):
        asked.append((len(some), capsys.readouterr().out.count("\n")))
        return [Result(each.upper(), each.upper(), 0.0) for each in some]

    monkeypatch.setattr("saccade.store.load.load", lambda path: SimpleNamespace(predict=answer, task=TASK))
    monkeypatch.setattr(learning, "PORTION", 3)
    learning.predict("run", file=str(tmp_path / "texts"))
    assert asked == [(3, 0), (3, 3), (1, 3)]
    assert capsys.readouterr().out == "TEXT 6\n"
    said = SimpleNamespace(predict=lambda some: [Result(each.upper(), each.upper(), 0.0) for each in some], task=TASK)
    monkeypatch.setattr("saccade.store.load.load", lambda path: said)
    learning.predict("run", ["a\nb"])
    learning.predict("run", ["a\nb", "c"])
    assert capsys.readouterr().out == "A\nB\n" + "A\\nB\nC\n", "of several, one a line"


def test_what_is_wrong_with_one_text_stops_no_stream(monkeypatch, capsys):
    from saccade.command import learning

    def said(text):
        if not text:
            raise SaccadeError("this text is empty")
        yield text.upper()

    made = SimpleNamespace(stream=said, decode=lambda: None, task=TASK)
    monkeypatch.setattr("saccade.store.load.load", lambda path: made)
    learning.predict("run", ["", "cat"], streamed=True)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("\nCAT\n", "'': this text is empty\n")
    with pytest.raises(SaccadeError, match="empty"):
        learning.predict("run", [""], streamed=True)


def test_what_a_stream_would_lose_is_refused(monkeypatch):
    from saccade.command import learning
    from saccade.config import read
    from saccade.recipe import DecodeConfig

    usual = {"beam": 5, "max_tokens": 7}
    said = SimpleNamespace(
        stream=lambda text, **_: [text], decode=lambda **given: read(DecodeConfig, usual | given), task=TASK
    )
    monkeypatch.setattr("saccade.store.load.load", lambda path: said)
    learning.predict("run", ["cat"], options=["temperature=0.7", "beam=1"], streamed=True)
    for option in ("beam=4", "length_penalty=0.6"):
        with pytest.raises(
            SaccadeError, match=f"{option.split('=')[0]} belongs to a beam search.*, or leave out --stream"
        ):
            learning.predict("run", ["cat"], options=[option], streamed=True)


def test_nothing_to_read_is_told(monkeypatch):
    from saccade.command import learning

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(SaccadeError, match="stdin is empty"):
        learning.predict("run")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"as_json": True, "layer": "nosuch"}, "--layer changes a picture, and this command draws none"),
        ({"as_json": True, "head": "77"}, "--head changes a picture"),
        ({"statistics": True, "hide": "foo"}, "--hide changes a picture"),
        ({"ablate": True, "size": 2}, "--size changes a picture"),
        ({"target": "b", "max_tokens": 4}, "give one of the two"),
        ({"max_tokens": 3}, "writes no text: leave out --max-tokens"),
    ],
)
def test_looks_that_would_not_do_what_was_asked(options, why, tmp_path, monkeypatch):
    from saccade.command import looking

    silent = SimpleNamespace(task=SimpleNamespace(answer=SimpleNamespace(writes=False)))
    monkeypatch.setattr("saccade.store.load.load", lambda path: silent)
    with pytest.raises(SaccadeError, match=why):
        looking.look(str(tmp_path), "a", **options)


def test_a_folder_that_is_closed_is_told_before_anything_lasts(tmp_path, monkeypatch):
    from saccade.command import looking

    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SaccadeError, match=r"runs\.svg cannot be written: Permission denied"):
        looking.compare(["nowhere", "elsewhere"], out=str(tmp_path / "runs.svg"))


@pytest.mark.parametrize("name", COMMANDS)
def test_h_is_help(command, name):
    assert command(name, "-h").stdout == command(name, "--help").stdout != ""


def test_memory_that_does_not_suffice_is_told_in_one_sentence(command, monkeypatch):
    def full(*_):
        raise MemoryError("1 TB")

    monkeypatch.setattr("saccade.command.listing._entries", full)
    done = command("list", "masks")
    assert done.returncode == 2
    assert done.stderr == "saccade: there is not enough memory (1 TB): make the model, batch or input smaller\n"


def test_tables_have_tabs_where_no_terminal_reads_them(command, monkeypatch, capsys):
    from rich.table import Table

    from saccade.command import sheet

    lines = command("list", "masks").stdout.splitlines()
    assert lines[0] == "masks"
    assert all(line.count("\t") == 1 and "  " not in line.partition("\t")[0] for line in lines[1:])
    table = Table("name", "count", box=None)
    table.add_row("a", "1,000")
    sheet.show(table)
    assert capsys.readouterr().out == "name\tcount\na\t1,000\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    sheet.show(table)
    assert "a     1,000" in " ".join(capsys.readouterr().out.splitlines()[-1:])
