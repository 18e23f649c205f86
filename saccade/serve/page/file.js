// A file as an input: chosen from a folder, dropped or pasted. It is kept as long as the page is open; the address holds
// its name alone. What a kind of file adds, image.js and sound.js say.

import { make } from "./element.js";
import { quote } from "./token.js";

const KEPT = new Map(); // name -> {url, file}: a file as a data: URL, and what it was called
const LARGEST = 12e6; // bytes of a file: what a request may hold, as base64

/** A kind of input that is a file.
 *   noun, type, usual   what one is called, how its media type begins, and a name where none is known
 *   shown()             an element whose `src` shows one
 *   offer(url)          how a sample is shown on its button
 *   more(give, about)   where it has one: another way to give one; {hint, elements, shown(key)}. It calls `give` with what
 *                       `remember` returned, and hears of every key that is shown
 */
export function fileKind({ noun, type, usual, shown, offer, more = () => null }) {
  return {
    typed: false,
    hint: `Choose a ${noun} above`,

    make({ id, label, ...about }) {
      const name = make("label", { class: "over", for: id, id: `${id}-label`, text: label });
      const chooser = make("input", { id, type: "file", accept: `${type}/*` });
      const picked = shown();
      picked.hidden = true;
      const said = make("p", { class: "hint", role: "status" });
      const box = make("div", { class: "chooser" }, picked, make("div", {}, chooser, said));
      let given = "";
      const show = (key) => {
        given = KEPT.has(key) ? key : "";
        picked.hidden = !given;
        if (given) picked.src = KEPT.get(given).url;
        else picked.removeAttribute("src");
        if (key && !given) said.textContent = `This ${noun} is gone: choose it again.`;
        other?.shown(key);
      };
      const give = (key, told) => {
        chooser.value = "";
        said.textContent = told;
        show(key);
      };
      const other = more(give, { id, ...about });
      said.textContent = other?.hint ?? "or drop one here, or paste it";
      const take = async (file) => {
        if (!file) return;
        const wrong = problem(file, noun, type);
        said.textContent = wrong ?? file.name;
        if (!wrong) show(remember(await read(file), file.name, noun));
      };
      chooser.addEventListener("change", () => take(chooser.files[0]));
      box.addEventListener("dragover", (event) => event.preventDefault());
      box.addEventListener("drop", (event) => {
        event.preventDefault();
        take(event.dataTransfer.files[0]);
      });
      box.addEventListener("paste", (event) => take([...event.clipboardData.files][0]));
      return {
        elements: [name, box, ...(other?.elements ?? [])],
        relabel: (text) => (name.textContent = text),
        given: () => given,
        show,
        focus: () => chooser.focus(),
      };
    },

    value: (given) => KEPT.get(given)?.url ?? null,
    keep: (url) => remember(url, usual, noun),
    offer,
    python: (given) => quote(KEPT.get(given)?.file ?? usual),
  };
}

function problem({ type: found, size }, noun, type) {
  if (!found.startsWith(`${type}/`)) return `This file is no ${noun}.`;
  return size > LARGEST ? `This ${noun} has ${Math.round(size / 1e6)} MB; 12 are read at most.` : null;
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

/** A short name for a file that is the same for the same content, so that going back in the history finds it again. */
export function remember(url, file, noun) {
  let hash = 2166136261;
  for (let i = 0; i < url.length; i++) hash = Math.imul(hash ^ url.charCodeAt(i), 16777619);
  const key = `${noun}-${(hash >>> 0).toString(16)}-${url.length}`;
  if (!KEPT.has(key)) KEPT.set(key, { url, file });
  return key;
}
