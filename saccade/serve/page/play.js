// The page for teaching: a small attention whose queries, keys and mask are edited by hand while its weights follow.

import { diverging, pick, place, sequential } from "./colour.js";
import { find, make } from "./element.js";
import { showLines } from "./lines.js";
import { bounded, MOST, PRESETS, read, resized, WIDTHS, write } from "./scene.js";
import { onTheme, theme } from "./theme.js";
import { short } from "./token.js";
import { mask, normalise, scores } from "./weigh.js";

const PIXELS = 8; // of a drag that make one step of 0.1
const FORMULAS = {
  dot: "s = q · k", scaled_dot: "s = q · k / √D", cosine: "s = q · k / (|q| |k|)",
  softmax: "w = exp(β s) / Σ exp(β s)", sigmoid: "w = 1 / (1 + exp(−s))", hard: "w = 1 at the largest s, else 0",
  sparsemax: "w = max(s − τ, 0), Σ w = 1", sum: "w = s / Σ s", none: "w = s",
};

/** The play page: shows the state's scene and writes every change back into the state. */
export class Play {
  constructor(state) {
    this.state = state;
    this.scene = read(state.values);
    this.#bind();
    onTheme(() => this.#follow());
    this.#build();
  }

  /** Draws what depends on the room there is, once the page is seen. */
  show() {
    this.#follow();
  }

  /** Shows the scene that the state holds, after a step back or a link. */
  restore() {
    const scene = read(this.state.values);
    if (JSON.stringify(write(scene)) === JSON.stringify(write(this.scene))) return;
    this.scene = scene;
    this.#build();
  }

  #bind() {
    const change = (id, act) => find(id).addEventListener("change", (event) => act(event.target.value));
    for (const name of ["score", "normaliser"]) change(`play-${name}`, (value) => this.#set({ [name]: value }));
    find("play-beta").addEventListener("input", (event) => this.#set({ beta: Number(event.target.value) }));
    const size = () => this.#resize(...["play-queries", "play-keys", "play-width"].map((id) => Number(find(id).value)));
    for (const id of ["play-queries", "play-keys", "play-width"]) change(id, size);
    change("play-mask", (value) => value && this.#shape(value));
    // A mask that was set by hand has no n.
    change("play-reach", () => find("play-mask").value && this.#shape(find("play-mask").value));
    for (const button of document.querySelectorAll("[data-preset]")) {
      button.addEventListener("click", () => this.#take(PRESETS[button.dataset.preset]()));
    }
  }

  #take(scene) {
    this.scene = scene;
    this.#build();
    this.#keep(true);
  }

  #resize(T, S, D) {
    this.#take(resized(this.scene, bounded(T, 1, MOST), bounded(S, 1, MOST), bounded(D, WIDTHS[0], WIDTHS.at(-1))));
  }

  #shape(name) {
    const { q, k } = this.scene;
    find("play-mask").value = name;
    this.scene.may = mask(name, q.length, k.length, Number(find("play-reach").value) || 1);
    this.#follow();
    this.#keep();
  }

  #set(changes) {
    Object.assign(this.scene, changes);
    this.#follow();
    this.#keep();
  }

  #keep(push = false) {
    this.state.set(write(this.scene), { push });
  }

