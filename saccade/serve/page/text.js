// A text as an input: typed into an area of its own, kept in the address as it is.

import { make } from "./element.js";
import { quote } from "./token.js";

/** The kind of input that is a text; what a kind is, inputs.js says. */
export const text = {
  typed: true,
  hint: "Type a text above",

  make({ id, label }) {
    const name = make("label", { class: "over", for: id, id: `${id}-label`, text: label });
    const plain = { dir: "auto", spellcheck: "false", autocomplete: "off" };
    const area = make("textarea", { id, class: "typed", rows: 3, ...plain });
    return {
      elements: [name, area],
      relabel: (said) => (name.textContent = said),
      given: () => (area.value.trim() ? area.value : ""),
      show: (given) => (area.value = given),
      focus: () => area.focus(),
    };
  },

  value: (given) => given,
  keep: (value) => value,
  offer: (value) => value,
  python: (given) => quote(given),
};
