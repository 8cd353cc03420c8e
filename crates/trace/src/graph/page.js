// The packets: one typed array for each column.
const P = (() => {
  const text = atob(data), octets = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) octets[i] = text.charCodeAt(i);
  const types = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u2: Uint16Array };
  const columns = {};
  for (const [name, type, offset, count] of about.columns) columns[name] = new types[type](octets.buffer, offset, count);
  return columns;
})();
const N = P.time.length, NONE = 0xffffffff;
const FLAG = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16, URG: 32, ECE: 64, CWR: 128 };
const MARK = { fromA: 1, again: 2, order: 4, probe: 8, alive: 16, copy: 32, zero: 64, sack: 128, triple: 256 };
const NOTES = [[2, "retransmitted"], [4, "out of order"], [8, "window probe"], [16, "keep-alive"], [32, "copy of another packet"],
  [64, "zero window"], [128, "SACK"], [256, "third duplicate ACK"]];
// Colours, as places in the palette.
const HUE = { blue: 0, vermilion: 1, green: 2, orange: 3, purple: 4, sky: 5, plain: 6 };
const fromA = i => (P.marks[i] & MARK.fromA) !== 0;
const space = i => P.length[i] + (P.flags[i] & 1) + ((P.flags[i] >> 1) & 1);
const acks = i => (P.flags[i] & (FLAG.ACK | FLAG.RST)) === FLAG.ACK;
const KINDS = [["tsg", "Time sequence"], ["rtt", "Round trips"], ["tput", "Throughput"], ["owin", "In flight"],
  ["ssize", "Segment sizes"], ["tline", "Time line"]];
const SVG = about.svg;
const TIME = { label: "time since the connection's first packet", unit: "s", log: false };

