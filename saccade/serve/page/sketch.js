// A small picture drawn by hand: by mouse, finger or pen, or by keys, pixel by pixel as large as the run reads it.

import { make } from "./element.js";

const SHOWN = 196; // pixels of the screen along its longer side
const THIN = 12; // a stroke is so many times thinner than the picture
const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const KEYS = "Keys: arrows move the pen, space sets it down or lifts it, E is the eraser, Delete clears, Enter runs.";

/** A canvas of `height` x `width` pixels, black or white (`ground`: 0 or 255). `ondraw(url)` hears of what was drawn
 *  when a stroke ends, and of "" when all was wiped out. */
export class Sketch {
  constructor({ height, width, ground, id, ondraw }) {
    Object.assign(this, { ondraw, ground, erases: false, down: false, at: { x: width / 2, y: height / 2 } });
    this.canvas = make("canvas", {
      id, width, height, tabindex: 0, role: "application", "aria-label": "Drawing", "aria-describedby": `${id}-keys`,
    });
    const scale = SHOWN / Math.max(height, width);
    this.canvas.style.inlineSize = `${width * scale}px`;
    this.context = this.canvas.getContext("2d");
    this.pen = make("span", { class: "pen", "aria-hidden": "true", hidden: true });
    const onclick = () => this.#change();
    this.eraser = make("button", { type: "button", "aria-pressed": "false", text: "Eraser", onclick });
    const wipe = make("button", { type: "button", text: "Clear", onclick: () => this.clear() });
    const keys = make("p", { class: "hint", id: `${id}-keys`, text: KEYS });
    this.told = make("p", { class: "unseen", role: "status" });
    const paper = make("div", { class: "paper" }, this.canvas, this.pen);
    const tools = make("div", { class: "row" }, this.eraser, wipe);
    this.root = make("div", { class: "sketch" }, paper, make("div", {}, tools, keys, this.told));
    this.#listen();
    this.#fill();
  }

  /** An empty picture; `quiet`: nobody hears of it. */
  clear(quiet = false) {
    this.#fill();
    this.#lift();
    if (!quiet) this.ondraw("");
  }

  #fill() {
    const { context, canvas } = this;
    context.fillStyle = shade(this.ground);
    context.fillRect(0, 0, canvas.width, canvas.height);
  }

  #change() {
    this.erases = !this.erases;
    this.eraser.setAttribute("aria-pressed", this.erases);
  }

  #listen() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      from = this.#place(event);
      this.#stroke(from, from);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      for (const each of event.getCoalescedEvents?.() ?? [event]) {
        const to = this.#place(each);
        this.#stroke(from, to);
        from = to;
      }
    });
    const end = () => {
      if (from) this.#tell();
      from = null;
    };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, end);
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => this.#show());
    canvas.addEventListener("blur", () => {
      this.#lift();
      this.pen.hidden = true;
    });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = event.key in MOVES ? () => this.#move(MOVES[event.key]) : this.#acts()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    this.#show();
  }

  #acts() {
    const clear = () => this.clear();
    const set = () => (this.down ? this.#lift() : this.#set());
    const run = () => {
      this.#lift();
      this.canvas.closest("form")?.requestSubmit();
    };
    return { " ": set, Delete: clear, Backspace: clear, Enter: run, e: () => this.#change(), E: () => this.#change() };
  }

  #set() {
    this.down = true;
    this.#stroke(this.at, this.at);
    this.told.textContent = "The pen is down.";
  }

  #lift() {
    if (!this.down) return;
    this.down = false;
    this.told.textContent = "The pen is up.";
    this.#tell();
  }

  #move([right, below]) {
    const inside = (value, most) => Math.max(0.5, Math.min(most - 0.5, value));
    const { width, height } = this.canvas;
    const to = { x: inside(this.at.x + right, width), y: inside(this.at.y + below, height) };
    if (this.down) this.#stroke(this.at, to);
    this.at = to;
  }

  // Where the pen of the keyboard stands; a mouse needs none.
  #show() {
    const { width, height } = this.canvas;
    this.pen.hidden = !this.canvas.matches(":focus-visible");
    this.pen.classList.toggle("down", this.down);
    Object.assign(this.pen.style, { left: `${(100 * this.at.x) / width}%`, top: `${(100 * this.at.y) / height}%` });
  }

  #stroke(from, to) {
    const { context, canvas } = this;
    context.strokeStyle = shade(this.erases ? this.ground : 255 - this.ground);
    context.lineWidth = Math.max(1, Math.max(canvas.width, canvas.height) / THIN);
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x + 0.01, to.y); // a dot is a short line
    context.stroke();
  }

  #tell() {
    this.ondraw(this.canvas.toDataURL("image/png"));
  }

  #place({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    const { width, height } = this.canvas;
    return { x: ((clientX - box.left) * width) / box.width, y: ((clientY - box.top) * height) / box.height };
  }
}

const shade = (light) => `rgb(${light} ${light} ${light})`;
