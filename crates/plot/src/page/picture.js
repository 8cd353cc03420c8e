// A chart's picture. A frame looks at about as many columns as the picture has pixels across, paints dense series into
// an image of its own, and asks nothing of the page.
class Picture {
  constructor(section, about, sets) {
    this.about = about;
    this.cdf = about.kind === "cdf";
    this.scatter = about.kind === "scatter";
    this.canvas = section.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.image = document.createElement("canvas");
    this.log = { x: about.x.log, y: about.y.log };
    this.series = about.series.map((series, index) => ({ ...series, ...sets[series.data], shown: true, index }));
  }

  // Scales: a value's place is its logarithm on a log axis.
  place(axis, value) { return this.log[axis] ? (value > 0 ? log10(value) : NaN) : value; }
  value(axis, place) { return this.log[axis] ? 10 ** place : place; }
  acrossTo(x) { return this.px(this.place("x", x)); }
  downTo(y) { return this.py(this.place("y", y)); }
  xAt(pixel) { return this.value("x", this.ppx(pixel)); }
  ends() { return this.x.map(place => this.value("x", place)); }
  px(place) { return this.left + (place - this.x[0]) / (this.x[1] - this.x[0]) * this.width; }
  py(place) { return this.top + (1 - (place - this.y[0]) / (this.y[1] - this.y[0])) * this.height; }
  ppx(pixel) { return this.x[0] + (pixel - this.left) / this.width * (this.x[1] - this.x[0]); }
  ppy(pixel) { return this.y[0] + (1 - (pixel - this.top) / this.height) * (this.y[1] - this.y[0]); }

  extent() {
    const log = this.log.x, [low, last] = this.about.ends[log ? 1 : 0].map(value => this.place("x", value));
    return widened(low, this.end("x", low, last), this.cdf ? 0.01 : 0);
  }
  // Where an axis ends: a chart may have a say in it.
  end(axis, low, high) {
    const own = this.place(axis, this.about[axis].max);
    return own > low ? own : high;
  }

  draw() {
    const { canvas, context, w, h } = this, ratio = printing ? 3 : devicePixelRatio;
    if (!w) return;
    const night = dark.matches && !printing ? 1 : 0;
    this.colours = PAGE.colours.map(pair => pair[night]);
    this.ink = PAGE.inks[night];
    this.ratio = ratio;
    sized(canvas, context, w, h, ratio);
    const seen = this.seen = this.series.filter(series => series.shown);
    const rows = this.cdf ? 0 : seen.filter(series => series.lost.x.length).length;
    this.marks = [];
    this.top = 28 + rows * 10;
    this.bottom = h - 46;
    this.height = this.bottom - this.top;
    // Labels that are wider than those of any frame before move the axis.
    for (let left = 0; left !== this.left;) {
      left = this.left;
      this.measure();
    }
    this.axes();
    context.save();
    context.beginPath();
    context.rect(this.left, 24, this.width + 1, this.bottom - 24);
    context.clip();
    this.paint();
    for (const series of seen) this.lines(series);
    if (!this.cdf) this.losses();
    context.restore();
    for (const mark of this.marks) this.marker(context, ...mark);
  }