// A series of points that packets stand behind: x and y, with y2 for bars.
function series(name, hue, look, from, wanted, y, y2) {
  const index = [];
  for (let i = 0; i < N; i++) if (fromA(i) === from && wanted(i)) index.push(i);
  return fill(name, hue, look, index, i => P.time[i], y, y2);
}
function fill(name, hue, how, index, x, y, y2) {
  const n = index.length, s = { name, look: HUE[hue], how, index: Uint32Array.from(index), x: new Float64Array(n), y: new Float64Array(n), sorted: true, shown: true };
  if (y2) s.y2 = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    s.x[k] = x(index[k], k);
    s.y[k] = y(index[k], k);
    if (y2) s.y2[k] = y2(index[k], k);
    if (k && s.x[k] < s.x[k - 1]) s.sorted = false;
  }
  return s;
}
const BUILD = {
  tsg(a) {
    const end = i => P.sequence[i] + space(i), acked = i => P.acknowledgment[i], has = mark => i => (P.marks[i] & mark) !== 0;
    const blocks = [];
    for (let k = 0; k < P.sackPacket.length; k++) if (fromA(P.sackPacket[k]) !== a) blocks.push(k);
    const sack = fill("SACK", "sky", "bar", blocks, k => P.time[P.sackPacket[k]], k => P.sackLeft[k], k => P.sackRight[k]);
    sack.index = sack.index.map(k => P.sackPacket[k]);
    return { unit: "bytes", label: "sequence number, from the first", all: [
      series("window end", "orange", "dash", !a, acks, i => P.acknowledgment[i] + P.window[i]),
      series("acknowledged", "green", "step", !a, acks, acked),
      series("segments", "blue", "bar", a, i => space(i) > 0, i => P.sequence[i], end), sack,
      series("SYN, FIN", "plain", "square", a, i => P.flags[i] & 3, end),
      series("RST", "plain", "cross", a, i => P.flags[i] & 4, end),
      series("retransmitted", "vermilion", "cross", a, has(MARK.again), end),
      series("out of order", "purple", "triangle", a, has(MARK.order), end),
      series("window probe", "orange", "ring", a, has(MARK.probe), end),
      series("zero window", "vermilion", "ring", !a, i => acks(i) && has(MARK.zero)(i), acked),
      series("third duplicate ACK", "green", "triangle", !a, i => acks(i) && has(MARK.triple)(i), acked),
    ] };
  },
  rtt(a) {
    return { unit: "s", label: "round-trip time", zero: true, all: [
      series("measured by an ACK", "blue", "dot", !a, i => !Number.isNaN(P.rtt[i]), i => P.rtt[i] / 1e3)] };
  },
  tput(a) {
    const own = [];
    for (let i = 0; i < N; i++) if (fromA(i) === a && P.length[i] > 0) own.push(i);
    const whole = max(1e-9, P.time[N - 1] || 0), width = roundUp(whole / 150);
    // What is left over at the end belongs to the last stretch, unless it is most of one.
    const sums = new Float64Array(max(1, round(whole / width))), first = new Array(sums.length).fill(own[0]);
    let before = 0;
    for (const i of own) {
      const at = clip(floor(P.time[i] / width), 0, sums.length - 1);
      sums[at] += P.total[i] - before;
      before = P.total[i];
      first[at] = i;
    }
    // Each stretch where it starts, and the last again where it ends.
    const last = sums.length - 1, stretches = own.length ? [...sums.keys(), last + 1] : [], edge = k => k > last ? whole : k * width;
    const steps = fill("in each " + amount("s", width), "blue", "step", stretches, edge, k => {
      const of = min(k, last);
      return sums[of] * 8 / (edge(of + 1) - edge(of));
    });
    steps.index = steps.index.map(k => first[min(k, last)]);
    const late = own.filter(i => P.time[i] >= width);
    return { unit: "bit/s", label: "payload sent, retransmissions included", zero: true, all: [steps,
      fill("mean since the beginning", "vermilion", "line", late, i => P.time[i], i => P.total[i] * 8 / P.time[i])] };
  },
  owin(a) {
    return { unit: "bytes", label: "sent but not acknowledged", zero: true, all: [
      series("window of the receiver", "orange", "dash", !a, acks, i => P.window[i]),
      series("in flight", "blue", "step", a, i => P.inFlight[i] !== NONE, i => P.inFlight[i])] };
  },
  ssize(a) {
    let total = 0, count = 0;
    const sizes = series("segment", "blue", "dot", a, i => P.length[i] > 0, i => P.length[i]);
    const mean = fill("mean so far", "vermilion", "line", Array.from(sizes.index), i => P.time[i], i => (total += P.length[i]) / ++count);
    return { unit: "bytes", label: "payload of a segment", zero: true, all: [sizes, mean] };
  },
  tline() { return { ladder: true, unit: "s", label: "time, downwards", all: [] }; },
};
function roundUp(value) {
  const power = 10 ** floor(log10(value));
  return ([1, 2, 5].find(f => f * power >= value) || 10) * power;
}
function amount(kind, value) {
  const [factor, name] = unit(kind, abs(value) * 2);
  return `${+(value * factor).toPrecision(7)} ${name}`;
}
// One of a packet's lines.
function words(i) {
  const names = Object.entries(FLAG).filter(([name, bit]) => (P.flags[i] & bit) && name !== "ACK").map(([name]) => name);
  let text = names.join(" ");
  if (space(i) > 0) text += ` ${P.sequence[i]}:${P.sequence[i] + P.length[i]} (${P.length[i]})`;
  if (acks(i)) text += ` ack ${P.acknowledgment[i]} win ${P.window[i]}`;
  return text.trim();
}
const notes = i => NOTES.filter(([bit]) => P.marks[i] & bit).map(([, name]) => name).join(", ");
function hueOf(i) {
  const marks = P.marks[i];
  if (marks & MARK.again) return HUE.vermilion;
  if (marks & MARK.order) return HUE.purple;
  if (P.flags[i] & 7) return HUE.plain;
  if (marks & (MARK.probe | MARK.alive)) return HUE.orange;
  return P.length[i] > 0 ? HUE.blue : HUE.green;
}

const built = new Map(), [, KIND, WAY, ...ENDS] = ["", ...location.hash.slice(1).split(",")];
const dataOf = a => { for (let i = 0; i < N; i++) if (fromA(i) === a && space(i) > 0) return true; return false; };
function chart(kind, a) {
  const key = kind + a;
  if (!built.has(key)) {
    const chart = BUILD[kind](a);
    chart.all = chart.all.filter(s => s.x.length > 0);
    built.set(key, { ...chart, x: TIME, y: { label: chart.label, unit: chart.unit, log: false } });
  }
  return built.get(key);
}

