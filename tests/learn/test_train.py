"""Training on own files: every task, fine-tuning, own parts, and all that can be wrong with the input."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tiny import MODEL, TRAIN, classify, translate, words, write

import saccade
from saccade import SaccadeError
from saccade.data.rows import Picked
from saccade.learn import loop
from saccade.learn.loop import Loop
from saccade.learn.progress import MetricsLog
from saccade.learn.validate import evaluate
from saccade.model.feed import balance
from saccade.recipes.read import from_values
from saccade.store import checkpoint
from saccade.task.pair import pair_of
from saccade.task.task import Task


def test_two_files_to_a_translator(tmp_path):
    run = saccade.train(translate(tmp_path), run=tmp_path / "run")
    results = run.predict(["abc", "", "gfe", "x" * 500], beam=3)
    assert ["empty" in str(each.note) or "long" in str(each.note) for each in results] == [False, True, False, True]
    (alone,) = run.predict(["abc"], beam=3)
    assert (results[0].text, results[0].note) == (alone.text, alone.note)
    assert results[0].score == pytest.approx(alone.score, rel=1e-5)  # float32: other sums for another number of rows
    assert "too long: 500 tokens" in results[3].note
    found = evaluate(run, "val", decode=run.decode(max_tokens=9))
    assert found["examples"] == len(checkpoint_rows(tmp_path / "run"))
    assert set(found["metrics"]) == {"loss", "perplexity", "exact_match", "chrf"}, "one word has no phrases for BLEU"
    assert "nrefs:1" in found["signatures"]["chrf"]
    assert found["decode"]["max_tokens"] == 9
    (tmp_path / "x").write_text("abc\nde\n")
    (tmp_path / "y").write_text("cba\ned\n")
    own = evaluate(run, file=str(tmp_path / "x"), against=str(tmp_path / "y"))
    assert own["examples"] == 2


def test_a_translator_of_both_directions(tmp_path):
    """It learns from its pairs both ways, and is judged in the direction of its files."""
    one = saccade.train(translate(tmp_path), run=tmp_path / "one")
    both = saccade.train(translate(tmp_path, data={"both": True}), run=tmp_path / "both")
    assert one.files == both.files  # the same tokenizer
    assert evaluate(one, "val")["examples"] == evaluate(both, "val")["examples"]
    assert one.about["data"]["train"] != both.about["data"]["train"]


@pytest.mark.proof
def test_a_short_source_may_become_a_long_text(tmp_path):
    files = [tmp_path / "codes", tmp_path / "sentences"]
    sentence = " ".join(f"word{each}" for each in range(40))
    files[0].write_text("".join(f"{each}\n" for each in words(60)))
    files[1].write_text(f"{sentence}\n" * 60)
    given = {"files": list(map(str, files)), "tokenizer": "words", "vocab": 120}
    made = translate(
        tmp_path,
        given,
        {"width": 24},
        {"steps": 150, "batch": 500, "every": 150, "rate": 3e-3},
        decode={"max_tokens": 60},
    )
    run = saccade.train(made, run=tmp_path / "run")
    (whole,), (part,) = run.predict(["ab"]), run.predict(["ab"], max_tokens=17)
    (other,) = run.predict(["ab"], ratio=0.875)  # of 8, and 10 more
    assert other == part
    assert (whole.text, whole.note) == (sentence, None)
    assert (part.text, part.note) == (
        " ".join(sentence.split()[:17]),
        "cut: no end within 17 tokens (max_tokens, ratio)",
    )


def checkpoint_rows(run):
    recipe = saccade.load(run).recipe
    return list(pair_of(recipe).supply(recipe).rows("val"))


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    torch.manual_seed(99)
    a = saccade.train(translate(tmp_path), run=tmp_path / "a").model
    torch.manual_seed(7)
    b = saccade.train(translate(tmp_path), run=tmp_path / "b").model
    c = saccade.train(translate(tmp_path, seed=5), run=tmp_path / "c").model
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    assert not all(torch.equal(x, y) for x, y in zip(a.parameters(), c.parameters(), strict=True))


def test_accumulated_gradients_are_those_of_one_batch(tmp_path):
    """In float64, with steps whose batches differ in size: the mean is over the tokens of the whole step."""
    from saccade.learn.prepare import prepare

    made = prepare(translate(tmp_path, model={"dropout": 0.0}), lambda _: None)
    model = made.run.model.double()

    def batch(some):
        return made.task.batch(Picked({name: column.take(some) for name, column in made.train.columns.items()}))

    def loss(some):
        return made.task.terms(model, some)["text"].sum

    parts, whole = [batch(each) for each in (range(3), range(3, 10))], batch(range(10))
    assert whole.count == sum(each.count for each in parts)
    names = list(model.parameters())
    summed, once = sum(map(loss, parts)) / whole.count, loss(whole) / whole.count
    torch.testing.assert_close(summed, once)
    for a, b in zip(torch.autograd.grad(summed, names), torch.autograd.grad(once, names), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_a_text_to_a_language_model(tmp_path):
    (tmp_path / "text.txt").write_text("the eye jumps\nto what matters\n\n" * 90)
    values = {
        "task": "write",
        "data": {"files": [str(tmp_path / "text.txt")], "tokenizer": "characters", "vocab": 60, "share": 0.2},
        "model": {**MODEL, "decoder": 1},
        "train": {**TRAIN, "length": 13, "steps": 60, "every": 20},
    }
    run = saccade.train(from_values(values), run=tmp_path / "run")
    found = evaluate(run)
    text = (tmp_path / "text.txt").read_text()
    held = text[int(len(text) * 0.8) :]
    assert found["metrics"]["loss"] < 2.5  # the 15 letters alone: about 2.6
    bits = found["metrics"]["loss"] * (len(held) - 1) / 0.6931471805599453 / len(held)
    assert found["metrics"]["bits_per_character"] == pytest.approx(bits)
    assert len(run.predict("the e", max_tokens=4)[0].text) == 4


def test_a_table_to_a_classifier_that_stops_early(tmp_path):
    rows = [f"{each}\t{'early' if each[0] < 'd' else 'late'}\n" for each in words(300)]
    with gzip.open(tmp_path / "t.tsv.gz", "wt") as file:
        file.writelines(rows)
    values = {
        "task": "classify",
        "data": {"files": [str(tmp_path / "t.tsv.gz")], "tokenizer": "characters", "vocab": 30, "share": 0.2},
        "model": {**MODEL, "encoder": 1},
        "train": {**TRAIN, "steps": 400, "every": 10, "patience": 2, "rate": 2e-2},
    }
    run = saccade.train(from_values(values), run=tmp_path / "run")
    steps = checkpoint.steps(tmp_path / "run")
    assert steps[-1] < 400
    assert run.step in steps
    assert run.step == checkpoint.newest(tmp_path / "run").state["best_step"]
    assert evaluate(run)["metrics"]["accuracy"] > 0.9
    assert run.predict(["abc"])[0].text == "early"


@pytest.mark.parametrize("average", ["ema(0.5)", "last(2)"])
def test_the_average_is_what_is_used(tmp_path, average):
    run = saccade.train(translate(tmp_path, train={"average": average, "steps": 9}), run=tmp_path / "run")
    found = checkpoint.read(tmp_path / "run", 9).tensors
    raw, used = found["model"], dict(run.model.named_parameters())
    assert any(not torch.equal(raw[name], each) for name, each in used.items())
    if average == "last(2)":
        kept = [load_file(tmp_path / "run" / "averages" / f"step-{step}.safetensors") for step in (6, 9)]
        for name, each in used.items():
            torch.testing.assert_close(each.detach(), (kept[0][name] + kept[1][name]) / 2)


def test_snapshots_are_spaced_logarithmically(tmp_path):
    saccade.train(translate(tmp_path, train={"steps": 30, "every": 15}), run=tmp_path / "run")
    found = sorted(int(each.stem.split("-")[1]) for each in (tmp_path / "run" / "snapshots").iterdir())
    assert found[:3] == [1, 2, 3]
    assert found[-1] == 30
    assert found[-1] - found[-2] > found[1] - found[0]
    assert set(load_file(tmp_path / "run" / "snapshots" / "step-2.safetensors")) == set(
        dict(saccade.load(tmp_path / "run").model.named_parameters())
    )


def test_what_is_broken_stops_the_run_or_is_skipped(tmp_path, monkeypatch, capsys):
    terms, calls, worst = Task.terms, [], {5}

    def broken(self, model, batch, *options):
        calls.append(model.training)
        bad = torch.is_grad_enabled() and calls.count(True) in worst
        found = terms(self, model, batch, *options)["text"]
        return {"text": found._replace(sum=found.sum * (float("nan") if bad else 1.0))}

    monkeypatch.setattr(Task, "terms", broken)
    told = r"step 5 \(epoch 0 batch 4\): the loss is nan; the step was not taken.* in a new run \(start = '.*run'"
    with pytest.raises(SaccadeError, match=told):
        saccade.train(translate(tmp_path), run=tmp_path / "run")
    assert checkpoint.newest(tmp_path / "run").step == 3
    calls.clear()
    saccade.train(translate(tmp_path, train={"broken": "skip"}), run=tmp_path / "skip", console=Console(width=200))
    assert checkpoint.newest(tmp_path / "skip").state["skipped"] == 1
    assert "step 5 (epoch 0 batch 4): the loss is nan; the step was not taken" in capsys.readouterr().out
    calls.clear()
    worst |= {4, 6, 7, 8}
    monkeypatch.setattr(loop, "MOST", 3)
    with pytest.raises(SaccadeError, match=r"step 6 .*3 in a row; lower train\.rate in a new run"):
        saccade.train(translate(tmp_path, train={"broken": "skip", "steps": 9}), run=tmp_path / "many")
    calls.clear()
    with pytest.raises(SaccadeError, match=r"a spike: the gradient is .* long, usually"):
        saccade.train(translate(tmp_path, train={"spike": 1.0001, "steps": 50}), run=tmp_path / "spike")


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "float64"])
def test_other_precisions_learn_and_go_on(tmp_path, precision):
    made = translate(tmp_path, train={"precision": precision, "steps": 30, "every": 10})
    saccade.train(made, run=tmp_path / "run")
    told = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    losses = [each["loss"] for each in told if "loss" in each]
    assert losses[-1] < losses[0]
    found = checkpoint.newest(tmp_path / "run")
    kind = torch.float64 if precision == "float64" else torch.float32
    assert {each.dtype for each in found.tensors["model"].values()} == {kind}
    assert ("scaler" in found.state) == (precision == "float16")


def test_the_pass_of_a_step_is_what_is_compiled(tmp_path, monkeypatch):
    """Without the compiler, which takes a minute: it is given the pass of the model, and what it gives is run."""
    given, passes = [], []

    def compiled(function, dynamic):
        given.append((function.__name__, dynamic))
        return lambda *x, **more: passes.append(len(x)) or function(*x, **more)

    monkeypatch.setattr(torch, "compile", compiled)
    saccade.train(translate(tmp_path, train={"compile": True}), run=tmp_path / "run")
    assert given == [("states", True)]
    assert len(passes) >= 6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own
@pytest.mark.timeout(1200)  # two minutes of compiling on a quiet machine
@pytest.mark.proof
def test_compiled_steps_are_the_same_steps(tmp_path):
    plain = saccade.train(translate(tmp_path), run=tmp_path / "plain").model
    compiled = saccade.train(translate(tmp_path, train={"compile": True}), run=tmp_path / "compiled").model
    for a, b in zip(plain.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=5e-3)  # Adam makes much of gradients near zero


@pytest.mark.parametrize(
    ("task", "decode"),
    [
        (translate, {"beam": 4, "groups": 2, "diversity": 0.5, "max_tokens": 12}),
        (translate, {"min_tokens": 11, "max_tokens": 12}),
        (write, {"min_tokens": 80, "max_tokens": 90}),
        (write, {"beam": 2, "length_penalty": 0.5, "min_tokens": 61, "max_tokens": 90}),
    ],
)
def test_no_way_to_decode_ends_a_training(tmp_path, task, decode):
    """A quick look while it trains is greedy and short, whatever the recipe asks for afterwards."""
    run = saccade.train(task(tmp_path, train={"steps": 2, "every": 1}, decode=decode), run=tmp_path / "run")
    assert run.step == 2
    assert run.predict("abc")[0].text


def test_parts_of_your_own(tmp_path):
    def mine(q, k):
        return -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)

    asked = translate(tmp_path, model={"score": "mine", "position": None})
    run = saccade.train(asked, run=tmp_path / "run", parts={"mine": mine})
    assert run.model.decoder.blocks[0].attention.score is mine
    with pytest.raises(SaccadeError, match="no score is called 'mine'"):
        saccade.load(tmp_path / "run")
    with saccade.spec.knowing({"mine": mine}):
        assert saccade.load(tmp_path / "run").step == 6


class Apart(torch.nn.Module):
    """A mixer of one's own, in which nobody meets anybody."""

    window = 2

    def __init__(self, width, causal):
        super().__init__()
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, *, mask=None, cache=None):
        return self.out(x)


