// A chart of samples: a frame looks at about as many columns as the picture has pixels across.
class Chart extends View {
  constructor(section, about, sets) {
    super(section, about, about.series.map((series, index) => ({ ...series, ...sets[series.data], shown: true, index })));
    this.reset();
  }
  get kind() { return this.about.kind; }
  get cdf() { return this.kind === "cdf"; }
  get steps() { return this.kind === "steps"; }
  get scatter() { return this.kind === "scatter"; }
  reset() {
    const [low, last] = this.about.ends[this.log.x ? 1 : 0];
    this.time = (this.scatter || this.about.clock) && this.about.x.unit === "s" && !this.log.x && last - low >= 120;
    super.reset();
  }
  extent() {
    const [low, last] = this.about.ends[this.log.x ? 1 : 0].map(value => this.place("x", value));
    return widened(low, this.end("x", low, last), this.cdf ? 0.01 : 0);
  }
  // Where an axis ends: a chart may have a say in it.
  end(axis, low, high) {
    const own = this.place(axis, this.about[axis].max);
    return own > low ? own : high;
  }
  pressed(button) {
    const axis = this.cdf ? "x" : "y";
    button.ariaPressed = this.log[axis] = !this.log[axis];
    this.reset();
  }

  // What is in view of each series, and the heights of that.
  gather() {
    this.range_y = [Infinity, -Infinity];
    this.near = [Infinity, -Infinity];
    this.drawn = this.count = 0;
    // Pixels are of one or two of the screen's.
    this.across = max(floor(this.area.width), 1);
    const data = this.series.map(series => series.shown ? this.cdf ? this.shares(series) : this.samples(series) : []);
    this.y = this.heights();
    for (const series of this.series) series.marked = series.shown ? this.mark(series) : [];
    return data.length ? data.map(points => [points.map(at => at[0]), points.map(at => at[1])]) : [[[], []]];
  }
  // Columns of a series in view: its level with at most `limit` of them, and which.
  inView(series, limit) {
    const [from, to] = this.ends();
    // Steps are looked at sample by sample: the middle of a wide column is where none of its samples may be.
    for (const level of this.steps ? series.levels.slice(0, 1) : series.levels) {
      const start = max(below(level.x, level.n, from) - 1, 0);
      const end = min(below(level.x, level.n, to) + 1, level.n);
      if (end - start <= limit || this.steps || level === series.levels.at(-1)) return { level, start, end };
    }
  }
  samples(series) {
    const { across } = this, { level, start, end } = series.seen = this.inView(series, across * 4), many = end - start;
    series.dense = !this.steps && (level.each > 1 || many > (this.scatter ? 400 : across / 3));
    this.drawn = max(this.drawn, level.each * max(1, many / across));
    this.count += many;
    const [from, to] = this.x, scale = across / (to - from), points = series.points = [];
    const columns = series.dense && !this.scatter ? { low: new Float64Array(across).fill(Infinity), high: new Float64Array(across).fill(-Infinity) } : null;
    if (series.dense) series.kept = new Float64Array(across);
    for (let i = start; i < end; i++) {
      const x = this.place("x", middle(level, i)), high = this.place("y", level.high[i]), lowest = this.place("y", level.low[i]);
      if (x !== x || high !== high) continue;
      // On a log axis what is not above zero has no place: the column begins where it can.
      const low = lowest === lowest ? lowest : high, inside = x >= from && x <= to, range = inside || level.each > 1 ? this.range_y : this.near;
      range[0] = min(range[0], low);
      range[1] = max(range[1], high);
      const at = clip(floor((x - from) * scale), 0, across - 1);
      if (series.kept && (inside || level.each > 1)) series.kept[at] += level.each;
      if (columns) {
        // Half of a column may be outside of the picture; a sample is in it or not.
        if (!inside && level.each === 1) continue;
        columns.low[at] = min(columns.low[at], low);
        columns.high[at] = max(columns.high[at], high);
      } else {
        points.push([x, high]);
        if (level.each > 1 && low < high) points.push([x, low]);
      }
    }
    if (columns) this.upright(columns, points);
    if (this.steps && many > across * 4) series.points = this.joined(points);
    return this.scatter ? points : this.part(series, series.points);
  }
  // Each column of pixels as its ends, the nearer one to the column before first.
  upright({ low, high }, points) {
    let last = 0;
    for (let i = 0; i < this.across; i++) {
      if (low[i] === Infinity) continue;
      const x = this.ppx(i + 0.5), ends = abs(low[i] - last) < abs(high[i] - last) ? [low[i], high[i]] : [high[i], low[i]];
      points.push([x, ends[0]]);
      if (low[i] < high[i]) points.push([x, ends[1]]);
      last = ends[1];
    }
  }
  // Steps closer than a pixel as one: its first, its extremes and its last, where these are.
  joined(points) {
    const width = (this.x[1] - this.x[0]) / this.across, few = [];
    for (let i = 0, next; i < points.length; i = next) {
      const first = points[i];
      let low = first[1], high = first[1];
      for (next = i + 1; next < points.length && points[next][0] - first[0] < width; next++) {
        low = min(low, points[next][1]);
        high = max(high, points[next][1]);
      }
      const last = points[next - 1];
      few.push(first);
      if (next > i + 1) few.push([last[0], low], [last[0], high], last);
    }
    return few;
  }
  // A null between two points some way apart between which packets were lost: it parts the line.
  part(series, points) {
    const { x, end } = series.lost, least = (this.x[1] - this.x[0]) * 8 / this.across;
    if (!x.length) return points;
    return points.flatMap((at, i) => {
      const before = points[i - 1];
      if (!before || at[0] - before[0] < least) return [at];
      const j = below(end, end.length, this.value("x", before[0]));
      return j < x.length && x[j] < this.value("x", at[0]) ? [[(before[0] + at[0]) / 2, null], at] : [at];
    });
  }
  // The corners of a distribution in view, from none on.
  shares(series) {
    const { n, value, share } = series.cdf, points = series.points = [], floor = this.log.y ? -9 : 0;
    const [first, last] = this.ends(), from = max(below(value, n, first) - 1, 0), to = min(below(value, n, last) + 1, n);
    const place = i => this.place("x", value[i]);
    for (let i = from; i < to; i++) {
      if (place(i) !== place(i)) continue;
      if (!points.length) points.push([place(i), i ? this.place("y", share[i - 1]) : floor]);
      points.push([place(i), this.place("y", share[i])]);
    }
    return points;
  }
  // The range of y: what was selected, or what is in view.
  heights() {
    if (this.chosen) return this.chosen;
    if (this.cdf) return this.log.y ? [-4, 0.02] : [0, 1.02];
    const [low, high] = this.range_y[0] > this.range_y[1] ? this.near : this.range_y;
    if (low > high) return [0, 1];
    const end = this.end("y", low, -Infinity);
    if (end > low) return [!this.log.y && low >= 0 ? 0 : low, end];
    if (!this.log.y && low >= 0 && low <= high * 0.6) return [0, high * 1.05 || 1];
    return widened(low, high, 0.06);
  }

