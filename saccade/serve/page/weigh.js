// The law of attention for small matrices: weights = normaliser(score(q, k), mask). It says what `saccade.weights`
// says: true = may look, a masked weight is exactly 0, and a row that may look at nothing is all zeros.

/** The weights (T,S) of queries (T,D) and keys (S,D); `may` (T,S) or null for everyone. */
export function weights(q, k, { may = null, score = "scaled_dot", normaliser = "softmax", beta = 1 } = {}) {
  return normalise(scores(q, k, score), { may, normaliser, beta });
}

/** The scores (T,S), before any mask. */
export function scores(q, k, score = "scaled_dot") {
  const rule = SCORES[score];
  if (!rule) throw new Error(`no score is called ${score}`);
  return q.map((query) => k.map((key) => rule(query, key)));
}

/** From scores to weights, row by row. */
export function normalise(rows, { may = null, normaliser = "softmax", beta = 1 } = {}) {
  const rule = NORMALISERS[normaliser];
  if (!rule) throw new Error(`no normaliser is called ${normaliser}`);
  return rows.map((row, i) => {
    const seen = row.map((_, j) => may === null || may[i][j]);
    const kept = row.filter((_, j) => seen[j]);
    const given = kept.length ? rule(kept, beta) : [];
    let at = 0;
    return seen.map((open) => (open ? given[at++] : 0));
  });
}

/** Who may look at whom, T queries and S keys: a mask's name and number. The last query stands at the last key. */
export function mask(name, T, S, n = 1) {
  const rule = MASKS[name];
  if (!rule) throw new Error(`no mask is called ${name}`);
  const start = Math.max(0, S - T);
  return Array.from({ length: T }, (_, i) => Array.from({ length: S }, (_, j) => rule(start + i, j, n)));
}

const dot = (q, k) => q.reduce((sum, value, d) => sum + value * k[d], 0);
const norm = (x) => Math.max(Math.sqrt(dot(x, x)), 1e-12);
const total = (row) => row.reduce((sum, value) => sum + value, 0);

const SCORES = {
  dot,
  scaled_dot: (q, k) => dot(q, k) / Math.sqrt(Math.max(q.length, 1)),
  cosine: (q, k) => dot(q, k) / (norm(q) * norm(k)),
};

const NORMALISERS = {
  softmax: (row, beta) => {
    const top = Math.max(...row.map((s) => s * beta));
    const powers = row.map((s) => Math.exp(s * beta - top));
    return powers.map((power) => power / total(powers));
  },
  sigmoid: (row) => row.map((s) => (s >= 0 ? 1 / (1 + Math.exp(-s)) : Math.exp(s) / (1 + Math.exp(s)))),
  hard: (row) => row.map((_, j) => (j === row.indexOf(Math.max(...row)) ? 1 : 0)),
  sparsemax: (row) => {
    const tau = threshold(row);
    return row.map((s) => Math.max(s - tau, 0));
  },
  sum: (row) => {
    const all = total(row);
    return row.map((s) => (all === 0 ? 0 : s / all));
  },
  none: (row) => [...row],
};

const MASKS = {
  everyone: () => true,
  causal: (i, j) => j <= i,
  window: (i, j, n) => Math.abs(i - j) < n,
  prefix: (i, j, n) => j < n,
};

// tau such that max(s - tau, 0) sums to one: the largest k scores whose mean beats the next one.
function threshold(row) {
  const ordered = [...row].sort((a, b) => b - a);
  let [sum, tau] = [0, ordered[0] - 1];
  ordered.forEach((s, i) => {
    sum += s;
    if (1 + (i + 1) * s > sum) tau = (sum - 1) / (i + 1);
  });
  return tau;
}

/** The names of the scores, normalisers and masks. */
export const NAMES = {
  scores: Object.keys(SCORES), normalisers: Object.keys(NORMALISERS), masks: Object.keys(MASKS),
};
