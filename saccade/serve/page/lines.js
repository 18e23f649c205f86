// Lines between tokens: who looks at whom, for texts short enough to be read at a glance.

import { draw, make, reveal } from "./element.js";
import { largest } from "./look.js";
import { visible } from "./token.js";

const MOST = 48; // names a side; of a longer text, those around the chosen one
const HIGH = 18; // pixels of a line of text
const LOWEST = 110; // pixels of the whole drawing
const LEAST = 0.02; // of the largest weight: fainter lines are left out
const FAINT = 0.1; // the same for those beside the chosen ones
const CLEAR = 0.6; // a weight that is drawn at full strength
const LONGEST = 18; // characters of a name

/** Draws a map's weights as lines in `root`, the chosen row's strongly. `onchoose(row)` hears of names on the left. */
export function showLines(root, map, row = null, onchoose = null) {
  const rows = span(map.rows, row ?? 0);
  const center = row === null ? null : largest(map, row);
  const columns = span(map.columns, center ?? 0);
  const wide = Math.max(260, Math.min(620, root.clientWidth || 480));
  const size = { wide, high: Math.max(LOWEST, Math.max(rows.length, columns.length) * HIGH) };
  const [left, right] = [spread(rows, size, 0.34), spread(columns, size, 0.66)];
  const label = { role: "img", "aria-label": spoken(map, row) };
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${size.high}`, width: wide, ...label });
  svg.append(...strands(map, left, right, row));
  const choose = (index) => (onchoose ? () => onchoose(index) : null);
  svg.append(...left.map((at) => name(map.rowNames[at.index], at, "end", at.index === row, choose(at.index))));
  svg.append(...right.map((at) => name(map.columnNames[at.index], at, "start", at.index === center, null)));
  const cut = rows.length < map.rows || columns.length < map.columns;
  const note = `The ${MOST} around the chosen one; the map shows all.`;
  root.replaceChildren(...(cut ? [make("p", { class: "hint", text: note })] : []), svg);
  const chosen = svg.querySelector("text.chosen");
  if (chosen) reveal(root, chosen);
}

function span(count, around) {
  const first = Math.max(0, Math.min(count - MOST, around - Math.floor(MOST / 2)));
  return Array.from({ length: Math.min(count, MOST) }, (_, i) => first + i);
}

// Places for the names of one side, evenly over the whole height.
function spread(indices, { wide, high }, share) {
  return indices.map((index, at) => ({ index, x: wide * share, y: ((at + 0.5) * high) / indices.length }));
}

// The chosen row is drawn by its own largest weight; of the others, weight that is spread thinly stays faint.
function strands(map, left, right, chosen) {
  const own = chosen === null ? 1 : Math.abs(map.values[chosen * map.columns + largest(map, chosen)]);
  return left.flatMap((from) => right.map((to) => {
    const top = from.index === chosen ? own : Math.max(map.top, CLEAR);
    const weight = Math.min(1, Math.abs(map.values[from.index * map.columns + to.index]) / (top || 1));
    const mine = from.index === chosen;
    const faint = chosen !== null && !mine;
    return weight < LEAST || (faint && weight < FAINT) ? null : strand(from, to, weight, mine, faint);
  })).filter(Boolean);
}

function strand(from, to, weight, mine, faint) {
  const [x, u] = [from.x + 8, to.x - 8];
  const bend = (u - x) / 2;
  return draw("path", {
    d: `M ${x} ${from.y} C ${x + bend} ${from.y} ${u - bend} ${to.y} ${u} ${to.y}`,
    class: mine ? "strand chosen" : "strand",
    "stroke-width": (0.5 + 4 * weight).toFixed(2),
    "stroke-opacity": (weight * (faint ? 0.18 : 0.9)).toFixed(3),
  });
}

function name(text, { x, y }, anchor, chosen, act) {
  const letters = [...visible(text)];
  const shown = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : letters.join("");
  const manner = { "text-anchor": anchor, "dominant-baseline": "central", class: chosen ? "chosen" : "" };
  const made = draw("text", { x, y, ...manner }, shown);
  if (act) {
    made.classList.add("asks");
    made.addEventListener("click", act);
  }
  return made;
}

function spoken(map, row) {
  if (row === null) return "Lines from each name to those it looks at, as thick as the weights.";
  const order = Array.from({ length: map.columns }, (_, j) => j)
    .sort((a, b) => map.values[row * map.columns + b] - map.values[row * map.columns + a]).slice(0, 3);
  const most = order.map((j) => `‘${visible(map.columnNames[j])}’ ${map.values[row * map.columns + j].toFixed(2)}`);
  return `‘${visible(map.rowNames[row])}’ looks most at ${most.join(", ")}.`;
}