  // What is in view, its heights, and how much room their labels take.
  measure() {
    this.right = this.w - 22;
    this.width = this.right - this.left;
    // Pixels of the image are of one or two of the screen's, so that each has the same width.
    this.grain = (this.ratio > 1.7 ? 2 : 1) / this.ratio;
    this.across = max(floor(this.width / this.grain), 1);
    this.down = max(floor(this.height / this.grain), 1);
    this.range = [Infinity, -Infinity];
    this.near = [Infinity, -Infinity];
    this.drawn = this.points = 0;
    if (!this.cdf) for (const series of this.seen) this.gather(series);
    this.y = this.heights();
    this.units = {};
    for (const axis of ["x", "y"]) {
      const ends = this[axis], name = this.about[axis].unit;
      this.units[axis] = this.log[axis] ? [1, SECONDS[name] ? "" : name] : unit(name, max(...ends.map(abs)));
    }
    const room = max(this.height / 42, 2);
    this.rows = this.ticks("y", this.y, room);
    this.context.font = FONT;
    const widest = max(...this.rows.map(row => this.context.measureText(row[1]).width), 10);
    this.left = max(this.left, ceil(widest) + 12);
  }
  ticks(axis, [from, to], room) {
    const factor = this.units[axis][0], time = axis === "x" && this.time;
    if (this.log[axis] || time) return ticks(from, to, room, this.log[axis], time, this.about[axis].unit);
    return ticks(from * factor, to * factor, room).map(([place, label]) => [place / factor, label]);
  }
  // Columns of a series in view: its level with at most `limit` of them, and which.
  inView(series, limit) {
    const [from, to] = this.ends();
    for (const level of series.levels) {
      const start = max(below(level.x, level.n, from) - 1, 0);
      const end = min(below(level.x, level.n, to) + 1, level.n);
      if (end - start <= limit || level === series.levels.at(-1)) return { level, start, end };
    }
  }
  // Takes what is in view of a series into columns of pixels: the lowest and the highest place, and how many.
  gather(series) {
    const { across } = this, { level, start, end } = series.seen = this.inView(series, across * 1.5), many = end - start;
    series.dense = level.each > 1 || many > (this.scatter ? 400 : across / 3);
    this.drawn = max(this.drawn, level.each * max(1, many / across));
    this.points += many;
    const [low, high, count] = [Infinity, -Infinity, 0].map(none => new Float64Array(across).fill(none));
    const [from, to] = this.x, scale = across / (to - from);
    series.pixels = { low, high, count };
    for (let i = start; i < end; i++) {
      const x = this.place("x", middle(level, i));
      const c = this.place("y", level.high[i]), lowest = this.place("y", level.low[i]);
      if (x !== x || c !== c) continue;
      // On a log axis what is not above zero has no place: the column begins where it can.
      const b = lowest === lowest ? lowest : c, inside = x >= from && x <= to;
      const range = inside || level.each > 1 ? this.range : this.near;
      if (b < range[0]) range[0] = b;
      if (c > range[1]) range[1] = c;
      // Half of a column may be outside of the picture; a sample is in it or not.
      if (!inside && level.each === 1) continue;
      const at = clip(floor((x - from) * scale), 0, across - 1);
      low[at] = min(low[at], b);
      high[at] = max(high[at], c);
      count[at] += level.each;
    }
  }
  // The range of y: what was selected, or what is in view.
  heights() {
    if (this.chosen) return this.chosen;
    if (this.cdf) return this.log.y ? [-4, 0.02] : [0, 1.02];
    const [low, high] = this.range[0] > this.range[1] ? this.near : this.range;
    if (low > high) return [0, 1];
    const end = this.end("y", low, -Infinity);
    if (end > low) return [!this.log.y && low >= 0 ? 0 : low, end];
    if (!this.log.y && low >= 0 && low <= high * 0.6) return [0, high * 1.05 || 1];
    return widened(low, high, 0.06);
  }
  axes() {
    const { context, about, ink, left, top, bottom, width, height } = this;
    const line = (x, y, wide, tall, colour = ink.muted) => {
      context.fillStyle = colour;
      context.fillRect(round(x), round(y), wide, tall);
    };
    const grid = (label, ...place) => {
      context.globalAlpha = label ? 1 : 0.5;
      line(...place, ink.grid);
      context.globalAlpha = 1;
      context.fillStyle = ink.text;
    };
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [place, label] of this.rows) {
      grid(label, left, this.py(place), width, 1);
      context.fillText(label, left - 7, this.py(place));
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    let reached = -Infinity;
    for (const [place, label] of this.ticks("x", this.x, max(width / 90, 2))) {
      const x = this.px(place), half = context.measureText(label).width / 2, middle = clip(x, half + 1, this.w - half - 1);
      grid(label, x, top, 1, height);
      if (label && middle - half > reached) {
        context.fillText(label, middle, bottom + 7);
        line(x, bottom, 1, 5);
        reached = middle + half + 8;
      }
    }
    line(left, bottom, width, 1);
    line(left, top, 1, height);
    const caption = axis => {
      const name = this.time && axis === "x" ? "h:min:s" : this.units[axis][1];
      const more = [name, this.log[axis] ? "log scale" : ""].filter(part => part).join(", ");
      return about[axis].label + (more ? ` (${more})` : "");
    };
    context.fillStyle = ink.text;
    context.textAlign = "right";
    context.fillText(caption("x") + " →", this.w - 4, bottom + 26);
    context.textAlign = "left";
    context.fillText("↑ " + caption("y"), 4, 4);
  }

