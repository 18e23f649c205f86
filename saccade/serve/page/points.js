// A set of points as an input: rows of numbers, typed as JSON.

import { text } from "./text.js";

/** The kind of input that is a set of points; what a kind is, inputs.js says. */
export const points = {
  ...text,
  typed: false,
  hint: "Type points above, as [[0.5, 1], [2, 0.25]]",
  offer: (value) => `a set of ${count(value)} points`,
  python: (given) => given,
};

// How many points JSON holds; "some", where it is none.
function count(value) {
  try {
    const held = JSON.parse(value);
    return (held.points ?? held).length;
  } catch {
    return "some";
  }
}
