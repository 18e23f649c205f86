// The part of the page that looks: one inspection (through one snapshot of the run or another), the map that is shown
// large, and everything that follows the chosen token.

import { isAbort } from "./api.js";
import { Atlas, brief } from "./atlas.js";
import { diverging, sequential, strip } from "./colour.js";
import { Compare } from "./compare.js";
import { fill, find, make } from "./element.js";
import { copy, download, snippet } from "./export.js";
import { Lapse } from "./lapse.js";
import { showLines } from "./lines.js";
import { brightened, cellOf, largest, overview, tokenOf, weightsOf } from "./look.js";
import { Matrix } from "./matrix.js";
import { hintPair, showPair } from "./pair.js";
import { onTheme, theme } from "./theme.js";
import { visible } from "./token.js";

const WAIT = 90; // milliseconds of rest before a pair is asked for, while somebody walks through the map
const HIDDEN = ["special", "sink"];
const HINTS = {
  none: "Choose a cell of the map: here stands how its weight comes about.",
  layers: "This map is made of several layers. Choose one layer and head to see one weight.",
  words: "Words are several tokens at once. Switch “words” off to see one weight.",
  heads: "A weight belongs to one head. Choose one:",
};

// Whether some word of a look has several tokens, so that it is another map by words.
function wordy(look) {
  return Object.values(look.sides).some((side) => new Set(side.tokens.map((token) => token.word)).size < side.tokens.length);
}

