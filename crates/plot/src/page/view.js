// A chart's view: uPlot with our axes, and pointer and key input. A subclass provides the data. A "place" is the value
// on a linear axis and its logarithm on a log axis; uPlot only handles places.
class View {
  constructor(section, about, series) {
    this.about = about;
    this.series = series;
    this.log = { x: about.x.log, y: about.y.log };
    const find = name => section.querySelector(name);
    [this.box, this.read, this.state] = [".view", ".read", ".state"].map(find);
    this.pointers = new Map();
    this.left = 20;
    this.chosen = this.cross = null;
    this.x = this.y = [0, 1];
    this.marks = { x: [], y: [] };
    this.units = { x: [1, ""], y: [1, ""] };
    this.begin();
    section.addEventListener("click", event => {
      const button = event.target.closest("button");
      if (button) this.press(button);
    });
    this.box.addEventListener("blur", () => this.point(null));
    this.box.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.box);
    views.push(this);
  }

  // Creates a plot of the present series, in place of the previous one.
  begin() {
    this.plot?.destroy();
    this.plot = this.build();
    const { over, root } = this.plot, wrap = root.querySelector(".u-wrap");
    // What follows the pointer is drawn on an overlay canvas.
    this.glass = document.createElement("canvas");
    this.glass.className = "glass";
    wrap.append(this.glass);
    this.pen = this.glass.getContext("2d");
    this.listen(wrap, over);
  }

  build() {
    const side = name => this.ink[name], edge = { show: true, width: 1, stroke: () => side("muted") };
    const axis = (scale, more) => ({
      scale, font: FONT, stroke: () => side("text"), grid: { stroke: () => side("grid"), width: 1 }, border: edge, gap: 5,
      splits: () => this.marks[scale].map(mark => mark[0]), values: () => this.marks[scale].map(mark => mark[1]), ...more,
    });
    const facet = scale => ({ scale, auto: false }), scale = name => ({ time: false, auto: false, range: () => this.scale(name) });
    const all = this.series.length ? this.series : [{ shown: true }];
    this.paintInks();
    return new uPlot({
      mode: 2, ...this.size(), pxAlign: 1, legend: { show: false }, drawOrder: ["axes", "series"],
      padding: [() => this.head(), 22, 0, 0],
      cursor: {
        points: { show: false }, dataIdx: () => null, x: false, y: false,
        drag: { x: true, y: true, uni: 60, setScale: false },
        // A drag with Shift pans, and so does a finger.
        bind: { mousedown: (plot, target, act) => event => { if (!event.button && !event.shiftKey && !this.touched) act(event); }, dblclick: () => null },
      },
      scales: { x: scale("x"), y: scale("y") },
      axes: [axis("x", { size: 46, ticks: { show: true, size: 5, width: 1, stroke: () => side("muted") } }),
        axis("y", { size: () => this.left, ticks: { show: false } })],
      series: [null, ...all.map((series, i) => ({
        facets: [facet("x"), facet("y")], paths: (plot, at, ...more) => this.paths(series, plot, at, ...more),
        stroke: () => this.colour(series), fill: () => series.filled ? this.colour(series) : null,
        points: { show: false },
      }))],
      hooks: { draw: [plot => this.decorate(plot)], setSelect: [plot => this.select(plot)] },
    }, [null, ...all.map(() => [[], []])], this.box);
  }
  size() { return { width: max(this.box.clientWidth, 100), height: this.tall || max(this.box.clientHeight, 200) }; }
  resize() {
    this.plot.setSize(this.size());
    this.redraw();
  }
  paintInks() {
    this.night = dark.matches && !printing ? 1 : 0;
    this.ink = INKS[this.night];
  }

  // The range of one of the plot's axes.
  scale(axis) { return this[axis]; }
  // Scales: on a log axis, a value's place is its logarithm.
  place(axis, value) { return this.log[axis] ? (value > 0 ? log10(value) : NaN) : value; }
  value(axis, place) { return this.log[axis] ? 10 ** place : place; }
  ends() { return this.x.map(place => this.value("x", place)); }
  // In CSS pixels from the corner of the plot's area.
  get area() {
    const { left, top, width, height } = this.plot.bbox, ratio = devicePixelRatio;
    return { left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio };
  }
  px(place) { return (place - this.x[0]) / (this.x[1] - this.x[0]) * this.area.width; }
  py(place) { return (1 - (place - this.y[0]) / (this.y[1] - this.y[0])) * this.area.height; }
  ppx(pixel) { return this.x[0] + pixel / this.area.width * (this.x[1] - this.x[0]); }
  ppy(pixel) { return this.y[0] + (1 - pixel / this.area.height) * (this.y[1] - this.y[0]); }
  acrossTo(x) { return this.px(this.place("x", x)); }
  downTo(y) { return this.py(this.place("y", y)); }

  reset() {
    this.full = this.extent();
    this.x = this.full.slice();
    this.chosen = this.cross = null;
    this.left = 20;
    this.redraw();
  }
  zoom(factor, at = (this.x[0] + this.x[1]) / 2) {
    this.show(at - (at - this.x[0]) * factor, at + (this.x[1] - at) * factor);
  }
  // Shows a range of x, clipped to the data and no narrower than the number format allows.
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
  zoomed() { return !!this.chosen || this.x[1] - this.x[0] < (this.full[1] - this.full[0]) * 0.9999; }
  press(button) {
    const act = { in: () => this.zoom(0.5), out: () => this.zoom(2), reset: () => this.reset() }[button.dataset.do];
    if (act) act();
    else if (button.dataset.series) {
      const series = this.series[button.dataset.series];
      button.ariaPressed = series.shown = !series.shown;
      this.redraw();
    } else this.pressed(button);
  }
  pressed() {}

  listen(wrap, over) {
    const on = (name, act, options) => wrap.addEventListener(name, act, options);
    const at = event => {
      const box = over.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    on("wheel", event => {
      const { deltaX: x, deltaY: y } = event, aside = abs(x) > abs(y);
      // At the full range, the wheel scrolls the page instead.
      if (!this.zoomed() && (y > 0 || aside)) return;
      event.preventDefault();
      if (aside) return this.pan(x / this.area.width);
      const pace = event.ctrlKey ? 0.01 : event.deltaMode ? 0.05 : 0.002;
      this.zoom(exp(clip(y * pace, -1, 1)), this.ppx(at(event)[0]));
    }, { passive: false });
    on("dblclick", () => this.reset());
    on("pointerdown", event => {
      this.touched = event.pointerType === "touch";
      if (event.button || !this.touched && !event.shiftKey) return;
      wrap.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      this.point(at(event));
    });
    on("pointermove", event => {
      const point = at(event), before = this.pointers.get(event.pointerId);
      if (before) this.move(event.pointerId, before, point);
      this.point(event.buttons && !before ? null : point);
    });
    const up = event => { this.pointers.delete(event.pointerId); };
    on("pointerup", up);
    on("pointercancel", up);
    on("pointerleave", event => { if (event.pointerType !== "touch") this.point(null); });
  }
  point(at) {
    this.cross = this.pointers.size > 1 ? null : at;
    this.redraw(false);
  }
  // One pointer pans, two pointers zoom.
  move(id, before, point) {
    const other = [...this.pointers].find(([key]) => key !== id);
    if (other) {
      const [was, is] = [before, point].map(at => apart(at, other[1]));
      if (was > 8 && is > 8) this.zoom(was / is, this.ppx(other[1][0]));
    } else if (this.zoomed()) this.drag(point[0] - before[0], point[1] - before[1]);
    this.pointers.set(id, point);
  }
  drag(across) { this.pan(-across / this.area.width); }
  // A drag zooms to its x range, and also to its y range if it has some height.
  select(plot) {
    const { left, top, width, height } = plot.select;
    if (width < 6) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (height < this.area.height * 0.999) this.chosen = [this.ppy(top + height), this.ppy(top)];
    this.show(this.ppx(left), this.ppx(left + width));
  }
  key(event) {
    const { key } = event, side = { ArrowLeft: -1, ArrowRight: 1 }[key], way = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.box) return;
    if (side && event.shiftKey) this.pan(side * 0.15);
    else if (side || way && this.cross) this.step(side || 0, way || 0);
    else if ("+=".includes(key)) this.zoom(0.7);
    else if (key === "-") this.zoom(1 / 0.7);
    else if (key === "0") this.reset();
    else return;
    event.preventDefault();
  }
  // Moves the reading mark by some pixels, and pans when the mark reaches an end of the range.
  step(side, way) {
    const { width, height } = this.area, [x, y] = this.cross || [width / 2, height / 2], next = x + side * max(width / 200, 2);
    if (next < 0 || next > width) this.pan(side * 0.15);
    this.point([clip(next, 0, width), clip(y + way * height / 25, 0, height)]);
  }

  // Draws in the next frame: everything, or only the overlay.
  redraw(all = true) {
    this.stale ||= all;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      const { stale } = this;
      this.stale = false;
      if (stale) this.draw();
      this.look();
    });
  }
  draw() {
    this.paintInks();
    const data = this.gather();
    this.units = {};
    this.marks = {};
    for (const [axis, room] of [["x", max(this.area.width / 90, 2)], ["y", max(this.area.height / 42, 2)]]) {
      const ends = this.scale(axis), name = this.about[axis].unit;
      this.units[axis] = this.log[axis] ? [1, SECONDS[name] ? "" : name] : unit(name, max(...ends.map(abs)));
      this.marks[axis] = this.ticks(axis, ends, room);
    }
    RULER.font = FONT;
    const wide = label => RULER.measureText(label).width;
    // Labels wider than any before move the axis.
    this.left = max(this.left, ceil(max(...this.marks.y.map(mark => wide(mark[1])), 10)) + 12);
    let reached = -Infinity;
    for (const mark of this.marks.x) {
      const at = this.px(mark[0]), half = wide(mark[1]) / 2;
      if (at - half < reached || at + half > this.area.width + 21) mark[1] = "";
      else if (mark[1]) reached = at + half + 8;
    }
    const { width } = this.area;
    this.plot.batch(plot => {
      plot.setData([null, ...data], false);
      for (const axis of ["x", "y"]) plot.setScale(axis, { min: this.scale(axis)[0], max: this.scale(axis)[1] });
    });
    // If the width of the labels has changed, redraw the columns.
    if (this.area.width !== width) this.redraw();
  }
  ticks(axis, [from, to], room) {
    const factor = this.units[axis][0], time = axis === "x" && this.time;
    if (this.log[axis] || time) return ticks(from, to, room, this.log[axis], time, this.about[axis].unit);
    return ticks(from * factor, to * factor, room).map(([place, label]) => [place / factor, label]);
  }
  // Draws the axes' captions and the subclass's additions.
  decorate({ ctx, bbox }) {
    const ratio = devicePixelRatio, arrow = (axis, sign) => this.caption(axis) && sign;
    ctx.save();
    ctx.scale(ratio, ratio);
    ctx.font = FONT;
    ctx.fillStyle = this.ink.text;
    ctx.textBaseline = "top";
    ctx.textAlign = "right";
    ctx.fillText(this.caption("x") + arrow("x", " →"), (bbox.left + bbox.width) / ratio + 18, (bbox.top + bbox.height) / ratio + 26);
    ctx.textAlign = "left";
    ctx.fillText(arrow("y", this.about.ladder ? "↓ " : "↑ ") + this.caption("y"), 4, 4);
    this.adorn(ctx);
    for (const series of this.series) this.stamp(ctx, series);
    ctx.restore();
  }
  caption(axis) {
    const name = this.time && axis === "x" ? "h:min:s" : this.units[axis][1];
    const more = [name, this.log[axis] ? "log scale" : ""].filter(part => part).join(", ");
    return this.about[axis].label + (more ? ` (${more})` : "");
  }
  head() { return 28; }
  adorn() {}
  colour(series) { return COLOURS[series.look % 8][this.night]; }
  // Draws the marks last: those of a series with its own places, with a halo where its line is dense.
  stamp(context, series) {
    const { left, top, width, height } = this.area;
    for (const place of series.marked || []) {
      const x = this.px(place[0]), y = this.py(place[1]);
      if (!(x >= -1 && x <= width + 1 && y >= -1 && y <= height + 1)) continue;
      this.marker(context, series, left + x, top + y, series.halo);
    }
  }
  marker(context, series, x, y, halo) {
    const shape = SHAPES[series.look % 8], fill = (ink, size) => {
      context.save();
      context.translate(x, y);
      context.scale(size, size);
      context.fillStyle = ink;
      context.fill(shape);
      context.restore();
    };
    if (halo) fill(this.ink.ground, 1.6);
    fill(this.colour(series), 1.1);
    if (series.look > 7) fill(this.ink.ground, 0.7);
  }

  // Draws what the pointer shows. The text is added to the page only when the pointer rests.
  look() {
    const { pen, glass, box } = this, { width: w, height: h } = this.plot;
    const found = this.cross && this.find(...this.cross);
    // Leave an empty overlay alone, so that the frame has only one canvas to compose.
    if (this.used || found) sized(glass, pen, w, h);
    this.used = found;
    if (found) this.tell(found, w, h);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.read.textContent = found ? found.words.join(": ") : "";
      this.state.textContent = this.status();
    }, 120);
  }
  tell({ series, at, y, words }, w, h) {
    const { pen, ink, area } = this, line = (x, y, wide, tall) => pen.fillRect(round(x), round(y), wide, tall);
    const px = at + area.left, py = y === null ? area.top : y + area.top;
    pen.fillStyle = ink.muted;
    line(px, area.top, 1, area.height);
    if (y !== null) {
      line(area.left, py, area.width, 1);
      this.marker(pen, series, px, py, true);
    }
    pen.font = FONT;
    const room = min(max(...words.map(line => pen.measureText(line).width)), w - 20), wide = room + 16, tall = 8 + words.length * 16;
    // On the side with more room, inside the picture.
    const x = clip(px > w / 2 ? px - wide - 12 : px + 12, 2, w - wide - 2);
    const top = clip(y === null ? area.top + 6 : py < h / 2 ? py + 12 : py - tall - 12, 2, h - tall - 2);
    pen.fillStyle = ink.muted;
    line(x - 1, top - 1, wide + 2, tall + 2);
    pen.fillStyle = ink.panel;
    line(x, top, wide, tall);
    pen.fillStyle = ink.text;
    pen.textBaseline = "middle";
    words.forEach((line, i) => pen.fillText(line, x + 8, top + 12 + i * 16, room));
  }
  text(axis, value) {
    const step = (this.x[1] - this.x[0]) / this.area.width;
    if (axis === "x" && this.time) return clock(value, min(step, 0.1));
    const [factor, name] = this.log[axis] ? unit(this.about[axis].unit, value) : this.units[axis];
    return (axis === "x" && !this.log.x && !this.cdf ? fine(value * factor, step * factor) : short(value * factor, 5)) + (name ? " " + name : "");
  }
  range() { return this.zoomed() ? this.ends().map(value => this.text("x", value)).join(" to ") : ""; }
  status() { return this.range(); }
}

// The distance between two points.
function apart(a, b) { return hypot(a[0] - b[0], a[1] - b[1]); }
// Adds a margin on both sides of a range.
function widened(low, high, share) {
  const room = high > low ? share * (high - low) : abs(low) * 0.1 || 0.5;
  return [low - room, high + room];
}
// Fits a canvas to its element, and clears it.
function sized(canvas, context, w, h) {
  const ratio = devicePixelRatio, [across, down] = [round(w * ratio), round(h * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
}

const views = [], FONT = "12px system-ui, sans-serif", SHAPES = LOOKS.shapes.map(path => new Path2D(path));
const { colours: COLOURS, inks: INKS, dashes: DASHES } = LOOKS;
const LINE = uPlot.paths.linear(), STEPS = uPlot.paths.stepped({ align: 1 });
const RULER = document.createElement("canvas").getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
dark.addEventListener("change", () => views.forEach(view => view.redraw()));
for (const [name, now] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(name, () => { printing = now; views.forEach(view => view.draw()); });
}
