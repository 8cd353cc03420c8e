// A chart over time: uPlot with our axes, colours, legend, reading by pointer or keys, and a summary in words.

import { h, setText, setAttribute, speak } from "./dom.js";
import { clock } from "./format.js";

const COLOURS = 8;
/** A frame may spend this long on charts; the rest are drawn in the next frame. */
const FRAME_MS = 10;

const waiting = new Set();
const inView = new WeakMap();
const watch = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    const chart = inView.get(target);
    if (!chart) continue;
    chart.seen = isIntersecting;
    if (isIntersecting) soon(chart);
  }
}, { rootMargin: "200px" });
const resized = new ResizeObserver(entries => {
  for (const { target } of entries) inView.get(target)?.resize();
});
const all = new Set();

function soon(chart) {
  if (!waiting.size) requestAnimationFrame(drawSome);
  waiting.add(chart);
}

function drawSome() {
  const end = performance.now() + FRAME_MS;
  for (const chart of waiting) {
    waiting.delete(chart);
    if (chart.seen && chart.box.isConnected) chart.draw();
    if (performance.now() > end) break;
  }
  if (waiting.size) requestAnimationFrame(drawSome);
}

let inks = null;
function ink() {
  if (inks) return inks;
  const style = getComputedStyle(document.documentElement), value = name => style.getPropertyValue(name).trim();
  inks = { text: value("--muted"), grid: value("--grid"), panel: value("--panel"), font: `12px ${value("--font")}`,
    series: Array.from({ length: COLOURS }, (_, at) => value(`--c${at}`)) };
  return inks;
}

/** Draws every chart again in the colours of the theme. */
export function recolour() {
  inks = null;
  for (const chart of all) {
    chart.forget();
    soon(chart);
  }
}

/** Steps between the marks of an axis of bytes. */
const BINARY = Array.from({ length: 50 }, (_, at) => 2 ** at);

/** The end and the start of a picture that grows from one to five minutes. */
export const recent = (times, to) => ({ from: Math.min(to - 60, Math.max(times[0] ?? to, to - 300)), to });

/** The values without neighbours, which a line cannot show. */
function lonely(plot, series) {
  const values = plot.data[series], has = at => values[at] !== null && values[at] !== undefined;
  return values.reduce((found, _, at) => {
    if (has(at) && !has(at - 1) && !has(at + 1)) found.push(at);
    return found;
  }, []);
}

let last = 0;

/** The text of a mark on an axis, without zeros at its end: "0.5", not "0.500". */
const mark = text => text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");

/** A chart. `about`: `title`, `format` of a value, `axis` format, `stacked`, `binary` for bytes,
 * `colours`: a map to share with other charts,
 * `read()` that answers
 * `{ times, from, to, series: [{ name, values }] }`, `empty`: the text without any value, `top`: the least top of the axis. */
export class Chart {
  constructor(about) {
    this.about = about;
    this.seen = true;
    this.at = null;
    this.colours = about.colours || new Map();
    this.own = new Map();
    this.palette = this.colours;
    const id = `chart-${last += 1}`;
    this.summary = h("p", { id: `${id}-s`, class: "summary" }, "\u00a0");
    this.box = h("div", { class: "plot", tabindex: "0", role: "img", "aria-labelledby": `${id}-t`, "aria-describedby": `${id}-s`,
      onkeydown: event => this.key(event), onblur: () => this.point(null), onfocus: () => this.say() });
    this.blank = h("p", { class: "blank", hidden: true }, about.empty || "no data yet");
    this.legend = h("ul", { class: "legend" });
    this.items = [];
    this.element = h("figure", { class: about.stacked ? "card chart stacked" : "card chart", "data-chart": about.id },
      h("figcaption", null, h("h2", { id: `${id}-t` }, about.title), this.summary),
      h("div", { class: "frame" }, this.box, this.blank), this.legend);
    inView.set(this.box, this);
    watch.observe(this.box);
    resized.observe(this.box);
    all.add(this);
    this.update();
  }

  /** Reads and draws in one of the next frames. */
  update() {
    soon(this);
  }

