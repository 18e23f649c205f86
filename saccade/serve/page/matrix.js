// A matrix on a canvas: cells, names on both sides, numbers where there is room, a cross-hair.

import { Bitmap } from "./bitmap.js";
import { pick, place } from "./colour.js";
import { make } from "./element.js";
import { listen } from "./gesture.js";
import { onTheme, theme } from "./theme.js";
import { visible } from "./token.js";
import { Viewport } from "./viewport.js";

const FONT = 12; // pixels of a label
const WIDEST = 104; // pixels of the room for labels
const PAD = 6;
const ROOMY = 32; // pixels of a cell that has room for its number
const SAMPLE = 2000; // names that are measured to find the room for all
const KEYS =
  "Arrow keys move the cross-hair, m goes to the largest weight of the row, plus and minus zoom, 0 shows all.";

/** A map (values, rows, columns, rowNames, columnNames, top, signed) to look at.
 *  `onchoose(row, column)` hears of chosen cells, `onhover({row, column})` of those under the pointer, or null. */
export class Matrix {
  constructor(root, { label, height = 420, onchoose = () => {}, onhover = () => {} }) {
    Object.assign(this, { label, onchoose, onhover, tallest: height });
    this.map = this.bitmap = null;
    this.cross = this.over = null;
    const role = { tabindex: 0, role: "application", "aria-roledescription": "matrix", "aria-label": label };
    this.canvas = make("canvas", { class: "matrix", ...role });
    this.context = this.canvas.getContext("2d");
    root.replaceChildren(this.canvas);
    listen(this);
    new ResizeObserver(() => this.#measure()).observe(root);
    onTheme(() => this.#recolour());
  }

  /** Shows a map; where it has the shape of the one before, what is seen stays. */
  show(map) {
    const same = this.map && this.map.rows === map.rows && this.map.columns === map.columns;
    this.map = map;
    this.bitmap = new Bitmap(map, theme());
    if (!same) {
      this.view = new Viewport(map.columns, map.rows);
      this.cross = this.over = null;
    }
    this.canvas.setAttribute("aria-label", `${this.label}, ${map.rows} rows, ${map.columns} columns. ${KEYS}`);
    this.#measure(!same);
  }

  /** Puts the cross-hair on a cell; a null leaves its line out. */
  aim(row, column) {
    this.cross = row === null && column === null ? null : { row, column };
    if (this.view && this.cross) this.view.reveal(row ?? Math.floor(this.view.y), column ?? Math.floor(this.view.x));
    this.draw();
  }

  /** Chooses the cell nearest to a row and a column, and calls `onchoose`. */
  go(row, column) {
    const inside = (value, count) => Math.max(0, Math.min(count - 1, value));
    this.aim(inside(row, this.map.rows), inside(column, this.map.columns));
    this.onchoose(this.cross.row, this.cross.column);
  }

  /** Marks the cell under the pointer, or none. */
  hover(cell) {
    if (cell?.row === this.over?.row && cell?.column === this.over?.column) return;
    this.over = cell;
    this.onhover(cell);
    this.draw();
  }

  /** Zooms around a pixel of the cells; else around the cross-hair, or the middle. */
  zoom(factor, pixel = this.#middle()) {
    if (!this.map) return;
    this.view.zoom(factor, ...pixel);
    this.#moved();
  }

  /** Moves by pixels; says whether there was anywhere to go. */
  pan(dx, dy) {
    const moved = this.view.pan(dx, dy);
    this.#moved();
    return moved;
  }

  /** Shows all of it. */
  fit() {
    this.view?.fit();
    this.#moved();
  }

  /** Where an event lies, in pixels from the first cell's corner. */
  pixel({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [clientX - box.left - this.left, clientY - box.top - this.above];
  }

  /** Draws at the next frame, however often it is asked. */
  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.map) this.#draw();
    });
  }

  #middle() {
    const { row, column } = this.cross ?? {};
    const { x, y, cell } = this.view ?? {};
    return row == null || column == null ? [] : [(column + 0.5 - x) * cell, (row + 0.5 - y) * cell];
  }

  // A finger scrolls the page until there is something to pan.
  #moved() {
    this.canvas.style.touchAction = this.view?.fits === false ? "none" : "pan-y";
    this.draw();
  }

  #recolour() {
    if (!this.map) return;
    this.bitmap = new Bitmap(this.map, theme());
    this.draw();
  }

  // Room for the names, then the size of the canvas: as high as the cells are, up to the tallest.
  #measure(again = false) {
    const wide = this.canvas.parentElement.clientWidth;
    if (!this.map || !wide) return;
    this.font = `${FONT}px ${getComputedStyle(this.canvas).fontFamily}`;
    this.left = this.#room(this.map.rowNames);
    this.above = this.#room(this.map.columnNames);
    const cell = this.view.whole(wide - this.left, this.tallest - this.above);
    const high = Math.ceil(Math.min(this.tallest, this.above + Math.max(cell * this.map.rows, 24)));
    this.#resize(wide, high);
    this.view.resize(wide - this.left, high - this.above, again);
    this.#moved();
  }

  #room(names) {
    this.context.font = this.font;
    const widths = names.slice(0, SAMPLE).map((name) => this.context.measureText(visible(name)).width);
    return Math.ceil(Math.min(WIDEST, Math.max(FONT, ...widths))) + 2 * PAD;
  }

  #resize(wide, high) {
    this.dense = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(wide * this.dense);
    this.canvas.height = Math.round(high * this.dense);
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
  }

  #draw() {
    const { context, view, left, above, dense } = this;
    const style = getComputedStyle(this.canvas);
    this.ink = (name) => style.getPropertyValue(`--${name}`).trim();
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, left + view.width, above + view.height);
    this.wide = Math.min(view.width, view.cell * view.columns);
    this.high = Math.min(view.height, view.cell * view.rows);
    this.#cells();
    if (view.cell >= ROOMY) this.#numbers();
    this.#names(true);
    this.#names(false);
    if (this.over) this.#hair(this.over, "muted", 1);
    if (this.cross) this.#hair(this.cross, "accent", 2);
  }

  #cells() {
    const { context, view, left, above, wide, high } = this;
    const { canvas, step } = this.bitmap.level(view.cell * this.dense);
    const size = view.cell * step;
    context.imageSmoothingEnabled = size * this.dense < 1;
    context.drawImage(canvas, view.x / step, view.y / step, wide / size, high / size, left, above, wide, high);
    context.strokeStyle = this.ink("line");
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, above - 0.5, wide + 1, high + 1);
  }

  // The weights themselves, where cells are large.
  #numbers() {
    const { context, view, map } = this;
    context.font = this.font;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const [last, end] = [view.y + view.height / view.cell - 0.5, view.x + view.width / view.cell - 0.3];
    for (let i = Math.round(view.y); i < Math.min(map.rows, last); i++) {
      for (let j = Math.round(view.x); j < Math.min(map.columns, end); j++) this.#number(i, j);
    }
  }

  #number(i, j) {
    const { context, view, map } = this;
    const at = i * map.columns + j;
    if (Math.abs(map.values[at]) < 0.005) return;
    context.fillStyle = pick(this.bitmap.scale, place((map.shades ?? map.values)[at], map.top, map.signed)).ink;
    const [x, y] = [this.left + (j + 0.5 - view.x) * view.cell, this.above + (i + 0.5 - view.y) * view.cell];
    context.fillText(map.values[at].toFixed(2).replace(/^(-?)0\./, "$1."), x, y);
  }

  // Names along one side: as many as have room, and those of the cross-hair in any case.
  #names(down) {
    const { view } = this;
    const names = down ? this.map.rowNames : this.map.columnNames;
    const [from, long] = down ? [view.y, view.height] : [view.x, view.width];
    const every = Math.max(1, Math.ceil((FONT + 2) / view.cell));
    const side = down ? "row" : "column";
    const chosen = [this.cross?.[side], this.over?.[side]].filter((each) => each != null);
    const crowded = (i) => every > 1 && chosen.some((each) => Math.abs(each - i) * view.cell < FONT + 2);
    const last = Math.min(names.length, Math.ceil(from + long / view.cell));
    for (let i = Math.max(0, Math.floor(from)); i < last; i++) {
      const picked = chosen.includes(i);
      if (picked || (i % every === 0 && !crowded(i))) this.#name(names[i], i, down, picked);
    }
  }

  #name(name, i, down, picked) {
    const { context, view, left, above } = this;
    const middle = down ? above + (i + 0.5 - view.y) * view.cell : left + (i + 0.5 - view.x) * view.cell;
    if (middle < (down ? above : left) || middle > (down ? above + view.height : left + view.width)) return;
    context.fillStyle = this.ink(picked ? "accent" : "text");
    context.font = picked ? `600 ${this.font}` : this.font;
    context.textBaseline = "middle";
    const shown = this.#cut(visible(name));
    const upright = !down && context.measureText(shown).width < Math.max(view.cell - 1, FONT);
    context.save();
    context.translate(down ? left - PAD : middle, down ? middle : above - PAD);
    if (!down && !upright) context.rotate(-Math.PI / 2);
    if (down) context.textAlign = "right";
    else context.textAlign = upright ? "center" : "left";
    context.fillText(shown, 0, upright ? -FONT / 2 : 0);
    context.restore();
  }

  #cut(name) {
    const fits = (letters) => this.context.measureText(letters).width <= WIDEST;
    if (fits(name)) return name;
    let shown = [...name].slice(0, WIDEST / 2);
    while (shown.length > 1 && !fits(`${shown.join("")}…`)) shown = shown.slice(0, -1);
    return `${shown.join("")}…`;
  }

  // Each line lies on a wider one of the panel's colour, so that it is seen on every cell.
  #hair({ row, column }, ink, thick) {
    const { context, view, left, above, wide, high } = this;
    const cell = Math.max(view.cell, 2);
    context.save();
    context.beginPath();
    context.rect(left - 2, above - 2, wide + 4, high + 4);
    context.clip();
    for (const [name, width] of [["panel", thick + 2], [ink, thick]]) {
      context.strokeStyle = this.ink(name);
      context.lineWidth = width;
      if (row != null) context.strokeRect(left, above + (row - view.y) * view.cell, wide, cell);
      if (column != null) context.strokeRect(left + (column - view.x) * view.cell, above, cell, high);
    }
    context.restore();
  }
}
