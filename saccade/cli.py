"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade import __version__
from saccade.error import SaccadeError, nearest

if TYPE_CHECKING:
    from saccade.look.look import Look
    from saccade.look.view import View
    from saccade.store.run import Run

app = typer.Typer(
    name="saccade",
    help="Train, run and look inside attention models: any X to any Y.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


BENCHES = ("attention", "model", "deep", "train", "decode", "serve", "ways", "words")
KINDS = ("recipes", "models", "masks", "scores", "normalisers", "positions", "kernels", "mixers")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    run: Annotated[str, typer.Option(help="Where the trained run is kept; one that is there is used.")] = "runs/dates",
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A value over the recipe's: train.steps=500")
    ] = None,
) -> None:
    """Show what attention does: the party, a sentence, and a translator of dates that is trained now (two minutes).

    On a terminal it ends by serving the translator with a page to look inside.
    """
    from rich.console import Console

    from saccade.demo import demo as show

    console = Console()
    show(console, run, options or [])
    if console.is_terminal and sys.stdin.isatty():
        from saccade.serve.serve import serve as open_door

        typer.echo("The same translator, to be looked into (Ctrl-C ends it):")
        open_door([run], port=0, say=typer.echo)


@app.command("list")
def list_(
    kind: Annotated[str | None, typer.Argument(help="One of: " + ", ".join(KINDS))] = None, as_json: Json = False
) -> None:
    """What there is, with the way it is written."""
    if kind is not None and kind not in KINDS:
        raise SaccadeError(f"there is no list of {kind!r}; {nearest(kind, KINDS)}")
    found = {each: _entries(each) for each in (KINDS if kind is None else (kind,))}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, entries in found.items():
        TABLES.get(name, _table)(name, entries)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="What to measure: " + ", ".join(BENCHES))],
    seconds: Annotated[float | None, typer.Option(min=0.0, help="How long each line is measured.")] = None,
    as_json: Json = False,
) -> None:
    """Side by side with the peers, in one run: medians of interleaved rounds; a ratio above 1 = saccade is better."""
    if name not in BENCHES:
        raise SaccadeError(f"no bench is called {name!r}; {nearest(name, BENCHES)}")
    rows = []
    from importlib import import_module

    measure = import_module(f"saccade.bench.{name}").rows
    for row in measure() if seconds is None else measure(seconds):
        rows.append(row)
        if not as_json:
            there = row["theirs"] is not None
            theirs, ratio = (f"{row['theirs']:.3f}", f"{row['ratio']:.2f}x") if there else ("-", "not installed")
            times = f"{row['ours']:>10.3f} {theirs:>10} {row['unit']:<3}"
            typer.echo(f"{row['case']:<62} {row['peer']:<22} {times} {ratio:>8}")
    if as_json:
        typer.echo(json.dumps({"rows": rows}))


