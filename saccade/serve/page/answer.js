// The answer: what was read and what was written, token by token, tinted by how probable each was; and beside it what
// else could have stood at the chosen place.

import { find, make, reveal } from "./element.js";
import { rove, stop } from "./roving.js";
import { drawSide } from "./sides.js";
import { percent, visible } from "./token.js";
import { tint } from "./colour.js";

const TOKEN = "button.token";
const BARS = 10; // answers whose probabilities are shown
const POINT = "Point at a token, or walk with the arrow keys: here stands what else was likely.";
const WORD = "Point at a word, or walk with the arrow keys: the picture shows where it looked for it.";
const PART = "Choose a part of the picture, or walk with the arrow keys: what it looks at is laid over the picture.";
const LAID = "This was read. Once it is chosen, what it looks at is laid over the picture.";
const READ = "This token was read, not written.";
const EMPTY = "What the run reads and writes appears here, token by token.";

/**
 * The answer's panel. `onchoose("side:index")` hears of chosen tokens, `onpoint` of those that are pointed at ("" once
 * none is), `ongo(place, id)` of another way to go on.
 */
export class Answer {
  constructor({ onchoose, onpoint, ongo }) {
    this.root = find("answer");
    this.live = find("answer-live");
    this.side = find("alternatives");
    this.onchoose = onchoose;
    this.onpoint = onpoint;
    this.ongo = ongo;
    this.look = null;
    this.drawn = new Map(); // the sides by name
    this.chosen = "";
    this.note = ""; // what of the input the run did not know
  }

  /** Empties the panel and says what it is for. */
  clear() {
    this.look = null;
    this.side.replaceChildren();
    this.live.textContent = "";
    this.root.replaceChildren(make("p", { class: "hint", text: EMPTY }));
  }

  /** Empties the panel, ready for pieces that stream in behind what they go on from, if they do. */
  begin(given = "") {
    this.look = null;
    this.note = "";
    this.side.replaceChildren();
    this.stream = make("span", { class: "stream", dir: "auto" });
    const before = given ? [make("span", { class: "given", dir: "auto", text: given })] : [];
    this.root.replaceChildren(make("p", { class: "line" }, ...before, this.stream));
    this.root.setAttribute("aria-busy", "true");
    this.live.textContent = "The run is writing.";
  }

  /** Adds pieces of the answer: {text, probability}. */
  add(pieces) {
    for (const { text, probability } of pieces) {
      const piece = make("span", { text });
      if (probability !== null) piece.style.backgroundColor = tint(probability);
      this.stream.append(piece);
    }
  }

  /** The answer is complete: a screen reader hears it once (aria-live="polite"). */
  end(text, score = null, note = null) {
    this.note = note ?? "";
    this.halt(`The answer: ${text}${note ? `; ${note}` : ""}`);
    if (score !== null) this.stream?.append(make("span", { class: "hint", text: ` ${percent(score)}` }));
  }

  /** Nothing more comes; `message` is for screen readers. */
  halt(message) {
    this.root.setAttribute("aria-busy", "false");
    this.live.textContent = message;
  }

