// An inspection as the page knows it: its sides and layers, and its maps, fetched one at a time and kept.

import { json, request } from "./api.js";

const KEPT = 64; // maps of one inspection
const DECODED = ["target", "written"]; // the sides of a decoder that reads something else
const SIZE = 1024; // cells a side of the large map; where there are more tokens, a cell covers several

/** Looks into an answer or an input. */
export async function inspect(body, signal) {
  return made((signal) => describe(body, signal), signal);
}

/** What /v1/inspect answered, with the maps behind it. `again` repeats the request, should the server forget it. */
export class Look {
  constructor(said, again) {
    this.again = again;
    const { id, model, step, output, sides, layers, begun = 0, matters = null, likely = [], pairs = null } = said;
    Object.assign(this, { id, model, step, output, sides, layers, begun, matters, likely, pairs });
    this.maps = new Map();
    this.ablations = new Map();
  }

  /** Whether it reads one thing and writes another. */
  get pair() {
    return Boolean(this.sides.written);
  }

  /** Whether tokens are tinted by how probable they were. */
  get tinted() {
    return Object.values(this.sides).some(({ tokens }) => tokens.some(({ logprob }) => logprob != null));
  }

  /** Whether a picture was read. */
  get pictured() {
    return Object.values(this.sides).some(({ picture }) => picture);
  }

  /** The names of the sides that were read. */
  get read() {
    return Object.keys(this.sides).filter((name) => !DECODED.includes(name));
  }

  /** The same; of a picture that layers cut in several ways, only as this layer does. */
  readBy({ rows, columns }) {
    const near = (name) => name === columns || name === rows;
    const alike = (one, other) => {
      const [here, there] = [this.sides[one], this.sides[other]];
      return here.picture && here.picture === there.picture && here.kind === there.kind;
    };
    return this.read.filter((name, i, all) => {
      const same = all.filter((other) => other === name || alike(other, name));
      return (same.find(near) ?? same[0]) === name;
    });
  }

  /** The layer of this name: one of the model's, or one of those computed over several. */
  layer(name) {
    return [...this.layers, ...this.overall()].find((layer) => layer.name === name) ?? null;
  }

  /** The maps over several layers: the alignment, the way of attention down through a stack, what is said of pairs. */
  overall() {
    const cross = this.layers.findLast((layer) => layer.kind === "cross");
    const made = cross ? [{ ...cross, name: "alignment", title: "alignment" }] : [];
    for (const stack of ["context", "encoder", "decoder"]) {
      const own = this.layers.filter((layer) => layer.stack === stack && layer.kind === "self");
      const even = own.length && own.every((layer) => layer.rows === own[0].rows); // else there is no way through
      if (even) made.push({ ...own[0], name: `rollout:${stack}`, title: `${stack} rollout`, borders: null });
    }
    const told = { name: "pairs", title: "pairs, as told", rows: this.pairs, columns: this.pairs, borders: null };
    if (this.pairs) made.push({ ...this.layers.at(-1), ...told });
    return made.map((layer) => ({ ...layer, heads: [] }));
  }

  /** What to show first: the alignment where there is one, else the last layer. */
  get first() {
    return this.layers.some((layer) => layer.kind === "cross") ? "alignment" : this.layers.at(-1).name;
  }

  /** One map. options: head, words, hide, size, type. */
  async map(layer, { head = "mean", words = false, hide = "", size = SIZE, type = "float16" } = {}, signal) {
    const query = new URLSearchParams({ layer, head, size, type });
    if (words) query.set("words", "true");
    if (hide) query.set("hide", hide);
    const key = String(query);
    if (!this.maps.has(key)) this.#keep(key, this.#fetch(query, layer, words, signal));
    return this.maps.get(key);
  }

  /** A picture or the numbers of a map. */
  async picture(layer, { head, words, hide }, format) {
    const query = new URLSearchParams({ layer, head, format });
    if (words) query.set("words", "true");
    if (hide) query.set("hide", hide);
    return this.#ask((path) => request(`${path}/picture?${query}`));
  }

  /** How one weight comes about. */
  async pairOf(layer, head, row, column, signal) {
    const query = new URLSearchParams({ layer, head, row, column });
    return this.#ask((path) => json(`${path}/pair?${query}`, { signal }));
  }

  /** The text before a place with another token there. */
  async instead(place, token) {
    const query = new URLSearchParams({ place, token });
    return (await this.#ask((path) => json(`${path}/instead?${query}`))).text;
  }

  /** By how much what matters changes when each head of a layer is silenced. */
  async ablation(layer, signal) {
    if (!this.ablations.has(layer)) {
      const query = new URLSearchParams({ layer });
      this.ablations.set(layer, await this.#ask((path) => json(`${path}/ablation?${query}`, { signal })));
    }
    return this.ablations.get(layer);
  }

  /** The same tokens through a snapshot (`step`) or another run (`model`). */
  async through(body, signal) {
    return made((signal) => this.#ask((_, id) => describe({ ...body, like: id }, signal)), signal);
  }

  /** Lets the server free what it holds of this look. */
  forget() {
    request(address(this.id), { method: "DELETE" }).catch(() => {});
  }

  // Asks by address and id. Where the server has forgotten the look (404), it is made again, once for all who wait.
  async #ask(question) {
    const { id } = this;
    try {
      return await question(address(id), id);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
    }
    if (this.id === id) await (this.renewed ??= this.#renew());
    return question(address(this.id), this.id);
  }

  async #renew() {
    try {
      this.id = (await this.again()).id;
    } finally {
      this.renewed = null;
    }
  }

  async #fetch(query, name, words, signal) {
    const response = await this.#ask((path) => request(`${path}/map?${query}`, { signal }));
    const layer = this.layer(name);
    return decode(response, await response.arrayBuffer(), this.sides[layer.rows], this.sides[layer.columns], words);
  }

  #keep(key, map) {
    this.maps.set(key, map);
    map.catch(() => this.maps.delete(key));
    if (this.maps.size > KEPT) this.maps.delete(this.maps.keys().next().value);
  }
}