  // The tables, anew: their size or all of their numbers changed.
  #build() {
    const { q, k, axes, asks, names } = this.scene;
    find("play-queries").value = q.length;
    find("play-keys").value = k.length;
    find("play-width").value = axes.length;
    find("play-mask").value = "";
    find("play-q").replaceChildren(...this.#numbers("query", q, asks));
    find("play-k").replaceChildren(...this.#numbers("key", k, names));
    this.cells = {
      scores: this.#grid("play-scores", (i, j) => make("td")),
      may: this.#grid("play-may", (i, j) => make("td", {}, this.#switch(i, j))),
      weights: this.#grid("play-weights", (i, j) => make("td"), true),
    };
    this.#follow();
  }

  #numbers(what, table, names) {
    const head = make("tr", {}, make("td"), ...this.scene.axes.map((axis) => make("th", { scope: "col", text: axis })));
    const rows = table.map((row, i) =>
      make("tr", {}, make("th", { scope: "row", text: names[i], dir: "auto" }),
        ...row.map((_, d) => make("td", {}, this.#number(table, i, d, `${what} ${names[i]}, ${this.scene.axes[d]}`)))));
    return [make("thead", {}, head), make("tbody", {}, ...rows)];
  }

  #number(table, i, d, label) {
    const input = make("input", { type: "number", step: "0.1", value: table[i][d], "aria-label": label });
    input.addEventListener("input", () => {
      table[i][d] = bounded(Number(input.value));
      this.#set({});
    });
    scrub(input);
    return input;
  }

  #switch(i, j) {
    const { asks, names } = this.scene;
    const label = `${asks[i]} may look at ${names[j]}`;
    return make("button", { type: "button", class: "may", "aria-label": label, onclick: () => {
      this.scene.may[i][j] = !this.scene.may[i][j];
      find("play-mask").value = "";
      this.#set({});
    } });
  }

  #grid(id, cell, sums = false) {
    const { asks, names } = this.scene;
    const heads = names.map((name) => make("th", { scope: "col", text: name, dir: "auto" }));
    if (sums) heads.push(make("th", { scope: "col", class: "sum", text: "Σ" }));
    const cells = asks.map((_, i) => names.map((_, j) => cell(i, j)));
    const rows = asks.map((name, i) => {
      const row = make("tr", {}, make("th", { scope: "row", text: name, dir: "auto" }), ...cells[i]);
      if (sums) row.append(make("td", { class: "sum" }));
      return row;
    });
    find(id).replaceChildren(make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...rows));
    return cells;
  }

  // Only colours and numbers: the scene has the same shape as before.
  #follow() {
    const { q, k, may, score, normaliser, beta } = this.scene;
    find("play-score").value = score;
    find("play-normaliser").value = normaliser;
    find("play-beta").value = beta;
    find("play-beta").disabled = normaliser !== "softmax";
    find("play-beta-shown").textContent = short(beta);
    find("play-formula").textContent = `${FORMULAS[score]},  ${FORMULAS[normaliser]}`;
    const scored = scores(q, k, score);
    paint(this.cells.scores, scored, true);
    const given = normalise(scored, { may, normaliser, beta });
    paint(this.cells.weights, given, given.flat().some((value) => value < 0), 1);
    this.#sum(given);
    this.#connect(given);
    this.cells.may.forEach((row, i) => row.forEach((cell, j) => {
      cell.firstChild.setAttribute("aria-pressed", may[i][j]);
    }));
  }

  #connect(given) {
    const { asks, names } = this.scene;
    const values = Float32Array.from(given.flat());
    const top = Math.max(...values.map(Math.abs));
    const shape = { rows: asks.length, columns: names.length, rowNames: asks, columnNames: names };
    showLines(find("play-lines"), { ...shape, values, top });
  }

  #sum(given) {
    const cells = find("play-weights").querySelectorAll("td.sum");
    given.forEach((row, i) => (cells[i].textContent = row.reduce((sum, value) => sum + value, 0).toFixed(2)));
    const blind = given.filter((row) => row.every((value) => value === 0)).length;
    find("play-note").textContent = blind
      ? `${blind} ${blind === 1 ? "query looks" : "queries look"} at nothing: the row is all zeros, not NaN.`
      : "Each row says how much one query looks at each key.";
  }
}

function paint(cells, values, signed, least = 0) {
  const scale = signed ? diverging(theme()) : sequential(theme());
  const top = Math.max(least, ...values.flat().map(Math.abs));
  cells.forEach((row, i) => row.forEach((cell, j) => {
    const { paper, ink } = pick(scale, place(values[i][j], top, signed));
    cell.style.backgroundColor = paper;
    cell.style.color = ink;
    cell.textContent = values[i][j].toFixed(2);
  }));
}

// A number is dragged sideways like a slider; a click still types.
function scrub(input) {
  let from = null;
  input.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") from = { x: event.clientX, value: Number(input.value), moved: false };
  });
  input.addEventListener("pointermove", (event) => {
    if (!from) return;
    const steps = Math.trunc((event.clientX - from.x) / PIXELS);
    if (!steps && !from.moved) return;
    if (!from.moved) input.setPointerCapture(event.pointerId);
    from.moved = true;
    input.value = bounded(Math.round((from.value + steps / 10) * 10) / 10);
    input.dispatchEvent(new Event("input"));
  });
  const end = () => (from = null);
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) input.addEventListener(name, end);
}
