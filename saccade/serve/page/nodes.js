// A graph as an input: its nodes and edges as JSON, typed or from a file. A long one is kept as long as the page is
// open; the address holds a key to it.

import { make } from "./element.js";
import { quote } from "./token.js";

const KEPT = new Map(); // key -> a long graph
const SHORT = 2000; // letters that the address holds
const EXAMPLE = '{"nodes": [[1], [1], [1]], "edges": [[0, 1], [1, 2]]}';
const HOW = "nodes with their numbers, edges as pairs from 0; or drop a .json file";

/** The kind of input that is a graph; what a kind is, inputs.js says. */
export const nodes = {
  typed: false,
  hint: "Give a graph above",

  make({ id, label }) {
    const name = make("label", { class: "over", for: id, id: `${id}-label`, text: label });
    const plain = { dir: "ltr", spellcheck: "false", autocomplete: "off", placeholder: EXAMPLE };
    const area = make("textarea", { id, class: "typed code", rows: 4, ...plain });
    const said = make("p", { class: "hint", role: "status", text: HOW });
    const show = (given) => {
      area.value = full(given) ?? "";
    };
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
      given: () => (area.value.trim() ? short(area.value.trim()) : ""),
      show,
      focus: () => area.focus(),
    };
  },

  value: (given) => full(given),
  keep: (value) => short(value),
  offer: (value) => told(value),
  python: (given) => (full(given) === given ? quote(given) : quote("graph.json")),
};

function short(value) {
  if (value.length <= SHORT) return value;
  let hash = 2166136261;
  for (let i = 0; i < value.length; i++) hash = Math.imul(hash ^ value.charCodeAt(i), 16777619);
  const key = `graph-${(hash >>> 0).toString(16)}-${value.length}`;
  KEPT.set(key, value);
  return key;
}

// The whole graph; null where a key is of a page that was closed.
function full(given) {
  if (KEPT.has(given)) return KEPT.get(given);
  return given.startsWith("graph-") ? null : given;
}

function told(value) {
  try {
    const { nodes: some, edges } = JSON.parse(value);
    return `${some.length} nodes, ${edges.length} edges`;
  } catch {
    return "a graph";
  }
}