// One graph of the connection. The time line is upright: its range of time is on the axis of y, downwards.
class Packets extends View {
  constructor(section, chosen) {
    const about = chart(chosen.kind, chosen.a);
    super(section, about, about.all);
    this.section = section;
    this.at = chosen;
    this.controls();
    this.reset();
    // The part after # is the kind, the direction and the range of time, so that a view can be kept as a link.
    const ends = ENDS.slice(0, 2).map(Number);
    if (ENDS.length > 1 && ends.every(Number.isFinite)) this.show(...ends);
  }
  choose(change) {
    Object.assign(this.at, change);
    this.about = chart(this.at.kind, this.at.a);
    this.series = this.about.all;
    for (const s of this.series) s.shown = true;
    this.controls();
    this.begin();
    this.reset();
  }
  pressed(button) {
    const { kind, way } = button.dataset;
    if (kind) this.choose({ kind });
    else if (way) this.choose({ a: way === "a" });
  }
  extent() {
    let low = Infinity, high = -Infinity;
    for (const t of P.time) {
      low = min(low, t);
      high = max(high, t);
    }
    if (!(high > low)) return N ? [low - 0.5, low + 0.5] : [0, 1];
    return widened(low, high, 0.02);
  }
  reset() {
    super.reset();
    if (!this.about.ladder || N < 32) return;
    const from = this.full[0];
    this.show(from, P.time[30] + (P.time[30] - from) * 0.04);
  }
  scale(axis) {
    if (!this.about.ladder) return this[axis];
    return axis === "x" ? [0, 1] : [-this.x[1], -this.x[0]];
  }
  ticks(axis, ends, room) {
    if (!this.about.ladder) return super.ticks(axis, ends, room);
    return axis === "x" ? [] : super.ticks("y", this.x, room).map(([place, label]) => [-place, label]);
  }
  ppx(pixel) { return this.about.ladder ? (this.x[0] + this.x[1]) / 2 : super.ppx(pixel); }
  down(time) { return (time - this.x[0]) / (this.x[1] - this.x[0]) * this.area.height; }
  drag(across, down) {
    if (this.about.ladder) this.pan(-down / this.area.height); else super.drag(across, down);
  }
  select(plot) {
    if (!this.about.ladder) return super.select(plot);
    const { top, height } = plot.select, time = y => this.x[0] + y / this.area.height * (this.x[1] - this.x[0]);
    if (height < 6) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (height < this.area.height * 0.999) this.show(time(top), time(top + height));
  }
  caption(axis) {
    return this.about.ladder && axis === "x" ? "" : super.caption(axis);
  }