@pytest.mark.parametrize("task", [translate, write, classify])
def test_a_mixer_of_your_own_in_every_task(task, tmp_path):
    more = {"memory": 0} if task is write else {}
    asked = task(tmp_path, model={"mixer": "mine", "position": None, **more})
    run = saccade.train(asked, run=tmp_path / "run", parts={"mine": Apart})
    side = run.model.decoder or run.model.encoder
    assert isinstance(side.blocks[0].mix, Apart)


def test_a_mixer_that_does_not_say_what_it_needs(tmp_path):
    class Blank(torch.nn.Linear):
        def __init__(self, width):
            super().__init__(width, width)

    asked = translate(tmp_path, model={"mixer": "mine", "position": None})
    with pytest.raises(SaccadeError, match="has no `window`"):
        saccade.train(asked, run=tmp_path / "run", parts={"mine": Blank})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tokenizer", ["words", "characters"])
def test_bits_of_what_is_unknown_are_not_told(tokenizer, tmp_path):
    """Unknown words and spaces that are not written cost nothing: bits of each character would be too few."""
    made = write(tmp_path, data={"tokenizer": tokenizer, "vocab": 8}, train={"steps": 2, "every": 2})
    assert "bits_per_character" not in evaluate(saccade.train(made, run=tmp_path / "run"))["metrics"]