/** The looking part. It reads the state, and changes it where the user chooses. */
export class Looking {
  constructor(state, answer, onproblem) {
    Object.assign(this, { state, answer, onproblem });
    this.base = this.look = this.map = null;
    this.looks = new Map(); // by step
    this.turn = 0;
    const onchoose = (row, column) => this.#choose(row, column);
    this.matrix = new Matrix(find("map"), {
      label: "Attention map", height: 520, onchoose, onhover: (cell) => this.#read(cell),
    });
    this.atlas = new Atlas({
      onproblem,
      onchoose: (layer, head) => state.set({ layer, head }, { push: true }),
      onsort: (sort) => state.set({ sort }),
    });
    this.lapse = new Lapse({ onstep: (step, playing) => this.#step(step, playing) });
    this.compare = new Compare({ onchoose, onchange: (wish) => state.set({ with: wish }, { push: true }) });
    this.#bind();
    onTheme(() => this.map && this.#scale());
  }

  /** Begins with a new inspection of a run; given: its input, as the address keeps it. */
  async begin(base, run, runs, given) {
    this.clear();
    Object.assign(this, { base, run, given });
    this.looks.set("", base);
    this.lapse.offer(run.snapshots, run.step);
    this.compare.offer(runs, run, run.snapshots.filter((step) => step !== run.step));
    find("nothing").hidden = true;
    find("looking").hidden = false;
    await this.refresh();
  }

  /** Forgets what was looked at, here and on the server. */
  clear() {
    this.turn++;
    clearTimeout(this.soon);
    this.control?.abort();
    this.control = new AbortController();
    this.atlas.clear();
    this.lapse.halt();
    for (const look of this.looks.values()) look.forget();
    this.looks.clear();
    this.base = this.look = this.map = null;
    find("looking").hidden = true;
    find("nothing").hidden = false;
  }

  /** Shows what the state says: its step, layer, head and options. */
  async refresh() {
    if (!this.base) return;
    const turn = ++this.turn;
    const { step } = this.state.values;
    try {
      const look = await this.#through(step);
      if (turn !== this.turn) return;
      const layer = look.layer(this.state.values.layer) ?? look.layer(look.first);
      const options = this.#options(layer);
      const map = await look.map(layer.name, options, this.control.signal);
      if (turn === this.turn) this.#show(look, layer, options, map);
    } catch (problem) {
      if (turn === this.turn && !isAbort(problem)) this.#back(problem);
    }
  }

  /** Follows the chosen token: cross-hair, lines, reading and the one weight. */
  follow() {
    if (!this.map) return;
    const [row, column] = this.#cells();
    this.matrix.aim(row, column);
    this.#read(null);
    find("reading-live").textContent = find("reading").textContent;
    // Once a frame is enough, however fast somebody walks.
    this.frame ??= requestAnimationFrame(() => this.#trail());
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.#pair(row, column), WAIT);
  }

  /** A token is pointed at: where it looked is laid over the side that is looked at; "" goes back to the chosen one. */
  point(token) {
    if (!this.map) return;
    const [row] = this.#cells(token || this.state.values.token);
    this.answer.shade(this.layer.columns, () => this.#view(row));
  }

  #trail() {
    this.frame = null;
    if (!this.map) return;
    const [row, column] = this.#cells();
    this.compare.aim(row, column);
    this.answer.choose(this.state.values.token);
    this.answer.shade(this.layer.columns, () => this.#view(row));
    showLines(find("lines"), this.map, row, (chosen) => this.#choose(chosen, largest(this.map, chosen)));
  }

  // What is laid over the side that is looked at: the chosen row's weights, or those that tell most while none is.
  #view(row) {
    const { rows, columns, borders } = this.layer;
    const { sides } = this.look;
    if (row === null) return { borders, ...overview(this.map, sides[rows], sides[columns]) };
    const name = this.map.rowNames[row]; // of a word often with the space before it
    const told = `what ‘${name.trim() || visible(name)}’ looks at`;
    const looker = rows === columns ? tokenOf(this.map.rowPlaces, sides[rows], row, this.map.words) : null;
    return { borders, told, looker, weights: weightsOf(this.map, row, sides[columns]) };
  }

  #options(layer) {
    const { head, words, hide } = this.state.values;
    const known = head === "max" || (/^\d+$/.test(head) && Number(head) < layer.heads.length);
    return { head: known && layer.heads.length ? head : "mean", words: words === "1", hide };
  }

  // The inspection through a snapshot, made when it is first asked for.
  async #through(step) {
    const known = step === "" || this.run.snapshots.includes(Number(step)) ? step : "";
    if (!this.looks.has(known)) {
      const base = this.base;
      const look = await base.through({ model: this.run.name, step: Number(known) }, this.control.signal);
      if (base !== this.base) return look;
      this.looks.set(known, look);
    }
    return this.looks.get(known);
  }

  // Shows the problem and goes back to what is on the page, so that controls and address match it again.
  #back(problem) {
    this.onproblem(problem);
    if (!this.look) return;
    this.lapse.halt();
    this.state.set(this.seen);
    this.#controls();
  }

  #show(look, layer, options, map) {
    const { layer: named, head, words, hide, step } = this.state.values;
    Object.assign(this, { look, layer, options, map, seen: { layer: named, head, words, hide, step } });
    this.#controls();
    this.matrix.label = `${brief(layer)}, head ${options.head}`;
    this.matrix.show(this.state.values.rows ? brightened(map) : map);
    this.#scale();
    this.answer.show(look, layer);
    if (!this.lapse.playing) this.#rest();
    this.atlas.choose(layer.name, options.head);
    find("python").textContent = snippet(this.run, look, this.given, layer.name, options);
    find("copied").textContent = "";
    this.follow();
  }

  // What waits until a time-lapse has ended: it would flicker, and ask the server for much.
  async #rest() {
    const { look, layer, options, run, given } = this;
    const { sort, with: wish } = this.state.values;
    this.atlas.show(look, { words: options.words, hide: options.hide }, sort);
    await this.compare.show(look, wish, run, given, layer.name, options);
    this.compare.aim(...this.#cells());
  }

  #controls() {
    const overall = this.look.overall().map((layer) => [layer.name, layer.title, "Over layers"]);
    const single = this.look.layers.map((layer) => [layer.name, brief(layer), "Layers"]);
    fill(find("layer"), [...overall, ...single], this.layer.name);
    const heads = this.layer.heads.map((_, head) => [String(head), String(head)]);
    const means = this.layer.heads.length ? [["mean", "mean"], ["max", "max"]] : [["mean", "all"]];
    fill(find("head"), [...means, ...heads], this.options.head);
    find("head").disabled = !heads.length;
    find("words").checked = this.options.words;
    find("words").parentElement.hidden = !this.options.words && !wordy(this.look);
    find("rows").checked = this.state.values.rows === "1";
    for (const name of HIDDEN) find(`hide-${name}`).checked = this.options.hide.split(",").includes(name);
    const [rows, columns] = [this.layer.rows, this.layer.columns].map((name) => this.look.sides[name]);
    document.querySelector('[data-format="gif"]').hidden = !columns.picture || Boolean(rows.picture); // word by word
    this.lapse.show(this.state.values.step);
  }

