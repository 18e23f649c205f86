// Two inspections side by side, under the same layer and head, and what differs between them.

import { isAbort } from "./api.js";
import { fill, find } from "./element.js";
import { typed, valueOf } from "./inputs.js";
import { difference, inspect } from "./look.js";
import { Matrix } from "./matrix.js";
import { short, visible } from "./token.js";

const KINDS = { text: "compare-text", run: "compare-run", step: "compare-step" };

/** The panel of comparing. `onchange("kind:value")` hears of what to compare with; "" for nothing. */
export class Compare {
  constructor({ onchange, onchoose }) {
    this.made = { key: "", look: null };
    this.turn = 0;
    const options = { height: 320, onchoose };
    this.one = new Matrix(find("compare-one"), { ...options, label: "The first map" });
    this.other = new Matrix(find("compare-other"), { ...options, label: "The second map" });
    this.between = new Matrix(find("compare-between"), { ...options, label: "The second map minus the first" });
    find("compare-kind").addEventListener("change", () => this.#field());
    find("compare-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const kind = find("compare-kind").value;
      onchange(`${kind}:${find(KINDS[kind]).value}`);
    });
    find("compare-close").addEventListener("click", () => onchange(""));
    this.#field();
  }

  /** What there is to compare with: the other runs and the snapshots of this one. */
  offer(runs, run, snapshots) {
    const others = runs.filter((each) => each.name !== run.name);
    fill(find("compare-run"), others.map((each) => [each.name, each.name]), others[0]?.name ?? "");
    fill(find("compare-step"), snapshots.map((step) => [step, `step ${step}`]), snapshots[0] ?? "");
    find("compare-kind").querySelector("[value=run]").disabled = !others.length;
    find("compare-kind").querySelector("[value=step]").disabled = !snapshots.length;
    find("compare-kind").querySelector("[value=text]").disabled = !typed(run.asks.inputs);
    const first = find("compare-kind").querySelector("option:enabled");
    if (find("compare-kind").selectedOptions[0]?.disabled) find("compare-kind").value = first?.value ?? "text";
    find("compare-form").hidden = !first;
    this.#field();
  }

  /** Shows a look's map beside that of what `wish` ("kind:value") names; nothing for an empty wish. */
  async show(look, wish, run, given, layer, options) {
    const turn = ++this.turn;
    if (!KINDS[parts(wish)[0]]) wish = "";
    find("compare-close").hidden = find("compare-told").hidden = find("compare-maps").hidden = !wish;
    if (!wish) return this.#forget();
    this.#restore(wish);
    find("compare-told").textContent = "Looking …";
    try {
      const other = await this.#other(look, wish, run, given);
      const maps = await this.#maps(look, other, layer, options);
      if (turn === this.turn) this.#draw(look, other, maps, wish);
    } catch (problem) {
      if (turn !== this.turn || isAbort(problem)) return undefined;
      find("compare-maps").hidden = true;
      find("compare-told").textContent = problem.message;
    }
    return undefined;
  }

  /** Puts all three cross-hairs on a token's row and column of the first map. */
  aim(row, column) {
    if (find("compare-maps").hidden || !this.one.map) return;
    this.one.aim(row, column);
    for (const matrix of [this.other, this.between]) {
      const { map } = matrix;
      const inside = map && (row ?? 0) < map.rows && (column ?? 0) < map.columns;
      if (inside) matrix.aim(row, column);
    }
    this.#read(row, column);
  }

  async #other(look, wish, run, given) {
    const key = `${look.id} ${wish}`;
    if (this.made.key === key) return this.made.look;
    this.#forget();
    const made = await other(look, wish, run, given);
    this.made = { key, look: made };
    return made;
  }

  async #maps(look, other, layer, options) {
    if (!other.layer(layer)) throw new Error(`The other one has no layer called ${layer}.`);
    // A map over several layers has no heads, so that none can be missing.
    const heads = other.layer(layer).heads.length || Infinity;
    const missing = /^\d+$/.test(options.head) && Number(options.head) >= heads;
    if (missing) throw new Error(`The other one has no head ${options.head} there.`);
    return Promise.all([look.map(layer, options), other.map(layer, options)]);
  }

  #draw(look, other, [one, two], wish) {
    const top = Math.max(one.top, two.top); // one scale for both, so that colours mean the same
    this.one.show({ ...one, top });
    this.other.show({ ...two, top });
    const between = difference(one, two);
    find("compare-between-figure").hidden = !between;
    if (between) this.between.show(between);
    const [kind, value] = parts(wish);
    find("compare-one-name").textContent = `A: ${look.model}, step ${look.step}`;
    const what = kind === "text" ? `“${value}”` : `${other.model}, step ${other.step}`;
    find("compare-other-name").textContent = `B: ${what}`;
    const shapes = [one, two].map(({ rows, columns }) => `${rows} × ${columns}`).join(" and ");
    this.summary = between
      ? `Orange: B looks there more than A; blue: less. The largest difference is ${between.most.toFixed(2)}.`
      : `The maps have different shapes (${shapes}), so there is no difference to draw.`;
    find("compare-told").textContent = this.summary;
  }

  #read(row, column) {
    const [one, two] = [this.one.map, this.other.map];
    const inside = row !== null && column !== null && row < two.rows && column < two.columns;
    if (!inside) return;
    const [a, b] = [one, two].map((map) => map.values[row * map.columns + column]);
    const names = `‘${visible(one.rowNames[row])}’ → ‘${visible(one.columnNames[column])}’`;
    const cell = `${names}: A ${a.toFixed(3)}, B ${b.toFixed(3)}, B − A ${short(b - a)}.`;
    find("compare-told").textContent = `${cell} ${this.summary}`;
  }

  #forget() {
    this.made.look?.forget();
    this.made = { key: "", look: null };
  }

  #restore(wish) {
    const [kind, value] = parts(wish);
    find("compare-kind").value = kind;
    find(KINDS[kind]).value = value;
    this.#field();
  }

  #field() {
    const chosen = find("compare-kind").value;
    for (const [kind, id] of Object.entries(KINDS)) find(id).closest("label").hidden = kind !== chosen;
  }
}

function parts(wish) {
  const at = wish.indexOf(":");
  return [wish.slice(0, at), wish.slice(at + 1)];
}

// The same tokens where that is possible; a run with another vocabulary reads the same input.
async function other(look, wish, run, given) {
  const [kind, value] = parts(wish);
  if (kind === "step") return look.through({ model: run.name, step: Number(value) });
  if (kind === "text") return inspect({ model: run.name, input: value });
  try {
    return await look.through({ model: value });
  } catch (problem) {
    if (problem.status !== 400 && problem.status !== 409) throw problem;
    return inspect({ model: value, input: valueOf(run.asks.inputs, given) });
  }
}
