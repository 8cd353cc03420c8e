// A chart's picture. A frame looks at about as many columns as the picture has pixels across, paints dense series into
// an image of its own, and asks nothing of the page.
class Picture {
  constructor(section, about, sets) {
    this.about = about;
    this.cdf = about.kind === "cdf";
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
  px(place) { return this.left + (place - this.x[0]) / (this.x[1] - this.x[0]) * this.width; }
  py(place) { return this.top + (1 - (place - this.y[0]) / (this.y[1] - this.y[0])) * this.height; }
  ppx(pixel) { return this.x[0] + (pixel - this.left) / this.width * (this.x[1] - this.x[0]); }
  ppy(pixel) { return this.y[0] + (1 - (pixel - this.top) / this.height) * (this.y[1] - this.y[0]); }

  extent() {
    const log = this.log.x, [low, last] = this.about.ends[log ? 1 : 0].map(value => this.place("x", value));
    const high = this.end("x", low, last), room = high > low ? (this.cdf ? 0.01 : 0) * (high - low) : abs(low) * 0.1 || 0.5;
    return [low - room, high + room];
  }
  // Where an axis ends: a chart may have a say in it.
  end(axis, low, high) {
    const own = this.place(axis, this.about[axis].max);
    return own > low ? own : high;
  }

  draw() {
    const { canvas, context, w, h } = this, ratio = printing ? 3 : devicePixelRatio || 1;
    if (!w || !h) return;
    const night = dark.matches && !printing;
    this.ink = night
      ? { ground: "#16191d", text: "#e8e8e8", muted: "#b4b9c0", grid: "#343a41", panel: "#20242a" }
      : { ground: "#ffffff", text: "#1b1d20", muted: "#55595f", grid: "#d8dbdf", panel: "#f4f5f7" };
    this.colours = PAGE.colours.map(pair => pair[night ? 1 : 0]);
    this.ratio = ratio;
    sized(canvas, context, w, h, ratio);
    const seen = this.series.filter(series => series.shown);
    const rows = this.cdf ? 0 : seen.filter(series => series.lost.x.length).length;
    this.marks = [];
    this.top = 28 + rows * 10;
    this.bottom = h - 46;
    this.height = this.bottom - this.top;
    // Labels that are wider than those of any frame before move the axis.
    for (let left = 0; left !== this.left;) {
      left = this.left;
      this.measure(w, seen);
    }
    this.axes(w);
    context.save();
    context.beginPath();
    context.rect(this.left, 24, this.width + 1, this.bottom - 24);
    context.clip();
    this.paint(seen);
    for (const series of seen) this.lines(series);
    if (!this.cdf) this.losses(seen);
    context.restore();
    for (const mark of this.marks) this.marker(context, ...mark);
  }

  // What is in view, its heights, and how much room their labels take.
  measure(w, seen) {
    this.right = w - 22;
    this.width = this.right - this.left;
    // Pixels of the image are of one or two of the screen's, so that each has the same width.
    this.grain = (this.ratio > 1.7 ? 2 : 1) / this.ratio;
    this.across = max(floor(this.width / this.grain), 1);
    this.down = max(floor(this.height / this.grain), 1);
    this.range = [Infinity, -Infinity];
    this.near = [Infinity, -Infinity];
    this.drawn = this.points = 0;
    if (!this.cdf) for (const series of seen) this.gather(series);
    this.y = this.heights();
    this.units = {};
    for (const axis of ["x", "y"]) {
      const ends = axis === "x" ? this.x : this.y;
      this.units[axis] = this.log[axis] ? [1, this.about[axis].unit] : unit(this.about[axis].unit, max(...ends.map(abs)));
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
    const from = this.value("x", this.x[0]), to = this.value("x", this.x[1]);
    for (const level of series.levels) {
      const start = max(below(level.x, level.n, from) - 1, 0);
      const end = min(below(level.x, level.n, to) + 1, level.n);
      if (end - start <= limit || level === series.levels[series.levels.length - 1]) return { level, start, end };
    }
  }
  // Takes what is in view of a series into columns of pixels: the lowest, the highest, the first and the last place.
  gather(series) {
    const { across } = this, scatter = this.about.kind === "scatter", seen = this.inView(series, across * 1.5);
    const { level, start, end } = series.seen = seen, many = end - start;
    series.dense = level.each > 1 || many > (scatter ? 400 : across / 3);
    this.drawn = max(this.drawn, level.each * max(1, many / across));
    this.points += many;
    if (series.pixels?.low.length !== across) {
      const [low, high, first, last, count] = [0, 0, 0, 0, 0].map(() => new Float64Array(across));
      series.pixels = { low, high, first, last, count };
    }
    const { low, high, first, last, count } = series.pixels, [from, to] = this.x, scale = across / (to - from);
    low.fill(Infinity);
    count.fill(0);
    const place = this.log.y ? value => value > 0 ? log10(value) : NaN : value => value;
    for (let i = start; i < end; i++) {
      const middle = this.place("x", level.each > 1 ? (level.x[i] + level.x[i + 1]) / 2 : level.x[i]);
      const c = place(level.high[i]), lowest = place(level.low[i]);
      if (middle !== middle || c !== c) continue;
      // On a log axis what is not above zero has no place: the column begins where it can.
      const b = lowest === lowest ? lowest : c, inside = middle >= from && middle <= to;
      const range = inside || level.each > 1 ? this.range : this.near;
      if (b < range[0]) range[0] = b;
      if (c > range[1]) range[1] = c;
      // Half of a column may be outside of the picture; a sample is in it or not.
      if (!inside && level.each === 1) continue;
      const at = min(max(floor((middle - from) * scale), 0), across - 1);
      const a = place(level.first[i]), d = place(level.last[i]);
      if (low[at] === Infinity) {
        low[at] = b;
        high[at] = c;
        first[at] = a === a ? a : b;
      } else {
        if (b < low[at]) low[at] = b;
        if (c > high[at]) high[at] = c;
      }
      last[at] = d === d ? d : c;
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
    const room = high > low ? (high - low) * 0.06 : abs(low) * 0.1 || 0.5;
    return [low - room, high + room];
  }
  axes(w) {
    const { context, about, ink } = this;
    const columns = this.ticks("x", this.x, max(this.width / 90, 2));
    const line = (x, y, wide, tall, colour) => {
      context.fillStyle = colour;
      context.fillRect(round(x), round(y), wide, tall);
    };
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [place, label] of this.rows) {
      context.globalAlpha = label ? 1 : 0.5;
      line(this.left, this.py(place), this.width, 1, ink.grid);
      context.globalAlpha = 1;
      context.fillStyle = ink.text;
      context.fillText(label, this.left - 7, this.py(place));
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    let reached = -Infinity;
    for (const [place, label] of columns) {
      const x = this.px(place), half = context.measureText(label).width / 2;
      context.globalAlpha = label ? 1 : 0.5;
      line(x, this.top, 1, this.height, ink.grid);
      context.globalAlpha = 1;
      const middle = min(max(x, half + 1), w - half - 1);
      if (label && middle - half > reached) {
        line(x, this.bottom, 1, 5, ink.muted);
        context.fillStyle = ink.text;
        context.fillText(label, middle, this.bottom + 7);
        reached = middle + half + 8;
      }
    }
    line(this.left, this.bottom, this.width, 1, ink.muted);
    line(this.left, this.top, 1, this.height, ink.muted);
    const caption = axis => {
      const name = this.time && axis === "x" ? "h:min:s" : this.units[axis][1], log = this.log[axis];
      const more = [log && SECONDS[name] ? "" : name, log ? "log scale" : ""].filter(part => part).join(", ");
      return about[axis].label + (more ? ` (${more})` : "");
    };
    context.fillStyle = ink.text;
    context.textAlign = "right";
    context.fillText(caption("x") + " \u2192", w - 4, this.bottom + 26);
    context.textAlign = "left";
    context.fillText("\u2191 " + caption("y"), 4, 4);
  }

  // Dense series, as pixels of an image: a few thousand rectangles would take longer.
  paint(seen) {
    if (this.cdf || !seen.some(series => series.dense)) return;
    const { image, across, down } = this;
    if (image.width !== across || image.height !== down) {
      image.width = across;
      image.height = down;
      this.pixels = image.getContext("2d").createImageData(across, down);
      this.cells = new Uint32Array(this.pixels.data.buffer);
    }
    this.cells.fill(0);
    for (const series of seen) {
      if (!series.dense) continue;
      const [r, g, b] = this.colours[series.look % 8].match(/\w\w/g).map(part => parseInt(part, 16));
      const ink = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
      if (this.about.kind === "scatter") this.dots(series, ink); else this.columns(series, ink);
    }
    image.getContext("2d").putImageData(this.pixels, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, this.left, this.top, across * this.grain, down * this.grain);
  }
  row(place) { return (1 - (place - this.y[0]) / (this.y[1] - this.y[0])) * this.down; }
  // Fills rows of a column; where series meet they share the pixels.
  fill(column, top, foot, ink) {
    const { cells, across, down } = this;
    for (let y = max(top, 0), end = min(foot, down - 1); y <= end; y++) {
      const at = y * across + column;
      if (cells[at] === 0 || cells[at] === ink || column + y & 1) cells[at] = ink;
    }
  }
  columns(series, ink) {
    const { low, high, first, last } = series.pixels, more = max(round(0.8 / this.grain), 1);
    let before = -1;
    const rows = (column, a, b) => this.fill(column, round(min(a, b)), round(max(a, b)) + more - 1, ink);
    for (let i = 0; i < this.across; i++) {
      if (low[i] === Infinity) continue;
      let top = this.row(high[i]), foot = this.row(low[i]);
      if (before === i - 1 && i) {
        top = min(top, this.row(low[before]));
        foot = max(foot, this.row(high[before]));
      } else if (before >= 0 && !this.parted(series, ...[before + 1, i].map(j => this.left + j * this.grain))) {
        const from = this.row(last[before]), by = (this.row(first[i]) - from) / (i - before);
        for (let j = before + 1; j < i; j++) rows(j, from + by * (j - before - 0.5), from + by * (j - before + 0.5));
      }
      rows(i, top, foot);
      before = i;
    }
    if (this.series.length > 1) {
      this.spread(series, next => {
        const i = ceil((next - this.left) / this.grain);
        return low[i] < Infinity && [this.left + i * this.grain, this.py(last[i])];
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
    const from = this.x[0], scale = this.across / (this.x[1] - from);
    const dot = (x, value) => {
      const row = round(this.row(this.place("y", value)) - size / 2), column = round(x - size / 2);
      if (!(row > -size && row < this.down)) return;
      for (let i = max(column, 0); i < min(column + size, this.across); i++) this.fill(i, row, row + size - 1, ink);
    };
    for (let i = start; i < end; i++) {
      const x = (this.place("x", level.x[i]) - from) * scale;
      dot(x, level.high[i]);
      if (level.each === 1) continue;
      const next = (this.place("x", level.x[i + 1]) - from) * scale;
      dot((x + next) / 2, level.low[i]);
      dot(x, level.first[i]);
      dot(next, level.last[i]);
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
  marker(context, look, x, y, halo) {
    const draw = (stroke, wide) => {
      context.strokeStyle = stroke;
      context.lineWidth = wide;
      context.stroke(SHAPES[look % 8]);
    };
    context.save();
    context.translate(x, y);
    if (halo) draw(this.ink.ground, 4);
    context.fillStyle = look > 7 ? this.ink.ground : this.colours[look % 8];
    context.fill(SHAPES[look % 8]);
    draw(this.colours[look % 8], 1.5);
    context.restore();
  }

  // What is not dense: lines with their marks, or marks alone.
  lines(series) {
    if (this.cdf) return this.steps(series);
    if (series.dense) return;
    const { level, start, end } = series.seen, all = [];
    for (let i = start; i < end; i++) {
      const x = this.acrossTo(level.x[i]), y = this.downTo(level.high[i]);
      if (x === x && y === y) all.push([x, y]);
    }
    if (this.about.kind === "scatter") return all.forEach(at => this.mark(series, at));
    // Nothing is drawn far outside, where dashes would take their time.
    const [left, right] = [this.left - 9, this.right + 9];
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
  // Strokes a line by pieces, since the time for one grows faster than its length.
  trace(series, points) {
    const { context } = this, bold = this.points < 600;
    context.strokeStyle = context.fillStyle = this.colours[series.look % 8];
    context.lineWidth = bold ? 2 : 1 / this.ratio;
    context.lineJoin = "round";
    context.setLineDash(bold ? PAGE.dashes[series.look] : []);
    if (points.length === 1) context.fillRect(points[0][0] - 1, points[0][1] - 1, 2, 2);
    const near = y => min(max(y, -2000), this.h + 2000);
    let along = 0;
    for (let i = 1; i < points.length;) {
      context.lineDashOffset = along;
      context.beginPath();
      context.moveTo(points[i - 1][0], near(points[i - 1][1]));
      for (const end = min(i + 24, points.length); i < end; i++) {
        context.lineTo(points[i][0], near(points[i][1]));
        along += hypot(points[i][0] - points[i - 1][0], near(points[i][1]) - near(points[i - 1][1]));
      }
      context.stroke();
    }
    context.setLineDash([]);
  }
  steps(series) {
    const { n, value, share } = series.cdf, points = [];
    const from = max(below(value, n, this.value("x", this.x[0])) - 1, 0);
    const to = min(below(value, n, this.value("x", this.x[1])) + 1, n);
    const [left, right] = [this.left - 9, this.right + 9];
    let y = from || !this.log.y ? this.downTo(from ? share[from - 1] : 0) : NaN;
    for (let i = from; i < to; i++) {
      const x = min(max(this.acrossTo(value[i]), left), right), next = this.downTo(share[i]);
      if (x !== x) continue;
      const last = points[points.length - 1];
      // Steps smaller than a pixel are drawn with the next.
      if (last && i + 1 < to && x - last[0] < 1 && abs(next - last[1]) < 1) continue;
      if (y === y) points.push([x, y]);
      points.push([x, y = next]);
    }
    if (to === n && points.length) points.push([right, y]);
    this.trace(series, points);
    // Marks evenly along the way.
    const step = (this.width + this.height) / 9;
    let next = step * ((0.15 + series.index * 0.37) % 1);
    points.forEach(([x, y], i) => {
      const [fromX, fromY] = points[i - 1] || [x, y], length = hypot(x - fromX, y - fromY);
      for (; next < length; next += step) this.mark(series, [fromX + (x - fromX) * next / length, fromY + (y - fromY) * next / length]);
      next -= length;
    });
  }
  // Ticks above the picture, a row for each series that lost packets: one for a column of pixels, the taller the larger
  // its share of lost ones.
  losses(seen) {
    const { context, grain } = this, to = this.value("x", this.x[1]);
    let foot = 34;
    for (const series of seen) {
      const { x, end, before } = series.lost;
      if (!x.length) continue;
      context.fillStyle = this.colours[series.look % 8];
      for (let i = below(end, end.length, this.value("x", this.x[0])); i < x.length && x[i] <= to;) {
        const from = max(this.acrossTo(x[i]), this.left), column = min(floor((from - this.left) / grain), this.across - 1);
        const next = max(below(x, x.length, this.xAt(this.left + (column + 1) * grain)), i + 1);
        const until = this.acrossTo(end[next - 1]), last = max(min(floor((until - this.left) / grain), this.across - 1), column);
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
