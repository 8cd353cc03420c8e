// A table of many rows of which only those in view exist. Its rows all have one height.

import { h, setAttribute } from "./dom.js";

/** Rows beyond each edge of the view, so that slow scrolling shows no empty place. */
const BEYOND = 6;

/** A list. `columns` are `[heading, class]`; `cells(row)` are the contents of a row; a row's first cell has its link. */
export class List {
  constructor(caption, columns, cells) {
    this.columns = columns;
    this.cells = cells;
    this.rows = [];
    this.first = this.last = 0;
    this.above = h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
    this.below = h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
    this.body = h("tbody", null, this.above, this.below);
    this.table = h("table", { class: "list" }, h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", { "aria-rowindex": "1" }, columns.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), this.body);
    this.element = h("div", { class: "window", tabindex: "0", role: "region", "aria-label": caption,
      onscroll: () => this.soon(), onkeydown: event => this.key(event) }, this.table);
    new ResizeObserver(() => this.soon()).observe(this.element);
  }

  /** Shows other rows, from the first on. */
  set(rows) {
    this.rows = rows;
    this.first = this.last = 0;
    setAttribute(this.table, "aria-rowcount", rows.length + 1);
    while (this.above.nextSibling !== this.below) this.above.nextSibling.remove();
    this.element.scrollTop = 0;
    this.draw();
  }

  soon() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.draw();
    });
  }

  get height() {
    return this.tall ||= parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 36;
  }

  draw() {
    const { scrollTop, clientHeight } = this.element, { height } = this;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / height) - BEYOND, this.rows.length));
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / height) + BEYOND);
    if (first === this.first && last === this.last) return;
    const kept = new Map();
    for (let at = this.first; at < this.last; at += 1) {
      const row = this.above.nextSibling;
      if (at >= first && at < last) kept.set(at, row);
      row.remove();
    }
    const fresh = document.createDocumentFragment();
    for (let at = first; at < last; at += 1) fresh.append(kept.get(at) || this.line(at));
    this.body.insertBefore(fresh, this.below);
    this.above.firstChild.style.height = `${first * height}px`;
    this.below.firstChild.style.height = `${(this.rows.length - last) * height}px`;
    this.first = first;
    this.last = last;
  }

  line(at) {
    const cells = this.cells(this.rows[at]);
    return h("tr", { "aria-rowindex": at + 2 }, cells.map((cell, i) => i === 0
      ? h("th", { scope: "row", class: this.columns[i][1] }, cell) : h("td", { class: this.columns[i][1] }, cell)));
  }

  key(event) {
    const at = Number(event.target.closest("tr")?.getAttribute("aria-rowindex") || 1) - 2;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 2);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.rows.length - 1 }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey || !this.rows.length) return;
    event.preventDefault();
    this.focus(next);
  }

  /** Moves the focus to a row. */
  focus(at) {
    const to = Math.max(0, Math.min(at, this.rows.length - 1)), { height } = this, top = to * height;
    const { scrollTop, clientHeight } = this.element, head = this.table.tHead.offsetHeight;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + height > scrollTop + clientHeight - head) this.element.scrollTop = top + height - clientHeight + head;
    this.draw();
    this.body.querySelector(`[aria-rowindex="${to + 2}"] a`)?.focus({ preventScroll: true });
  }
}
