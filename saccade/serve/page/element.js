// Elements of the page. Whatever comes from a model or a user becomes text here, never markup.

/** An element with attributes, listeners (`on…`) and children: elements or texts. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** An element of a drawing, with attributes and a text. */
export function draw(tag, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

/** The element of index.html with this id. */
export function find(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element;
}

/** Fills a <select> with [value, text] pairs, in groups where a third entry names one, and chooses a value. */
export function fill(select, options, chosen) {
  const groups = new Map();
  select.replaceChildren();
  for (const [value, text, group] of options) {
    const option = make("option", { value, text });
    if (!group) select.append(option);
    else if (groups.has(group)) groups.get(group).append(option);
    else {
      groups.set(group, make("optgroup", { label: group }, option));
      select.append(groups.get(group));
    }
  }
  select.value = chosen;
}

/** Scrolls a box, and the box alone, until an element inside it is seen. */
export function reveal(box, element) {
  const [outer, inner] = [box.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + 24;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 8;
}

/** A file for the user to keep. */
export function keep(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