def test_a_corpus_is_made_of_its_files_in_their_roles(tmp_path):
    """The same words in other roles are other data: nothing stale is taken from the cache."""
    from saccade.learn.prepare import prepare

    def made(first, second, **data):
        values = translate(tmp_path, {"files": [str(tmp_path / first), str(tmp_path / second)], **data})
        return prepare(values, lambda _: None)

    translate(tmp_path)
    for folder in ("en", "de"):
        (tmp_path / folder).mkdir()
    (tmp_path / "en" / "t.txt").write_text((tmp_path / "a.txt").read_text())
    (tmp_path / "de" / "t.txt").write_text((tmp_path / "b.txt").read_text())
    there, back = made("a.txt", "b.txt"), made("b.txt", "a.txt")
    assert there.train.fingerprint != back.train.fingerprint
    assert back.task.text.decode(back.train.column("source").take([0])["tokens"][0]) in (tmp_path / "b.txt").read_text()
    before = made("en/t.txt", "de/t.txt")
    (tmp_path / "de" / "t.txt").write_text((tmp_path / "a.txt").read_text())
    assert made("en/t.txt", "de/t.txt").run.about["data"] != before.run.about["data"]
    sizes = [made("a.txt", "b.txt", validation=[str(tmp_path / each)] * 2) for each in ("a.txt", "b.txt")]
    assert sizes[0].val.fingerprint != sizes[1].val.fingerprint