  gather() {
    clearTimeout(this.kept);
    this.kept = setTimeout(() => {
      const ends = this.x.map(value => +value.toPrecision(12));
      history.replaceState(null, "", "#" + [this.at.kind, this.at.a ? "a2b" : "b2a", ...ends].join(","));
    }, 300);
    if (this.about.ladder) return [[[], []]];
    this.y = this.heights();
    return this.series.length ? this.series.map(s => s.shown ? this.line(s) : [[], []]) : [[[], []]];
  }
  inView(s) {
    if (!s.sorted) return [0, s.x.length];
    return [max(0, below(s.x, s.x.length, this.x[0]) - 1), min(s.x.length, below(s.x, s.x.length, this.x[1]) + 1)];
  }
  // What is in view; a window far above all else stays outside.
  heights() {
    if (this.chosen) return this.chosen;
    const range = own => {
      let low = Infinity, high = -Infinity;
      for (const s of own) {
        const [from, to] = this.inView(s);
        for (const ys of s.y2 ? [s.y, s.y2] : [s.y]) for (let k = from; k < to; k++) {
          low = min(low, ys[k]);
          high = max(high, ys[k]);
        }
      }
      return [low, high];
    };
    const shown = this.series.filter(s => s.shown), windows = range(shown.filter(s => s.how === "dash"));
    let [low, high] = range(shown.filter(s => s.how !== "dash"));
    this.above = high > 0 && windows[1] > 3 * high;
    if (!this.above) [low, high] = [min(low, windows[0]), max(high, windows[1])];
    if (!(high >= low)) return [0, 1];
    if (this.about.zero) return [min(0, low), high * 1.04 || 1];
    return high > low ? widened(low, high, 0.04) : [low, low + 1];
  }
  // A line or steps, of which each column of pixels has the first, the lowest, the highest and the last.
  line(s) {
    const [from, to] = this.inView(s), xs = [], ys = [], across = this.area.width / (this.x[1] - this.x[0]);
    if (!["line", "step", "dash"].includes(s.how)) return [s.x.subarray(from, to), s.y.subarray(from, to)];
    for (let k = from; k < to;) {
      const column = floor((s.x[k] - this.x[0]) * across), start = k;
      let low = s.y[k], high = low;
      for (; k < to && floor((s.x[k] - this.x[0]) * across) === column; k++) {
        low = min(low, s.y[k]);
        high = max(high, s.y[k]);
      }
      if (k - start > 4) {
        ys.push(s.y[start], low, high, s.y[k - 1]);
        xs.push(...new Array(4).fill(s.x[start]));
      } else for (let j = start; j < k; j++) {
        xs.push(s.x[j]);
        ys.push(s.y[j]);
      }
    }
    return [xs, ys];
  }
  paths(s, plot, at, ...ends) {
    const own = plot.series[at];
    own.width = s.how === "bar" ? 1.6 : 1.4;
    own.dash = s.how === "dash" ? [6, 3].map(part => part * devicePixelRatio) : [];
    s.filled = s.how === "dot";
    if (this.about.ladder || !s.shown) return null;
    if (s.how === "line") return LINE(plot, at, ...ends);
    if (s.how === "step" || s.how === "dash") return STEPS(plot, at, ...ends);
    const path = s.how === "bar" ? this.bars(s, plot) : this.signs(s, plot);
    return { stroke: s.filled ? null : path, fill: s.filled ? path : null, clip: null, flags: 0 };
  }
  // Bars that touch the one before, in the same place, lengthen it.
  bars(s, plot) {
    const path = new Path2D(), [from, to] = this.inView(s), few = to - from < 400, cap = 3 * devicePixelRatio;
    let column = NaN, low = 0, high = 0;
    const end = () => {
      if (column !== column) return;
      path.moveTo(column, low);
      path.lineTo(column, max(high, low + 1));
    };
    for (let k = from; k < to; k++) {
      const x = plot.valToPos(s.x[k], "x", true), [top, foot] = [s.y[k], s.y2[k]].map(y => clip(plot.valToPos(y, "y", true), -1e4, 1e4)).sort((a, b) => a - b);
      if (abs(x - column) < 0.5 && top <= high + 1 && foot >= low - 1) [low, high] = [min(low, top), max(high, foot)];
      else {
        end();
        [column, low, high] = [x, top, foot];
      }
      // Ends of single segments, once there is room for them.
      if (few) for (const y of [top, foot]) {
        path.moveTo(x - cap, y);
        path.lineTo(x + cap, y);
      }
    }
    end();
    return path;
  }
  signs(s, plot) {
    const path = new Path2D(), [from, to] = this.inView(s), taken = new Set();
    for (let k = from; k < to; k++) {
      const x = plot.valToPos(s.x[k], "x", true), y = clip(plot.valToPos(s.y[k], "y", true), -1e4, 1e4), place = round(x) * 65536 + round(y);
      if (taken.has(place)) continue;
      taken.add(place);
      sign(path, s.how, x, y, devicePixelRatio);
    }
    return path;
  }
  adorn(context) {
    const { left, top, width, height } = this.area;
    context.textAlign = "center";
    if (this.about.ladder) this.ladder(context);
    else this.bands(context);
    if (this.about.ladder) return;
    if (!this.series.length) context.fillText("nothing to show", left + width / 2, top + height / 2);
  }
  // A strip at the foot: what the sender waited for. The names are written where there is room.
  bands(context) {
    const { left, top, width, height } = this.area, [from, to] = this.x, place = time => left + (time - from) / (to - from) * width;
    const strip = 14, y = top + height - strip;
    let last = -Infinity;
    context.textBaseline = "middle";
    context.font = "10px system-ui, sans-serif";
    for (let k = 0; k < P.band.length; k++) {
      if ((P.band[k] & 1) !== (this.at.a ? 1 : 0)) continue;
      const [name, colour] = about.causes[P.band[k] >> 1], start = max(left, place(P.bandFrom[k])), end = min(left + width, place(P.bandTo[k]));
      // Of spans within a pixel, the first is drawn.
      if (end < left || start > left + width || end < last + 0.5) continue;
      last = end;
      context.fillStyle = colour;
      context.fillRect(start, y, max(0.5, end - start), strip);
      if (context.measureText(name).width > end - start - 6) continue;
      context.fillStyle = ["#bbbbbb", "#eeeeee", "#e69f00", "#56b4e9"].includes(colour) ? "#111" : "#fff";
      context.fillText(name, (start + end) / 2, y + strip / 2);
    }
  }
  // Two upright lines, an arrow for each packet, and its words where there is room.
  ladder(context) {
    const { left, top, width, height } = this.area, room = min(240, width * 0.33), sides = [left + room, left + width - room];
    const rule = (...ends) => {
      context.beginPath();
      for (let i = 0; i < ends.length; i += 2) context[i ? "lineTo" : "moveTo"](ends[i], ends[i + 1]);
      context.stroke();
    };
    context.strokeStyle = this.ink.text;
    context.lineWidth = 1;
    for (const x of sides) rule(x, top, x, top + height);
    const range = about.sorted ? this.x.map(time => below(P.time, N, time)) : [0, N], written = [-1e9, -1e9], lines = new Set();
    context.textBaseline = "middle";
    context.font = room < 150 ? "10px system-ui, sans-serif" : FONT;
    for (let i = range[0]; i < range[1]; i++) {
      const y = top + this.down(P.time[i]), a = fromA(i), line = round(y * 2) * 2 + (a ? 1 : 0), [start, end] = a ? sides : [sides[1], sides[0]], back = a ? -7 : 7;
      if (y < top || y > top + height) continue;
      if (!lines.has(line) || (P.marks[i] & ~1)) {
        lines.add(line);
        context.strokeStyle = this.colour({ look: hueOf(i) });
        rule(start, y, end, y, end + back, y - 3.5, end, y, end + back, y + 3.5);
      }
      const side = a ? 0 : 1;
      if (y - written[side] < 13) continue;
      written[side] = y;
      context.fillStyle = this.ink.text;
      context.textAlign = a ? "right" : "left";
      context.fillText(words(i), a ? start - 6 : start + 6, y, room - 8);
      context.textAlign = "center";
      context.fillStyle = this.colour({ look: hueOf(i) });
      if (notes(i)) context.fillText(notes(i), (start + end) / 2, y - 6);
    }
    const fits = [about.a, about.b].every(name => context.measureText(name).width < sides[1] - sides[0] - 12);
    context.fillStyle = this.ink.text;
    context.textAlign = "center";
    sides.forEach((x, i) => context.fillText(fits ? [about.a, about.b][i] : about.letters[i], x, top - 8));
  }

