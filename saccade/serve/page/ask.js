// Asking a run what it says to an input, as /v1/models says: by its route, whole or piece by piece.

import { json, stream } from "./api.js";

const ALTERNATIVES = 5;

/** Asks a run for its answer. `onpieces` hears of each piece: {text, probability}. Gives {id, text, score, note}. */
export async function ask({ name, asks }, value, options, onpieces, signal) {
  const chosen = Object.fromEntries(asks.options.map((option) => [option, options[option]]));
  const body = { model: name, [asks.field]: value, ...chosen };
  return (asks.streams ? piecewise : whole)(asks.route, body, onpieces, signal);
}

async function piecewise(route, body, onpieces, signal) {
  return collect(stream(route, { ...body, stream: true, logprobs: ALTERNATIVES }, signal), onpieces);
}

async function whole(route, body, onpieces, signal) {
  const { id, results: [result] } = await json(route, { method: "POST", body, signal });
  onpieces([{ text: result.text, probability: null }]);
  const likely = typeof result.value === "string" ? Math.exp(result.score) : null; // a number has no probability
  return { id, text: result.text, score: likely, note: result.note };
}

async function collect(events, onpieces) {
  let [id, text] = [null, ""];
  for await (const event of events) {
    id ??= event.id;
    const choice = event.choices?.[0];
    if (!choice) continue;
    text += choice.text;
    const pieces = piecesOf(choice);
    if (pieces.length) onpieces(pieces);
  }
  return { id, text, score: null };
}

// Tokens with their probabilities where the event has them, else its text alone.
function piecesOf({ text, logprobs }) {
  if (!logprobs?.tokens?.length) return text ? [{ text, probability: null }] : [];
  return logprobs.tokens.map((token, i) => ({ text: token, probability: Math.exp(logprobs.token_logprobs[i] ?? 0) }));
}