def test_a_corpus_is_made_of_its_files_as_they_are_read(tmp_path):
    """With one tokenizer for both, the same bytes as a text and as a table are two corpora."""
    from saccade.learn.prepare import prepare

    start = write(tmp_path, {"memory": 0, "position": "rotary"}, {"steps": 1})
    saccade.train(start, run=tmp_path / "start")
    lines = "".join(f'{{"text": "{each}"}}\n' for each in words(40))
    for name in ("t.txt", "t.jsonl"):
        (tmp_path / name).write_text(lines)
    values = start.model_copy(update={"model": None, "start": str(tmp_path / "start")})
    sizes = []
    for name in ("t.txt", "t.jsonl"):
        data = start.data.model_copy(update={"files": [str(tmp_path / name)]})
        sizes.append(len(prepare(values.model_copy(update={"data": data}), lambda _: None).train))
    assert sizes[0] == 1
    assert sizes[1] > 20


def test_learned_positions_translate_within_their_table(tmp_path):
    made = translate(tmp_path, model={"position": "learned(9)"})
    run = saccade.train(made, run=tmp_path / "run")
    assert run.limit == 8
    assert run.predict(["abc", "a" * 9])[1].note == "too long: 9 tokens, and the model was made for 8"


def test_a_run_that_was_not_judged_yet_gives_its_last_weights(tmp_path):
    from saccade.learn.loop import Stopped

    made = translate(tmp_path, train={"patience": 3, "every": 100, "steps": 200})
    advance = Loop.advance

    def stopping(self, *args):
        advance(self, *args)
        self.stop = 2 if self.state["step"] == 4 else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "advance", stopping)
        with pytest.raises(Stopped):
            saccade.train(made, run=tmp_path / "run")
    assert saccade.load(tmp_path / "run").step == 4


def test_metrics_keep_odd_characters(tmp_path):

    (tmp_path / "run").mkdir()
    for step in (1, 2):
        metrics = MetricsLog(tmp_path / "run", step - 1)
        metrics.write(step, samples=[("a\u2028b\x85", "c")], loss=float("nan"))
        metrics.close()
    told = (tmp_path / "run" / "metrics.jsonl").read_text().split("\n")
    assert [json.loads(each)["step"] for each in told if each] == [1, 2]
    assert "NaN" not in "".join(told)


