// The page put together: the runs, the question, its answer, and what is looked at afterwards.

import { Answer } from "./answer.js";
import { isAbort, onKey } from "./api.js";
import { ask } from "./ask.js";
import { tint } from "./colour.js";
import { find } from "./element.js";
import { Inputs, valueOf } from "./inputs.js";
import { askKey } from "./key.js";
import { inspect } from "./look.js";
import { Looking } from "./looking.js";
import { Play } from "./play.js";
import { alike, describe, listRuns, offerRuns, offerSamples } from "./runs.js";
import { State } from "./state.js";
import { bind } from "./theme.js";

const SHOWN = ["layer", "head", "words", "hide", "rows", "step", "sort", "with"];
const ASKED = ["run", "text", "tokens", "temperature", "seed"];
const SCENE = ["q", "k", "may", "score", "normaliser", "beta", "names", "asks", "axes"];

const NONE = "This server has no run to ask: start it with `saccade serve RUN`. Play works without one.";
const FRESH = { layer: "", head: "mean", token: "", column: "", step: "", with: "" };

class App {
  constructor() {
    this.state = new State();
    this.runs = [];
    this.listed = null; // settles when the runs are known
    this.control = null; // of the question that is being answered
    this.inputs = new Inputs(find("inputs"));
    this.answer = new Answer({
      onchoose: (token) => this.state.set({ token, column: "" }),
      onpoint: (token) => this.looking.point(token),
      ongo: (place, id) => this.#goOnFrom(place, id),
    });
    this.looking = new Looking(this.state, this.answer, (problem) => this.#showProblem(problem));
    this.play = new Play(this.state);
    this.state.listen((changed) => this.#change(changed));
    this.#bind();
    this.#view();
  }

  /** Fetches the runs and answers what the address asks. */
  async begin() {
    this.listed = this.#list();
    await this.listed;
    if (this.run && this.state.values.text) await this.#ask();
  }

  async #list() {
    try {
      this.runs = await listRuns();
    } catch (problem) {
      return this.#showProblem(problem);
    }
    offerRuns(this.runs, this.run?.name ?? "");
    return this.run ? this.#introduce() : this.#showProblem(new Error(NONE));
  }

  /** The run that is chosen, or the first. */
  get run() {
    return this.runs.find((run) => run.name === this.state.values.run) ?? this.runs[0];
  }

  #bind() {
    onKey(askKey);
    bind(find("theme"));
    this.#legend();
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.state.set({ view: button.dataset.view }, { push: true }));
    }
    find("run").addEventListener("change", () => this.#switch(find("run").value));
    find("ask-form").addEventListener("submit", (event) => this.#submit(event));
    find("stop").addEventListener("click", () => this.control?.abort());
    find("inputs").addEventListener("keydown", (event) => this.#key(event));
    find("problem-close").addEventListener("click", () => (find("problem").hidden = true));
  }

  #key(event) {
    const line = this.run?.asks.line !== false && !event.shiftKey; // one line is enough, so that Enter ends it
    const wanted = event.key === "Enter" && (event.ctrlKey || event.metaKey || line);
    if (!wanted || event.isComposing || !event.target.matches(".typed")) return;
    event.preventDefault();
    find("ask-form").requestSubmit();
  }

  // Somebody may be faster than the list of runs.
  async #submit(event) {
    event.preventDefault();
    await this.listed;
    const given = this.inputs.given();
    if (!given) return this.inputs.focus();
    if (!this.run) return this.#showProblem(new Error(NONE));
    return this.#askAnew(given);
  }

  // A new question is a new entry of the history, also where its words are the same: its seed is new.
  #askAnew(text) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { options } = this.run.asks;
    const chosen = ([option, id]) => (options.includes(option) ? find(id).value : "");
    const [tokens, temperature] = [["max_tokens", "tokens"], ["temperature", "temperature"]].map(chosen);
    const { layer, head } = this.state.values;
    this.state.set({ ...FRESH, layer, head, run: this.run.name, text, tokens, temperature, seed }, { push: true });
  }

  // A run of the same kind is asked the same at once.
  #switch(name) {
    this.control?.abort();
    const like = alike(this.runs.find((run) => run.name === name), this.run);
    this.state.set({ ...FRESH, run: name, text: like ? this.state.values.text : "" }, { push: true });
  }

  #change(changed) {
    const any = (keys) => keys.some((key) => changed.has(key));
    if (changed.has("view")) this.#view();
    if (any(SCENE)) this.play.restore();
    if (changed.has("run") && this.runs.length) this.#introduce();
    if (any(ASKED)) return this.#ask();
    if (any(SHOWN) && !this.looking.stepping) return this.looking.refresh();
    if (changed.has("token") || changed.has("column")) this.looking.follow();
    return undefined;
  }

  #introduce() {
    find("run").value = this.run.name;
    document.title = `${this.run.name} · saccade`;
    describe(this.run);
    this.inputs.offer(this.run.asks.inputs);
    offerSamples(this.run, (given) => this.#askAnew(given));
  }

  // Asks what the state says, streams the answer and looks into it.
  async #ask() {
    const { text, tokens, temperature, seed } = this.state.values;
    const { run } = this;
    this.control?.abort();
    this.looking.clear();
    find("problem").hidden = true;
    const value = text && run ? valueOf(run.asks.inputs, text) : null;
    if (text) this.inputs.show(text); // an input that is gone, such as a picture, says so in its field
    if (value === null) return this.#empty();
    for (const [id, chosen] of Object.entries({ tokens, temperature })) find(id).value = chosen;
    const control = (this.control = new AbortController());
    this.#busy(true);
    this.answer.begin(run.asks.continues ? text : "");
    try {
      const options = { max_tokens: number(tokens), temperature: number(temperature), seed: number(seed) };
      const said = await ask(run, value, options, (pieces) => this.answer.add(pieces), control.signal);
      this.answer.end(said.text, said.score, said.note);
      await this.#inspect(said, run, text, control);
    } catch (problem) {
      if (control === this.control) this.#broken(problem);
    } finally {
      if (control === this.control) this.#busy(false);
    }
    return undefined;
  }

  async #inspect(said, run, text, control) {
    find("doing").textContent = "Looking inside …";
    const look = await inspect({ completion: said.id }, control.signal);
    if (control !== this.control) return look.forget();
    find("legend").hidden = !look.tinted;
    return this.looking.begin(look, run, this.runs, text);
  }

  #broken(problem) {
    this.answer.halt(isAbort(problem) ? "Stopped." : ""); // a problem has a banner of its own
    this.#showProblem(problem);
  }

  #empty() {
    this.#busy(false);
    this.answer.clear();
    find("legend").hidden = true;
  }

  // Another token at one place of a text that a decoder wrote: it goes on from there.
  async #goOnFrom(place, id) {
    try {
      this.#askAnew(await this.looking.look.instead(place, id));
    } catch (problem) {
      this.#showProblem(problem);
    }
  }

  #busy(busy) {
    find("stop").hidden = !busy;
    find("ask").disabled = busy;
    find("ask-hint").hidden = busy;
    find("doing").textContent = busy ? "Writing …" : "";
  }

  #showProblem(problem) {
    if (isAbort(problem)) return;
    find("problem-text").textContent = problem.message;
    find("problem").hidden = false;
  }

  #view() {
    const view = this.state.values.view === "play" ? "play" : "look";
    for (const name of ["look", "play"]) find(`${name}-view`).hidden = name !== view;
    find("run-field").hidden = find("run-about").hidden = view === "play";
    if (view === "play") this.play.show();
    for (const button of document.querySelectorAll("nav [data-view]")) {
      if (button.dataset.view === view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
  }

  #legend() {
    const stops = [1, 0.9, 0.7, 0.4, 0.1, 0].map((share) => tint(share));
    find("legend-strip").style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
  }
}

function number(text) {
  return text === "" || !Number.isFinite(Number(text)) ? undefined : Number(text);
}

new App().begin();
