// What hands do to a matrix: keys walk through it, the wheel and fingers move it, a click chooses a cell.

import { largest } from "./look.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const PAGE = 10; // rows that a page key goes
const STILL = 4; // pixels that a finger may tremble

/** Makes a matrix listen to keys, wheel and pointers on its canvas. */
export function listen(matrix) {
  const { canvas } = matrix;
  const fingers = new Map();
  const on = (name, act, options) => canvas.addEventListener(name, (event) => matrix.map && act(event), options);
  on("keydown", (event) => press(matrix, event));
  on("wheel", (event) => wheel(matrix, event), { passive: false });
  on("dblclick", (event) => matrix.zoom(2, matrix.pixel(event)));
  on("pointerleave", () => matrix.hover(null));
  on("pointerdown", (event) => fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, moved: false }));
  on("pointermove", (event) => move(matrix, event, fingers));
  on("pointerup", (event) => lift(matrix, event, fingers));
  on("pointercancel", (event) => fingers.delete(event.pointerId));
}

function press(matrix, event) {
  if (event.altKey || event.metaKey) return;
  const to = aim(matrix, event);
  if (to) matrix.go(...to);
  else if (event.key === "+" || event.key === "=") matrix.zoom(1.5);
  else if (event.key === "-") matrix.zoom(1 / 1.5);
  else if (event.key === "0") matrix.fit();
  else return;
  event.preventDefault();
}

// The cell that a key leads to: [row, column], or null for other keys.
function aim({ map, cross }, { key, ctrlKey }) {
  const [row, column] = [cross?.row ?? 0, cross?.column ?? 0];
  if (MOVES[key]) return [row + MOVES[key][0], column + MOVES[key][1]];
  const far = {
    Home: () => [ctrlKey ? 0 : row, 0], End: () => [ctrlKey ? map.rows - 1 : row, map.columns - 1],
    PageUp: () => [row - PAGE, column], PageDown: () => [row + PAGE, column], m: () => [row, largest(map, row)],
  };
  return Object.hasOwn(far, key) ? far[key]() : null;
}

// The wheel pans what is zoomed and leaves the page alone otherwise; with Control (or two fingers) it zooms.
function wheel(matrix, event) {
  if (event.ctrlKey || event.metaKey) matrix.zoom(Math.exp(-event.deltaY * 0.004), matrix.pixel(event));
  else if (matrix.view.fits || !matrix.pan(event.deltaX, event.deltaY)) return;
  event.preventDefault();
}

function move(matrix, event, fingers) {
  const finger = fingers.get(event.pointerId);
  if (!finger) return matrix.hover(matrix.view.at(...matrix.pixel(event)));
  const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
  if (!finger.moved && Math.hypot(dx, dy) < STILL) return undefined;
  if (!finger.moved) matrix.canvas.setPointerCapture(event.pointerId);
  finger.moved = true;
  if (fingers.size === 2) pinch(matrix, event, finger, fingers);
  else matrix.pan(-dx, -dy);
  [finger.x, finger.y] = [event.clientX, event.clientY];
  return undefined;
}

function pinch(matrix, event, finger, fingers) {
  const other = [...fingers.values()].find((each) => each !== finger);
  const apart = (x, y) => Math.max(10, Math.hypot(x - other.x, y - other.y));
  const middle = { clientX: (event.clientX + other.x) / 2, clientY: (event.clientY + other.y) / 2 };
  matrix.zoom(apart(event.clientX, event.clientY) / apart(finger.x, finger.y), matrix.pixel(middle));
}

function lift(matrix, event, fingers) {
  const finger = fingers.get(event.pointerId);
  fingers.delete(event.pointerId);
  if (!finger || finger.moved) return;
  const cell = matrix.view.at(...matrix.pixel(event));
  if (cell) matrix.go(cell.row, cell.column);
}