/** A map from bytes and headers: values, names and places of rows and columns, the largest value. */
export function decode(response, buffer, rowSide, columnSide, words) {
  const [rows, columns] = response.headers.get("X-Shape").split(",").map(Number);
  const half = buffer.byteLength === 2 * rows * columns;
  const values = half ? halves(buffer) : scaled(buffer, Number(response.headers.get("X-Scale")));
  const [rowPlaces, columnPlaces] = ["X-Rows", "X-Columns"].map((name) => JSON.parse(response.headers.get(name)));
  const name = (side) => (place) => (words ? side.words[place] : side.tokens[place]?.text) ?? "";
  return {
    rows, columns, values, words, rowPlaces, columnPlaces,
    rowNames: rowPlaces.map(name(rowSide)), columnNames: columnPlaces.map(name(columnSide)), ...extent(values, columns),
  };
}

/** The difference of two maps of one shape, or null. */
export function difference(one, other) {
  if (one.rows !== other.rows || one.columns !== other.columns) return null;
  const values = other.values.map((value, i) => value - one.values[i]);
  return { ...other, values, ...extent(values, other.columns), signed: true };
}

/** The same map, coloured row by row: each by its own largest weight. Its values stay. */
export function brightened(map) {
  const shades = new Float32Array(map.values.length);
  for (let begin = 0; begin < map.values.length; begin += map.columns) {
    const row = map.values.subarray(begin, begin + map.columns);
    const { most } = extent(row, map.columns);
    shades.set(row.map((value) => (most ? value / most : 0)), begin);
  }
  return { ...map, shades, top: 1 };
}

/** The column of the largest weight of a row. */
export function largest(map, row) {
  let best = 0;
  for (let j = 1; j < map.columns; j++) {
    if (map.values[row * map.columns + j] > map.values[row * map.columns + best]) best = j;
  }
  return best;
}

/** The cell along one side that stands for a token, or -1 where it is hidden. */
export function cellOf(places, side, token, words) {
  const wanted = words ? side.tokens[token]?.word : token;
  const exact = places.indexOf(wanted);
  // Where cells cover several tokens each, their places lie apart; a lone gap is something hidden.
  const coarse = places.at(-1) - places[0] >= 1.5 * (places.length - 1);
  return exact >= 0 || !coarse ? exact : places.findLastIndex((place) => place <= wanted);
}

/** The weights of a row over all tokens of the side that is looked at. */
export function weightsOf(map, row, side) {
  const cells = side.tokens.map((_, token) => cellOf(map.columnPlaces, side, token, map.words));
  return cells.map((cell) => (cell < 0 ? 0 : map.values[row * map.columns + cell]));
}

/** What to show of a map while nobody is chosen, {told, weights} over all columns: the view of the first row without a
 *  place among others that have one (a class token), or else the mean of all rows. */
export function overview(map, rows, columns) {
  const placed = map.rowPlaces.map((place) => Boolean(rows.tokens[place]?.place));
  const first = placed.includes(true) ? placed.indexOf(false) : -1;
  const chosen = first < 0 ? map.rowPlaces.map((_, row) => row) : [first];
  const weights = columns.tokens.map(() => 0);
  map.columnPlaces.forEach((place, j) => {
    weights[place] = chosen.reduce((sum, row) => sum + map.values[row * map.columns + j], 0) / chosen.length;
  });
  return { told: first < 0 ? "what all look at, in the mean" : `what ‘${map.rowNames[first]}’ looks at`, weights };
}

/** The first token that a cell stands for. */
export function tokenOf(places, side, cell, words) {
  const place = places[cell];
  return words ? side.tokens.findIndex((token) => token.word === place) : place;
}

function address(id) {
  return `/v1/inspect/${encodeURIComponent(id)}`;
}

function describe(body, signal) {
  return json("/v1/inspect", { method: "POST", body, signal });
}

async function made(make, signal) {
  return new Look(await make(signal), make);
}

// The value furthest from 0 (`most`), and the one that takes the last colour (`top`). Rows that see half as many keys as
// the widest, or fewer, do not count there: under a causal mask the first gives all to one, and the others would be pale.
function extent(values, columns) {
  let [low, rows] = [0, []];
  for (let begin = 0; begin < values.length; begin += columns) {
    let [count, furthest] = [0, 0];
    for (const value of values.subarray(begin, begin + columns)) {
      if (value) count++;
      furthest = Math.max(furthest, Math.abs(value));
      low = Math.min(low, value);
    }
    rows.push([count, furthest]);
  }
  const widest = rows.reduce((most, [count]) => Math.max(most, count), 0);
  const largest = (some) => some.reduce((most, [, furthest]) => Math.max(most, furthest), 0);
  return { top: largest(rows.filter(([count]) => 2 * count > widest)), most: largest(rows), signed: low < 0 };
}

function scaled(buffer, scale) {
  return Float32Array.from(new Uint8Array(buffer), (byte) => (byte * scale) / 255);
}

function halves(buffer) {
  const view = new DataView(buffer);
  return Float32Array.from({ length: buffer.byteLength / 2 }, (_, i) => half(view.getUint16(2 * i, true)));
}

function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}
