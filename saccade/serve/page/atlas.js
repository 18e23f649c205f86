// The atlas: every head of every layer as a thumbnail with what is known of it, sorted, loaded when it comes into view;
// and beside each whether it matters.

import { isAbort } from "./api.js";
import { Bitmap } from "./bitmap.js";
import { find, make, reveal } from "./element.js";
import { Queue } from "./queue.js";
import { rove, stop } from "./roving.js";
import { smallOf } from "./sides.js";
import { onTheme, theme } from "./theme.js";
import { short } from "./token.js";

const THUMB = "button.thumb";

/** A layer's name for a narrow place: stack, number and kind. */
export function brief(layer) {
  if (layer.title) return layer.title;
  return `${layer.stack} ${layer.number} ${layer.kind}`;
}

/** The atlas panel. `onchoose(layer, head)` hears of the head that was chosen. */
export class Atlas {
  constructor({ onchoose, onsort, onproblem }) {
    this.root = find("atlas");
    this.onchoose = onchoose;
    this.onproblem = onproblem;
    this.queue = new Queue(2);
    this.look = null;
    this.sort = "layer";
    this.options = {};
    this.seen = new IntersectionObserver((entries) => this.#reveal(entries), { rootMargin: "120px" });
    rove(this.root, THUMB, () => this.#across());
    find("atlas-sort").addEventListener("change", (event) => onsort(event.target.value));
    find("ablate").addEventListener("click", () => this.#ablate());
    onTheme(() => this.#repaint());
  }

  /** Shows the heads of an inspection. options: words and hide, as of the large map. */
  show(look, options, sort) {
    const same = this.look === look && JSON.stringify(options) === JSON.stringify(this.options) && sort === this.sort;
    if (same) return;
    this.queue.drop();
    this.seen.disconnect();
    Object.assign(this, { look, options, sort });
    find("atlas-sort").value = sort;
    this.thumbs = look.layers.flatMap((layer) => layer.heads.map((about, head) => this.#thumb(layer, head, about)));
    this.root.replaceChildren(...(sort === "layer" ? this.#layers() : [this.#sorted()]));
    stop(this.root, THUMB);
    for (const each of this.thumbs) this.seen.observe(each.button);
    this.#matter();
  }

  /** Asks for nothing more: what it showed is forgotten. */
  clear() {
    this.queue.drop();
    this.seen.disconnect();
    this.look = null;
  }

  /** Marks the head that is shown large. */
  choose(layer, head) {
    for (const each of this.thumbs ?? []) {
      const near = each.layer.name === layer;
      const mine = near && String(each.head) === head;
      each.button.setAttribute("aria-pressed", mine);
      each.button.classList.toggle("near", near);
      if (!mine) continue;
      stop(this.root, THUMB, each.button);
      reveal(this.root, each.button);
    }
  }

  #thumb(layer, head, about) {
    const canvas = make("canvas", { width: 1, height: 1 });
    const badges = about.badges.map((badge) => make("span", { class: "badge", text: badge }));
    const far = about.distance == null ? [] : [`distance ${short(about.distance)}`];
    const label = [brief(layer), `head ${head}`, `entropy ${short(about.entropy)}`, ...far, ...about.badges].join(", ");
    const bar = make("span", { class: "matter" });
    const name = this.sort === "layer" ? `head ${head}` : `${brief(layer)} · ${head}`;
    const button = make("button", {
      type: "button", class: "thumb", "aria-label": label, "aria-pressed": "false", title: label,
      onclick: () => this.onchoose(layer.name, String(head)),
    }, canvas, make("span", { class: "name", text: name }), make("span", { class: "badges" }, ...badges), bar);
    return { layer, head, about, canvas, button, bar, map: null };
  }

  #layers() {
    return this.look.layers.map((layer) => {
      const mine = this.thumbs.filter((each) => each.layer === layer).map((each) => each.button);
      const mean = make("button", {
        type: "button", class: "plain", text: brief(layer), title: `${layer.name}: the mean over its heads`,
        onclick: () => this.onchoose(layer.name, "mean"),
      });
      const heads = make("div", { class: "thumbs" }, ...mine);
      return make("div", { class: "stratum" }, make("h3", { class: "layer" }, mean), heads);
    });
  }

  #sorted() {
    const key = KEYS[this.sort] ?? KEYS.entropy;
    const order = [...this.thumbs].sort((a, b) => key(a, this.look) - key(b, this.look));
    return make("div", { class: "thumbs" }, ...order.map((each) => each.button));
  }

  #across() {
    const [first, ...rest] = [...this.root.querySelectorAll(THUMB)];
    const next = rest.findIndex((each) => each.offsetTop !== first.offsetTop);
    return next < 0 ? 1 : next + 1;
  }

  #reveal(entries) {
    for (const { isIntersecting, target } of entries) {
      const each = this.thumbs.find((thumb) => thumb.button === target);
      if (!isIntersecting || !each) continue;
      this.seen.unobserve(target);
      this.#load(each, this.look);
    }
  }

  async #load(each, look) {
    try {
      const size = smallOf(look.sides[each.layer.columns]).cells;
      const options = { ...this.options, head: each.head, size, type: "uint8" };
      each.map = await this.queue.add((signal) => look.map(each.layer.name, options, signal));
      paintThumb(each, look);
    } catch (problem) {
      if (!isAbort(problem)) each.button.classList.add("failed");
    }
  }

  #repaint() {
    for (const each of this.thumbs ?? []) if (each.map) paintThumb(each, this.look);
  }

  // Layer after layer, saying how far it is; what is known already stays.
  async #ablate() {
    const { look } = this;
    const [button, note] = [find("ablate"), find("ablate-told")];
    button.disabled = true;
    try {
      for (const [i, layer] of look.layers.entries()) {
        note.textContent = `Silencing each head of layer ${i + 1} of ${look.layers.length} …`;
        await look.ablation(layer.name);
        if (look !== this.look) return;
        this.#matter();
      }
      if (this.sort === "importance") this.#again();
    } catch (problem) {
      if (!isAbort(problem)) this.onproblem(problem);
    } finally {
      button.disabled = false;
      if (look === this.look) this.#matter();
    }
  }