  close() {
    watch.unobserve(this.box);
    resized.unobserve(this.box);
    all.delete(this);
    waiting.delete(this);
    this.forget();
  }

  forget() {
    this.plot?.destroy();
    this.plot = null;
    this.names = null;
  }

  resize() {
    if (!this.plot || !this.box.clientWidth) return;
    this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
  }

  draw() {
    const data = this.about.read();
    const above = least => data.series.filter(one => one.values.some(value => value !== null && value !== undefined && value >= least));
    let series = above(this.about.stacked ? Number.MIN_VALUE : -Infinity);
    this.crowded = series.length > COLOURS;
    if (this.crowded && !this.about.stacked) series = above(Number.MIN_VALUE);
    // A few names keep their colours in all charts. Of many, each chart shows others.
    this.palette = this.crowded ? this.own : this.colours;
    this.data = { ...data, series: this.about.stacked || this.crowded ? this.largest(series, data.times.length) : series };
    this.blank.hidden = this.data.series.length > 0;
    this.list();
    this.paint();
    this.tell();
  }

  // At most eight layers or lines; the smallest are one together. Colours stay with their names.
  largest(series, length) {
    const sum = one => one.values.reduce((all, value) => all + (value || 0), 0);
    const order = [...series].sort((a, b) => sum(b) - sum(a));
    if (series.length <= COLOURS) return this.inOrder(series);
    const kept = order.slice(0, COLOURS - 1), rest = order.slice(COLOURS - 1);
    const values = Array.from({ length }, (_, at) => rest.some(one => one.values[at] !== null)
      ? rest.reduce((all, one) => all + (one.values[at] || 0), 0) : null);
    return [...this.inOrder(kept), { name: `${rest.length} others`, values, other: true }];
  }

  inOrder(series) {
    const order = [...this.palette.keys()], place = name => (order.indexOf(name) + 1) || order.length + 1;
    return [...series].sort((a, b) => place(a.name) - place(b.name));
  }

  colour(one) {
    if (one.other) return COLOURS - 1;
    const { palette } = this, count = COLOURS - (this.crowded ? 1 : 0);
    if (!palette.has(one.name)) {
      const shown = new Set(this.data.series.map(other => other.name)), taken = new Set();
      // Charts that share their colours keep those of names that another one shows.
      for (const [name, at] of palette) if (palette === this.about.colours || shown.has(name)) taken.add(at); else palette.delete(name);
      palette.set(one.name, Array.from({ length: count }, (_, at) => at).find(at => !taken.has(at)) ?? 0);
    }
    return palette.get(one.name);
  }

  list() {
    const { series } = this.data, key = series.map(one => one.name).join("\n");
    if (key === this.listed) return this.figures();
    this.listed = key;
    this.items = series.map(one => h("b", { class: "n" }));
    this.legend.replaceChildren(...series.map((one, at) => h("li", null,
      h("span", { class: "swatch", "data-c": this.colour(one), "aria-hidden": "true" }), h("span", { class: "what" }, one.name), this.items[at])));
    this.figures();
  }

  // The values in the legend: those at the reading mark, or the latest.
  figures() {
    const { series, times } = this.data, at = this.at ?? times.length - 1;
    series.forEach((one, i) => setText(this.items[i], this.about.format(one.values[at] ?? null)));
  }

  heights() {
    const { series, times } = this.data;
    if (!this.about.stacked) return series.map(one => one.values);
    const sums = times.map(() => 0), layers = [];
    for (const one of series) {
      layers.push(times.map((_, at) => series.every(other => other.values[at] === null || other.values[at] === undefined)
        ? null : (sums[at] += one.values[at] || 0)));
    }
    // The highest layer is painted first, and lower layers cover its foot.
    return layers.reverse();
  }

  paint() {
    const { series, times } = this.data;
    if (!series.length || !this.box.clientWidth) return this.forget();
    const names = series.map(one => `${one.name} ${this.colour(one)}`).join("\n");
    if (names !== this.names) this.forget();
    this.names = names;
    const values = [times, ...this.heights()];
    if (this.plot) this.plot.setData(values);
    else this.plot = new uPlot(this.options(), values, this.box);
    if (this.at !== null) this.point(Math.min(this.at, times.length - 1));
  }