  /** The tokens of an inspection instead of the streamed text; of a picture, as this layer cuts it. */
  show(look, layer) {
    const names = [...look.readBy(layer), ...(look.pair ? ["written"] : [])];
    if (this.look === look && String(names) === String([...this.drawn.keys()])) return;
    this.look = look;
    const held = document.activeElement?.closest?.(".tokens")?.dataset.side;
    this.drawn = new Map(names.map((name) => [name, this.#side(name)]));
    const rows = names.map((name) => titled(this.#title(name), below(this.drawn.get(name))));
    const judged = look.layers.every((layer) => layer.stack !== "decoder" || layer.rows === "queries");
    if (judged) rows.push(titled("says", make("p", { class: "line", dir: "auto", text: look.output })));
    if (this.note) rows.push(titled("note", make("p", { class: "line", dir: "auto", text: this.note })));
    if (look.likely.length) rows.push(titled("sure", bars(look.likely, look.output)));
    this.root.replaceChildren(...rows);
    this.choose(this.chosen);
    if (held) this.root.querySelector(`.tokens[data-side="${held}"] ${TOKEN}[tabindex="0"]`)?.focus();
  }

  /** Marks a token, "side:index", as the chosen one. */
  choose(token) {
    this.chosen = token;
    this.root.querySelector(`${TOKEN}[aria-pressed="true"]`)?.setAttribute("aria-pressed", "false");
    const button = this.root.querySelector(`${TOKEN}[data-token="${CSS.escape(token)}"]`);
    if (button) {
      button.setAttribute("aria-pressed", "true");
      stop(button.closest(".tokens"), TOKEN, button);
      reveal(this.root, button);
    }
    this.#tell(token);
  }

  /** Lays weights over the side that is looked at, where that can be drawn. view(): {weights, told, borders}. */
  shade(name, view) {
    for (const [side, { shade }] of this.drawn) {
      if (!shade) continue;
      const { weights, ...about } = side === name ? view() : { weights: null };
      shade(weights, about);
    }
  }

  #side(name) {
    const side = this.look.sides[name];
    const buttons = side.tokens.map((token, i) => this.#token(name, token, i));
    const drawn = drawSide(side, buttons, { name, title: this.#title(name) });
    rove(drawn.root, TOKEN, drawn.across);
    stop(drawn.root, TOKEN);
    return drawn;
  }

  // A single input beside what was written is simply called "read".
  #title(name) {
    return this.look.pair && this.look.read.length === 1 && name !== "written" ? "read" : name;
  }

  #token(side, token, i) {
    const name = `${side}:${i}`;
    const { begun, pair, sides } = this.look;
    const called = sides[side].picture ? token.text : visible(token.text); // a part of a picture has a name, no letters
    const wrote = side === "written" || (!pair && begun > 0 && i >= begun);
    const sure = token.logprob == null ? "" : `, ${percent(Math.exp(token.logprob))} probable`;
    const button = make("button", {
      type: "button", "data-token": name, "aria-label": `${called}${sure}`, "aria-pressed": "false",
      onclick: () => this.onchoose(this.chosen === name ? "" : name),
      onpointerenter: () => this.#point(name),
      onpointerleave: () => this.#point(""),
      onfocus: () => this.#point(name),
      onblur: () => this.#point(""),
    }, make("bdi", { text: called }));
    if (token.logprob != null) button.style.backgroundColor = tint(Math.exp(token.logprob));
    button.classList.add("token", ...(token.special ? ["special"] : []), ...(wrote ? ["wrote"] : []));
    return button;
  }

  #point(name) {
    this.#tell(name || this.chosen);
    this.onpoint(name);
  }

  #at(name) {
    const [side, index] = name.split(":");
    return this.look?.sides[side]?.tokens[Number(index)] ?? null;
  }

  // Lists the likeliest tokens at the place of a token.
  #tell(name) {
    const token = this.#at(name);
    if (this.listed === token && token) return;
    this.listed = token;
    if (!token) {
      const hint = this.look?.pictured ? (this.look.pair ? WORD : PART) : POINT;
      return this.side.replaceChildren(make("p", { class: "hint", text: this.look ? hint : "" }));
    }
    const title = make("h3", {}, make("bdi", { text: `‘${visible(token.text)}’` }));
    if (token.logprob == null) {
      const hint = this.look.pictured ? LAID : READ;
      return this.side.replaceChildren(title, make("p", { class: "hint", text: hint }));
    }
    title.append(` ${percent(Math.exp(token.logprob))}`);
    const list = make("ol", { class: "choices" }, ...(token.top ?? []).map((each) => this.#choice(name, token, each)));
    return this.side.replaceChildren(title, list);
  }

  #choice(name, token, [id, text, logprob]) {
    const share = Math.exp(logprob);
    const bar = make("span", { class: "bar" });
    bar.style.inlineSize = `${Math.max(1, share * 100)}%`;
    const index = name.split(":")[1];
    const free = !this.look.pair && id !== token.id;
    const label = make(free ? "button" : "span", {
      class: "choice", type: free ? "button" : null, title: free ? "go on from here with this one instead" : null,
      onclick: free ? () => this.ongo(Number(index), id) : null,
    }, make("bdi", { text: visible(text) }));
    const number = make("span", { class: "number", text: percent(share) });
    return make("li", { class: id === token.id ? "taken" : "" }, label, make("span", { class: "track" }, bar), number);
  }
}

// A side with what belongs below it, where there is anything.
function below({ root, below: more }) {
  return more ? make("div", {}, root, more) : root;
}

// Answers with their probabilities: [[text, probability], …], the likeliest first.
function bars(likely, said) {
  const lines = likely.slice(0, BARS).map(([text, share]) => {
    const bar = make("span", { class: "bar" });
    bar.style.inlineSize = `${100 * share}%`;
    const name = make("span", { class: "choice" }, make("bdi", { text }));
    const number = make("span", { class: "number", text: percent(share) });
    return make("li", { class: text === said ? "taken" : "" }, name, make("span", { class: "track" }, bar), number);
  });
  return make("ol", { class: "choices likely", "aria-label": "probabilities" }, ...lines);
}

function titled(title, content) {
  return make("div", { class: "side" }, make("h3", { text: title }), content);
}
