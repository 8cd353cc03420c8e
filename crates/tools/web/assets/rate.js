// The rate of the line in each direction: a slider where changes are allowed, and a text elsewhere. The shaper's next row
// confirms a change.

import { h, setText, setAttribute, visible } from "./dom.js";
import { bits, NONE } from "./format.js";
import { post } from "./net.js";

/** A key that is held down sends one change, this long after the last step. */
const SETTLED_MS = 250;
/** Steps of a slider. */
const STEPS = 200;
const TITLES = { down: "Rate down", up: "Rate up" };

/** The lowest and the highest rate of a slider, and its step: round numbers, so that steps are. */
function scale({ file_bps, line_bps, least_bps }) {
  const high = line_bps || file_bps * 2, rough = high / STEPS, power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find(by => by * power >= rough) * power), least = Math.max(least_bps || 1, file_bps / 20);
  return { low: Math.max(step, Math.ceil(least / step) * step), high: Math.floor(high / step) * step, step };
}

/** One direction. `show(way)` takes that part of `qos.run/1`. */
class Rate {
  constructor(app, way) {
    this.way = way;
    this.app = app;
    this.waiting = null;
    this.note = h("p", { class: "note", role: "status" }, "\u00a0");
    this.now = h("output", { class: "n", for: `rate-${way}` }, NONE);
    const line = h("div", { class: "line" }, app.info.allow_changes ? h("label", { for: `rate-${way}` }, TITLES[way]) : h("span", null, TITLES[way]), this.now);
    this.element = h("div", { class: "rate", "data-way": way }, line, app.info.allow_changes ? this.tools() : null, this.note);
  }

  tools() {
    this.slider = h("input", { type: "range", id: `rate-${this.way}`, disabled: true, oninput: () => this.typed(), onchange: () => this.later() });
    this.back = h("button", { type: "button", disabled: true, "aria-label": `${TITLES[this.way]}: back to the rate of the file`,
      onclick: () => this.set(this.known.file_bps) }, "Reset");
    return h("div", { class: "bar" }, this.slider, this.back);
  }

  // While the slider moves, its own value is shown.
  typed() {
    clearTimeout(this.timer);
    this.moving = true;
    const bps = Number(this.slider.value);
    setText(this.now, bits(bps));
    setAttribute(this.slider, "aria-valuetext", bits(bps));
    setText(this.note, "not sent yet");
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.set(Number(this.slider.value)), SETTLED_MS);
  }

  async set(bps) {
    clearTimeout(this.timer);
    const asked = this.waiting = { bps };
    this.moving = false;
    this.fault = null;
    setText(this.note, `${bits(bps)} was sent; the shaper has not confirmed it yet`);
    try {
      await post("/api/line/rate", { [`${this.way}_bps`]: bps }, this.app.info.csrf);
    } catch (fault) {
      // Another change may have been sent meanwhile.
      if (this.waiting !== asked) return;
      this.waiting = null;
      this.fault = `Refused: ${visible(fault.message)}.`;
      this.show(this.known);
    }
  }

  show(known) {
    if (!known) return;
    this.known = known;
    const { rate_bps, file_bps } = known;
    if (this.waiting?.bps === rate_bps) this.waiting = null;
    if (!rate_bps || !file_bps) {
      setText(this.now, "not shaped");
      return;
    }
    if (this.slider) this.place(known);
    if (this.moving || this.waiting) return;
    setText(this.now, bits(rate_bps));
    setText(this.note, this.fault || (rate_bps === file_bps ? "in force, as in the policy file"
      : `in force until the next reload; the policy file has ${bits(file_bps)}`));
  }

  place(known) {
    const { slider } = this, { low, high, step } = scale(known), { rate_bps, file_bps } = known;
    for (const [name, value] of [["min", Math.min(low, rate_bps)], ["max", Math.max(high, rate_bps)], ["step", step]]) setAttribute(slider, name, value);
    slider.disabled = false;
    this.back.disabled = rate_bps === file_bps;
    if (this.moving || this.waiting) return;
    slider.value = rate_bps;
    setAttribute(slider, "aria-valuetext", bits(rate_bps));
  }

  close() {
    clearTimeout(this.timer);
  }
}

/** The rates of both directions. */
export function rates(app, ways) {
  const all = ways.map(way => new Rate(app, way));
  return {
    element: h("section", { class: "card rates" }, h("h2", null, "Rate of the line"), all.map(one => one.element)),
    show: run => all.forEach(one => one.show(run[one.way])),
    close: () => all.forEach(one => one.close()),
  };
}