  // The packet nearest to the pointer, within some pixels.
  find(mx, my) {
    let best = 24 * 24, packet = -1, at = mx, y = my, look = 0;
    if (this.about.ladder) {
      for (let i = 0; i < N; i++) {
        const far = (this.down(P.time[i]) - my) ** 2;
        if (far < best) [best, packet, y, look] = [far, i, this.down(P.time[i]), hueOf(i)];
      }
    }
    for (const s of this.series) {
      const [from, to] = this.inView(s);
      for (let k = from; s.shown && k < to; k++) {
        const x = this.px(s.x[k]), dx = x - mx;
        if (dx * dx >= best) continue;
        const ends = [s.y[k], s.y2 ? s.y2[k] : s.y[k]].map(y => this.py(y)), near = clip(my, min(...ends), max(...ends)), far = dx * dx + (near - my) ** 2;
        if (far < best) [best, packet, at, y, look] = [far, s.index[k], x, near, s.look];
      }
    }
    return packet < 0 ? null : { series: { look }, at, y, words: this.tale(packet) };
  }
  tale(i) {
    const flags = Object.entries(FLAG).filter(([, bit]) => P.flags[i] & bit).map(([name]) => name).join(" ");
    const lines = [`packet ${about.firstPacket + P.number[i]}, ${fromA(i) ? about.a + " → " + about.b : about.b + " → " + about.a}`,
      `${P.time[i].toFixed(6)} s, ${flags || "no flags"}`, `sequence ${P.sequence[i]}, length ${P.length[i]}`];
    if (acks(i)) lines.push(`ack ${P.acknowledgment[i]}, window ${P.window[i]}`);
    if (P.inFlight[i] !== NONE) lines.push(`in flight ${P.inFlight[i]}`);
    if (!Number.isNaN(P.rtt[i])) lines.push(`measured a round trip of ${amount("s", P.rtt[i] / 1e3)}`);
    if (notes(i)) lines.push(notes(i));
    return lines;
  }