  options() {
    const { text, grid, font, series: colours } = ink(), { stacked } = this.about, line = { stroke: grid, width: 1 };
    const shown = stacked ? [...this.data.series].reverse() : this.data.series;
    return {
      width: this.box.clientWidth, height: this.box.clientHeight, pxAlign: 1, legend: { show: false }, padding: [8, 24, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !stacked, size: 7 }, sync: { key: this.about.sync || "past" } },
      scales: {
        x: { time: true, auto: false, range: () => [this.data.from, this.data.to] },
        y: { auto: true, range: (plot, low, high) => [0, Math.max((high || 0) * 1.08, this.about.top || 0) || 1] },
      },
      axes: [
        { stroke: text, font, grid: line, ticks: { show: false }, border: { show: true, stroke: grid, width: 1 }, size: 26, gap: 4, space: 72,
          values: (plot, at, axis, space, by) => at.map(time => clock(time, by < 60)) },
        { stroke: text, font, grid: line, ticks: { show: false }, size: 68, gap: 6, space: 34, incrs: this.about.binary ? BINARY : undefined,
          values: (plot, at) => at.map(value => value === null ? "" : mark((this.about.axis || this.about.format)(value))) },
      ],
      series: [{}, ...shown.map(one => {
        const colour = colours[this.colour(one)];
        return { stroke: colour, width: stacked ? 1 : 1.75, fill: stacked ? colour : undefined, spanGaps: false,
          points: stacked ? { show: false } : { show: true, size: 4, width: 0, fill: colour, filter: lonely } };
      })],
      hooks: { setCursor: [plot => this.moved(plot)] },
    };
  }

  moved(plot) {
    const index = plot.cursor.left >= 0 ? plot.cursor.idx : null;
    if (this.pointing || index === this.at) return;
    this.at = index ?? null;
    this.figures();
    this.tell();
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") this.point(null);
    if (by === undefined || !this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const end = this.data.times.length - 1;
    this.point(Math.min(Math.max((this.at ?? end) + by, 0), end));
    this.say();
  }

  point(at) {
    if (!this.plot) return;
    this.at = at;
    this.pointing = true;
    const left = at === null ? -10 : this.plot.valToPos(this.data.times[at], "x");
    this.plot.setCursor({ left, top: at === null ? -10 : 1 }, false);
    this.pointing = false;
    this.figures();
    this.tell();
  }

  // The reading mark's time and values, or the highest value in the picture.
  tell() {
    const { series, times } = this.data, { format } = this.about;
    if (!series.length) return setText(this.summary, "\u00a0");
    if (this.at !== null) return setText(this.summary, `at ${clock(times[this.at])}`);
    let most = -1, when = 0;
    const count = times.length;
    for (let at = 0; at < count; at += 1) {
      let value = 0;
      for (const one of series) value = this.about.stacked ? value + (one.values[at] || 0) : Math.max(value, one.values[at] ?? 0);
      if (value > most) [most, when] = [value, times[at]];
    }
    const text = this.about.least ? this.lowest() : `highest ${format(most)} at ${clock(when)}`;
    setText(this.summary, text);
    setAttribute(this.box, "data-points", count);
  }

  lowest() {
    const { series, times } = this.data;
    let least = Infinity, when = 0;
    series[0].values.forEach((value, at) => {
      if (value !== null && value !== undefined && value < least) [least, when] = [value, times[at]];
    });
    return least === Infinity ? "\u00a0" : `least ${this.about.format(least)} at ${clock(when)}`;
  }

  say() {
    if (!this.data?.series.length) return;
    const at = this.at ?? this.data.times.length - 1;
    const values = this.data.series.map(one => `${one.name} ${this.about.format(one.values[at] ?? null)}`);
    speak(`${this.about.title}, ${clock(this.data.times[at])}: ${values.join(", ")}`);
  }
}
