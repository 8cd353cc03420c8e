// A chart: its picture, and what hands do with it.
class Chart extends Picture {
  constructor(section, about, sets) {
    super(section, about, sets);
    const find = name => section.querySelector(name), names = [...section.querySelectorAll(".legend button")];
    this.read = find(".read");
    this.state = find(".state");
    this.pointers = new Map();
    // What follows the pointer is drawn on a glass before the picture.
    this.glass = document.createElement("canvas");
    this.glass.className = "glass";
    this.canvas.after(this.glass);
    this.over = this.glass.getContext("2d");
    section.addEventListener("click", event => {
      const button = event.target.closest("button");
      if (button) this.press(button, names.indexOf(button));
    });
    this.listen();
    const size = () => {
      this.w = this.canvas.clientWidth;
      this.h = this.canvas.clientHeight;
      this.redraw();
    };
    size();
    new ResizeObserver(size).observe(this.canvas);
    this.reset();
  }

  reset() {
    this.full = this.extent();
    this.time = (this.scatter || this.about.kind === "over_time") && this.about.x.unit === "s" && !this.log.x && this.full[1] - this.full[0] >= 120;
    this.x = this.full.slice();
    this.chosen = null;
    this.cross = null;
    this.left = 20;
    this.redraw();
  }
  zoom(factor, at = (this.x[0] + this.x[1]) / 2) {
    this.show(at - (at - this.x[0]) * factor, at + (this.x[1] - at) * factor);
  }
  // Shows a range of x, within what there is and not narrower than numbers allow.
  show(from, to) {
    const [low, high] = this.full, all = high - low;
    const span = clip(to - from, max(all * 1e-7, abs(high) * 1e-12), all), start = clip((from + to - span) / 2, low, high - span);
    this.x = [start, start + span];
    this.redraw();
  }
  pan(share) {
    const by = share * (this.x[1] - this.x[0]);
    this.show(this.x[0] + by, this.x[1] + by);
  }
  zoomed() { return this.chosen || this.x[1] - this.x[0] < (this.full[1] - this.full[0]) * 0.9999; }
  press(button, index) {
    const name = button.dataset.do;
    if (index >= 0) {
      button.ariaPressed = this.series[index].shown = !this.series[index].shown;
      this.redraw();
    } else if (name === "log") {
      const axis = this.cdf ? "x" : "y";
      button.ariaPressed = this.log[axis] = !this.log[axis];
      this.reset();
    } else if (name === "reset") this.reset();
    else this.zoom(name === "in" ? 0.5 : 2);
  }

