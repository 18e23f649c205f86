// The runs of the server: what each can do, and which one is asked.

import { json } from "./api.js";
import { fill, find, make } from "./element.js";
import { hint, known, samplesOf, typed } from "./inputs.js";

/** The runs that can be asked here: {name, asks, step, snapshots, …}, as /v1/models lists them. */
export async function listRuns() {
  const { data } = await json("/v1/models");
  const able = data.filter(({ saccade }) => saccade?.asks && known(saccade.asks.inputs));
  return able.map((each) => ({ snapshots: [], ...each.saccade, name: each.id }));
}

/** Whether two runs are asked alike: what one is given, the other can be given too. */
export function alike({ asks: one }, { asks: other }) {
  const kinds = ({ route, inputs }) => String([route, ...inputs.map(({ kind }) => kind)]);
  return kinds(one) === kinds(other);
}

/** Offers the runs in the header. */
export function offerRuns(runs, chosen) {
  fill(find("run"), runs.map((run) => [run.name, run.name]), chosen);
  find("run").disabled = !runs.length;
}

/** Shows what a run is and which options it takes. */
export function describe(run) {
  const [millions, thousands] = [(run.parameters / 1e6).toFixed(1), Math.round(run.parameters / 1e3)];
  const size = run.parameters >= 1e6 ? `${millions} M` : `${thousands} k`;
  const { asks } = run;
  find("run-about").textContent = `${asks.does} · ${depth(run)} · ${size} parameters · step ${run.step}`;
  find("give").textContent = hint(asks.inputs);
  find("ask-hint").textContent = keys(asks);
  find("tokens-field").hidden = !asks.options.includes("max_tokens");
  find("temperature-field").hidden = !asks.options.includes("temperature");
  find("temperature").placeholder = run.decode?.temperature ?? "";
  find("tokens").placeholder = run.decode?.max_tokens ?? "";
}

/** Offers inputs of the kind that a run was made for; `onchoose` hears which, as the address keeps it. */
export function offerSamples({ asks, samples = [] }, onchoose) {
  const offers = samplesOf(asks.inputs, samples).map(([given, ...shown]) =>
    make("button", { type: "button", class: "plain sample", dir: "auto", onclick: () => onchoose(given) }, ...shown));
  find("samples").replaceChildren("For example", ...offers);
  find("samples").hidden = !offers.length;
}

function keys({ inputs, line }) {
  if (!inputs.some((input) => typed([input]))) return "";
  return line ? "Enter runs it" : "Ctrl + Enter runs it";
}

function depth({ encoder, decoder, heads }) {
  const layers = encoder && decoder ? `${encoder} + ${decoder}` : `${encoder || decoder}`;
  return `${layers} layers of ${heads} heads`;
}
