// Which part of a matrix is seen, and how large: arithmetic of zooming and panning, in cells and pixels.

const LARGEST = 44; // pixels of a cell

/** A view of `columns` x `rows` cells through a window of pixels: `cell` pixels a cell, `x` and `y` the cell in its
 *  first corner. */
export class Viewport {
  constructor(columns, rows) {
    this.columns = columns;
    this.rows = rows;
    this.width = this.height = 1;
    this.cell = 1;
    this.x = this.y = 0;
  }

  /** The pixels of a cell when all of it is seen in a window. */
  whole(width = this.width, height = this.height) {
    return Math.min(LARGEST, width / this.columns, height / this.rows);
  }

  /** Whether all of it is seen. */
  get fits() {
    return this.cell <= this.whole() * 1.0001;
  }

  /** Gives the window another size and keeps what is seen, or shows all where all was seen. */
  resize(width, height, again = false) {
    const all = again || this.fits;
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    if (all) this.fit();
    else this.#clamp();
  }

  /** Shows all of it. */
  fit() {
    this.cell = this.whole();
    this.x = this.y = 0;
  }

  /** Zooms around a pixel of the window, which stays where it is. */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [column, row] = [this.x + px / this.cell, this.y + py / this.cell];
    const least = this.whole();
    this.cell = Math.max(least, Math.min(Math.max(LARGEST, least), this.cell * factor));
    this.x = column - px / this.cell;
    this.y = row - py / this.cell;
    this.#clamp();
  }

  /** Moves by pixels; says whether there was anywhere to go. */
  pan(dx, dy) {
    const before = [this.x, this.y];
    this.x += dx / this.cell;
    this.y += dy / this.cell;
    this.#clamp();
    return before[0] !== this.x || before[1] !== this.y;
  }

  /** The cell under a pixel, or null beside the matrix. */
  at(px, py) {
    const [column, row] = [Math.floor(this.x + px / this.cell), Math.floor(this.y + py / this.cell)];
    const inside = column >= 0 && row >= 0 && column < this.columns && row < this.rows;
    return inside && px >= 0 && py >= 0 ? { row, column } : null;
  }

  /** Moves as little as it takes to see a cell. */
  reveal(row, column) {
    const [wide, high] = [this.width / this.cell, this.height / this.cell];
    this.x = Math.max(Math.min(this.x, column), column + 1 - wide);
    this.y = Math.max(Math.min(this.y, row), row + 1 - high);
    this.#clamp();
  }

  #clamp() {
    this.x = Math.max(0, Math.min(this.x, this.columns - this.width / this.cell));
    this.y = Math.max(0, Math.min(this.y, this.rows - this.height / this.cell));
  }
}
