// A chart: its picture, and what hands do with it.
class Chart extends Picture {
  constructor(section, about, sets) {
    super(section, about, sets);
    this.read = section.querySelector(".read");
    this.state = section.querySelector(".state");
    this.pointers = new Map();
    // What follows the pointer is drawn on a glass before the picture.
    this.glass = this.canvas.parentNode.insertBefore(document.createElement("canvas"), this.read);
    this.glass.className = "glass";
    this.over = this.glass.getContext("2d");
    section.querySelectorAll(".legend button").forEach((button, i) => {
      button.addEventListener("click", () => this.toggle(i, button));
    });
    section.querySelectorAll("[data-do]").forEach(button => {
      button.addEventListener("click", () => this.command(button.dataset.do, button));
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
    this.time = /over|sc/.test(this.about.kind) && this.about.x.unit === "s" && !this.log.x && this.full[1] - this.full[0] >= 120;
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
    const [low, high] = this.full, least = max((high - low) * 1e-7, abs(high) * 1e-12);
    const span = min(max(to - from, least), high - low);
    const start = min(max((from + to - span) / 2, low), high - span);
    this.x = [start, start + span];
    this.redraw();
  }
  pan(share) {
    const by = share * (this.x[1] - this.x[0]);
    this.show(this.x[0] + by, this.x[1] + by);
  }
  zoomed() { return this.chosen !== null || this.x[1] - this.x[0] < (this.full[1] - this.full[0]) * 0.9999; }
  toggle(index, button) {
    const series = this.series[index];
    series.shown = !series.shown;
    button.setAttribute("aria-pressed", series.shown);
    this.redraw();
  }
  command(name, button) {
    if (name === "in") this.zoom(0.5);
    else if (name === "out") this.zoom(2);
    else if (name === "reset") this.reset();
    else if (name === "log") {
      const axis = this.cdf ? "x" : "y";
      this.log[axis] = !this.log[axis];
      button.setAttribute("aria-pressed", this.log[axis]);
      this.reset();
    }
  }

  listen() {
    const { canvas } = this, on = (name, act, options) => canvas.addEventListener(name, act, options);
    const at = event => [event.offsetX, event.offsetY];
    on("wheel", event => {
      const [x, y] = [event.deltaX, event.deltaY];
      if (!this.zoomed() && (y > 0 || abs(x) > abs(y))) return; // At the full range the wheel scrolls the page on.
      event.preventDefault();
      if (abs(x) > abs(y)) return this.pan(x / this.width);
      const pace = event.ctrlKey ? 0.01 : event.deltaMode ? 0.05 : 0.002;
      this.zoom(exp(max(-1, min(1, y * pace))), this.ppx(at(event)[0]));
    }, { passive: false });
    on("dblclick", () => this.reset());
    on("pointerdown", event => {
      if (event.button > 0) return;
      try { canvas.setPointerCapture(event.pointerId); } catch (_) { /* a pointer that is gone */ }
      const point = at(event);
      this.pointers.set(event.pointerId, point);
      this.drag = event.pointerType === "touch" || event.shiftKey ? null : { from: point, to: point };
      this.point(this.pointers.size > 1 ? null : point);
    });
    on("pointermove", event => {
      const point = at(event), before = this.pointers.get(event.pointerId);
      if (before) this.move(event.pointerId, before, point);
      this.point(this.pointers.size > 1 ? null : point);
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
    this.cross = at;
    this.redraw(false);
  }
  // One pointer selects or pans, two zoom.
  move(id, before, point) {
    if (this.drag) { this.drag.to = point; return; }
    const other = [...this.pointers].find(([key]) => key !== id);
    if (other) {
      const [was, is] = [before, point].map(([x, y]) => hypot(x - other[1][0], y - other[1][1]));
      if (was > 8 && is > 8) this.zoom(was / is, this.ppx(other[1][0]));
    } else if (this.zoomed()) {
      this.pan((before[0] - point[0]) / this.width);
    }
    this.pointers.set(id, point);
  }
  select(from, to) {
    if (abs(to[0] - from[0]) < 6) return;
    const [a, b] = [from[0], to[0]].sort((p, q) => p - q).map(p => this.ppx(p));
    if (abs(to[1] - from[1]) > this.height / 4) {
      this.chosen = [from[1], to[1]].sort((p, q) => q - p).map(p => this.ppy(p));
    }
    this.show(a, b);
  }
  key(event) {
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key], way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (side && event.shiftKey) this.pan(side * 0.15);
    else if (side || way && this.cross) this.step(side || 0, way || 0);
    else if (event.key === "+" || event.key === "=") this.zoom(0.7);
    else if (event.key === "-") this.zoom(1 / 0.7);
    else if (event.key === "0" || event.key === "Home" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
  }
  // Moves the reading mark by some pixels, and the range with it at its ends.
  step(side, way) {
    const [x, y] = this.cross || [this.right / 2, this.bottom / 2];
    const next = x + side * max(this.width / 200, 2), within = (v, low, room) => min(max(v, low), low + room);
    if (next < this.left || next > this.right) this.pan(side * 0.15);
    this.point([within(next, this.left, this.width), within(y + way * this.height / 25, this.top, this.height)]);
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
    if (!w || !h) return;
    sized(this.glass, over, w, h, this.ratio);
    if (drag) {
      const tall = abs(drag.to[1] - drag.from[1]) > this.height / 4;
      over.fillStyle = ink.text;
      over.globalAlpha = 0.14;
      over.fillRect(drag.from[0], tall ? drag.from[1] : this.top, drag.to[0] - drag.from[0], tall ? drag.to[1] - drag.from[1] : this.height);
      over.globalAlpha = 1;
    }
    const found = this.cross && !drag ? this.lossAt() || this.nearest() : null;
    if (found) this.tell(found);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
      put(this.read, found ? found.text : "");
      put(this.state, this.status());
    }, 120);
  }
  // What is drawn nearest to the pointer.
  nearest() {
    const [px, py] = this.cross;
    let best = null;
    const offer = (series, x, low, high, count) => {
      const [a, b, at] = [this.downTo(low), this.downTo(high), this.acrossTo(x)];
      const y = min(max(py, min(a, b)), max(a, b)), far = hypot((at - px) * 2, y - py);
      if (at >= this.left - 1 && at <= this.right + 1 && (!best || far < best.far)) best = { far, series, x, low, high, count, at, y };
    };
    const x = this.xAt(px);
    for (const series of this.series) {
      if (!series.shown) continue;
      if (this.cdf) {
        const { n, value, share } = series.cdf, i = max(below(value, n, x), 0);
        for (const j of [i - 1, i]) if (j >= 0 && j < n) offer(series, value[j], share[j], share[j], 1);
        continue;
      }
      const { level, start, end } = series.seen, i = below(level.x, level.n, x);
      const reach = level.each > 1 ? 1 : this.about.kind === "scatter" ? 60 : 2;
      for (let j = max(i - reach, start); j < min(i + reach, end); j++) {
        const middle = level.each > 1 ? (level.x[j] + level.x[j + 1]) / 2 : level.x[j];
        offer(series, middle, level.low[j], level.high[j], level.each);
      }
    }
    if (!best) return null;
    const name = this.named(best.series), at = this.text("x", best.x), { low, high, count } = best;
    if (this.cdf) best.text = `${name}: ${short(low * 100, 4)} % up to ${at}`;
    else if (count > 1) best.text = `${name}: ${this.text("y", low)} to ${this.text("y", high)}, ${grouped(count, 0)} samples about ${at}`;
    else best.text = `${name}: ${this.text("y", low)} at ${at}`;
    return best;
  }
  // The lost packets whose tick the pointer is at.
  lossAt() {
    const [px, py] = this.cross, rows = this.series.filter(series => series.shown && series.lost.x.length);
    const series = rows[floor((py - 25) / 10)];
    if (this.cdf || py >= this.top - 3 || !series) return null;
    const { x, end, before } = series.lost, [a, b] = [px - 3, px + 3].map(pixel => this.xAt(pixel));
    const i = below(end, end.length, a), j = below(x, x.length, b), lost = before[j] - before[i];
    if (!(lost > 0)) return null;
    const at = max(this.acrossTo(x[i]), this.left), text = `${this.named(series)}: ${grouped(lost, 0)} lost about ${this.text("x", x[i])}`;
    return { series, at, y: null, text };
  }
  named(series) { return series.name.length > 80 ? series.name.slice(0, 79) + "\u2026" : series.name || "-"; }
  text(axis, value) {
    const ends = this.x, step = (ends[1] - ends[0]) / this.width;
    if (axis === "x" && this.time) return clock(value, min(step, 0.1));
    const [factor, name] = this.log[axis] ? unit(this.about[axis].unit, value) : this.units[axis];
    const exact = axis === "x" && !this.log.x && !this.cdf;
    return (exact ? fine(value * factor, step * factor) : short(value * factor, 5)) + (name ? " " + name : "");
  }
  tell({ series, at, y, text }) {
    const { over, ink, w, h } = this, line = (x, y, wide, tall) => over.fillRect(round(x), round(y), wide, tall);
    over.fillStyle = ink.muted;
    line(at, this.top, 1, this.height);
    if (y !== null) {
      line(this.left, y, this.width, 1);
      this.marker(over, series.look, at, y, true);
    }
    over.font = FONT;
    const room = min(w * 0.7, 340), lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1], longer = last ? last + " " + word : word;
      if (last && over.measureText(longer).width > room) lines.push(word); else lines[lines.length - 1] = longer;
    }
    const wide = max(...lines.map(line => over.measureText(line).width)) + 16, tall = lines.length * 16 + 8;
    const x = max(at > this.right / 2 ? at - wide - 12 : at + 12, 2), up = (y ?? 0) < this.bottom / 2;
    const top = min(max(y === null ? this.top + 6 : up ? y + 12 : y - tall - 12, 2), h - tall - 2);
    over.fillStyle = ink.panel;
    over.strokeStyle = ink.muted;
    over.lineWidth = 1;
    over.fillRect(x, top, wide, tall);
    over.strokeRect(round(x) + 0.5, round(top) + 0.5, round(wide), tall);
    over.fillStyle = ink.text;
    over.textBaseline = "middle";
    lines.forEach((line, i) => over.fillText(line, x + 8, top + 12 + i * 16));
  }
  status() {
    const [from, to] = this.x.map(place => this.text("x", this.value("x", place)));
    const range = this.zoomed() ? `${from} to ${to}` : "";
    if (this.cdf) return range;
    const many = this.drawn > 1 ? `each column: about ${grouped(round(this.drawn), 0)} samples, min to max` : "each sample is drawn";
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

const FONT = "12px system-ui, 'DejaVu Sans', Arial, sans-serif";
const SHAPES = PAGE.shapes.map(path => new Path2D(path));
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const sets = PAGE.data.map(unpack);
const charts = PAGE.charts.map((about, i) => new Chart(document.getElementById("chart-" + i), about, sets));
const all = () => charts.forEach(chart => chart.redraw());
dark.addEventListener("change", all);
addEventListener("beforeprint", () => { printing = true; charts.forEach(chart => chart.draw()); });
addEventListener("afterprint", () => { printing = false; all(); });
