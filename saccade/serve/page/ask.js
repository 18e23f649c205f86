// Asking a run: how a text goes on, what it becomes in translation, or what class it is of; piece by piece.

import { json, stream } from "./api.js";

const ALTERNATIVES = 5;

/** Asks a run for its answer. `onpieces` hears of each piece: {text, probability}. Gives {id, text, score}. */
export async function ask(run, text, options, onpieces, signal) {
  return ROUTES[run.task](run, text, options, onpieces, signal);
}

async function write(run, text, { tokens, temperature, seed }, onpieces, signal) {
  const body = {
    model: run.name, prompt: text, stream: true, logprobs: ALTERNATIVES, seed,
    max_tokens: tokens, temperature,
  };
  return collect(stream("/v1/completions", body, signal), onpieces);
}

async function translate(run, text, { tokens }, onpieces, signal) {
  const body = { model: run.name, text, stream: true, logprobs: ALTERNATIVES, max_tokens: tokens };
  return collect(stream("/v1/translate", body, signal), onpieces);
}

// What was classified is not kept by its id: it is looked into by its text.
async function classify(run, text, options, onpieces, signal) {
  const said = await json("/v1/predict", { method: "POST", body: { model: run.name, input: text }, signal });
  const [result] = said.results;
  onpieces([{ text: result.text, probability: null }]);
  return { id: null, text: result.text, score: Math.exp(result.score) };
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

// Tokens with their probabilities where the event tells them, else its text alone.
function piecesOf({ text, logprobs }) {
  if (!logprobs?.tokens?.length) return text ? [{ text, probability: null }] : [];
  return logprobs.tokens.map((token, i) => ({ text: token, probability: Math.exp(logprobs.token_logprobs[i] ?? 0) }));
}

const ROUTES = { write, translate, classify };
