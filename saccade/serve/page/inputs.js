// What a run is given: a field for each of its inputs, by the kind of input that /v1/models names.
//
// To add a kind, write a file that exports an object as text.js does, and name it in KINDS. `given` is what the address
// keeps of an input: its text, or a key to something larger that the kind remembers as long as the page is open.
//   typed          whether it is typed on a line, so that another can be typed beside it to compare
//   hint           what a first visitor is asked to do
//   make({id, label, …})   a field: {elements, relabel(label), given(), show(given), focus()}; `given()` is "" if empty;
//                  what else the run says of the input comes along, such as a `canvas` to draw on
//   value(given)   what the server is sent; null where it is gone
//   keep(value)    the other way round, for a sample of the server's
//   offer(value)   how a sample is shown on its button: a text or an element
//   python(given)  the same as an expression of Python

import { agents } from "./agents.js";
import { image } from "./image.js";
import { nodes } from "./nodes.js";
import { points } from "./points.js";
import { sound } from "./sound.js";
import { quote } from "./token.js";
import { text } from "./text.js";

const KINDS = { text, image, sound, graph: nodes, points, tracks: agents };
const FIRST = [{ name: "text", kind: "text", label: "Text" }]; // until the runs are known

/** Whether the page has a field for every one of these inputs. */
export function known(inputs) {
  return inputs.every(({ kind }) => KINDS[kind]);
}

/** Whether all that a run is given is one line. */
export function typed(inputs) {
  return inputs.length === 1 && KINDS[inputs[0].kind].typed;
}

/** What a first visitor is asked to do. */
export function hint(inputs) {
  return KINDS[inputs[0].kind].hint;
}

/** The samples of a run, each as [given, ...what is shown]; of several inputs, a sample is JSON by their names. */
export function samplesOf(inputs, samples) {
  if (inputs.length > 1) return samples.map((sample) => together(inputs, apart(sample)));
  const { keep, offer } = KINDS[inputs[0].kind];
  return samples.map((value) => [keep(value), offer(value)]);
}

/** What the server is sent: the one input, or several by name; null where one is gone. */
export function valueOf(inputs, given) {
  if (inputs.length === 1) return KINDS[inputs[0].kind].value(given);
  const parts = apart(given);
  const values = inputs.map(({ name, kind }) => [name, parts[name] ? KINDS[kind].value(parts[name]) : null]);
  return values.some(([, value]) => value === null) ? null : Object.fromEntries(values);
}

/** The same as an expression of Python. */
export function pythonOf(inputs, given) {
  if (inputs.length === 1) return KINDS[inputs[0].kind].python(given);
  const parts = apart(given);
  const pairs = inputs.map(({ name, kind }) => `${quote(name)}: ${KINDS[kind].python(parts[name] ?? "")}`);
  return `{${pairs.join(", ")}}`;
}

/** The fields of the form. */
export class Inputs {
  constructor(root) {
    this.root = root;
    this.fields = [];
    this.offer(FIRST);
  }

  /** Fields for these inputs; those of the same kinds stay, with what was given. */
  offer(inputs) {
    const shape = (all) => JSON.stringify(all?.map(({ kind, canvas }) => [kind, canvas]));
    const same = shape(inputs) === shape(this.inputs);
    this.inputs = inputs;
    if (same) return this.fields.forEach((field, i) => field.relabel(inputs[i].label));
    const id = ({ kind, name }, i) => (i ? `${kind}-${name}` : kind);
    this.fields = inputs.map((each, i) => KINDS[each.kind].make({ ...each, id: id(each, i) }));
    return this.root.replaceChildren(...this.fields.flatMap(({ elements }) => elements));
  }

  /** What is given, as the address keeps it; "" where something is missing. */
  given() {
    const given = this.inputs.map(({ name }, i) => [name, this.fields[i].given()]);
    if (given.some(([, each]) => !each)) return "";
    return given.length === 1 ? given[0][1] : JSON.stringify(Object.fromEntries(given));
  }

  /** Fills the fields by what the address says. */
  show(given) {
    if (this.fields.length === 1) return this.fields[0].show(given);
    const parts = apart(given);
    return this.inputs.forEach(({ name }, i) => this.fields[i].show(parts[name] ?? ""));
  }

  /** Moves the focus to the first empty field. */
  focus() {
    (this.fields.find((field) => !field.given()) ?? this.fields[0]).focus();
  }
}

function together(inputs, values) {
  const given = inputs.map(({ name, kind }) => [name, KINDS[kind].keep(values[name] ?? "")]);
  const shown = inputs.map(({ name, kind }) => KINDS[kind].offer(values[name] ?? ""));
  return [JSON.stringify(Object.fromEntries(given)), ...shown.flatMap((each, i) => (i ? [" ", each] : [each]))];
}

// Several inputs by their names; nothing, where an address says something else.
function apart(given) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(given)).filter(([, each]) => typeof each === "string"));
  } catch {
    return {};
  }
}
