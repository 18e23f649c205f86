// The runs of the server: what each can do, and which one is asked.

import { json } from "./api.js";
import { fill, find, make } from "./element.js";

const KINDS = { write: "goes on with texts", translate: "translates", classify: "classifies" };
const LABELS = { write: "A text to go on from", translate: "A text to translate", classify: "A text to classify" };

/** The runs: {name, task, step, snapshots, …}, as /v1/models lists them. */
export async function listRuns() {
  const { data } = await json("/v1/models");
  const known = data.filter((each) => KINDS[each.saccade?.task]);
  return known.map((each) => ({ snapshots: [], ...each.saccade, name: each.id }));
}

/** Offers the runs in the header. */
export function offerRuns(runs, chosen) {
  fill(find("run"), runs.map((run) => [run.name, run.name]), chosen);
  find("run").disabled = !runs.length;
}

/** Says what a run is, and asks for what it needs. */
export function describe(run) {
  const [millions, thousands] = [(run.parameters / 1e6).toFixed(1), Math.round(run.parameters / 1e3)];
  const size = run.parameters >= 1e6 ? `${millions} M` : `${thousands} k`;
  find("run-about").textContent = `${KINDS[run.task]} · ${depth(run)} · ${size} parameters · step ${run.step}`;
  find("text-label").textContent = LABELS[run.task];
  find("ask-hint").textContent = run.task === "write" ? "Ctrl + Enter runs it" : "Enter runs it";
  find("tokens-field").hidden = find("temperature-field").hidden = run.task !== "write";
  find("temperature").placeholder = run.decode?.temperature ?? "";
  find("tokens").placeholder = run.decode?.max_tokens ?? "";
}

/** Offers inputs of the kind that a run was made for; `onchoose` hears which. */
export function offerSamples({ samples = [] }, onchoose) {
  const offers = samples.map((text) =>
    make("button", { type: "button", class: "plain sample", dir: "auto", text, onclick: () => onchoose(text) }));
  find("samples").replaceChildren("For example", ...offers);
  find("samples").hidden = !offers.length;
}

function depth({ encoder, decoder, heads }) {
  const layers = encoder && decoder ? `${encoder} + ${decoder}` : `${encoder || decoder}`;
  return `${layers} layers of ${heads} heads`;
}
