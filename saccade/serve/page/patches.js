// A side that is a picture: its parts are buttons over it, shaded by the weights of the chosen row. What has no place on
// the picture (a class token) stands below it.

import { pick, place, sequential } from "./colour.js";
import { make } from "./element.js";
import { overview } from "./look.js";
import { theme } from "./theme.js";

const VEIL = 0.6; // how much of a weight's colour lies over the picture
const FINE = 112; // pixels of the longer side of a small picture

/** The parts of a picture, each at its place; what a kind of side is, sides.js says. */
export const patches = {
  cells: 1024,

  side(side, buttons, { name, title }) {
    const about = { role: "group", "aria-label": `parts of the picture ${title}`, "data-side": name };
    const picture = make("img", { src: side.picture, alt: side.text });
    const lines = make("div", { class: "borders", "aria-hidden": "true" });
    const caption = make("p", { class: "hint" });
    const laid = buttons.filter((button, i) => lay(button, side.tokens[i].place));
    const beside = buttons.filter((button) => !laid.includes(button));
    const below = beside.length ? [make("div", { class: "beside" }, ...beside)] : [];
    const over = make("div", { class: "over" }, picture, ...laid, lines);
    const root = make("div", { class: `tokens patches ${side.kind}`, ...about }, over, ...below, caption);
    const shade = (weights, { told = "", borders = null } = {}) => {
      paint(side, buttons, weights);
      rule(lines, weights ? borders : null);
      caption.textContent = weights ? told : "";
    };
    return side.grid ? { root, shade, across: () => side.grid[1] } : { root, shade }; // points lie on no grid
  },

  small(canvas, map, { rows, columns, borders }) {
    const picture = new Image();
    const { weights } = overview(map, rows, columns);
    picture.addEventListener("load", () => layOver(canvas, picture, weights, columns, borders));
    picture.src = columns.picture;
  },
};

// Whether a part has a place, where it then lies.
function lay(button, box) {
  if (!box) return false;
  const share = (value) => `${100 * value}%`;
  const [left, top, width, height] = box.map(share);
  Object.assign(button.style, { left, top, width, height });
  return true;
}

function paint(side, buttons, weights) {
  const top = weights ? largest(side, weights) : 0;
  buttons.forEach((button, i) => {
    const { paper, ink } = pick(sequential(theme()), weights ? place(weights[i], top, false) : 0);
    const beside = !side.tokens[i].place; // without a picture behind it, and with a name that is read
    const veiled = beside ? paper : `color-mix(in srgb, ${paper} ${100 * VEIL}%, transparent)`;
    button.style.backgroundColor = weights ? veiled : "";
    button.style.color = weights && beside ? ink : "";
  });
}

// The largest weight on the picture: what lies beside it may be larger, and all parts would be pale.
function largest({ tokens }, weights) {
  return Math.max(0, ...weights.filter((_, i) => tokens[i].place));
}

// The borders of windows, as shares of the picture: [rows, columns].
function rule(root, borders) {
  const [rows, columns] = borders ?? [[], []];
  const line = (side, at) => {
    const made = make("span", { class: side === "top" ? "across" : "down" });
    made.style[side] = `${100 * at}%`;
    return made;
  };
  root.replaceChildren(...rows.map((at) => line("top", at)), ...columns.map((at) => line("left", at)));
}

function layOver(canvas, picture, weights, side, borders) {
  const scale = FINE / Math.max(picture.naturalWidth, picture.naturalHeight);
  const [wide, high] = [picture.naturalWidth, picture.naturalHeight].map((each) => Math.round(each * scale));
  Object.assign(canvas, { width: wide, height: high });
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, wide, high);
  const [colours, top] = [sequential(theme()), largest(side, weights)];
  context.globalAlpha = VEIL;
  side.tokens.forEach(({ place: box }, i) => {
    if (!box) return;
    const [x, y] = [Math.round(box[0] * wide), Math.round(box[1] * high)];
    const [right, bottom] = [Math.round((box[0] + box[2]) * wide), Math.round((box[1] + box[3]) * high)];
    context.fillStyle = pick(colours, place(weights[i], top, false)).paper;
    context.fillRect(x, y, right - x, bottom - y);
  });
  context.globalAlpha = 1;
  context.fillStyle = "#000";
  const [rows, columns] = borders ?? [[], []];
  for (const at of rows) context.fillRect(0, Math.round(at * high), wide, 1);
  for (const at of columns) context.fillRect(Math.round(at * wide), 0, 1, high);
}
