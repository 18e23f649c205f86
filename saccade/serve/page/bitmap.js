// A matrix as pixels, painted once: its cells, and smaller copies whose pixels are the maximum of what they cover, so
// that one bright cell among a million is still seen from afar.

import { diverging, place, sequential } from "./colour.js";

const SMALL = 128; // cells a side that need no smaller copy

/** The pictures of a map (values, rows, columns, top, signed) in a theme, the largest first. Where a map has `shades`,
 *  they are painted instead of its values. */
export class Bitmap {
  constructor(map, theme) {
    this.scale = map.signed ? diverging(theme) : sequential(theme);
    this.map = map;
    this.levels = [{ values: map.shades ?? map.values, rows: map.rows, columns: map.columns, step: 1, canvas: null }];
  }

  /** The picture that fits a cell of this many device pixels: its canvas, and how many cells a pixel covers. */
  level(pixels) {
    let at = 0;
    for (let reach = pixels; reach < 0.75 && this.#deeper(at); reach *= 2) at++;
    const level = this.levels[at];
    level.canvas ??= paint(level, this.map, this.scale);
    return level;
  }

  #deeper(at) {
    const level = this.levels[at];
    if (Math.max(level.rows, level.columns) <= SMALL) return false;
    this.levels[at + 1] ??= halve(level);
    return true;
  }
}

/** A canvas with a pixel for each cell. */
export function paint({ values, rows, columns }, { top, signed }, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  if (!rows || !columns) return canvas;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const packed = pack(scale);
  for (let i = 0; i < values.length; i++) pixels[i] = packed[place(values[i], top, signed)];
  context.putImageData(image, 0, 0);
  return canvas;
}

function pack(scale) {
  const bytes = new Uint8ClampedArray(scale.length / 3 * 4).fill(255);
  for (let i = 0; i < scale.length / 3; i++) bytes.set(scale.subarray(3 * i, 3 * i + 3), 4 * i);
  return new Uint32Array(bytes.buffer);
}

// Half as many cells a side; each is, of the four it covers, the one farthest from zero.
function halve({ values, rows, columns, step }) {
  const [R, C] = [Math.ceil(rows / 2), Math.ceil(columns / 2)];
  const made = new Float32Array(R * C);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const [value, at] = [values[i * columns + j], (i >> 1) * C + (j >> 1)];
      if (Math.abs(value) > Math.abs(made[at])) made[at] = value;
    }
  }
  return { values: made, rows: R, columns: C, step: step * 2, canvas: null };
}