  // Dense series, as pixels of an image: a few thousand rectangles would take longer.
  paint() {
    if (this.cdf || !this.seen.some(series => series.dense)) return;
    const { image, across, down } = this, context = image.getContext("2d");
    if (image.width !== across || image.height !== down) {
      image.width = across;
      image.height = down;
      this.pixels = context.createImageData(across, down);
      this.cells = new Uint32Array(this.pixels.data.buffer);
    }
    this.cells.fill(0);
    for (const series of this.seen) {
      if (!series.dense) continue;
      const [r, g, b] = this.colour(series.look).match(/\w\w/g).map(part => parseInt(part, 16));
      const ink = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
      if (this.scatter) this.dots(series, ink); else this.columns(series, ink);
    }
    context.putImageData(this.pixels, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, this.left, this.top, across * this.grain, down * this.grain);
  }
  row(place) { return (this.py(place) - this.top) / this.grain; }
  // Fills rows of a column; where series meet they share the pixels.
  fill(column, top, foot, ink) {
    const { cells, across, down } = this;
    for (let y = max(top, 0), end = min(foot, down - 1); y <= end; y++) {
      const at = y * across + column;
      if (cells[at] === 0 || cells[at] === ink || column + y & 1) cells[at] = ink;
    }
  }
  columns(series, ink) {
    const { low, high } = series.pixels, more = max(round(0.8 / this.grain), 1), half = i => this.row((low[i] + high[i]) / 2);
    const rows = (column, a, b) => this.fill(column, round(min(a, b)), round(max(a, b)) + more - 1, ink);
    for (let i = 0, before = -1; i < this.across; i++) {
      if (low[i] === Infinity) continue;
      let top = this.row(high[i]), foot = this.row(low[i]);
      if (before === i - 1 && i) {
        top = min(top, this.row(low[before]));
        foot = max(foot, this.row(high[before]));
      } else if (before >= 0 && !this.parted(series, ...[before + 1, i].map(j => this.left + j * this.grain))) {
        const from = half(before), by = (half(i) - from) / (i - before);
        for (let j = before + 1; j < i; j++) rows(j, from + by * (j - before - 0.5), from + by * (j - before + 0.5));
      }
      rows(i, top, foot);
      before = i;
    }
    if (this.series.length > 1) {
      this.spread(series, next => {
        const i = ceil((next - this.left) / this.grain);
        return low[i] < Infinity && [this.left + i * this.grain, this.py((low[i] + high[i]) / 2)];
      }, true);
    }
  }
  // Whether packets were lost between two pixels that are some way apart.
  parted(series, from, to) {
    if (to - from < 8) return false;
    const { x, end } = series.lost, [a, b] = [from, to].map(pixel => this.xAt(pixel));
    const i = below(end, end.length, a);
    return i < x.length && x[i] < b;
  }
  dots(series, ink) {
    const { level, start, end } = series.seen, size = max(round(2 / this.grain), 2);
    const dot = (x, value) => {
      const row = round(this.row(this.place("y", value)) - size / 2), column = round((this.acrossTo(x) - this.left) / this.grain - size / 2);
      for (let i = max(column, 0); i < min(column + size, this.across); i++) this.fill(i, row, row + size - 1, ink);
    };
    for (let i = start; i < end; i++) {
      dot(level.x[i], level.high[i]);
      if (level.each > 1) dot(middle(level, i), level.low[i]);
    }
  }