  // How uPlot draws a series: a line, steps, or dots.
  paths(series, plot, at, ...ends) {
    const own = plot.series[at], bold = this.cdf || this.count < 600;
    own.width = series.dense ? 1.2 : bold ? 2 : 1;
    own.dash = bold && !series.dense ? DASHES[series.look].map(part => part * devicePixelRatio) : [];
    series.halo = series.dense;
    series.filled = this.scatter;
    if (this.scatter) return series.dense ? this.dots(series, plot) : null;
    if (!series.points?.length) return null;
    return (this.cdf ? STEPS_ON : this.steps ? STEPS : LINE)(plot, at, ...ends);
  }
  dots(series, plot) {
    const fill = new Path2D(), size = max(round(1.5 * devicePixelRatio), 2), taken = new Set();
    for (const [x, y] of series.points) {
      const across = round(plot.valToPos(x, "x", true) - size / 2), down = round(plot.valToPos(y, "y", true) - size / 2), key = across * 65536 + down;
      if (taken.has(key)) continue;
      taken.add(key);
      fill.rect(across, down, size, size);
    }
    return { fill, stroke: null, clip: null, flags: 0 };
  }
  // Where a series is marked: each of a few samples, or some along it at places of its own.
  mark(series) {
    const { points } = series, each = this.scatter ? !series.dense : this.count < 160 && !this.cdf && !series.dense;
    if (each) return points;
    if (this.scatter || this.series.length < 2) return [];
    const first = (0.15 + series.index * 0.37) % 1;
    if (this.cdf) return this.along(points, first);
    const step = (this.x[1] - this.x[0]) / 7, marked = [];
    for (let x = this.x[0] + step * first; x < this.x[1]; x += step) {
      const at = points[below(points.map(point => point[0]), points.length, x)];
      if (at) marked.push(at);
    }
    return marked;
  }
  along(points, first) {
    const { width, height } = this.area, step = (width + height) / 9, marked = [], to = ([x, y]) => [this.px(x), this.py(y)];
    let next = step * first;
    points.forEach((end, i) => {
      const from = points[max(i - 1, 0)], [a, b] = [from, end].map(to), across = abs(b[0] - a[0]), length = across + abs(b[1] - a[1]);
      for (; next < length; next += step) {
        // Across first, then up.
        marked.push(next < across ? [from[0] + (end[0] - from[0]) * next / across, from[1]]
          : [end[0], from[1] + (end[1] - from[1]) * (next - across) / (length - across)]);
      }
      next -= length;
    });
    return marked;
  }
  head() { return 28 + this.lossy().length * 10; }
  lossy() { return this.cdf ? [] : this.series.filter(series => series.shown && series.lost.x.length); }
  // Shades bands, and names those that have room for their name.
  shade(pen) {
    const { left, top, width, height } = this.area;
    this.about.bands.forEach(([low, high, name, shaded]) => {
      const from = clip(this.acrossTo(low), 0, width), wide = clip(this.acrossTo(high), 0, width) - from;
      pen.fillStyle = this.ink.muted;
      pen.globalAlpha = 0.12;
      if (shaded) pen.fillRect(left + from, top, wide, height);
      pen.globalAlpha = 1;
      pen.textAlign = "center";
      if (pen.measureText(name).width + 4 > wide) return;
      const at = [name, left + from + wide / 2, top + 5];
      pen.strokeStyle = this.ink.ground;
      pen.lineWidth = 4;
      pen.strokeText(...at);
      pen.fillText(...at);
    });
  }
  // Ticks above the picture, a row for each series that lost packets: one for a column of pixels, the taller the larger
  // its share of lost ones.
  adorn(pen) {
    const { left, width } = this.area, [start, to] = this.ends();
    this.shade(pen);
    let foot = 34;
    for (const series of this.lossy()) {
      const { x, end, before } = series.lost;
      pen.fillStyle = this.colour(series);
      for (let i = below(end, end.length, start); i < x.length && x[i] <= to;) {
        const from = clip(this.acrossTo(x[i]), 0, width), column = floor(from);
        const next = max(below(x, x.length, this.value("x", this.ppx(column + 1))), i + 1);
        const until = min(this.acrossTo(end[next - 1]), width), lost = before[next] - before[i];
        let kept = 0;
        for (let j = column; series.dense && j < max(until, column + 1); j++) kept += series.kept[j] || 0;
        const tall = 3 + 5 * sqrt(lost / (lost + kept));
        pen.fillRect(left + from - 0.75, foot - tall, max(until - from, 1.5), tall);
        i = next;
      }
      foot += 10;
    }
    if (!this.count && !this.cdf) {
      pen.textAlign = "center";
      pen.fillStyle = this.ink.muted;
      pen.fillText("no sample", left + width / 2, this.area.top + this.area.height / 2);
    }
  }

