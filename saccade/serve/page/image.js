// A picture as an input: a file or, where the run says so, drawn by hand.

import { make } from "./element.js";
import { fileKind, remember } from "./file.js";
import { Sketch } from "./sketch.js";

const DRAW = "or drop one here, paste it, or draw one";

/** The kind of input that is a picture; what a kind is, inputs.js says. */
export const image = fileKind({
  noun: "picture",
  type: "image",
  usual: "picture.png",
  shown: () => make("img", { class: "picked", alt: "" }),
  offer: (url) => make("img", { class: "offered", src: url, alt: "a picture" }),
  more: (give, { id, canvas = null }) => (canvas ? drawing(give, id, canvas) : null),
});

// A canvas beside the chooser; it is cleared where another picture takes its place.
function drawing(give, id, canvas) {
  let drawn = "";
  const ondraw = (url) => {
    drawn = url ? remember(url, "drawing.png", "picture") : "";
    give(drawn, url ? "your drawing" : DRAW);
  };
  const sketch = new Sketch({ ...canvas, id: `${id}-drawn`, ondraw });
  return { hint: DRAW, elements: [sketch.root], shown: (key) => key !== drawn && sketch.clear(true) };
}
