// Taking something along: a picture, the numbers, or the lines of Python that make the same look.

import { find, keep } from "./element.js";
import { pythonOf, typed } from "./inputs.js";
import { quote } from "./token.js";

/** Fetches a picture or the numbers of a map and gives them to the user as a file. */
export async function download(look, layer, options, format) {
  const response = await look.picture(layer, options, format);
  const head = /^\d+$/.test(options.head) ? `head-${options.head}` : options.head;
  keep(await response.blob(), `${look.model}-${layer}-${head}.${format}`.replace(/[^\w.-]+/g, "-"));
}

/** The lines of Python that make the same map; given: the input of the run, as the address keeps it. */
export function snippet(run, look, given, layer, { head, words, hide }) {
  const { inputs } = run.asks;
  const call = [look.pair || !typed(inputs) ? pythonOf(inputs, given) : quote(Object.values(look.sides)[0].text)];
  // The page writes word by word; a run with a beam would search for another answer, so the snippet names this one.
  const ended = look.sides.written?.tokens.at(-1)?.special;
  if (ended && run.decode?.beam > 1) call.push(`target=${quote(look.output)}`);
  const options = [quote(layer)];
  if (/^\d+$/.test(head)) options.push(`head=${head}`);
  else if (head !== "mean") options.push(`head=${quote(head)}`);
  if (words) options.push("words=True");
  if (hide) options.push(`hide=[${hide.split(",").map(quote).join(", ")}]`);
  const opened = look.step === run.step ? "" : `.at(${look.step})`;
  return [
    "import saccade", "", `run = saccade.load(${quote(`runs/${run.name}`)})${opened}`,
    `seen = run.look(${call.join(", ")})`, `seen.map(${options.join(", ")})`, "",
  ].join("\n");
}

/** Copies a text, and says whether the browser allowed it. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = find("python");
    getSelection().selectAllChildren(area);
    return false;
  }
}