  controls() {
    const put = (name, ...items) => this.section.querySelector(name).replaceChildren(...items);
    const button = (text, pressed, data) => {
      const made = document.createElement("button");
      Object.assign(made, { type: "button", textContent: text, ariaPressed: pressed });
      Object.assign(made.dataset, data);
      return made;
    };
    put(".kinds", ...KINDS.map(([kind, name]) => button(name, kind === this.at.kind, { kind })));
    const [a, b] = about.letters, ways = [["a", `${a} → ${b}`], ["b", `${b} → ${a}`]];
    put(".ways", ...(this.about.ladder ? [] : ways.map(([way, text]) => button(text, (way === "a") === this.at.a, { way }))));
    put(".legend", ...this.series.map((s, i) => {
      const made = button("", s.shown, { series: i }), sample = document.createElementNS(SVG, "svg");
      sample.setAttribute("class", "hc");
      sample.setAttribute("width", 20);
      sample.setAttribute("height", 14);
      const path = document.createElementNS(SVG, "path"), shapes = { bar: "M10 1V13", line: "M0 7H20", step: "M0 11H10V3H20", dash: "M0 7H7M13 7H20" };
      path.setAttribute("class", "s" + s.look);
      path.setAttribute("fill", "none");
      path.setAttribute("stroke", COLOURS[s.look][0]);
      path.setAttribute("stroke-width", s.how === "dot" ? 4 : 2);
      path.setAttribute("d", shapes[s.how] || { cross: "M6 3L14 11M14 3L6 11", triangle: "M10 2L15 11H5Z", square: "M7 4H13V10H7Z", ring: "M5 7a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z" }[s.how] || "M8 7H12");
      sample.append(path);
      made.append(sample, `${s.name} (${grouped(s.x.length, 0)})`);
      return made;
    }));
  }
  status() {
    const outside = this.above ? "the window's end is above the picture" : "";
    return [this.range(), outside].filter(Boolean).join("; ");
  }
}
function sign(path, how, x, y, k) {
  const line = (...ends) => { for (let i = 0; i < ends.length; i += 2) path[i ? "lineTo" : "moveTo"](x + ends[i] * k, y + ends[i + 1] * k); };
  if (how === "cross") {
    line(-4, -4, 4, 4);
    line(4, -4, -4, 4);
  } else if (how === "triangle") line(0, -5, 5, 4, -5, 4, 0, -5);
  else if (how === "square") path.rect(x - 3 * k, y - 3 * k, 6 * k, 6 * k);
  else if (how === "ring") {
    path.moveTo(x + 5 * k, y);
    path.arc(x, y, 5 * k, 0, 7);
  } else path.rect(x - k, y - k, 2 * k, 2 * k);
}
new Packets(document.querySelector(".chart"), {
  kind: KINDS.some(([kind]) => kind === KIND) ? KIND : "tsg",
  a: WAY ? WAY === "a2b" : dataOf(true) || !dataOf(false),
});
