// Talking to the server: JSON, bytes and streams, the key where it asks for one, and its errors as sentences.

const KEY = "saccade.key";

/** What the server refused, in its own words. */
export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Whether an error only says that we ourselves gave up waiting. */
export function isAbort(problem) {
  return problem?.name === "AbortError";
}

let asker = null;
let asking = null; // the one dialog that all refused requests wait for

/** Sets how the user is asked for the key: a function that gives a promise of it, or of null. */
export function onKey(ask) {
  asker = ask;
}

/** The answer to a request as JSON. */
export async function json(path, options) {
  return (await request(path, options)).json();
}

/** Sends a request, with the key if there is one; asks for it on 401; raises a Problem on every other refusal. */
export async function request(path, { method = "GET", body, signal } = {}) {
  for (;;) {
    const key = remembered();
    const response = await send(path, method, body, signal, key);
    if (response.ok) return response;
    const problem = await refused(response);
    if (response.status !== 401 || !(await renewed(key))) throw problem;
  }
}

/** The events of a streamed answer, parsed, one after another. */
export async function* stream(path, body, signal) {
  const response = await request(path, { method: "POST", body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for await (const data of events(reader)) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Problem(event.error.message, 0);
      yield event;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function* events(reader) {
  let rest = "";
  for (;;) {
    const { value, done } = await reached(reader.read());
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (lines.length) yield lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    }
  }
}

async function send(path, method, body, signal, key) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  return reached(fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) }));
}

// What comes over the network, or a sentence where nothing does.
async function reached(coming) {
  try {
    return await coming;
  } catch (problem) {
    if (isAbort(problem)) throw problem;
    throw new Problem("The server does not answer: is it still running?", 0);
  }
}

async function refused(response) {
  const fallback = `The server answered ${response.status} ${response.statusText}.`;
  try {
    const said = await response.json();
    return new Problem(said.error?.message || fallback, response.status);
  } catch {
    return new Problem(fallback, response.status);
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

// Whether another try makes sense: somebody gave a key since the refused one was sent.
async function renewed(key) {
  if (remembered() !== key) return true;
  asking ??= Promise.resolve(asker ? asker(Boolean(key)) : null).finally(() => (asking = null));
  const given = await asking;
  if (given) sessionStorage.setItem(KEY, given);
  return Boolean(given);
}