  listen() {
    const { canvas } = this, on = (name, act, options) => canvas.addEventListener(name, act, options);
    const at = event => [event.offsetX, event.offsetY];
    on("wheel", event => {
      const { deltaX: x, deltaY: y } = event, aside = abs(x) > abs(y);
      // At the full range the wheel scrolls the page on.
      if (!this.zoomed() && (y > 0 || aside)) return;
      event.preventDefault();
      if (aside) return this.pan(x / this.width);
      const pace = event.ctrlKey ? 0.01 : event.deltaMode ? 0.05 : 0.002;
      this.zoom(exp(clip(y * pace, -1, 1)), this.ppx(at(event)[0]));
    }, { passive: false });
    on("dblclick", () => this.reset());
    on("pointerdown", event => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      const point = at(event);
      this.pointers.set(event.pointerId, point);
      this.drag = event.pointerType === "touch" || event.shiftKey ? null : { from: point, to: point };
      this.point(point);
    });
    on("pointermove", event => {
      const point = at(event), before = this.pointers.get(event.pointerId);
      if (before) this.move(event.pointerId, before, point);
      this.point(point);
    });
    const up = event => {
      const { drag } = this;
      this.drag = null;
      this.pointers.delete(event.pointerId);
      if (drag && event.type === "pointerup") this.select(drag.from, at(event));
      this.point(this.cross);
    };
    on("pointerup", up);
    on("pointercancel", up);
    on("pointerleave", event => { if (event.pointerType !== "touch") this.point(null); });
    on("blur", () => this.point(null));
    on("keydown", event => this.key(event));
  }
  point(at) {
    this.cross = this.pointers.size > 1 ? null : at;
    this.redraw(false);
  }
  // One pointer selects or pans, two zoom.
  move(id, before, point) {
    if (this.drag) { this.drag.to = point; return; }
    const other = [...this.pointers].find(([key]) => key !== id);
    if (other) {
      const [was, is] = [before, point].map(at => apart(at, other[1]));
      if (was > 8 && is > 8) this.zoom(was / is, this.ppx(other[1][0]));
    } else if (this.zoomed()) {
      this.pan((before[0] - point[0]) / this.width);
    }
    this.pointers.set(id, point);
  }
  select(from, to) {
    if (abs(to[0] - from[0]) < 6) return;
    const ends = (i, place) => [from[i], to[i]].map(place).sort((p, q) => p - q);
    if (this.tall(from, to)) this.chosen = ends(1, y => this.ppy(y));
    this.show(...ends(0, x => this.ppx(x)));
  }
  // Whether a drag is of some height too.
  tall(from, to) { return abs(to[1] - from[1]) > this.height / 4; }
  key(event) {
    const { key } = event, side = { ArrowLeft: -1, ArrowRight: 1 }[key], way = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (side && event.shiftKey) this.pan(side * 0.15);
    else if (side || way && this.cross) this.step(side || 0, way || 0);
    else if ("+=".includes(key)) this.zoom(0.7);
    else if (key === "-") this.zoom(1 / 0.7);
    else if (key === "0") this.reset();
    else return;
    event.preventDefault();
  }
  // Moves the reading mark by some pixels, and the range with it at its ends.
  step(side, way) {
    const [x, y] = this.cross || [(this.left + this.right) / 2, (this.top + this.bottom) / 2];
    const next = x + side * max(this.width / 200, 2);
    if (next < this.left || next > this.right) this.pan(side * 0.15);
    this.point([clip(next, this.left, this.right), clip(y + way * this.height / 25, this.top, this.bottom)]);
  }

  // Draws with the next frame: all of it, or the glass alone.
  redraw(all = true) {
    this.stale ||= all;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      if (this.stale) this.draw();
      this.stale = false;
      this.look();
    });
  }
  // What the pointer shows; words go into the page only once the hand rests.
  look() {
    const { over, w, h, drag, ink } = this;
    if (!w) return;
    const found = this.cross && !drag ? this.lossAt() || this.nearest() : null;
    // An empty glass is left alone: a frame has then one canvas to show.
    if (this.used || found || drag) sized(this.glass, over, w, h, this.ratio);
    this.used = found || drag;
    if (drag) {
      const { from, to } = drag, [y, tall] = this.tall(from, to) ? [from[1], to[1] - from[1]] : [this.top, this.height];
      over.fillStyle = ink.text;
      over.globalAlpha = 0.14;
      over.fillRect(from[0], y, to[0] - from[0], tall);
      over.globalAlpha = 1;
    }
    if (found) this.tell(found);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.read.textContent = found ? found.words.join(": ") : "";
      this.state.textContent = this.status();
    }, 120);
  }
  // What is drawn nearest to the pointer.
  nearest() {
    const [px, py] = this.cross;
    let best = null;
    const offer = (series, x, low, high, count) => {
      const a = this.downTo(low), b = this.downTo(high), at = this.acrossTo(x);
      const y = clip(py, min(a, b), max(a, b)), far = hypot((at - px) * 2, y - py);
      if (at >= this.left - 1 && at <= this.right + 1 && far < (best ? best.far : Infinity)) best = { far, series, x, low, high, count, at, y };
    };
    const x = this.xAt(px);
    for (const series of this.seen) {
      if (this.cdf) {
        const { n, value, share } = series.cdf, i = max(below(value, n, x), 0);
        for (const j of [i - 1, i]) if (j >= 0 && j < n) offer(series, value[j], share[j], share[j], 1);
        continue;
      }
      const { level, start, end } = series.seen, i = below(level.x, level.n, x);
      const reach = level.each > 1 ? 1 : this.scatter ? 60 : 2;
      for (let j = max(i - reach, start); j < min(i + reach, end); j++) offer(series, middle(level, j), level.low[j], level.high[j], level.each);
    }
    if (!best) return null;
    const at = this.text("x", best.x), { low, high, count } = best;
    return this.said(best, this.cdf ? `${short(low * 100, 4)} % up to ${at}`
      : count > 1 ? `${this.text("y", low)} to ${this.text("y", high)}, ${grouped(count, 0)} samples about ${at}`
      : `${this.text("y", low)} at ${at}`);
  }
  said(found, text) {
    return { ...found, words: [found.series.name || "-", text] };
  }
  // The lost packets whose tick the pointer is at.
  lossAt() {
    const [px, py] = this.cross, series = this.seen.filter(series => series.lost.x.length)[floor((py - 25) / 10)];
    if (this.cdf || py >= this.top - 3 || !series) return null;
    const { x, end, before } = series.lost, [a, b] = [px - 3, px + 3].map(pixel => this.xAt(pixel));
    const i = below(end, end.length, a), j = below(x, x.length, b), lost = before[j] - before[i];
    return lost > 0 ? this.said({ series, at: max(this.acrossTo(x[i]), this.left), y: null }, `${grouped(lost, 0)} lost about ${this.text("x", x[i])}`) : null;
  }
  text(axis, value) {
    const step = (this.x[1] - this.x[0]) / this.width;
    if (axis === "x" && this.time) return clock(value, min(step, 0.1));
    const [factor, name] = this.log[axis] ? unit(this.about[axis].unit, value) : this.units[axis];
    return (axis === "x" && !this.log.x && !this.cdf ? fine(value * factor, step * factor) : short(value * factor, 5)) + (name ? " " + name : "");
  }
  tell({ series, at, y, words }) {
    const { over, ink, w, h } = this, line = (x, y, wide, tall) => over.fillRect(round(x), round(y), wide, tall);
    over.fillStyle = ink.muted;
    line(at, this.top, 1, this.height);
    if (y !== null) {
      line(this.left, y, this.width, 1);
      this.marker(over, series.look, at, y, true);
    }
    over.font = FONT;
    const room = min(max(...words.map(line => over.measureText(line).width)), w - 20), wide = room + 16, tall = 40;
    // On the side with more room, within the picture.
    const x = clip(at > w / 2 ? at - wide - 12 : at + 12, 2, w - wide - 2);
    const top = clip(y === null ? this.top + 6 : y < h / 2 ? y + 12 : y - tall - 12, 2, h - tall - 2);
    line(x - 1, top - 1, wide + 2, tall + 2);
    over.fillStyle = ink.panel;
    line(x, top, wide, tall);
    over.fillStyle = ink.text;
    over.textBaseline = "middle";
    words.forEach((line, i) => over.fillText(line, x + 8, top + 12 + i * 16, room));
  }
  status() {
    const range = this.zoomed() ? this.ends().map(value => this.text("x", value)).join(" to ") : "";
    if (this.cdf) return range;
    const count = round(this.drawn);
    const many = count > 1 ? `each column: about ${grouped(count, 0)} samples, min to max` : "each sample is drawn";
    return (range ? range + "; " : "") + many;
  }
}

// Fits a canvas to its place, and clears it.
function sized(canvas, context, w, h, ratio) {
  const [across, down] = [round(w * ratio), round(h * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
}

const FONT = "12px system-ui, sans-serif";
const SHAPES = PAGE.shapes.map(path => new Path2D(path));
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const sets = PAGE.data.map(unpack);
const charts = PAGE.charts.map((about, i) => new Chart(document.getElementById("chart-" + i), about, sets));
const all = () => charts.forEach(chart => chart.redraw());
dark.addEventListener("change", all);
addEventListener("beforeprint", () => { printing = true; charts.forEach(chart => chart.draw()); });
addEventListener("afterprint", () => { printing = false; all(); });
