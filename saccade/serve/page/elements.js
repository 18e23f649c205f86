// Elements over what they are in: boxes on a picture, events below a spectrogram, boxes around points from above. Each
// is a button, so that a pointer or the arrow keys choose one; a slider hides those that are less sure than it says.

import { draw, make } from "./element.js";
import { rove, stop } from "./roving.js";

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]; // Okabe and Ito 2008
const NARROW = 0.1; // of the width: the room of an event's name, at least
const LOW = 0.07; // of the height: a box that begins above has its name inside
const SHOWN = "button:not([hidden])";

/** A stage for elements `{label, score, place}`; place: where each begins along every axis, then where it ends, as
 * shares of the whole. kind: patches or frames, with the address of a picture; points, with their places [x, y].
 * hover: is called with the number of the element that is pointed at or has the focus, and with null after that. made:
 * a button for each, where there are some already. */
export function elements(given, { kind, title, hover = () => {}, threshold = 0, made = null, ...ground }) {
  const colours = painted(given);
  const bare = () => make("button", { type: "button" });
  const buttons = given.map((each, n) => dressed(made?.[n] ?? bare(), each, n, colours.get(each.label)));
  const { root, light } = STAGES[kind](given, buttons, ground);
  const group = make("div", { class: "elements", "data-kind": kind, role: "group", "aria-label": title }, root);
  const choose = (number) => {
    buttons.forEach((each, i) => each.classList.toggle("chosen", i === number));
    light(number);
    hover(number);
  };
  buttons.forEach((each, number) => {
    for (const begins of ["mouseenter", "focus"]) each.addEventListener(begins, () => choose(number));
    for (const ends of ["mouseleave", "blur"]) each.addEventListener(ends, () => choose(focused(buttons)));
  });
  rove(group, SHOWN);
  const { slider, show } = threshold_of(given, buttons, group, threshold);
  return { root: make("div", {}, group, slider), group, slider, show, choose };
}

// The colour of each label, in the order of the alphabet.
function painted(given) {
  const labels = [...new Set(given.map(({ label }) => label))].sort();
  return new Map(labels.map((label, i) => [label, COLOURS[i % COLOURS.length]]));
}

function dressed(button, { label, score }, number, colour) {
  const told = score === undefined || score === null ? label : `${label} ${score.toFixed(2)}`;
  Object.assign(button, { title: told });
  button.dataset.number = number;
  button.replaceChildren(make("span", { text: told }));
  button.style.setProperty("--own", colour);
  return button;
}

function focused(buttons) {
  const number = buttons.indexOf(document.activeElement);
  return number < 0 ? null : number;
}

// A slider between nothing and certainty, where elements have scores; show(value) sets it.
function threshold_of(given, buttons, group, first) {
  const scored = given.some(({ score }) => score !== undefined && score !== null);
  const told = make("output", { class: "hint" });
  const input = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "show those that are surer" });
  const slider = make("label", { class: "compact", hidden: !scored }, "surer than", input, told);
  const show = (value) => {
    input.value = value;
    buttons.forEach((each, i) => (each.hidden = (given[i].score ?? 1) < value));
    const left = buttons.filter((each) => !each.hidden).length;
    told.textContent = `${Number(value).toFixed(2)}: ${left} of ${buttons.length}`;
    stop(group, SHOWN, document.activeElement);
  };
  input.addEventListener("input", () => show(Number(input.value)));
  show(first);
  return { slider, show };
}

// Boxes over a picture, each as large as it is.
function picture(given, buttons, { address, alt = "" }) {
  lay(given, buttons);
  return { root: make("div", { class: "over" }, make("img", { src: address, alt }), ...buttons), light: () => {} };
}

// Boxes around points, of which the first two coordinates are seen.
function points(given, buttons, { places }) {
  const dots = places.map(([x, y]) => draw("circle", { cx: 100 * x, cy: 100 * y, r: 0.5 }));
  const drawing = draw("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
  drawing.append(...dots);
  lay(given, buttons);
  return { root: make("div", { class: "over" }, drawing, ...buttons), light: () => {} };
}

// Events in lanes below a spectrogram; the one that is chosen is also marked on it.
function sound(given, buttons, { address, alt = "", seconds }) {
  const lanes = laid(given.map(({ place }) => place));
  given.forEach(({ place: [begin, end] }, i) => {
    const wide = `${100 * (end - begin)}%`;
    Object.assign(buttons[i].style, { left: `${100 * begin}%`, width: wide, top: `${1.6 * lanes[i]}em` });
    buttons[i].title += `, ${(begin * seconds).toFixed(2)} to ${(end * seconds).toFixed(2)} s`;
  });
  const mark = make("div", { class: "mark", hidden: true });
  const below = make("div", { class: "lanes" }, ...buttons);
  below.style.height = `${1.6 * (Math.max(0, ...lanes) + 1)}em`;
  const light = (number) => {
    mark.hidden = number === null;
    if (number === null) return;
    const [begin, end] = given[number].place;
    Object.assign(mark.style, { left: `${100 * begin}%`, width: `${100 * (end - begin)}%` });
    mark.style.setProperty("--own", buttons[number].style.getPropertyValue("--own"));
  };
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => make("span", { text: `${(share * seconds).toFixed(1)} s` }));
  const over = make("div", { class: "over" }, make("img", { src: address, alt }), mark);
  return { root: make("div", {}, over, below, make("div", { class: "times hint" }, ...times)), light };
}

// The lane of each event: the first in which no earlier one is in the way.
function laid(places) {
  const order = places.map((_, i) => i).sort((a, b) => places[a][0] - places[b][0]);
  const [ends, lanes] = [[], []];
  for (const i of order) {
    const [begin, end] = places[i];
    const free = ends.findIndex((taken) => taken <= begin);
    lanes[i] = free < 0 ? ends.length : free;
    ends[lanes[i]] = Math.max(end, begin + NARROW);
  }
  return lanes;
}

// Boxes at their places, the smaller ones above the larger.
function lay(given, buttons) {
  const boxes = given.map(({ place }) => flat(place));
  const areas = boxes.map(({ width, height }) => width * height);
  boxes.forEach(({ left, top, width, height }, i) => {
    const [x, y, wide, high] = [left, top, width, height].map((share) => `${100 * share}%`);
    const larger = areas.filter((area, j) => area > areas[i] || (area === areas[i] && j < i)).length;
    Object.assign(buttons[i].style, { left: x, top: y, width: wide, height: high, zIndex: larger });
    buttons[i].classList.toggle("inside", top < LOW);
  });
}

// The first two axes of a place, as a box.
function flat(place) {
  const axes = place.length / 2;
  const [left, top] = place;
  return { left, top, width: place[axes] - left, height: place[axes + 1] - top };
}

const STAGES = { patches: picture, frames: sound, points };