  // Marks are drawn last: some along a series, at places of its own.
  mark(series, [x, y], halo) {
    if (x >= this.left && x <= this.right && y >= this.top && y <= this.bottom) this.marks.push([series.look, x, y, halo]);
  }
  spread(series, find, halo) {
    const step = this.width / 7;
    for (let x = this.left + step * ((0.15 + series.index * 0.37) % 1); x < this.right; x += step) {
      const at = find(x);
      if (at) this.mark(series, at, halo);
    }
  }
  colour(look) { return this.colours[look % 8]; }
  marker(context, look, x, y, halo) {
    const { ratio } = this, { ground } = this.ink, fill = (ink, size) => {
      context.setTransform(ratio * size, 0, 0, ratio * size, x * ratio, y * ratio);
      context.fillStyle = ink;
      context.fill(SHAPES[look % 8]);
    };
    if (halo) fill(ground, 1.6);
    fill(this.colour(look), 1.1);
    if (look > 7) fill(ground, 0.7);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  // What is not dense: lines with their marks, or marks alone.
  lines(series) {
    if (this.cdf) return this.steps(series);
    if (series.dense) return;
    const { level, start, end } = series.seen, all = [];
    for (let i = start; i < end; i++) {
      const x = this.acrossTo(level.x[i]), y = this.tame(this.downTo(level.high[i]));
      if (x === x && y === y) all.push([x, y]);
    }
    if (this.scatter) return all.forEach(at => this.mark(series, at));
    // Nothing is drawn far outside, where dashes would take their time.
    const left = this.left - 9, right = this.right + 9;
    const cut = (a, b, x) => [x, a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0])];
    let run = [];
    all.forEach((at, i) => {
      const before = all[i - 1];
      if (before && this.parted(series, before[0], at[0])) {
        this.trace(series, run);
        run = [];
      }
      if (run.length && before[0] < left) run[0] = cut(before, at, left);
      run.push(run.length && at[0] > right ? cut(before, at, right) : at);
    });
    this.trace(series, run);
    const inside = all.filter(at => at[0] >= left && at[0] <= right);
    if (this.points < 160) inside.forEach(at => this.mark(series, at));
    else this.spread(series, next => inside[below(inside.map(at => at[0]), inside.length, next)]);
  }
  // What is far outside is drawn nearer, where dashes do not take their time.
  tame(y) { return clip(y, -2000, this.h + 2000); }
  // Strokes a line by pieces, since the time for one grows faster than its length.
  trace(series, points) {
    const { context } = this, bold = this.points < 600;
    context.strokeStyle = context.fillStyle = this.colour(series.look);
    context.lineWidth = bold ? 2 : 1 / this.ratio;
    context.lineJoin = "round";
    context.setLineDash(bold ? PAGE.dashes[series.look] : []);
    if (points.length === 1) context.fillRect(...points[0], 2, 2);
    let along = 0;
    for (let i = 1; i < points.length;) {
      context.lineDashOffset = along;
      context.beginPath();
      context.moveTo(...points[i - 1]);
      for (const end = min(i + 24, points.length); i < end; i++) {
        context.lineTo(...points[i]);
        along += apart(points[i], points[i - 1]);
      }
      context.stroke();
    }
    context.setLineDash([]);
  }
  steps(series) {
    const { n, value, share } = series.cdf, points = [];
    const [first, last] = this.ends(), from = max(below(value, n, first) - 1, 0), to = min(below(value, n, last) + 1, n);
    let y = this.tame(this.downTo(from ? share[from - 1] : 0));
    for (let i = from; i < to; i++) {
      const x = clip(this.acrossTo(value[i]), this.left - 9, this.right + 9), next = this.tame(this.downTo(share[i]));
      if (x !== x) continue;
      const before = points.at(-1);
      // Steps smaller than a pixel are drawn with the next.
      if (before && i + 1 < to && x - before[0] < 1 && abs(next - before[1]) < 1) continue;
      if (y === y) points.push([x, y]);
      points.push([x, y = next]);
    }
    if (to === n && points.length) points.push([this.right + 9, y]);
    this.trace(series, points);
    // Marks evenly along the way.
    const step = (this.width + this.height) / 9;
    let next = step * ((0.15 + series.index * 0.37) % 1);
    points.forEach((to, i) => {
      const from = points[i - 1] || to, length = apart(from, to), at = j => from[j] + (to[j] - from[j]) * next / length;
      for (; next < length; next += step) this.mark(series, [at(0), at(1)]);
      next -= length;
    });
  }
  column(pixel) { return clip(floor((pixel - this.left) / this.grain), 0, this.across - 1); }
  // Ticks above the picture, a row for each series that lost packets: one for a column of pixels, the taller the larger
  // its share of lost ones.
  losses() {
    const { context, grain } = this, [start, to] = this.ends();
    let foot = 34;
    for (const series of this.seen) {
      const { x, end, before } = series.lost;
      if (!x.length) continue;
      context.fillStyle = this.colour(series.look);
      for (let i = below(end, end.length, start); i < x.length && x[i] <= to;) {
        const from = max(this.acrossTo(x[i]), this.left), column = this.column(from);
        const next = max(below(x, x.length, this.xAt(this.left + (column + 1) * grain)), i + 1);
        const until = this.acrossTo(end[next - 1]), last = this.column(until);
        const lost = before[next] - before[i];
        let kept = 0;
        for (let j = column; series.dense && j <= last; j++) kept += series.pixels.count[j] || 0;
        const tall = 3 + 5 * sqrt(lost / (lost + kept));
        context.fillRect(from - 0.75, foot - tall, max(until - from, 1.5), tall);
        i = next;
      }
      foot += 10;
    }
  }
}
// How far one point is from another.
function apart(a, b) { return hypot(a[0] - b[0], a[1] - b[1]); }
// A range with room on both sides.
function widened(low, high, share) {
  const room = high > low ? share * (high - low) : abs(low) * 0.1 || 0.5;
  return [low - room, high + room];
}
