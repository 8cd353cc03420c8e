(() => {
const FONT = "12px system-ui, 'DejaVu Sans', Arial, sans-serif";
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const SHAPES = PAGE.shapes.map(path => new Path2D(path));

// Numbers as people read them.
function grouped(value, decimals) {
  const text = Math.abs(value).toFixed(decimals), [whole, part] = text.split(".");
  const sign = value < 0 && /[1-9]/.test(text) ? "-" : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
}
function short(value, digits = 4) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude < -5 || magnitude > 14) return value.toExponential(digits - 1);
  const text = grouped(value, Math.min(Math.max(digits - 1 - magnitude, 0), 9));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
// A value with as many decimals as tell it from a neighbour `step` away.
function fine(value, step) {
  return grouped(value, step > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(step)) + 1, 0), 9) : 3);
}
function clock(seconds, step) {
  const all = Math.abs(step < 1 ? seconds : Math.round(seconds));
  const h = Math.floor(all / 3600), m = Math.floor(all / 60) % 60, s = all % 60;
  const decimals = step < 1 ? Math.min(Math.ceil(-Math.log10(step)), 6) : 0;
  const two = (value, decimals = 0) => value.toFixed(decimals).padStart(decimals ? 3 + decimals : 2, "0");
  return (seconds < 0 && all ? "-" : "") + (h ? h + ":" + two(m) : m) + ":" + two(s, decimals);
}

// Octets: integers of seven bits an octet, then columns of little-endian numbers.
function octets(text) {
  const binary = atob(text), out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}
class Reader {
  constructor(text) { this.octets = octets(text); this.at = 0; }
  integer() {
    let value = 0, unit = 1, octet;
    do {
      octet = this.octets[this.at++];
      value += (octet & 127) * unit;
      unit *= 128;
    } while (octet & 128);
    return value;
  }
  floats(count) {
    const start = this.at;
    this.at += 4 * count;
    return new Float32Array(this.octets.slice(start, this.at).buffer);
  }
  bytes(count) { return this.octets.subarray(this.at, this.at += count); }
}