@app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="A Hugging Face folder: config.json and safetensors.")],
    run: Annotated[str, typer.Argument(help="The run folder to make.")],
) -> None:
    """Make a run of a Hugging Face folder."""
    from saccade.store.run import load

    made = load(source)
    made.save(run)
    count = sum(each.numel() for each in made.model.parameters())
    typer.echo(f"{run}: {made.family}, {count:,} parameters")


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    folder: Annotated[str, typer.Argument(help="The folder to make.")],
    to: Annotated[str | None, typer.Option("--format", help="hf: a folder that transformers opens.")] = None,
    family: Annotated[str | None, typer.Option(help="The kind to write, where the run does not tell.")] = None,
    quantise: Annotated[
        str | None, typer.Option(help="int8: a run folder of smaller weights instead; tells what is lost.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run for others to open, or a smaller one of int8 weights."""
    from saccade.store.run import export as write
    from saccade.store.run import load, quantised

    if to is not None and to != "hf":
        raise SaccadeError(f"there is no format {to!r}; {nearest(to, ['hf'])}")
    if quantise is None:
        write(load(run), folder, family)
        typer.echo(json.dumps({"folder": folder, "format": "hf"}) if as_json else folder)
        return
    if to is not None or family is not None:
        raise SaccadeError("quantised weights are written as a run folder alone: leave out --format and --family")
    before = load(run)
    after = quantised(before, quantise)
    after.save(folder)
    found = {"folder": folder, "quantised": quantise, **_loss(before, after)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    less = " -> ".join(f"{found['bytes'][each] / 1e6:,.2f} MB" for each in ("before", "after"))
    typer.echo(f"{folder}: {quantise}, {less}, measured on {found['measured_on']}")
    for name, value in found["metrics"].items():
        numbers = [value] if isinstance(value, float) else value.values()
        typer.echo(f"  {name:<22} {' -> '.join(f'{each:.4f}' for each in numbers)}")


@app.command()
def size(
    model: Annotated[str, typer.Argument(help="A model of the zoo: see `saccade list models`.")],
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of one sequence.")] = None,
    as_json: Json = False,
) -> None:
    """Layers, width, heads, parameters, memory and FLOPs of a model, counted on the model itself."""
    from saccade.zoo.size import size as measure

    found = {"model": model, **measure(model, length=length)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for key, value in found.items():
        shown = value
        if key.startswith("bytes"):
            shown = f"{value / 1e9:,.2f} GB"
        elif isinstance(value, int):
            shown = f"{value:,}" if value < 1e12 else f"{value:.3e}"
        typer.echo(f"{key.replace('_', ' '):<18} {shown}")


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe, a TOML file, or a run folder to go on with.")],
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A value over the recipe's: train.steps=500")
    ] = None,
    files: Annotated[
        list[str] | None, typer.Option("--files", help="Own files: two of parallel text, or one. Takes several.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="The run folder; runs/NAME by default. One that is there goes on.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(help="Further files after --files A.", show_default=False)] = None,
) -> None:
    """Train a recipe. The same command again goes on where it stopped, exactly as if it had not."""

    from rich.console import Console

    from saccade.learn.loop import Stopped
    from saccade.learn.train import train as learn

    given = [*(files or []), *(more or [])]
    if more and not files:
        raise SaccadeError(f"train takes one recipe; {more[0]!r} is one word too many (files come after --files)")
    own = [f"data.files={json.dumps(given)}"] if given else []
    folder = run or _folder(recipe, given)
    try:
        done = learn(recipe, run=folder, options=[*(options or []), *own], console=Console())
    except Stopped as stopped:
        number, step = stopped.args
        typer.echo(f"stopped at step {step}, saved: the same command goes on from there", err=True)
        raise typer.Exit(128 + int(number)) from None
    typer.echo(f"done: step {done.step}; saccade evaluate {folder} tells how good it is")


@app.command()
def evaluate(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    file: Annotated[str | None, typer.Option(help="A file of inputs of your own, one a line.")] = None,
    against: Annotated[str | None, typer.Option(help="The references to that file.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="beam=5, max_tokens=80")] = None,
    as_json: Json = False,
) -> None:
    """How good a run is: the loss and the task's metrics over a whole split, or over a pair of files."""
    from saccade.learn.validate import evaluate as measure
    from saccade.store.run import load

    made = load(run)
    decode = made.decode(**_options(options))
    found = {"run": run, **measure(made, split, file=file, against=against, decode=decode)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"{run}, step {found['step']}, {found['split']}, {found['examples']:,} examples")
    for name, value in found["metrics"].items():
        low, high = found.get("interval", {}).get(name, (None, None))
        typer.echo(f"  {name:<22} {value:.4f}{'' if low is None else f'   (95 %: {low:.2f} to {high:.2f})'}")


@app.command()
def predict(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Inputs; without any, and without --file, stdin.")] = None,
    file: Annotated[str | None, typer.Option(help="A file of inputs, one a line.")] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="beam=5, temperature=0.8, max_tokens=80, ...")
    ] = None,
    piecewise: Annotated[bool, typer.Option("--stream", help="Print each result while it is written.")] = False,
    as_json: Json = False,
) -> None:
    """The results for texts, one a line, in their order."""
    from pathlib import Path

    from saccade.data.source import decoded, lines
    from saccade.store.run import load

    if texts and file is not None:
        raise SaccadeError("give texts or --file, not both")
    if file is not None:
        texts = [*lines(file)]
    elif not texts:
        texts = [line for _, line in decoded(sys.stdin.buffer, Path("stdin"))]
    made = load(run)
    if piecewise:
        if as_json:
            raise SaccadeError("--stream prints pieces of text, --json whole results: give one of the two")
        for text in texts:
            for piece in made.stream(text, **_options(options)):
                typer.echo(piece, nl=False)
            typer.echo()
        return
    results = made.task.predict(made.model, texts, made.decode(**_options(options)), made.limit)
    for text, result in zip(texts, results, strict=True):
        if as_json:
            found = {"input": text, "text": result.text, "score": result.score}
            typer.echo(json.dumps(found | ({"note": result.note} if result.note else {}), ensure_ascii=False))
            continue
        typer.echo(result.text)
        if result.note:
            typer.echo(f"{text[:40]!r}: {result.note}", err=True)


@app.command()
def look(
    what: Annotated[str, typer.Argument(help="A run, or a mask or position: 'causal & window(4)', 'sinusoid'.")],
    text: Annotated[str | None, typer.Argument(metavar="INPUT", help="What a run reads.")] = None,
    out: Annotated[str | None, typer.Option(help="A .svg, .png, .html, .csv or .npz; else it is drawn here.")] = None,
    layer: Annotated[
        str | None, typer.Option(help="A layer, alignment, rollout:encoder, rollout:decoder, or atlas: all heads.")
    ] = None,
    head: Annotated[str, typer.Option(help="A number, mean or max.")] = "mean",
    words: Annotated[bool, typer.Option("--words", help="Words instead of tokens.")] = False,
    hide: Annotated[str, typer.Option(help="special, sink, or both with a comma.")] = "",
    target: Annotated[str | None, typer.Option(help="What was written, if not what the run writes.")] = None,
    max_tokens: Annotated[int, typer.Option(min=0, help="How many tokens a language model adds.")] = 0,
    step: Annotated[int | None, typer.Option(help="A snapshot of the run.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Cells a side, at most.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of a mask or position.")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Numbers of a position on the input.")] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Print what kind of head each head is.")] = False,
    ablate: Annotated[bool, typer.Option("--ablate", help="Print what changes when each head is silenced.")] = False,
    as_json: Json = False,
) -> None:
    """What a run looks at while it reads a text; or what a mask or a position looks like."""
    from pathlib import Path

    from saccade.look.picture import KINDS, file_for

    if out is not None:
        file_for(out, KINDS)  # before anything lasts
    if not Path(what).is_dir():
        asked = {"INPUT": text, "--layer": layer, "--target": target, "--step": step}
        asked |= {"--statistics": statistics or None, "--ablate": ablate or None, "--words": words or None}
        _look_at_scheme(what, length, width, out, as_json, [name for name, each in asked.items() if each is not None])
        return
    if text is None:
        raise SaccadeError(f"what shall {what} read? Give an INPUT after it")
    if length is not None or width is not None:
        raise SaccadeError("--length and --width are for masks and positions: a run's text has a length of its own")
    from saccade.look.view import View
    from saccade.store.run import load

    view, made = View(layer, head, words, hide, size), load(what)
    with _waiting("reading"):
        seen = (made if step is None else made.at(step)).look(text, target, max_tokens=max_tokens)
    _show_look(seen, view, out, statistics, ablate, as_json)


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(help="Runs, the one to compare with first; Hugging Face folders too.")],
    out: Annotated[str | None, typer.Option(help="A .html, .csv, .json, .svg or .png to write.")] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many texts or windows alone.")] = None,
    buckets: Annotated[str | None, typer.Option(help="Lengths at which a bucket begins: 10,20,30,40")] = None,
    metric: Annotated[str | None, typer.Option(help="The metric to tell by bucket.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="beam=5, max_tokens=80")] = None,
    as_json: Json = False,
) -> None:
    """Runs side by side on the same test data: how good, for which lengths, at what cost, and what is but chance."""
    from rich.console import Console

    from saccade.learn.bucket import edges_of
    from saccade.learn.compare import compare as measure
    from saccade.learn.comparison import KINDS as FILES
    from saccade.look.picture import file_for

    if out is not None:
        file_for(out, FILES)  # before anything lasts
    edges, aside = None if buckets is None else edges_of(buckets), Console(stderr=True)
    with aside.status("opening the runs") if aside.is_terminal else nullcontext() as status:
        say = (lambda text: None) if status is None else status.update
        found = measure(runs, split, limit=limit, buckets=edges, metric=metric, say=say, **_options(options))
    written = None if out is None else str(found.save(out))
    if as_json:
        typer.echo(json.dumps(found.described() | ({} if written is None else {"out": written}), ensure_ascii=False))
        return
    Console().print(found.table())
    if written is not None:
        typer.echo(written)


@app.command()
def serve(
    runs: Annotated[list[str], typer.Argument(help="Runs or Hugging Face folders: FOLDER, or NAME=FOLDER.")],
    host: Annotated[str, typer.Option(help="The address to listen at; another than this machine's needs a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8017,
    api_key: Annotated[str | None, typer.Option(help="The key that clients must show.")] = None,
    api_key_file: Annotated[str | None, typer.Option(help="A file that holds it; else SACCADE_API_KEY.")] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let in everybody who can reach the address.")] = False,
) -> None:
    """Serve runs over HTTP: OpenAI's routes, /v1/inspect, and a page to look inside."""
    from saccade.serve.serve import serve as open_door

    open_door(runs, host=host, port=port, key=api_key, key_file=api_key_file, auth=not no_auth, say=typer.echo)


@app.command("words")
def words_(
    sources: Annotated[list[str], typer.Argument(help="Texts to train on, a text a line; or a folder to ask.")],
    out: Annotated[str | None, typer.Option(help="The folder to make of what is trained.")] = None,
    kind: Annotated[str | None, typer.Option(help="skipgram, cbow or glove.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="width=100, window=5, epochs=5")] = None,
    near: Annotated[str | None, typer.Option("--nearest", help="A word, for the words most similar to it.")] = None,
    analogy: Annotated[
        tuple[str, str, str] | None, typer.Option(help="man king woman: what is to woman as king is to man?")
    ] = None,
    judged: Annotated[bool, typer.Option("--evaluate", help="Beside people's judgement, and on analogies.")] = False,
    count: Annotated[int, typer.Option("-n", min=1, help="How many words to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Vectors of words: train them on texts, or ask a folder of trained ones."""
    from pathlib import Path

    asked = [name for name, each in (("--nearest", near), ("--analogy", analogy), ("--evaluate", judged)) if each]
    if len(sources) > 1 or not Path(sources[0]).is_dir():
        if asked:
            raise SaccadeError(f"{asked[0]} asks a folder of trained vectors, and {sources[0]!r} is none")
        _train_words(sources, out, {**_options(options), **({} if kind is None else {"kind": kind})}, as_json)
        return
    if out is not None or kind is not None or options:
        raise SaccadeError("--out, --kind and -o are for training: give files of text, not a folder")
    if len(asked) != 1:
        raise SaccadeError("ask one thing of the folder: --nearest WORD, --analogy A B C, or --evaluate")
    from saccade.words.judge import judge
    from saccade.words.vectors import load

    vectors = load(sources[0])
    if judged:
        with _waiting("judging"):
            found = judge(vectors)
        _show_judgement(found, as_json)
        return
    best = vectors.nearest(near, count) if near else vectors.analogy(*(analogy or ("", "", "")), n=count)
    if as_json:
        typer.echo(json.dumps([{"word": word, "similarity": score} for word, score in best], ensure_ascii=False))
        return
    for word, score in best:
        typer.echo(f"{score:7.4f}  {word}")


def _train_words(sources: list[str], out: str | None, settings: dict[str, Any], as_json: bool) -> None:
    """Word vectors of files, with a moving line where somebody sees it."""
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress

    from saccade.disk import vacant
    from saccade.words import train
    from saccade.words.reading import lines

    if out is None:
        raise SaccadeError("where shall the vectors go? Give --out FOLDER")
    vacant(Path(out))  # before anything lasts
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as moving:
        bar = moving.add_task("training", total=1.0)
        made = train(lines(sources), progress=lambda share: moving.update(bar, completed=share), **settings)
    made.save(out)
    found = {"folder": out, "vocab": len(made), "width": made.width, "words": made.about["words"]}
    shown = f"{out}: {len(made):,} words, width {made.width}, of a text of {found['words']:,} words"
    typer.echo(json.dumps(found) if as_json else shown)


def _show_judgement(found: dict[str, Any], as_json: bool) -> None:
    """Rho of each similarity set, and the analogies."""
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, each in found["similarity"].items():
        typer.echo(f"{name:<12} rho {each['rho']:.4f}   {each['known']} of {each['pairs']} pairs known")
    each = found["analogy"]
    typer.echo(f"{'analogies':<12} {each['accuracy']:8.2%}   {each['known']:,} of {each['asked']:,} known")


def _show_look(seen: Look, view: View, out: str | None, statistics: bool, ablate: bool, as_json: bool) -> None:
    """The file first: who asked for it in vain is told before anything is printed."""
    from rich.console import Console
    from rich.progress import track

    from saccade.look.report import described, drawn, table

    console = Console()
    written = None if out is None else view.write(seen, out)
    aside = Console(stderr=True)
    layers = track(seen.layers, "silencing heads", console=aside, transient=True, disable=not aside.is_terminal)
    ablations = {each.name: seen.ablation(each.name) for each in layers} if ablate else None
    if as_json:
        found = described(seen, ablations) | ({} if written is None else {"out": str(written)})
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    if statistics or ablate:
        console.print(table(seen, ablations))
        if ablate:
            typer.echo(f"silenced: what is added to {seen.matters}")
    elif written is None:
        console.print(drawn(view.map(seen), console.width), soft_wrap=True)
    if written is not None:
        typer.echo(written)


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """A sign of life beside the output, where somebody sees it."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


def _look_at_scheme(
    what: str, length: int | None, width: int | None, out: str | None, as_json: bool, vain: list[str]
) -> None:
    """A mask or a position, drawn from its spec."""
    from rich.console import Console

    from saccade.look.picture import save
    from saccade.look.report import drawn, roomy
    from saccade.look.scheme import scheme_of

    console = Console()
    here = {"most": roomy(console.width)} if out is None and not as_json else {}
    made = scheme_of(what, length, width, **here)
    if vain:
        raise SaccadeError(f"{vain[0]} needs a run, and {what!r} is no folder")
    if out is not None:
        save(out, made)
    if as_json:
        typer.echo(json.dumps({"title": made.title, "shape": [*made.values.shape], "values": made.values.tolist()}))
    elif out is None:
        console.print(drawn(made, console.width), soft_wrap=True)
    else:
        typer.echo(out)


def _loss(before: Run, after: Run) -> dict[str, Any]:
    """What smaller weights save, and what they cost: by the run's own data or, where there are none, by its answers."""
    from saccade.decode.quantise import drift
    from saccade.learn.validate import evaluate as measure
    from saccade.store.run import weights_of

    both = {"before": before, "after": after}
    sizes = {key: sum(each.nbytes for each in weights_of(run.model).values()) for key, run in both.items()}
    try:
        if before.recipe is None:
            raise SaccadeError("no recipe names any")
        found = {key: measure(run) for key, run in both.items()}
    except SaccadeError as problem:
        own = "random tokens" if before.model.decoder is None else "tokens that the model wrote itself"
        moved = {} if before.model.head is None else drift(before.model, after.model)
        return {"bytes": sizes, "measured_on": f"{own}, not on data ({problem})", "metrics": moved}
    where = f"{found['before']['split']}, {found['before']['examples']:,} examples"
    names = found["before"]["metrics"]
    metrics = {name: {key: each["metrics"][name] for key, each in found.items()} for name in names}
    return {"bytes": sizes, "measured_on": where, "metrics": metrics}


def _options(given: list[str] | None) -> dict[str, Any]:
    """`beam=5` as Python's values."""
    from saccade.recipe import option_of

    return dict(map(option_of, given or []))


def _folder(recipe: str, files: list[str]) -> str:
    """Where a run goes unless told: runs/NAME, with the name of own files; a run stays where it is."""
    from pathlib import Path

    if Path(recipe).is_dir():
        return recipe
    names = [Path(recipe).stem, *(Path(each).name.split(".")[0] for each in files[:1])]
    return str(Path("runs", "-".join(names)))


def _table(name: str, entries: list[dict[str, Any]]) -> None:
    """What there is of one kind, with the way it is written and what it means."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
    for entry in entries:
        table.add_row(Text(entry["written"]), Text(entry["meaning"]))
    Console().print(table)


def _recipes(name: str, entries: list[dict[str, Any]]) -> None:
    """The recipes with what their headers say."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for name in ("recipe", "minutes", "score", "command"):
        table.add_column(name, no_wrap=name in ("recipe", "command"))
    for entry in entries:
        table.add_row(*(entry.get(each, "") for each in ("name", "minutes", "score", "command")))
    Console().print(table)


def _models(name: str, entries: list[dict[str, Any]]) -> None:
    """The lecture's table with our own counts beside its own."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for name in ("model", "layers", "width", "heads", "parameters", "lecture", "data", "training"):
        table.add_column(name, no_wrap=name != "training", justify="left" if name in ("model", "training") else "right")
    for entry in entries:
        table.add_row(
            *(
                f"{entry[key]:,}" if key != "name" else entry[key]
                for key in ("name", "layers", "width", "heads", "parameters")
            ),
            *(entry[key] for key in ("lecture", "data", "training")),
        )
    Console().print(table)


def _zoo() -> list[dict[str, Any]]:
    from saccade.zoo.names import LECTURE, ZOO
    from saccade.zoo.size import size as measure

    entries = []
    for name in ZOO:
        found, row = measure(name), LECTURE.get(name)
        counts = {key: found[key] for key in ("layers", "width", "heads", "parameters")}
        said = {"lecture": row.parameters, "data": row.data, "training": row.training} if row else {}
        entries.append({"name": name, **counts, **({"lecture": "", "data": "", "training": ""} | said)})
    return entries


def _entries(kind: str) -> list[dict[str, Any]]:
    """The names of a table with how each is written and the first line of what it says of itself."""
    if kind == "models":
        return _zoo()
    if kind == "recipes":
        from saccade.recipe import header, names

        return [{"name": name, **header(name)} for name in names()]
    import inspect

    from saccade.attend import kernel, mask, normaliser, position, score
    from saccade.model.mixer import MIXERS

    tables: dict[str, dict[str, Any]] = {
        "masks": mask.MASKS | {"causal": type(mask.causal), "everyone": type(mask.everyone)},
        "scores": score.SCORES,
        "normalisers": normaliser.NORMALISERS,
        "positions": position.POSITIONS,
        "kernels": kernel.KERNELS,
        "mixers": MIXERS,
    }
    filled = {  # by the layer
        "scores": ("width", "heads"),
        "positions": ("head_width", "heads", "input_width"),
        "mixers": ("width", "causal", "number"),
    }
    entries = []
    for name, entry in tables[kind].items():
        parameters = [] if kind == "kernels" else list(inspect.signature(entry).parameters.values())
        own = [each for each in parameters if each.name not in filled.get(kind, ())]
        shown = ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in own)
        first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ")
        entries.append({"name": name, "written": f"{name}({shown})" if shown else name, "meaning": first})
    return entries


TABLES = {"recipes": _recipes, "models": _models}


def main() -> None:
    """The entry point: what the caller can mend is told in one sentence, with exit code 2."""
    try:
        app()
    except SaccadeError as problem:
        sys.stderr.write(f"saccade: {problem}\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
