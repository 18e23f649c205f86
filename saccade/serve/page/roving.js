// One stop of the tab key for a group of many buttons; the arrow keys move inside it.

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Makes the elements of `group` that match `selector` one tab stop. `columns()` says how far up and down go. */
export function rove(group, selector, columns = () => 1) {
  group.addEventListener("keydown", (event) => {
    const items = [...group.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = aim(event.key, at, items.length, columns());
    if (to === null) return;
    event.preventDefault();
    stop(group, selector, items[to]);
    items[to].focus();
  });
  group.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) stop(group, selector, item);
  });
}

/** Makes one element of the group the tab stop; the first one where none is given. */
export function stop(group, selector, chosen = null) {
  const items = [...group.querySelectorAll(selector)];
  const target = items.includes(chosen) ? chosen : items[0];
  for (const item of items) {
    const place = item === target ? "0" : "-1";
    if (item.getAttribute("tabindex") !== place) item.setAttribute("tabindex", place);
  }
}

function aim(key, at, count, columns) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (!(key in MOVES)) return null;
  const far = key === "ArrowUp" || key === "ArrowDown" ? columns : 1;
  const to = at + MOVES[key] * far;
  return to >= 0 && to < count ? to : null;
}
