// A side of queries: what each found, over the input that it looked at. Those that are less sure than the slider says are
// hidden; one that is pointed at shows where it looked.

import { elements } from "./elements.js";

/** Queries where they found something; what a kind of side is, sides.js says. */
export const queries = {
  side(side, buttons, { name, title }) {
    const given = side.tokens.map(({ text, place }, i) => ({
      label: text.slice(0, text.lastIndexOf(" ")),
      score: side.scores[i],
      place: ends(place, side.over),
    }));
    const ground = { address: side.picture, seconds: side.seconds, places: side.places ?? [], alt: side.text };
    const about = { kind: side.over, title: `what was found (${title})`, threshold: side.least };
    const drawn = elements(given, { ...about, ...ground, made: buttons });
    drawn.group.classList.add("tokens", "queries");
    drawn.group.dataset.side = name;
    return { root: drawn.group, below: drawn.slider };
  },
};

// Left, top, width and height as where it begins along each axis, then where it ends.
function ends([left, top, width, height], over) {
  return over === "frames" ? [left, left + width] : [left, top, left + width, top + height];
}
