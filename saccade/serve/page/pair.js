// One weight, from the beginning: the query, the key, their product number by number, the score, and what became of it.

import { diverging, pick, place } from "./colour.js";
import { find, make } from "./element.js";
import { theme } from "./theme.js";
import { short, visible } from "./token.js";

/** Shows how one weight comes about. */
export function showPair(pair, row, column) {
  const top = Math.max(...[...pair.query, ...pair.key].map(Math.abs), 1e-9);
  const most = Math.max(...pair.products.map(Math.abs), 1e-9);
  const multiplied = pair.dot === null ? [] : strip("product", "query × key", pair.products, most);
  const strips = make("div", { class: "strips" },
    ...strip("query", `of ‘${visible(row)}’`, pair.query, top),
    ...strip("key", `of ‘${visible(column)}’`, pair.key, top),
    ...multiplied);
  find("pair").replaceChildren(strips, formula(pair));
}

/** Says why there is nothing to show, with buttons for what to do. */
export function hintPair(text, ...buttons) {
  find("pair").replaceChildren(make("p", { class: "hint", text }), make("div", { class: "row" }, ...buttons));
}

function strip(name, of, values, top) {
  const bars = values.map((value) => {
    const bar = make("span", { class: value < 0 ? "down" : "up", title: short(value) });
    const strength = 0.45 + (0.55 * Math.abs(value)) / top; // a faint colour could not be seen beside the paper
    const { paper } = pick(diverging(theme()), place(Math.sign(value) * strength, 1, true));
    bar.style.blockSize = `${Math.max(2, (Math.abs(value) / top) * 50)}%`;
    bar.style.backgroundColor = paper;
    return make("span", { class: "slot" }, bar);
  });
  const [low, high] = [Math.min(...values), Math.max(...values)].map(short);
  const label = `${name} ${of}: ${values.length} numbers from ${low} to ${high}`;
  return [
    make("span", { class: "label" }, make("b", { text: name }), " ", make("bdi", { text: of })),
    make("span", { class: "bars", role: "img", "aria-label": label }, ...bars),
    make("span", { class: "number", text: `±${short(top)}` }),
  ];
}

// The score as a formula, by the scale of its product; a score that is no product has no scale.
function named(scale, width) {
  if (scale === null) return "score(q, k)";
  if (scale === 1) return "q · k";
  return Math.abs(scale * Math.sqrt(width) - 1) < 1e-6 ? `q · k / √${width}` : `${short(scale)} q · k`;
}

// The steps in words and numbers, each from the one before.
function formula(pair) {
  const width = pair.query.length;
  const product = ["Σ product = q · k", pair.dot, `the sum of ${width} products`];
  const end = pair.may ? "after the normaliser, over all keys of the row" : "masked: this query may not look there";
  const steps = [
    ...(pair.dot === null ? [] : [product]),
    [named(pair.scale, width), pair.score, "the score"],
    ["+ position", pair.bias, pair.bias ? "what the position adds to the score" : "the position adds nothing here"],
    ["weight", pair.weight, end],
  ];
  const rows = steps.map(([name, value, why]) => make("tr", { class: name === "weight" ? "result" : "" },
    make("th", { scope: "row", text: name }),
    make("td", { class: "number", text: short(value ?? NaN) }),
    make("td", { text: why })));
  return make("table", { class: "steps" }, make("tbody", {}, ...rows));
}
