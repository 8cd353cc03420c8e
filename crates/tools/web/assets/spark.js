// A curve of the last minutes in a row of a table. Only rows that can be seen are drawn.

import { h, setAttribute } from "./dom.js";

/** The time that a curve covers. */
export const SPAN_S = 300;
const WIDTH = 120, HEIGHT = 20, MINUTES = SPAN_S / 60;

const SVG = "http://www.w3.org/2000/svg";
const shape = (name, attributes) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const sparks = new WeakMap();
const watch = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    const spark = sparks.get(target);
    if (!spark) continue;
    spark.seen = isIntersecting;
    if (isIntersecting) spark.draw();
  }
}, { rootMargin: "100px" });

/** The axis of time: a mark for each minute. */
const MARKS = Array.from({ length: MINUTES + 1 }, (_, at) => `M${(at * WIDTH / MINUTES).toFixed(1)} ${HEIGHT}v3`).join("");

/** The heading of a column of curves, with the ends of their axis. */
export const sparkHead = () => h("span", { class: "spark axis", "aria-hidden": "true" }, h("span", null, `${MINUTES} min ago`), h("span", null, "now"));

export class Spark {
  constructor() {
    this.curve = shape("path", { class: "curve", d: "" });
    this.element = shape("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT + 3}`, "aria-hidden": "true" });
    this.element.append(shape("path", { class: "marks", d: `M0 ${HEIGHT}H${WIDTH}${MARKS}` }), this.curve);
    this.seen = false;
    sparks.set(this.element, this);
    watch.observe(this.element);
  }

  /** Takes columns of times, in seconds, and values. */
  show(times, values) {
    this.read = [times, values];
    if (this.seen) this.draw();
  }

  draw() {
    if (!this.read) return;
    const [times, values] = this.read, to = times.at(-1), first = times.findIndex(time => time >= to - SPAN_S);
    let most = 0, d = "", gap = true;
    for (let at = Math.max(first, 0); at < times.length; at += 1) most = Math.max(most, values[at] || 0);
    for (let at = Math.max(first, 0); at < times.length; at += 1) {
      const value = values[at];
      if (value === null || value === undefined) {
        gap = true;
        continue;
      }
      const x = (WIDTH * (1 - (to - times[at]) / SPAN_S)).toFixed(1), y = (HEIGHT - 1 - (HEIGHT - 2) * (most ? value / most : 0)).toFixed(1);
      d += gap ? `M${x} ${y}h.1` : `L${x} ${y}`;
      gap = false;
    }
    setAttribute(this.curve, "d", d);
  }

  close() {
    watch.unobserve(this.element);
  }
}
