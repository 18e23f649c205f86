// A side that is a picture: its parts are buttons over it, shaded by the weights of the chosen row.

import { pick, place, sequential } from "./colour.js";
import { make } from "./element.js";
import { theme } from "./theme.js";

const VEIL = 0.6; // how much of a weight's colour lies over the picture

/** The parts of a picture, each at its place; what a kind of side is, sides.js says. */
export function patches(side, buttons, { name, title }) {
  const about = { role: "group", "aria-label": `parts of the picture ${title}`, "data-side": name };
  const picture = make("img", { src: side.picture, alt: side.text });
  buttons.forEach((button, i) => lay(button, side.tokens[i].place));
  const root = make("div", { class: "tokens patches", ...about }, picture, ...buttons);
  return { root, shade: (weights) => shade(buttons, weights) };
}

function lay(button, [left, top, width, height]) {
  const share = (value) => `${100 * value}%`;
  Object.assign(button.style, { left: share(left), top: share(top), width: share(width), height: share(height) });
}

function shade(buttons, weights) {
  const top = weights ? Math.max(...weights) : 0;
  buttons.forEach((button, i) => {
    const { paper } = pick(sequential(theme()), weights ? place(weights[i], top, false) : 0);
    button.style.backgroundColor = weights ? `color-mix(in srgb, ${paper} ${100 * VEIL}%, transparent)` : "";
  });
}
