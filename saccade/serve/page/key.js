// The key of the server: asked for in a dialog, kept for this tab by api.js, never in the address.

import { find } from "./element.js";

const FIRST = "Whoever started it knows the key. It stays in this tab and is forgotten with it.";
const WRONG = "The server did not accept this key. Look for typing errors and try again.";

/** Asks the user for the key; gives it, or null. `again` says that the one before was refused. */
export function askKey(again) {
  const [dialog, input] = [find("key"), find("key-input")];
  find("key-told").textContent = again ? WRONG : FIRST;
  input.value = "";
  return new Promise((resolve) => {
    const control = new AbortController();
    const done = (key) => {
      control.abort();
      dialog.close();
      resolve(key);
    };
    const { signal } = control;
    find("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      done(input.value.trim() || null);
    }, { signal });
    find("key-cancel").addEventListener("click", () => done(null), { signal });
    dialog.addEventListener("cancel", () => done(null), { signal });
    dialog.showModal();
    input.focus();
  });
}
