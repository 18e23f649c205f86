// The answer: what was read and what was written, token by token, tinted by how probable each was; and beside it what
// else could have stood at the chosen place.

import { find, make, reveal } from "./element.js";
import { rove, stop } from "./roving.js";
import { drawSide } from "./sides.js";
import { onTheme, theme } from "./theme.js";
import { percent, visible } from "./token.js";
import { tint } from "./colour.js";

const TOKEN = "button.token";
const EMPTY = "What the run reads and writes appears here, token by token.";

/** The answer's panel. `onchoose("side:index")` hears of chosen tokens, `ongo(place, id)` of another way to go on. */
export class Answer {
  constructor({ onchoose, ongo }) {
    this.root = find("answer");
    this.live = find("answer-live");
    this.side = find("alternatives");
    this.onchoose = onchoose;
    this.ongo = ongo;
    this.look = null;
    this.drawn = new Map(); // the sides by name
    this.chosen = "";
    onTheme(() => this.#paint());
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
      if (probability !== null) piece.style.backgroundColor = tint(probability, theme());
      this.stream.append(piece);
    }
  }

  /** The answer is complete: tells it once, politely. */
  end(text, score = null) {
    this.halt(`The answer: ${text}`);
    if (score !== null) this.stream?.append(make("span", { class: "hint", text: ` ${percent(score)}` }));
  }

  /** Nothing more comes: tells why, or nothing. */
  halt(told) {
    this.root.setAttribute("aria-busy", "false");
    this.live.textContent = told;
  }

  /** The tokens of an inspection instead of the streamed text. */
  show(look) {
    this.look = look;
    const held = document.activeElement?.closest?.(".tokens")?.dataset.side;
    const names = look.pair ? [...look.read, "written"] : look.read;
    this.drawn = new Map(names.map((name) => [name, this.#side(name)]));
    const rows = names.map((name) => titled(this.#title(name), this.drawn.get(name).root));
    const judged = look.layers.every((layer) => layer.stack === "encoder");
    if (judged) rows.push(titled("says", make("p", { class: "line", dir: "auto", text: look.output })));
    this.root.replaceChildren(...rows);
    this.#paint();
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
      stop(button.parentElement, TOKEN, button);
      reveal(this.root, button);
    }
    this.#tell(token);
  }

  /** Lays the weights of the chosen row over the side that it looks at, where that can be drawn; null: none is. */
  shade(name, weights) {
    for (const [side, { shade }] of this.drawn) shade?.(side === name && weights ? weights() : null);
  }

  #side(name) {
    const side = this.look.sides[name];
    const buttons = side.tokens.map((token, i) => this.#token(name, token, i));
    const drawn = drawSide(side, buttons, { name, title: this.#title(name) });
    rove(drawn.root, TOKEN);
    stop(drawn.root, TOKEN);
    return drawn;
  }

  // What was read alone needs no name of its own beside what was written.
  #title(name) {
    return this.look.pair && this.look.read.length === 1 && name !== "written" ? "read" : name;
  }

  #token(side, token, i) {
    const name = `${side}:${i}`;
    const { begun, pair } = this.look;
    const wrote = side === "written" || (!pair && begun > 0 && i >= begun);
    const sure = token.logprob == null ? "" : `, ${percent(Math.exp(token.logprob))} probable`;
    const button = make("button", {
      type: "button", "data-token": name, "aria-label": `${visible(token.text)}${sure}`, "aria-pressed": "false",
      onclick: () => this.onchoose(this.chosen === name ? "" : name),
      onpointerenter: () => this.#tell(name),
      onpointerleave: () => this.#tell(this.chosen),
      onfocus: () => this.#tell(name),
    }, make("bdi", { text: visible(token.text) }));
    button.classList.add("token", ...(token.special ? ["special"] : []), ...(wrote ? ["wrote"] : []));
    return button;
  }

  #paint() {
    if (!this.look) return;
    for (const button of this.root.querySelectorAll(TOKEN)) {
      const token = this.#at(button.dataset.token);
      if (token?.logprob != null) button.style.backgroundColor = tint(Math.exp(token.logprob), theme());
    }
  }

  #at(name) {
    const [side, index] = name.split(":");
    return this.look?.sides[side]?.tokens[Number(index)] ?? null;
  }

  // What else could have stood here.
  #tell(name) {
    const token = this.#at(name);
    if (this.told === token && token) return;
    this.told = token;
    if (!token) {
      const hint = this.look ? "Point at a token, or walk with the arrow keys: here stands what else was likely." : "";
      return this.side.replaceChildren(make("p", { class: "hint", text: hint }));
    }
    const title = make("h3", {}, make("bdi", { text: `‘${visible(token.text)}’` }));
    if (token.logprob == null) {
      return this.side.replaceChildren(title, make("p", { class: "hint", text: "This token was read, not written." }));
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

function titled(title, content) {
  return make("div", { class: "side" }, make("h3", { text: title }), content);
}
