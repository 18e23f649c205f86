// Tokens as people can read them: nothing invisible, nothing that turns the text around it.

const NAMES = new Map([
  [" ", "·"], ["\n", "⏎"], ["\t", "⇥"], ["\r", "␍"], ["\u00a0", "⍽"], ["\u007f", "␡"], ["\u2581", "·"],
]);
// Controls, zero-width and direction marks, which would be invisible or turn the text around them.
const HIDDEN = /[\u0000-\u0020\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\u2581\ufeff]/g;

/** A token's text with spaces, line ends and hidden characters made visible. */
export function visible(text) {
  return text === "" ? "∅" : text.replace(HIDDEN, name);
}

/** A number of at most three digits behind the point, short enough for a label. */
export function short(value) {
  if (!Number.isFinite(value)) return String(value);
  const tiny = value !== 0 && Math.abs(value) < 0.001;
  return (tiny ? value.toExponential(1) : String(Math.round(value * 1000) / 1000)).replaceAll("-", "−");
}

/** A share in per cent. */
export function percent(share) {
  return share > 0 && share < 0.001 ? "<0.1%" : `${(share * 100).toFixed(share > 0.0995 ? 0 : 1)}%`;
}

/** A text as an expression of Python: JSON's strings are; what a terminal might hide or obey is spelt out. */
export function quote(text) {
  const spell = (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g, spell);
}

function name(character) {
  const known = NAMES.get(character);
  if (known) return known;
  const code = character.codePointAt(0);
  const number = code.toString(16).toUpperCase().padStart(4, "0");
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `‹${number}›`;
}