  #again() {
    const { look, options, sort } = this;
    this.look = null;
    this.show(look, options, sort);
  }

  // A bar a head: to the left where silencing it hurts.
  #matter() {
    const { look } = this;
    const known = look.layers.filter((layer) => look.ablations.has(layer.name));
    const top = Math.max(1e-9, ...known.flatMap((layer) => look.ablations.get(layer.name).heads.map(Math.abs)));
    for (const each of this.thumbs) {
      const change = look.ablations.get(each.layer.name)?.heads[each.head];
      each.bar.replaceChildren();
      if (change !== undefined) each.bar.append(...strip(change, top));
    }
    this.#sum(known.length);
  }

  #sum(known) {
    const { matters, layers } = this.look;
    find("ablate").hidden = matters === null;
    const note = find("ablate-told");
    if (matters === null) note.textContent = "There is nothing here to measure a head's importance by.";
    else if (known === layers.length) note.textContent = `Change of ${matters} without each head; blue: it gets worse.`;
    else if (!known) note.textContent = `Silence each head in turn and see how ${matters} changes.`;
  }
}

const KEYS = {
  entropy: ({ about }) => about.entropy,
  distance: ({ about }) => about.distance ?? Infinity,
  importance: ({ layer, head }, look) => look.ablations.get(layer.name)?.heads[head] ?? Infinity,
};

function strip(change, top) {
  const bar = make("span", { class: change < 0 ? "loss" : "gain" });
  bar.style.inlineSize = `${(Math.abs(change) / top) * 50}%`;
  const text = `${change > 0 ? "+" : ""}${short(change)}`;
  return [make("span", { class: "axis" }, bar), make("span", { class: "number", text })];
}

function paintThumb({ canvas, map, layer }, look) {
  const [rows, columns] = [look.sides[layer.rows], look.sides[layer.columns]];
  const { small } = smallOf(columns);
  if (small) return small(canvas, map, { rows, columns, borders: layer.borders });
  const { canvas: picture } = new Bitmap(map, theme()).level(1);
  canvas.width = picture.width;
  canvas.height = picture.height;
  return canvas.getContext("2d").drawImage(picture, 0, 0);
}
