// What is shown, kept in the fragment of the address: a reload, the back button or a link to a friend restores it.
// The key of the server is no part of it.

const DEFAULTS = {
  view: "look", run: "", text: "", tokens: "", temperature: "", seed: "",
  layer: "", head: "mean", token: "", column: "", words: "", hide: "", rows: "", step: "", sort: "layer", with: "",
  q: "", k: "", may: "", score: "", normaliser: "", beta: "", names: "", asks: "", axes: "",
};
const LIMIT = 20_000; // characters of one value that we believe; an address is not a file

/** The state: `values` to read, `set` to change, `listen` to hear what changed. */
export class State {
  constructor() {
    this.values = read(location.hash);
    this.listeners = [];
    addEventListener("popstate", () => this.#restore());
    addEventListener("hashchange", () => this.#restore());
  }

  /** Changes values; with `push`, the back button leads to the state before. */
  set(changes, { push = false } = {}) {
    const changed = Object.keys(changes).filter((key) => this.values[key] !== String(changes[key] ?? ""));
    if (!changed.length) return;
    for (const key of changed) this.values[key] = String(changes[key] ?? "");
    const address = write(this.values);
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    this.#tell(new Set(changed));
  }

  /** Calls back with the set of names that changed. */
  listen(listener) {
    this.listeners.push(listener);
  }

  #restore() {
    const before = this.values;
    this.values = read(location.hash);
    const changed = Object.keys(DEFAULTS).filter((key) => before[key] !== this.values[key]);
    if (changed.length) this.#tell(new Set(changed));
  }

  #tell(changed) {
    for (const listener of this.listeners) listener(changed);
  }
}

function read(hash) {
  const given = new URLSearchParams(hash.slice(1));
  const values = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key);
    if (value !== null && value.length <= LIMIT) values[key] = value;
  }
  return values;
}

function write(values) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== DEFAULTS[key]) given.set(key, value);
  return `${location.pathname}#${given}`;
}
