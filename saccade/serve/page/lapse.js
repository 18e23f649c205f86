// Time-lapse: the same tokens through the snapshots of a training, so that attention is seen being learned.

import { find } from "./element.js";

const PACE = 550; // milliseconds a snapshot
const CALM = 1600; // the same where the user prefers reduced motion

/** The slider over the steps of a run. `onstep(step, playing)` gives a promise of having shown it. */
export class Lapse {
  constructor({ onstep }) {
    this.onstep = onstep;
    this.steps = [];
    this.last = 0;
    this.playing = false;
    this.slider = find("lapse-slider");
    this.slider.addEventListener("input", () => {
      this.pause();
      this.#go();
    });
    find("lapse-play").addEventListener("click", () => (this.playing ? this.pause() : this.#play()));
  }

  /** The snapshots of a run and its last step; the panel hides where there are none. */
  offer(snapshots, last) {
    this.halt();
    this.steps = [...new Set([...snapshots, last])].sort((a, b) => a - b);
    this.last = last;
    find("lapse").hidden = this.steps.length < 2;
    this.slider.max = this.steps.length - 1;
  }

  /** Shows where we are: a step, or "" for the last. */
  show(step) {
    const at = step === "" ? this.steps.indexOf(this.last) : this.steps.indexOf(Number(step));
    this.slider.value = at < 0 ? this.steps.length - 1 : at;
    this.#label();
  }

  /** Stands still at the step that is shown. */
  pause() {
    if (!this.playing) return;
    this.halt();
    this.onstep(this.#step(), false);
  }

  /** Stops playing without showing a step again. */
  halt() {
    this.playing = false;
    this.#button();
  }

  async #play() {
    this.playing = true;
    this.#button();
    if (Number(this.slider.value) >= this.steps.length - 1) this.slider.value = 0;
    else this.slider.value = Number(this.slider.value) + 1;
    while (this.playing) {
      const pace = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM : PACE;
      const rest = new Promise((resolve) => setTimeout(resolve, pace));
      await this.#go();
      await rest;
      if (!this.playing) return;
      if (Number(this.slider.value) >= this.steps.length - 1) return this.pause();
      this.slider.value = Number(this.slider.value) + 1;
    }
  }

  async #go() {
    this.#label();
    await this.onstep(this.#step(), this.playing);
  }

  #step() {
    const step = this.steps[Number(this.slider.value)];
    return step === this.last ? "" : String(step);
  }

  #label() {
    const step = this.steps[Number(this.slider.value)];
    const label = step === this.last ? `step ${step}, the trained run` : `step ${step}`;
    find("lapse-step").textContent = label;
    this.slider.setAttribute("aria-valuetext", label);
  }

  #button() {
    const button = find("lapse-play");
    button.textContent = this.playing ? "Pause" : "Play";
    button.setAttribute("aria-label", `${button.textContent} the training`);
  }
}
