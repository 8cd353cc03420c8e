// Builds elements. Text reaches the page through text nodes and attributes only: a subscriber chooses its own name,
// so no text is ever parsed as HTML.

/** An element: `props` are attributes, and listeners under `onNAME`; children are nodes or texts. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter(child => child !== null && child !== undefined));
  return element;
}

/** Sets the text of an element if it differs, so that a still value costs no layout. */
export function setText(element, text) {
  const value = String(text);
  if (element.firstChild?.nodeType === 3 && element.childNodes.length === 1) {
    if (element.firstChild.data !== value) element.firstChild.data = value;
  } else if (element.textContent !== value) element.textContent = value;
}

/** Sets an attribute if it differs. */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu;

/** A text from outside, with its invisible and direction-changing characters written as \u{...}. */
export function visible(text) {
  return String(text).replace(HIDDEN, found => `\\u{${found.codePointAt(0).toString(16)}}`);
}

/** A name from outside: one line, isolated from the direction of its surroundings. */
export function nameOf(text) {
  const shown = text === "" ? "(no name)" : visible(text);
  return h("bdi", { class: "name", title: shown }, shown);
}

/** A table with a caption and column headings; a column is `[heading, class]`. */
export function table(caption, columns, rows) {
  const head = columns.map(([text, kind]) => h("th", { scope: "col", class: kind }, text));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "unseen" }, caption), h("thead", null, h("tr", null, head)), h("tbody", null, rows)));
}

/** A row of a table; a cell is a text or a node, and takes its class from the column. */
export function tableRow(columns, cells) {
  return h("tr", null, cells.map((cell, at) => at === 0
    ? h("th", { scope: "row", class: columns[at][1] }, cell)
    : h("td", { class: columns[at][1] }, cell)));
}

/** A card with a heading. */
export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", null, title), children);
}

/** The message of a fault as a sentence. */
export function sentence(fault) {
  const text = visible(fault.message);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** A sentence in place of content that is absent. */
export function absent(text) {
  return h("p", { class: "absent" }, text);
}

/** A word for a state, with a colour that repeats what the word says. */
export function badge(text, kind) {
  return h("span", { class: "badge", "data-kind": kind }, visible(text));
}

/** The heading of a view, which takes the focus when the view opens. */
export function heading(text, ...more) {
  return h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, text), more);
}

/** Says something to screen readers. */
export function speak(text) {
  document.getElementById("spoken").textContent = text;
}
