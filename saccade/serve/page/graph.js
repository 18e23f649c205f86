// A side that is a graph: its nodes are buttons where the server placed them, with the edges between them. The weights
// of the node that is chosen, or pointed at, are lines from it and the size and colour of the nodes it looks at.

import { pick, place, sequential } from "./colour.js";
import { draw, make } from "./element.js";
import { overview, weightsOf } from "./look.js";
import { theme } from "./theme.js";

const INSET = 8; // percent around the outermost nodes
const NAMED = 40; // nodes that have their names beside them, at most
const AWAY = 4.6; // percent from a node to the middle of its name
const LEAST = 0.03; // the share of the largest weight from which a line is drawn
const ROOM = 400; // nodes whose lines a small picture shows, at most
const FINE = 144; // pixels of a side of a small picture

/** The nodes of a graph, each at its place; what a kind of side is, sides.js says. */
export const graph = {
  cells: 1024,

  side(side, buttons, { name, title }) {
    const about = { role: "group", "aria-label": `nodes of the graph ${title}`, "data-side": name };
    const sheet = draw("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
    const lines = draw("g", { class: "looks" });
    sheet.append(draw("g", { class: "edges" }), lines, draw("g", { class: "names" }));
    for (const [a, b] of side.edges ?? []) sheet.firstChild.append(line(at(side, a), at(side, b)));
    const placed = buttons.filter((button, i) => lay(button, side.tokens[i]));
    const beside = buttons.filter((button) => !placed.includes(button));
    if (placed.length <= NAMED) sheet.lastChild.append(...side.tokens.flatMap((_, i) => named(side, i)));
    const caption = make("p", { class: "hint" });
    const below = beside.length ? [make("div", { class: "beside" }, ...beside)] : [];
    const over = make("div", { class: `over${placed.length > NAMED ? " many" : ""}` }, sheet, ...placed);
    const root = make("div", { class: "tokens network", ...about }, over, ...below, caption);
    const shade = (weights, { told = "", looker = null } = {}) => {
      const top = weights ? Math.max(0, ...weights) : 0;
      paint(buttons, weights, top, looker);
      lines.replaceChildren(...(weights && looker !== null && top ? looks(side, weights, top, looker) : []));
      caption.textContent = weights ? told : "";
    };
    return { root, shade };
  },

  small(canvas, map, { rows, columns }) {
    Object.assign(canvas, { width: FINE, height: FINE });
    canvas.style.imageRendering = "auto"; // lines, not cells
    const context = canvas.getContext("2d");
    const { weights } = overview(map, rows, columns);
    const [ink, accent] = ["--muted", "--accent"].map((each) => getComputedStyle(canvas).getPropertyValue(each));
    const spot = (i) => at(columns, i).map((share) => (share * FINE) / 100);
    context.strokeStyle = ink;
    context.globalAlpha = 0.4;
    for (const [a, b] of columns.edges ?? []) stroke(context, spot(a), spot(b), 0.7);
    context.strokeStyle = accent;
    for (const [from, to, share] of rows === columns && columns.tokens.length <= ROOM ? strongest(map, columns) : []) {
      const [here, there] = [spot(from), spot(to)];
      context.globalAlpha = 0.15 + 0.85 * share;
      stroke(context, here, here.map((each, axis) => (each + there[axis]) / 2), 0.6 + 3 * share);
    }
    const [colours, top] = [sequential(theme()), Math.max(0, ...weights)];
    const size = Math.max(1.5, Math.min(5, 20 / Math.sqrt(columns.tokens.length)));
    context.globalAlpha = 1;
    columns.tokens.forEach((token, i) => {
      if (!token.place) return;
      context.fillStyle = pick(colours, place(weights[i], top, false)).paper;
      context.strokeStyle = ink;
      context.beginPath();
      context.arc(...spot(i), size, 0, 2 * Math.PI);
      context.fill();
      context.lineWidth = 0.6;
      context.stroke();
    });
  },
};

// Of each edge, both ways, who looks, at whom, and the weight as a share of the largest.
function strongest(map, side) {
  const row = new Map(map.rowPlaces.map((token, i) => [token, i]));
  const weights = new Map();
  const weight = (from, to) => {
    if (!row.has(from)) return 0;
    if (!weights.has(from)) weights.set(from, weightsOf(map, row.get(from), side));
    return weights.get(from)[to];
  };
  return (side.edges ?? [])
    .flatMap(([a, b]) => (a === b ? [] : [[a, b], [b, a]]))
    .map(([from, to]) => [from, to, map.most ? weight(from, to) / map.most : 0])
    .filter(([, , share]) => share > LEAST);
}

// The place of a node in percent; of a box (left, top, width, height) its middle.
function at({ tokens }, i) {
  const [left, top, wide = 0, high = 0] = tokens[i].place ?? [0.5, 0.5];
  return inside([left + wide / 2, top + high / 2]);
}

/** A place, as shares of a square, in percent of the drawing. */
export function inside(place) {
  return place.map((share) => INSET + (100 - 2 * INSET) * share);
}

function lay(button, token) {
  if (!token.place) return false;
  const [left, top] = at({ tokens: [token] }, 0);
  Object.assign(button.style, { left: `${left}%`, top: `${top}%` });
  button.title = token.text;
  return true;
}

// The name of a node in the middle of the widest gap between its edges; without any, above it.
function named(side, i) {
  if (!side.tokens[i].place) return [];
  const [x, y] = at(side, i);
  const own = (side.edges ?? []).filter(([a, b]) => a !== b && (a === i || b === i));
  const near = own.map(([a, b]) => at(side, a === i ? b : a));
  const angles = near.map(([left, top]) => Math.atan2(top - y, left - x)).sort((one, other) => one - other);
  if (!angles.length) angles.push(Math.PI / 2);
  const gaps = angles.map((angle, k) => (angles[k + 1] ?? angles[0] + 2 * Math.PI) - angle);
  const widest = Math.max(...gaps);
  const angle = angles[gaps.indexOf(widest)] + widest / 2;
  const place = { x: x + AWAY * Math.cos(angle), y: y + AWAY * Math.sin(angle) };
  return [draw("text", { ...place, "text-anchor": "middle", "dominant-baseline": "central" }, side.tokens[i].text)];
}

function paint(buttons, weights, top, looker) {
  buttons.forEach((button, i) => {
    const share = weights && top ? weights[i] / top : 0;
    const { paper, ink } = pick(sequential(theme()), weights ? place(weights[i], top, false) : 0);
    button.style.setProperty("--share", Math.sqrt(Math.max(0, share)));
    button.style.backgroundColor = weights ? paper : "";
    button.style.color = weights ? ink : "";
    button.classList.toggle("looker", i === looker);
  });
}

// Lines from who looks to what it looks at.
function looks(side, weights, top, looker) {
  return weights.flatMap((weight, i) => {
    const share = weight / top;
    if (i === looker || share < LEAST || !side.tokens[i].place || !side.tokens[looker].place) return [];
    const made = line(at(side, looker), at(side, i));
    made.setAttribute("stroke-width", 0.3 + 1.7 * share);
    made.setAttribute("opacity", 0.2 + 0.8 * share);
    return [made];
  });
}

function line([x1, y1], [x2, y2]) {
  return draw("line", { x1, y1, x2, y2 });
}

function stroke(context, from, to, width) {
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}