  #scale() {
    strip(find("scale"), this.map.signed ? diverging(theme()) : sequential(theme()));
    const { top, most, signed } = this.map;
    const [above, below] = most > top ? ["≥ ", "≤ "] : ["", ""];
    find("scale-top").textContent = this.state.values.rows ? "each row’s largest" : above + top.toFixed(2);
    find("scale").previousElementSibling.textContent = signed ? below + (-top).toFixed(2) : "0";
  }

  // The cells of the chosen token and of what it is paired with: [row, column], null where there is none.
  #cells(token = this.state.values.token) {
    if (!this.map) return [null, null];
    const { column } = this.state.values;
    const [side, index] = [token.split(":")[0], Number(token.split(":")[1])];
    const { rows, columns } = this.layer;
    const cell = (places, name, at) => {
      const found = cellOf(places, this.look.sides[name], at, this.map.words);
      return found < 0 ? null : found;
    };
    if (token && same(side, rows)) {
      const row = cell(this.map.rowPlaces, rows, index);
      const paired = column === "" ? null : cell(this.map.columnPlaces, columns, Number(column));
      return [row, paired ?? (row === null ? null : largest(this.map, row))];
    }
    return [null, token && same(side, columns) ? cell(this.map.columnPlaces, columns, index) : null];
  }

  #choose(row, column) {
    const { sides } = this.look;
    const { rowPlaces, columnPlaces, words } = this.map;
    const side = this.layer.rows === "target" ? "written" : this.layer.rows;
    const token = tokenOf(rowPlaces, sides[this.layer.rows], row, words);
    const other = tokenOf(columnPlaces, sides[this.layer.columns], column, words);
    this.state.set({ token: `${side}:${token}`, column: other });
  }

  // The cell under the pointer, or else under the cross-hair, in words.
  #read(cell) {
    if (!this.map) return;
    const [row, column] = cell ? [cell.row, cell.column] : this.#cells();
    find("reading").textContent = row === null || column === null
      ? "Choose a cell or a token." : spoken(this.map, row, column);
  }

  async #pair(row, column) {
    const { look, layer, options, map } = this;
    if (row === null || column === null) return hintPair(HINTS.none);
    if (!layer.heads.length) return hintPair(HINTS.layers);
    if (map.words) return hintPair(HINTS.words);
    if (!/^\d+$/.test(options.head)) return hintPair(HINTS.heads, ...this.#heads());
    try {
      const [r, c] = [tokenOf(map.rowPlaces, null, row, false), tokenOf(map.columnPlaces, null, column, false)];
      const pair = await look.pairOf(layer.name, options.head, r, c, this.control.signal);
      const still = this.look === look && this.layer === layer && this.options.head === options.head;
      const cells = this.#cells();
      if (still && cells[0] === row && cells[1] === column) showPair(pair, map.rowNames[row], map.columnNames[column]);
    } catch (problem) {
      if (!isAbort(problem)) hintPair(problem.message);
    }
    return undefined;
  }

  #heads() {
    const choose = (head) => this.state.set({ layer: this.layer.name, head }, { push: true });
    return this.layer.heads.map((_, head) =>
      make("button", { type: "button", text: `head ${head}`, onclick: () => choose(head) }));
  }

  async #step(step, playing) {
    if (this.state.values.step === step && !playing) return this.refresh();
    this.stepping = true; // the state's listener leaves the showing to us, since the player waits for it
    this.state.set({ step });
    this.stepping = false;
    return this.refresh();
  }

  #bind() {
    const { state } = this;
    const change = (id, act) => find(id).addEventListener("change", act);
    change("layer", () => state.set({ layer: find("layer").value }, { push: true }));
    change("head", () => state.set({ layer: this.layer.name, head: find("head").value }, { push: true }));
    change("rows", () => state.set({ rows: find("rows").checked ? "1" : "" }));
    change("words", () => state.set({ words: find("words").checked ? "1" : "" }, { push: true }));
    const hidden = () => HIDDEN.filter((name) => find(`hide-${name}`).checked).join(",");
    for (const name of HIDDEN) change(`hide-${name}`, () => state.set({ hide: hidden() }, { push: true }));
    find("zoom-in").addEventListener("click", () => this.matrix.zoom(1.6));
    find("zoom-out").addEventListener("click", () => this.matrix.zoom(1 / 1.6));
    find("zoom-fit").addEventListener("click", () => this.matrix.fit());
    for (const button of document.querySelectorAll("[data-format]")) {
      button.addEventListener("click", () => this.#take(button.dataset.format));
    }
    find("copy-python").addEventListener("click", () => this.#copy(find("python").textContent));
    find("copy-link").addEventListener("click", () => this.#copy(location.href));
  }

  async #take(format) {
    try {
      await download(this.look, this.layer.name, this.options, format);
    } catch (problem) {
      this.onproblem(problem);
    }
  }

  async #copy(text) {
    const forbidden = "The browser forbids copying here: mark and copy it yourself.";
    find("copied").textContent = (await copy(text)) ? "Copied." : forbidden;
  }
}

// What each place of the decoder read and what it wrote are two names for one row.
function same(one, other) {
  const place = (side) => (side === "target" ? "written" : side);
  return place(one) === place(other);
}

function spoken(map, row, column) {
  const weight = map.values[row * map.columns + column].toFixed(3);
  return `row ‘${visible(map.rowNames[row])}’, column ‘${visible(map.columnNames[column])}’, weight ${weight}`;
}