  // What the pointer is at: lost packets, or what is drawn nearest.
  find(px, py) {
    return py < -3 ? this.lossAt(px, py) : this.nearest(px, py);
  }
  nearest(px, py) {
    const { width } = this.area, x = this.value("x", this.ppx(px));
    let best = null;
    const offer = (series, x, low, high, count) => {
      const a = this.downTo(low), b = this.downTo(high), at = this.acrossTo(x);
      const y = clip(py, min(a, b), max(a, b)), far = hypot((at - px) * 2, y - py);
      if (at >= -1 && at <= width + 1 && far < (best ? best.far : Infinity)) best = { far, series, x, low, high, count, at, y };
    };
    for (const series of this.series) {
      if (!series.shown) continue;
      if (this.cdf) {
        const { n, value, share } = series.cdf, i = max(below(value, n, x), 0);
        for (const j of [i - 1, i]) if (j >= 0 && j < n) offer(series, value[j], share[j], share[j], 1);
        continue;
      }
      const { level, start, end } = series.seen || this.inView(series, 1), i = below(level.x, level.n, x);
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
  lossAt(px, py) {
    const series = this.lossy()[floor((py + this.area.top - 25) / 10)];
    if (!series) return null;
    const { x, end, before } = series.lost, [a, b] = [px - 3, px + 3].map(pixel => this.value("x", this.ppx(pixel)));
    const i = below(end, end.length, a), j = below(x, x.length, b), lost = before[j] - before[i];
    return lost > 0 ? this.said({ series, at: max(this.acrossTo(x[i]), 0), y: null }, `${grouped(lost, 0)} lost about ${this.text("x", x[i])}`) : null;
  }
  status() {
    const range = this.range(), count = round(this.drawn);
    if (this.cdf) return range;
    const many = count > 1 ? `each column: about ${grouped(count, 0)} samples, min to max` : "each sample is drawn";
    return (range ? range + "; " : "") + many;
  }
}

const STEPS_ON = uPlot.paths.stepped({ align: 1, extend: true });
const sets = PAGE.data.map(unpack);
PAGE.charts.forEach((about, i) => new Chart(document.getElementById("chart-" + i), about, sets));
