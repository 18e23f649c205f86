// A small attention to play with: queries, keys, who may look, score and normaliser; its presets, and how the
// address holds it.

import { mask, NAMES } from "./weigh.js";

export const MOST = 6; // queries and keys
export const WIDTHS = [2, 3, 4];
const LARGEST = 99;

const PARTY = {
  asks: ["exam?", "fun?", "dinner?"],
  names: ["Musician", "Lawyer", "Shopkeeper", "Chef", "Scientist"],
  axes: ["fun", "exam", "food", "law"],
  q: [[0, 1.4, 0, 0.3], [1.4, 0, 0.4, 0], [0.2, 0, 1.4, 0]],
  k: [[3, 0.2, 0, 0], [0.1, 0.8, 0, 3], [0.4, 0.1, 1, 0.3], [1.6, 0, 3, 0], [0.3, 3, 0, 0.2]],
  score: "dot",
};
const WORDS = {
  asks: ["the", "cat", "that", "sleeps", "dreams"],
  names: ["the", "cat", "that", "sleeps", "dreams"],
  q: [[0.2, 0.1], [1.2, 0.4], [0.9, 1.1], [2.0, -0.3], [1.6, 0.8]],
  k: [[0.1, 0.2], [1.8, 0.1], [0.4, 0.9], [0.7, 1.5], [0.9, 1.2]],
  score: "scaled_dot",
};

/** The presets by name. */
export const PRESETS = {
  party: () => scene(PARTY),
  causal: () => scene(WORDS, mask("causal", 5, 5)),
  window: () => scene(WORDS, mask("window", 5, 5, 2)),
};

/** A scene from the values of an address, or the party where they make no scene. */
export function read(values) {
  const [q, k] = [matrix(values.q), matrix(values.k)];
  const fits = q && k && q[0].length === k[0].length && WIDTHS.includes(q[0].length);
  if (!fits) return PRESETS.party();
  const rows = values.may.split(";").map((row) => [...row].map((each) => each === "1"));
  const whole = rows.length === q.length && rows.every((row) => row.length === k.length);
  const may = whole ? rows : mask("everyone", q.length, k.length);
  return {
    q, k, may, asks: labels(values.asks, q.length, "q"), names: labels(values.names, k.length, "k"),
    axes: labels(values.axes, q[0].length, "x"), score: known(values.score, NAMES.scores, "dot"),
    normaliser: known(values.normaliser, NAMES.normalisers, "softmax"), beta: bounded(Number(values.beta || 1), 0, 20),
  };
}

/** A scene as values of an address. */
export function write(each) {
  const rows = (table) => table.map((row) => row.join(",")).join(";");
  return {
    q: rows(each.q), k: rows(each.k), may: each.may.map((row) => row.map(Number).join("")).join(";"),
    asks: each.asks.join(","), names: each.names.join(","), axes: each.axes.join(","),
    score: each.score, normaliser: each.normaliser, beta: each.beta,
  };
}

/** The same scene with another number of queries, keys or numbers in each. */
export function resized(each, T, S, D) {
  const grow = (table, count) =>
    Array.from({ length: count }, (_, i) => Array.from({ length: D }, (_, d) => table[i]?.[d] ?? 0));
  const name = (names, count, letter) => Array.from({ length: count }, (_, i) => names[i] ?? `${letter}${i + 1}`);
  return {
    ...each, q: grow(each.q, T), k: grow(each.k, S), axes: name(each.axes, D, "x"),
    asks: name(each.asks, T, "q"), names: name(each.names, S, "k"),
    may: Array.from({ length: T }, (_, i) => Array.from({ length: S }, (_, j) => each.may[i]?.[j] ?? true)),
  };
}

/** A number that a cell may hold. */
export function bounded(value, low = -LARGEST, high = LARGEST) {
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : 0;
}

function scene(preset, may = null) {
  const [T, S, D] = [preset.q.length, preset.k.length, preset.q[0].length];
  return {
    axes: axes(D), normaliser: "softmax", beta: 1, ...structuredClone(preset), may: may ?? mask("everyone", T, S),
  };
}

function matrix(text) {
  const rows = text.split(";").map((row) => row.split(",").map((cell) => (cell.trim() === "" ? NaN : Number(cell))));
  const whole = rows.every((row) => row.length === rows[0].length && row.every(Number.isFinite));
  return whole && rows.length <= MOST ? rows.map((row) => row.map((cell) => bounded(cell))) : null;
}

function labels(text, count, letter) {
  const given = text.split(",");
  return Array.from({ length: count }, (_, i) => given[i]?.slice(0, 24) || `${letter}${i + 1}`);
}

const axes = (D) => Array.from({ length: D }, (_, d) => `x${d + 1}`);
const known = (name, names, fallback) => (names.includes(name) ? name : fallback);
