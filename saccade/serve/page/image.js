// A picture as an input: chosen from a folder, dropped or pasted, and kept as long as the page is open; the address
// holds its name alone.

import { make } from "./element.js";
import { quote } from "./token.js";

const KEPT = new Map(); // name -> {url, file}: a picture as a data: URL, and what its file was called
const LARGEST = 12e6; // bytes of a file: what a request may hold, as base64

/** The kind of input that is a picture; what a kind is, inputs.js says. */
export const image = {
  typed: false,
  hint: "Choose a picture above",

  make({ id, label }) {
    const name = make("label", { class: "over", for: id, id: `${id}-label`, text: label });
    const chooser = make("input", { id, type: "file", accept: "image/*" });
    const shown = make("img", { class: "picked", alt: "", hidden: true });
    const said = make("p", { class: "hint", role: "status", text: "or drop one here, or paste it" });
    const box = make("div", { class: "chooser" }, shown, make("div", {}, chooser, said));
    let told = "";
    const show = (key) => {
      told = KEPT.has(key) ? key : "";
      shown.hidden = !told;
      shown.src = told ? KEPT.get(told).url : "";
      if (key && !told) said.textContent = "This picture is gone: choose it again.";
    };
    const take = async (file) => {
      if (!file) return;
      const wrong = problem(file);
      said.textContent = wrong ?? file.name;
      if (!wrong) show(remember(await read(file), file.name));
    };
    chooser.addEventListener("change", () => take(chooser.files[0]));
    box.addEventListener("dragover", (event) => event.preventDefault());
    box.addEventListener("drop", (event) => {
      event.preventDefault();
      take(event.dataTransfer.files[0]);
    });
    box.addEventListener("paste", (event) => take([...event.clipboardData.files][0]));
    return {
      elements: [name, box],
      relabel: (text) => (name.textContent = text),
      told: () => told,
      show,
      focus: () => chooser.focus(),
    };
  },

  value: (told) => KEPT.get(told)?.url ?? null,
  keep: (url) => remember(url, "picture.png"),
  offer: (url) => make("img", { class: "offered", src: url, alt: "a picture" }),
  python: (told) => quote(KEPT.get(told)?.file ?? "picture.png"),
};

function problem({ type, size }) {
  if (!type.startsWith("image/")) return "This file is no picture.";
  return size > LARGEST ? `This picture has ${Math.round(size / 1e6)} MB; 12 are read at most.` : null;
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

// A short name for a picture that is the same for the same picture, so that going back in the history finds it again.
function remember(url, file) {
  let hash = 2166136261;
  for (let i = 0; i < url.length; i++) hash = Math.imul(hash ^ url.charCodeAt(i), 16777619);
  const key = `picture-${(hash >>> 0).toString(16)}-${url.length}`;
  if (!KEPT.has(key)) KEPT.set(key, { url, file });
  return key;
}
