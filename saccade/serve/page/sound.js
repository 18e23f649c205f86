// A sound as an input: a file, which can be played.

import { make } from "./element.js";
import { fileKind } from "./file.js";

/** The kind of input that is a sound; what a kind is, inputs.js says. */
export const sound = fileKind({
  noun: "sound",
  type: "audio",
  usual: "sound.wav",
  shown: () => make("audio", { class: "heard", controls: true, "aria-label": "the sound" }),
  offer: (url) => `a sound of ${Math.round(url.length * 0.75 / 1000)} kB`,
});
