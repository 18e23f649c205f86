// The sides of a look, each drawn by the kind of its units.
//
// To add a kind, write a file that exports an object as words.js does, and name it in KINDS.
//   side(side, buttons, {name, title})   draws a side (its tokens, words and text, and whatever else the server sends
//     for this kind: a picture, its grid) with a button for each token, which hears of choosing. It gives
//       root              an element of class `tokens` with `data-side` and a label, which holds the buttons
//       below             where it has one: an element that belongs below it, such as a slider
//       across()          where it has one: how many tokens the keys up and down go over
//       shade(weights, about)   where it has one: weights over these tokens, and what they are: {told, borders}, and who looks where that is one of these (looker)
//   small(canvas, map, {rows, columns, borders})   where it has one: paints a map small over the side that is looked at
//   cells                 the cells a side that a small map needs at most

import { graph } from "./graph.js";
import { patches } from "./patches.js";
import { queries } from "./queries.js";
import { tracks } from "./tracks.js";
import { words } from "./words.js";

const KINDS = { words, patches, frames: patches, graph, points: graph, queries, tracks };

/** A side as its kind is drawn; one of a kind that the page does not know is shown as words. */
export function drawSide(side, buttons, about) {
  return kindOf(side).side(side, buttons, about);
}

/** How maps that look at a side are drawn small: {small, cells}; `small` may be missing. */
export function smallOf(side) {
  return kindOf(side);
}

function kindOf({ kind }) {
  return KINDS[kind] ?? words;
}
