// A queue of requests: few at a time, in their order, and whatever nobody wants any more is dropped.

/** Runs jobs, at most `width` at once; `drop()` forgets those that have not begun and aborts the others. */
export class Queue {
  constructor(width = 2) {
    this.width = width;
    this.running = 0;
    this.waiting = [];
    this.control = new AbortController();
  }

  /** Runs `job(signal)` when its turn comes. */
  add(job) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ job, resolve, reject, signal: this.control.signal });
      this.#next();
    });
  }

  /** Forgets all that was asked for. */
  drop() {
    this.control.abort();
    this.control = new AbortController();
    for (const each of this.waiting.splice(0)) each.reject(new DOMException("dropped", "AbortError"));
  }

  async #next() {
    if (this.running >= this.width || !this.waiting.length) return;
    const { job, resolve, reject, signal } = this.waiting.shift();
    this.running++;
    try {
      resolve(await job(signal));
    } catch (problem) {
      reject(problem);
    } finally {
      this.running--;
      this.#next();
    }
  }
}