def test_what_was_trained_can_be_looked_into_at_every_snapshot(tmp_path):
    run = saccade.train(translate(tmp_path, train={"steps": 30, "every": 15}), run=tmp_path / "run")
    seen = run.look("abc")
    assert seen.output == run.predict("abc")[0].text
    assert seen.map(words=True).columns == ["abc", "<end>"]
    assert run.look("abc", target="gg").output == "gg"
    assert run.samples == [row[0] for row in checkpoint_rows(tmp_path / "run")[:3]]
    assert run.snapshots[0] == 1
    early, last = (seen.again(run.at(step).model) for step in (1, 30))
    assert not torch.equal(early.map().values, last.map().values)
    assert torch.equal(last.map().values, seen.map().values)
    (tmp_path / "run" / "snapshots" / "step-old.safetensors").write_bytes(b"")
    small = saccade.load(tmp_path / "run", quantise="int8").at(1)
    assert (small.quantised, small.step) == ("int8", 1)
    assert saccade.load(tmp_path / "run", dtype=torch.float64).at(2).model.embed.tokens.weight.dtype == torch.float64
    for wrong in (None, ["ab", "cd"]):
        with pytest.raises(SaccadeError, match="a text was expected, not "):
            run.look(wrong)
    with pytest.raises(SaccadeError, match="no snapshot of step 4000; there are"):
        run.at(4000)
    with pytest.raises(SaccadeError, match="this text is too long: 500 tokens"):
        run.look("x" * 500)
    with pytest.raises(SaccadeError, match="this text is empty"):
        run.look("")


def test_a_writer_and_a_classifier_can_be_looked_into(tmp_path):
    (tmp_path / "text.txt").write_text("the eye jumps\n" * 90)
    (tmp_path / "t.tsv").write_text("".join(f"{each}\t{'early' if each[0] < 'd' else 'late'}\n" for each in words(50)))
    data = {"tokenizer": "characters", "vocab": 60, "share": 0.2}
    writer = {
        "task": "write",
        "data": {**data, "files": [str(tmp_path / "text.txt")]},
        "model": {**MODEL, "decoder": 1},
        "train": {**TRAIN, "length": 13},
    }
    run = saccade.train(from_values(writer), run=tmp_path / "writer")
    seen = run.look("the e", max_tokens=4)
    assert (seen.begun, seen.output) == (5, run.predict("the e", max_tokens=4)[0].text)
    assert run.look("the e").output == ""
    named = {
        "task": "classify",
        "data": {**data, "files": [str(tmp_path / "t.tsv")]},
        "model": {**MODEL, "encoder": 1},
        "train": TRAIN,
    }
    run = saccade.train(from_values(named), run=tmp_path / "named")
    assert run.look("abc").output == run.predict(["abc"])[0].text
    assert run.look("abc").sides["text"].words == ["<begin>", "abc"]


@pytest.mark.parametrize("average", ["ema(0.5)", "last(2)"])
def test_what_is_validated_is_what_will_be_used(tmp_path, average):
    run = saccade.train(translate(tmp_path, train={"average": average, "rate": 0.05}), run=tmp_path / "run")
    told = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    last = [each["validation"]["loss"] for each in told if "validation" in each][-1]
    assert evaluate(run, "val")["metrics"]["loss"] == pytest.approx(last, rel=1e-5)


@pytest.mark.proof
def test_experts_learn_to_be_visited_evenly(tmp_path):
    """What is learned from holds the balance; what is told is the likelihood's loss alone."""
    model = {"encoder": 1, "decoder": 1, "experts": 4, "chosen": 1}
    told, uneven = {}, {}
    for weight in (0.0, 30.0):
        made = translate(tmp_path, model=model, train={"balance": weight, "steps": 40, "every": 40, "rate": 1e-2})
        run = saccade.train(made, run=tmp_path / f"run-{weight}")
        lines = (tmp_path / f"run-{weight}" / "metrics.jsonl").read_text().splitlines()
        told[weight] = [each["loss"] for each in map(json.loads, lines) if "loss" in each]
        tokens = torch.arange(4, 11).repeat(4, 3)
        with torch.no_grad(), balance(run.model.eval()) as found:
            run.model(tokens, tokens)
        uneven[weight] = float(torch.stack(found).mean())
    assert told[0.0][0] == told[30.0][0], "the first loss is before anything was learned"
    assert uneven[30.0] < uneven[0.0]
    assert uneven[30.0] < 1.2
