// Light or dark: as the system says, or as the user chose.

const KEY = "saccade.theme";
const CHOICES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

/** The theme that is shown now, "light" or "dark". */
export function theme() {
  const chosen = choice();
  if (chosen !== "auto") return chosen;
  return system.matches ? "dark" : "light";
}

/** Calls back whenever the theme that is shown changes. */
export function onTheme(listener) {
  listeners.push(listener);
}

/** Lets a <select> choose the theme. */
export function bind(select) {
  select.value = choice();
  select.addEventListener("change", () => {
    try {
      localStorage.setItem(KEY, select.value);
    } catch {
      // A browser may forbid storage: the choice then lasts as long as the page.
    }
    apply(select.value);
  });
}

let kept = null;

function choice() {
  if (kept === null) {
    try {
      kept = localStorage.getItem(KEY);
    } catch {
      kept = "auto";
    }
  }
  return CHOICES.includes(kept) ? kept : "auto";
}

function apply(chosen) {
  kept = chosen;
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  for (const listener of listeners) listener(theme());
}

apply(choice());
system.addEventListener("change", () => apply(choice()));