// Samples as levels of columns, each level of half as many columns as the one before.
function unpack(data) {
  const reader = new Reader(data.octets), n = data.columns, x = new Float64Array(n + 1);
  let at = 0;
  for (let i = 0; i < n; i++) x[i] = data.x + data.step * (at += reader.integer());
  x[n] = data.end;
  const min = reader.floats(n);
  let max = min, first = min, last = min;
  if (data.each > 1) {
    max = reader.floats(n);
    const part = () => Float32Array.from(reader.bytes(n), (share, i) => min[i] + (max[i] - min[i]) * share / 255);
    first = part();
    last = part();
  }
  const levels = [{ n, x, min, max, first, last, each: data.each }];
  for (let below = levels[0]; below.n > 256; below = levels[levels.length - 1]) levels.push(halved(below));
  const lost = { x: [], end: [], count: [] };
  at = 0;
  for (let i = 0; i < data.lost; i++) {
    lost.x.push(data.x + data.step * (at += reader.integer()));
    lost.end.push(data.x + data.step * (at += reader.integer()));
    lost.count.push(reader.integer());
  }
  return { levels, lost, cdf: data.cdf ? distribution(data) : null };
}
function halved(below) {
  const n = below.n + 1 >> 1, x = new Float64Array(n + 1);
  const [min, max, first, last] = [0, 0, 0, 0].map(() => new Float32Array(n));
  for (let i = 0, a = 0; i < n; i++, a += 2) {
    const b = Math.min(a + 1, below.n - 1);
    x[i] = below.x[a];
    min[i] = Math.min(below.min[a], below.min[b]);
    max[i] = Math.max(below.max[a], below.max[b]);
    first[i] = below.first[a];
    last[i] = below.last[b];
  }
  x[n] = below.x[below.n];
  return { n, x, min, max, first, last, each: below.each * 2 };
}
function distribution(data) {
  const reader = new Reader(data.cdf), n = reader.integer();
  return { n, value: reader.floats(n), share: reader.floats(n) };
}
// How many of the first `n` values, ascending, are below `value`.
function below(values, n, value) {
  let low = 0, high = n;
  while (low < high) {
    const middle = low + high >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// Ticks as [place, label]; a tick without a label is a faint line. Places are logarithms on a log axis.
function ticks(from, to, room, log, time) {
  const span = to - from, out = [];
  if (!(span > 0)) return out;
  if (log && span > 0.7) {
    const every = Math.ceil(span / room), close = span * 3 <= room;
    for (let decade = Math.floor(from); decade <= to; decade++) {
      for (let m = 1; m < 10; m++) {
        const place = decade + Math.log10(m);
        if (place < from || place > to || m > 1 && span > 5) continue;
        const named = m === 1 ? decade % every === 0 : close && (m === 2 || m === 5);
        out.push([place, named ? short(m * 10 ** decade, 1) : ""]);
      }
    }
    return out;
  }
  if (log) {
    const low = 10 ** from, high = 10 ** to;
    return ticks(low, high, room, false, false).map(([value, label]) => [Math.log10(value), label]);
  }
  const least = span / room, decade = 10 ** Math.floor(Math.log10(least));
  let step = decade * [1, 2, 5, 10].find(f => f * decade >= least * 0.999);
  if (time && least > 5) {
    step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800].find(s => s >= least) || step;
  }
  const decimals = Math.max(-Math.floor(Math.log10(step) + 1e-9), 0);
  for (let i = Math.ceil(from / step - 1e-9); i <= to / step + 1e-9; i++) {
    out.push([i * step, time ? clock(i * step, step) : grouped(i * step, Math.min(decimals, 12))]);
  }
  return out;
}

class Chart {
  constructor(section, about, sets) {
    this.about = about;
    this.cdf = about.kind === "cdf";
    this.canvas = section.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.read = section.querySelector(".read");
    this.state = section.querySelector(".state");
    this.log = { x: about.x.log, y: about.y.log };
    this.series = about.series.map((series, i) => ({ ...series, ...sets[series.data], shown: true, index: i }));
    this.pointers = new Map();
    this.reset();
    section.querySelectorAll(".legend button").forEach((button, i) => {
      button.addEventListener("click", () => this.toggle(i, button));
    });
    section.querySelectorAll("[data-do]").forEach(button => {
      button.addEventListener("click", () => this.command(button.dataset.do, button));
    });
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  // Scales: a value's place is its logarithm on a log axis.
  place(axis, value) { return this.log[axis] ? (value > 0 ? Math.log10(value) : NaN) : value; }
  value(axis, place) { return this.log[axis] ? 10 ** place : place; }
  px(place) { return this.left + (place - this.view.x[0]) / (this.view.x[1] - this.view.x[0]) * this.width; }
  py(place) { return this.top + (1 - (place - this.y[0]) / (this.y[1] - this.y[0])) * this.height; }
  ppx(pixel) { return this.view.x[0] + (pixel - this.left) / this.width * (this.view.x[1] - this.view.x[0]); }
  ppy(pixel) { return this.y[0] + (1 - (pixel - this.top) / this.height) * (this.y[1] - this.y[0]); }

  extent() {
    let low = Infinity, high = -Infinity;
    const widen = value => {
      const place = this.place("x", value);
      if (place < low) low = place;
      if (place > high) high = place;
    };
    for (const s of this.series) {
      if (this.cdf) { if (s.cdf.n) s.cdf.value.forEach(widen); continue; }
      const x = s.levels[0].x, n = s.levels[0].n;
      if (n) { widen(x[this.log.x ? Math.min(below(x, n, Number.MIN_VALUE), n - 1) : 0]); widen(x[n]); }
      s.lost.x.forEach(widen);
      s.lost.end.forEach(widen);
    }
    if (low > high) [low, high] = [0, 1];
    const room = high > low ? (this.cdf ? 0.01 : 0) * (high - low) : Math.abs(low) * 0.1 || 0.5;
    return [low - room, high + room];
  }
  reset() {
    this.full = this.extent();
    this.view = { x: this.full.slice(), y: null };
    this.cross = null;
    this.redraw();
  }
  zoom(factor, at = (this.view.x[0] + this.view.x[1]) / 2) {
    this.show(at - (at - this.view.x[0]) * factor, at + (this.view.x[1] - at) * factor);
  }
  // Shows a range of x, within what there is and not narrower than numbers allow.
  show(from, to) {
    const [low, high] = this.full, least = Math.max((high - low) * 1e-7, Math.abs(high) * 1e-12);
    const span = Math.min(Math.max(to - from, least), high - low);
    const start = Math.min(Math.max((from + to - span) / 2, low), high - span);
    this.view.x = [start, start + span];
    this.redraw();
  }
  pan(share) {
    const by = share * (this.view.x[1] - this.view.x[0]);
    this.show(this.view.x[0] + by, this.view.x[1] + by);
  }
  zoomed() { return this.view.y !== null || this.view.x[1] - this.view.x[0] < (this.full[1] - this.full[0]) * 0.9999; }
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
    const canvas = this.canvas;
    const at = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", event => {
      // At the full range the wheel scrolls the page on.
      if (event.deltaY > 0 && !this.zoomed()) return;
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * (event.deltaMode ? 0.05 : 0.002)))), this.ppx(at(event)[0]));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("pointerdown", event => {
      if (event.button > 0) return;
      try { canvas.setPointerCapture(event.pointerId); } catch (_) { /* a pointer that is gone */ }
      const point = at(event);
      this.pointers.set(event.pointerId, point);
      this.drag = event.pointerType === "touch" || event.shiftKey ? null : { from: point, to: point };
      this.cross = point;
      this.redraw();
    });
    canvas.addEventListener("pointermove", event => {
      const point = at(event), before = this.pointers.get(event.pointerId);
      this.cross = point;
      if (before) this.move(event.pointerId, before, point);
      this.redraw();
    });
    const up = event => {
      const drag = this.drag;
      this.drag = null;
      this.pointers.delete(event.pointerId);
      if (drag && event.type === "pointerup") this.select(drag.from, at(event));
      this.redraw();
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { this.cross = null; this.redraw(); });
    canvas.addEventListener("blur", () => { this.cross = null; this.redraw(); });
    canvas.addEventListener("keydown", event => this.key(event));
  }
  // One pointer selects or pans, two zoom.
  move(id, before, point) {
    if (this.drag) { this.drag.to = point; return; }
    const other = [...this.pointers].find(([key]) => key !== id);
    if (other) {
      const anchor = other[1][0], [was, is] = [Math.abs(before[0] - anchor), Math.abs(point[0] - anchor)];
      if (was > 8 && is > 8) this.zoom(was / is, this.ppx(anchor));
    } else if (this.zoomed()) {
      this.pan((before[0] - point[0]) / this.width);
    }
    this.pointers.set(id, point);
  }
  select(from, to) {
    if (Math.abs(to[0] - from[0]) < 6) return;
    const [a, b] = [from[0], to[0]].sort((p, q) => p - q).map(p => this.ppx(p));
    if (Math.abs(to[1] - from[1]) > this.height / 4) {
      this.view.y = [from[1], to[1]].sort((p, q) => q - p).map(p => this.ppy(p));
    }
    this.show(a, b);
  }
  key(event) {
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (side && event.shiftKey) this.pan(side * 0.15);
    else if (side) this.step(side);
    else if (event.key === "+" || event.key === "=") this.zoom(0.7);
    else if (event.key === "-") this.zoom(1 / 0.7);
    else if (event.key === "0" || event.key === "Home" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
    this.redraw();
  }
  // Moves the reading mark by some pixels, and the range with it at its ends.
  step(side) {
    const [x, y] = this.cross || [this.left + this.width / 2, this.top + this.height / 2];
    const next = x + side * Math.max(this.width / 200, 2);
    if (next < this.left || next > this.left + this.width) this.pan(side * 0.15);
    this.cross = [Math.min(Math.max(next, this.left), this.left + this.width), y];
  }

  redraw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.draw(); });
  }
  draw() {
    const { canvas, context } = this, ratio = printing ? 3 : devicePixelRatio || 1;
    const w = canvas.clientWidth, h = canvas.clientHeight;
    if (!w || !h) return;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    const night = dark.matches && !printing;
    this.ink = night
      ? { text: "#e8e8e8", muted: "#b4b9c0", grid: "#343a41", axis: "#8b939c", colours: PAGE.colours.map(c => c[1]) }
      : { text: "#1b1d20", muted: "#55595f", grid: "#d8dbdf", axis: "#55595f", colours: PAGE.colours.map(c => c[0]) };
    const rows = this.cdf ? 0 : this.series.filter(series => series.shown && series.lost.x.length).length;
    this.top = 28 + rows * 10;
    this.height = h - this.top - 46;
    this.left = 20;
    this.width = w - this.left - 16;
    this.y = this.heights();
    this.axes(w, h);
    context.save();
    context.beginPath();
    context.rect(this.left, 24, this.width, this.top + this.height - 24);
    context.clip();
    this.drawn = 0;
    for (const series of this.series) if (series.shown) this.plot(series);
    if (!this.cdf) this.losses();
    if (this.drag) this.shade();
    context.restore();
    this.tell(this.cross ? this.nearest() : null);
    this.status();
  }

  // Columns of a series in view: its level with at most `limit` of them, and which.
  inView(series, limit) {
    const from = this.value("x", this.view.x[0]), to = this.value("x", this.view.x[1]);
    for (const level of series.levels) {
      const start = Math.max(below(level.x, level.n, from) - 1, 0);
      const end = Math.min(below(level.x, level.n, to) + 1, level.n);
      if (end - start <= limit || level === series.levels[series.levels.length - 1]) return { level, start, end };
    }
  }
  // The range of y: what was selected, or what is in view.
  heights() {
    if (this.view.y) return this.view.y;
    if (this.cdf) return this.log.y ? [-4, 0.02] : [0, 1.02];
    let low = Infinity, high = -Infinity;
    for (const series of this.series) {
      if (!series.shown) continue;
      const { level, start, end } = this.inView(series, 4096);
      for (let i = start; i < end; i++) {
        const bottom = this.place("y", level.min[i]), top = this.place("y", level.max[i]);
        if (bottom < low) low = bottom;
        if (top < low) low = top;
        if (top > high) high = top;
      }
    }
    if (low > high) return [0, 1];
    if (low === high) { const room = Math.abs(low) * 0.1 || 0.5; return [low - room, high + room]; }
    if (!this.log.y && low >= 0 && low <= high * 0.6) return [0, high * 1.05];
    const room = (high - low) * 0.06;
    return [low - room, high + room];
  }
  axes(w, h) {
    const { context, about, ink } = this, bottom = this.top + this.height;
    context.font = FONT;
    context.lineWidth = 1;
    const rows = ticks(this.y[0], this.y[1], Math.max(this.height / 42, 2), this.log.y, false);
    this.left = Math.ceil(Math.max(...rows.map(row => context.measureText(row[1]).width), 10)) + 12;
    this.width = w - this.left - 22;
    this.time = about.kind === "over_time" && about.x.unit === "s" && !this.log.x && this.full[1] - this.full[0] >= 120;
    const columns = ticks(this.view.x[0], this.view.x[1], Math.max(this.width / 90, 2), this.log.x, this.time);
    const line = (x1, y1, x2, y2, colour) => {
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
      context.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
      context.stroke();
    };
    context.fillStyle = ink.text;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [place, label] of rows) {
      context.globalAlpha = label ? 1 : 0.5;
      line(this.left, this.py(place), this.left + this.width, this.py(place), ink.grid);
      context.globalAlpha = 1;
      context.fillText(label, this.left - 7, this.py(place));
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    let reached = -Infinity;
    for (const [place, label] of columns) {
      const x = this.px(place), half = context.measureText(label).width / 2;
      context.globalAlpha = label ? 1 : 0.5;
      line(x, this.top, x, bottom, ink.grid);
      context.globalAlpha = 1;
      const middle = Math.min(Math.max(x, half + 1), w - half - 1);
      if (label && middle - half > reached) {
        line(x, bottom, x, bottom + 4, ink.axis);
        context.fillText(label, middle, bottom + 7);
        reached = middle + half + 8;
      }
    }
    line(this.left, bottom, this.left + this.width, bottom, ink.axis);
    line(this.left, this.top, this.left, bottom, ink.axis);
    const caption = (axis, unit) => axis.label + (unit ? ` (${unit}` : this.log[axis === about.x ? "x" : "y"] ? " (" : "")
      + (this.log[axis === about.x ? "x" : "y"] ? (unit ? ", log scale)" : "log scale)") : unit ? ")" : "");
    context.textAlign = "right";
    context.fillText(caption(about.x, this.time ? "h:min:s" : about.x.unit) + " \u2192", w - 4, bottom + 26);
    context.textAlign = "left";
    context.fillText("\u2191 " + caption(about.y, about.y.unit), 4, 4);
  }
  plot(series) {
    const { context } = this, colour = this.ink.colours[series.colour];
    context.strokeStyle = context.fillStyle = colour;
    context.lineJoin = "round";
    if (this.cdf) return this.steps(series);
    if (this.about.kind === "scatter") return this.dots(series);
    const { level, start, end } = this.inView(series, this.width * 2);
    const spread = [], tight = end - start > this.width / 2;
    let reached = [-Infinity, 0, 0];
    let pixel = NaN, first, low, high, last, going = false;
    context.beginPath();
    const put = (x, y) => { if (going) context.lineTo(x, y); else context.moveTo(x, y); going = true; };
    const flush = () => {
      if (pixel !== pixel) return;
      if (tight) {
        // Rectangles cost much less than a long line; each reaches to the one before.
        let [top, foot] = [this.py(high), this.py(low)];
        const range = [top, foot];
        if (pixel - reached[0] <= 2) { top = Math.min(top, reached[2]); foot = Math.max(foot, reached[1]); }
        context.fillRect(pixel - 0.6, top - 0.6, 1.2, foot - top + 1.2);
        reached = [pixel, ...range];
        return;
      }
      put(pixel, this.py(first));
      if (low !== high) { put(pixel, this.py(low)); put(pixel, this.py(high)); put(pixel, this.py(last)); }
    };
    const dense = level.each > 1 || end - start > this.width / 2;
    for (let i = start; i < end; i++) {
      const x = this.px(this.place("x", level.each > 1 ? (level.x[i] + level.x[i + 1]) / 2 : level.x[i]));
      const at = dense ? Math.round(x) : x;
      const [a, b, c, d] = [level.first[i], level.min[i], level.max[i], level.last[i]].map(v => this.place("y", v));
      if (x !== x || c !== c) continue;
      // On a log axis what is not above zero has no place: the column begins where it can.
      const from = b === b ? b : c;
      if (at === pixel) {
        if (from < low) low = from;
        if (c > high) high = c;
        last = d === d ? d : c;
      } else {
        flush();
        pixel = at; first = a === a ? a : from; low = from; high = c; last = d === d ? d : c;
      }
      if (level.each === 1) spread.push([x, c]);
    }
    flush();
    context.lineWidth = dense ? 1.2 : 2;
    context.setLineDash(dense ? [] : PAGE.dashes[series.colour]);
    context.stroke();
    context.setLineDash([]);
    this.drawn = Math.max(this.drawn, level.each * Math.max(1, (end - start) / this.width));
    const step = this.width / 7;
    let next = this.left + step * ((0.15 + series.index * 0.37) % 1);
    for (const [x, y] of spread) {
      if (spread.length < 60 || x >= next) { this.marker(series.colour, x, this.py(y)); next = Math.max(next, x) + step; }
    }
  }
  marker(colour, x, y) {
    const { context } = this;
    context.save();
    context.translate(x, y);
    context.fill(SHAPES[colour]);
    context.restore();
  }
  dots(series) {
    const { level, start, end } = this.inView(series, this.width * 4), { context } = this;
    const few = level.each === 1 && end - start < 400, size = end - start < 4000 ? 3 : 2;
    const wide = Math.ceil(this.width / size) + 2, seen = new Uint8Array(wide * (Math.ceil(this.height / size) + 2));
    const dot = (x, value) => {
      const y = this.py(this.place("y", value));
      if (!(x >= this.left - 5 && x <= this.left + this.width + 5 && y >= this.top - 5 && y <= this.top + this.height)) return;
      if (few) return this.marker(series.colour, x, y);
      const cell = Math.max(Math.floor((x - this.left) / size), 0) + wide * Math.max(Math.floor((y - this.top) / size), 0);
      if (seen[cell]) return;
      seen[cell] = 1;
      context.fillRect(x - size / 2, y - size / 2, size, size);
    };
    context.globalAlpha = few ? 1 : 0.75;
    for (let i = start; i < end; i++) {
      const x = this.px(this.place("x", level.x[i]));
      dot(x, level.max[i]);
      if (level.each === 1) continue;
      const next = this.px(this.place("x", level.x[i + 1])), middle = (x + next) / 2;
      dot(middle, level.min[i]);
      dot(x, level.first[i]);
      dot(next, level.last[i]);
    }
    context.globalAlpha = 1;
    this.drawn = Math.max(this.drawn, level.each * Math.max(1, (end - start) / this.width));
  }
  steps(series) {
    const { context } = this, { n, value, share } = series.cdf;
    const from = Math.max(below(value, n, this.value("x", this.view.x[0])) - 1, 0);
    const to = Math.min(below(value, n, this.value("x", this.view.x[1])) + 1, n);
    context.beginPath();
    let share0 = from ? share[from - 1] : 0, going = false, next = this.left + this.width / 7 * ((0.15 + series.index * 0.37) % 1);
    const marks = [];
    for (let i = from; i < to; i++) {
      const x = this.px(this.place("x", value[i]));
      if (x === x) {
        const y = this.py(this.place("y", share[i])), foot = share0 > 0 || !this.log.y ? this.py(this.place("y", share0)) : y;
        if (going) context.lineTo(x, foot); else context.moveTo(x, foot);
        context.lineTo(x, y);
        going = true;
        if (x >= next) { marks.push([x, y]); next = x + this.width / 7; }
      }
      share0 = share[i];
    }
    if (going && to === n) context.lineTo(this.left + this.width, this.py(this.place("y", 1)));
    context.lineWidth = 2;
    context.setLineDash(PAGE.dashes[series.colour]);
    context.stroke();
    context.setLineDash([]);
    for (const [x, y] of marks) this.marker(series.colour, x, y);
  }
  // Ticks above the picture, a row for each series that lost packets.
  losses() {
    const { context } = this;
    let foot = 34;
    for (const series of this.series) {
      const { x, end } = series.lost;
      if (!series.shown || !x.length) continue;
      context.fillStyle = this.ink.colours[series.colour];
      let reached = -Infinity;
      for (let i = below(end, end.length, this.value("x", this.view.x[0])); i < x.length; i++) {
        const from = this.px(this.place("x", x[i])), to = this.px(this.place("x", end[i]));
        if (from > this.left + this.width) break;
        if (to - reached < 0.7) continue;
        context.fillRect(from - 0.75, foot - 8, Math.max(to - from, 1.5), 8);
        reached = to;
      }
      foot += 10;
    }
  }
  shade() {
    const { context, drag } = this, tall = Math.abs(drag.to[1] - drag.from[1]) > this.height / 4;
    context.fillStyle = this.ink.text;
    context.globalAlpha = 0.14;
    context.fillRect(drag.from[0], tall ? drag.from[1] : this.top, drag.to[0] - drag.from[0], tall ? drag.to[1] - drag.from[1] : this.height);
    context.globalAlpha = 1;
  }

  // What is drawn nearest to the pointer.
  nearest() {
    const [px, py] = this.cross;
    let best = null;
    const offer = (series, x, low, high, more) => {
      const [a, b, at] = [this.py(this.place("y", low)), this.py(this.place("y", high)), this.px(this.place("x", x))];
      const y = Math.min(Math.max(py, Math.min(a, b)), Math.max(a, b));
      const far = Math.hypot((at - px) * 2, y - py);
      if (at >= this.left - 1 && at <= this.left + this.width + 1 && (!best || far < best.far)) best = { far, series, x, low, high, at, y, ...more };
    };
    const x = this.value("x", this.ppx(px));
    for (const series of this.series) {
      if (!series.shown) continue;
      if (this.cdf) {
        const { n, value, share } = series.cdf, i = Math.max(below(value, n, x), 0);
        for (const j of [i - 1, i]) if (j >= 0 && j < n) offer(series, value[j], share[j], share[j], { count: 1 });
        continue;
      }
      const { level, start, end } = this.inView(series, this.width * 2), i = below(level.x, level.n, x);
      const reach = level.each > 1 ? 1 : this.about.kind === "scatter" ? 60 : 2;
      for (let j = Math.max(i - reach, start); j < Math.min(i + reach, end); j++) {
        const middle = level.each > 1 ? (level.x[j] + level.x[j + 1]) / 2 : level.x[j];
        offer(series, middle, level.min[j], level.max[j], { count: level.each });
      }
    }
    return best;
  }
  text(axis, value, step) {
    if (axis === "x" && this.time) return clock(value, Math.min(step, 0.1));
    const unit = this.about[axis].unit;
    return (axis === "x" && !this.log.x ? fine(value, step) : short(value, 5)) + (unit ? " " + unit : "");
  }
  tell(found) {
    if (!found || this.drag) { if (this.read.textContent) this.read.textContent = ""; return; }
    const { context } = this, step = (this.view.x[1] - this.view.x[0]) / this.width;
    context.strokeStyle = this.ink.muted;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(found.at, this.top);
    context.lineTo(found.at, this.top + this.height);
    context.moveTo(this.left, found.y);
    context.lineTo(this.left + this.width, found.y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = this.ink.colours[found.series.colour];
    this.marker(found.series.colour, found.at, found.y);
    const name = found.series.name || "-", x = this.text("x", found.x, step);
    let text;
    if (this.cdf) text = `${name}: ${short(found.low * 100, 4)} % up to ${this.text("x", found.x, 0)}`;
    else if (found.count > 1) {
      text = `${name}: ${this.text("y", found.low)} to ${this.text("y", found.high)}, ${grouped(found.count, 0)} samples about ${x}`;
    } else text = `${name}: ${this.text("y", found.low)} at ${x}`;
    this.read.textContent = text;
    const right = found.at > this.left + this.width / 2, low = found.y < this.top + this.height / 2;
    const w = this.canvas.clientWidth, h = this.canvas.clientHeight, box = this.read.style;
    box.left = right ? "auto" : found.at + 12 + "px";
    box.right = right ? w - found.at + 12 + "px" : "auto";
    box.top = low ? found.y + 12 + "px" : "auto";
    box.bottom = low ? "auto" : h - found.y + 12 + "px";
  }
  status() {
    const [from, to] = this.view.x.map(p => this.text("x", this.value("x", p), (this.view.x[1] - this.view.x[0]) / 100));
    let text = this.zoomed() ? `${from} to ${to}; ` : "";
    if (this.cdf) text = text.slice(0, -2);
    else if (this.drawn > 1) text += `each column: about ${grouped(Math.round(this.drawn), 0)} samples, min to max`;
    else text += "each sample is drawn";
    if (this.state.textContent !== text) this.state.textContent = text;
  }
}

const sets = PAGE.data.map(unpack);
const charts = PAGE.charts.map((about, i) => new Chart(document.getElementById("chart-" + i), about, sets));
const all = () => charts.forEach(chart => chart.redraw());
dark.addEventListener("change", all);
addEventListener("beforeprint", () => { printing = true; charts.forEach(chart => chart.draw()); });
addEventListener("afterprint", () => { printing = false; all(); });
})();
