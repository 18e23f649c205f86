// A side of words: its tokens in a line, one after another.

import { make } from "./element.js";

/** The tokens of a side in a line; what a kind of side is, sides.js says. */
export const words = {
  cells: 48,

  side(side, buttons, { name, title }) {
    const about = { role: "group", "aria-label": `tokens ${title}`, dir: "auto", "data-side": name };
    return { root: make("div", { class: "tokens", ...about }, ...buttons) };
  },
};
