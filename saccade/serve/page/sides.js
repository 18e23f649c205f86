// The sides of a look, each drawn by the kind of its units.
//
// To add a kind, write a file that exports a function as words.js does, and name it in KINDS. It is given the side (its
// tokens, words and text, and whatever else the server tells of this kind: a picture, its grid), a button for each
// token, which hears of choosing, and {name, title}. It gives
//   root             an element of class `tokens` with `data-side` and a label, which holds the buttons
//   shade(weights)   where it has one: the weights of the chosen row over these tokens; null: none is chosen

import { patches } from "./patches.js";
import { words } from "./words.js";

const KINDS = { words, patches };

/** A side as its kind is drawn; one that the page does not know is told by the names of its tokens. */
export function drawSide(side, buttons, about) {
  return (KINDS[side.kind] ?? words)(side, buttons, about);
}
