// An input that is written as JSON, typed or from a file. A long one is kept as long as the page is open; the address
// holds a key to it.

import { make } from "./element.js";
import { quote } from "./token.js";

const KEPT = new Map(); // key -> a long input
const SHORT = 2000; // letters that the address holds

/** A kind of input (what one is, inputs.js says) of the noun's name: an example of it, how it is written, and
 *  told(value), what is said of one in short. */
export function written({ noun, hint, example, how, told }) {
  const full = (given) => {
    if (KEPT.has(given)) return KEPT.get(given);
    return given.startsWith(`${noun}-`) ? null : given; // a key of a page that was closed
  };
  return {
    typed: false,
    hint,
    make: ({ id, label }) => field({ id, label, example, how, told, noun, full }),
    value: (given) => full(given),
    keep: (value) => short(noun, value),
    offer: (value) => told(value),
    python: (given) => (full(given) === given ? quote(given) : quote(`${noun}.json`)),
  };
}

function field({ id, label, example, how, told, noun, full }) {
  const name = make("label", { class: "over", for: id, id: `${id}-label`, text: label });
  const plain = { dir: "ltr", spellcheck: "false", autocomplete: "off", placeholder: example };
  const area = make("textarea", { id, class: "typed code", rows: 4, ...plain });
  const said = make("p", { class: "hint", role: "status", text: how });
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    area.value = (await file.text()).trim();
    said.textContent = `${file.name}: ${told(area.value)}`;
  });
  return {
    elements: [name, area, said],
    relabel: (text) => (name.textContent = text),
    given: () => (area.value.trim() ? short(noun, area.value.trim()) : ""),
    show: (given) => (area.value = full(given) ?? ""),
    focus: () => area.focus(),
  };
}

function short(noun, value) {
  if (value.length <= SHORT) return value;
  let hash = 2166136261;
  for (let i = 0; i < value.length; i++) hash = Math.imul(hash ^ value.charCodeAt(i), 16777619);
  const key = `${noun}-${(hash >>> 0).toString(16)}-${value.length}`;
  KEPT.set(key, value);
  return key;
}
