const DARK = matchMedia("(prefers-color-scheme: dark)");
const COLOURS = {
  blue: ["#0072b2", "#4ea8e0"], vermilion: ["#d55e00", "#f07a26"], green: ["#009e73", "#1fc497"],
  orange: ["#e69f00", "#e69f00"], sky: ["#56b4e9", "#8fd0f5"], purple: ["#cc79a7", "#dd93ba"], plain: ["#333333", "#dddddd"],
};
const colour = (name) => COLOURS[name][DARK.matches ? 1 : 0];

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
const fromA = (i) => (P.marks[i] & MARK.fromA) !== 0;
const space = (i) => P.length[i] + (P.flags[i] & 1) + ((P.flags[i] >> 1) & 1);
const acks = (i) => (P.flags[i] & (FLAG.ACK | FLAG.RST)) === FLAG.ACK;

const KINDS = [["tsg", "Time sequence"], ["rtt", "Round trips"], ["tput", "Throughput"], ["owin", "In flight"],
  ["ssize", "Segment sizes"], ["tline", "Time line"]];
const UNITS = {
  s: [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]],
  B: [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["bytes", 1]],
  "bit/s": [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]],
};
const unitFor = (kind, max) => UNITS[kind].find(([, scale]) => max >= 2 * scale) || UNITS[kind].at(-1);

// A series of points that packets stand behind: x and y, with y2 for bars.
function series(name, hue, look, from, wanted, y, y2) {
  const index = [];
  for (let i = 0; i < N; i++) if (fromA(i) === from && wanted(i)) index.push(i);
  return fill(name, hue, look, index, (i) => P.time[i], y, y2);
}
function fill(name, hue, look, index, x, y, y2) {
  const n = index.length;
  const s = { name, hue, look, index: Uint32Array.from(index), x: new Float64Array(n), y: new Float64Array(n), sorted: true };
  if (y2) s.y2 = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    s.x[k] = x(index[k], k); s.y[k] = y(index[k], k);
    if (y2) s.y2[k] = y2(index[k], k);
    if (k && s.x[k] < s.x[k - 1]) s.sorted = false;
  }
  return s;
}
const BUILD = {
  tsg(a) {
    const end = (i) => P.sequence[i] + space(i), acked = (i) => P.acknowledgment[i];
    const has = (mark) => (i) => (P.marks[i] & mark) !== 0;
    const blocks = [];
    for (let k = 0; k < P.sackPacket.length; k++) if (fromA(P.sackPacket[k]) !== a) blocks.push(k);
    const sack = fill("SACK", "sky", "bar", blocks, (k) => P.time[P.sackPacket[k]], (k) => P.sackLeft[k], (k) => P.sackRight[k]);
    sack.index = sack.index.map((k) => P.sackPacket[k]);
    return { unit: "B", label: "sequence number, from the first", all: [
      series("window end", "orange", "dash", !a, acks, (i) => P.acknowledgment[i] + P.window[i]),
      series("acknowledged", "green", "step", !a, acks, acked),
      series("segments", "blue", "bar", a, (i) => space(i) > 0, (i) => P.sequence[i], end), sack,
      series("SYN, FIN", "plain", "square", a, (i) => P.flags[i] & 3, end),
      series("RST", "plain", "cross", a, (i) => P.flags[i] & 4, end),
      series("retransmitted", "vermilion", "cross", a, has(MARK.again), end),
      series("out of order", "purple", "triangle", a, has(MARK.order), end),
      series("window probe", "orange", "ring", a, has(MARK.probe), end),
      series("zero window", "vermilion", "ring", !a, (i) => acks(i) && has(MARK.zero)(i), acked),
      series("third duplicate ACK", "green", "triangle", !a, (i) => acks(i) && has(MARK.triple)(i), acked),
    ] };
  },
  rtt(a) {
    return { unit: "s", label: "round-trip time", zero: true, all: [
      series("measured by an ACK", "blue", "dot", !a, (i) => !Number.isNaN(P.rtt[i]), (i) => P.rtt[i] / 1e3)] };
  },
  tput(a) {
    const own = [];
    for (let i = 0; i < N; i++) if (fromA(i) === a && P.length[i] > 0) own.push(i);
    const whole = Math.max(1e-9, P.time[N - 1] || 0), width = roundUp(whole / 150);
    // What is left over at the end belongs to the last stretch, unless it is most of one.
    const sums = new Float64Array(Math.max(1, Math.round(whole / width))), first = new Array(sums.length).fill(own[0]);
    let before = 0;
    for (const i of own) {
      const at = Math.min(sums.length - 1, Math.max(0, Math.floor(P.time[i] / width)));
      sums[at] += P.total[i] - before; before = P.total[i]; first[at] = i;
    }
    const stretches = own.length ? Array.from(sums.keys()) : [];
    const steps = fill("in each " + amount("s", width), "blue", "step", stretches, (k) => k * width,
      (k) => sums[k] * 8 / (k === sums.length - 1 ? whole - k * width : width));
    steps.index = steps.index.map((k) => first[k]);
    const late = own.filter((i) => P.time[i] >= width);
    return { unit: "bit/s", label: "payload sent, retransmissions included", zero: true, all: [steps,
      fill("mean since the beginning", "vermilion", "line", late, (i) => P.time[i], (i) => P.total[i] * 8 / P.time[i])] };
  },
  owin(a) {
    return { unit: "B", label: "sent but not acknowledged", zero: true, all: [
      series("window of the receiver", "orange", "dash", !a, acks, (i) => P.window[i]),
      series("in flight", "blue", "step", a, (i) => P.inFlight[i] !== NONE, (i) => P.inFlight[i])] };
  },
  ssize(a) {
    let total = 0, count = 0;
    const sizes = series("segment", "blue", "dot", a, (i) => P.length[i] > 0, (i) => P.length[i]);
    const mean = fill("mean so far", "vermilion", "line", Array.from(sizes.index), (i) => P.time[i],
      (i) => (total += P.length[i]) / ++count);
    return { unit: "B", label: "payload of a segment", zero: true, all: [sizes, mean] };
  },
  tline() { return { ladder: true, unit: "s", label: "", all: [] }; },
};
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((f) => f * power >= value) || 10) * power;
}
function amount(kind, value) {
  const [unit, scale] = unitFor(kind, Math.abs(value) * 2);
  return `${+(value / scale).toPrecision(7)} ${unit}`;
}

const canvas = document.getElementById("canvas"), ctx = canvas.getContext("2d"), tip = document.getElementById("tip");
const built = new Map(), hidden = new Set();
const data_of = (a) => { for (let i = 0; i < N; i++) if (fromA(i) === a && space(i) > 0) return true; return false; };
const state = { kind: "tsg", a: data_of(true) || !data_of(false), view: null };
const wanted = location.hash.slice(1).split(",");
if (KINDS.some(([kind]) => kind === wanted[0])) state.kind = wanted[0];
if (wanted[1]) state.a = wanted[1] === "a2b";
// The part after # is the kind, the direction and what is to be seen, so that a view can be kept as a link.
const view = wanted.slice(2, 6).map(Number);
if (view.length === 4 && view.every(Number.isFinite)) state.view = { x0: view[0], x1: view[1], y0: view[2], y1: view[3] };
let kept = 0;
function keep() {
  clearTimeout(kept);
  kept = setTimeout(() => {
    const v = state.view, seen = [v.x0, v.x1, v.y0, v.y1].map((value) => +value.toPrecision(12));
    history.replaceState(null, "", "#" + [state.kind, state.a ? "a2b" : "b2a", ...seen].join(","));
  }, 300);
}

function chart() {
  const key = state.kind + state.a;
  if (!built.has(key)) {
    const chart = BUILD[state.kind](state.a);
    chart.all = chart.all.filter((s) => s.x.length > 0);
    built.set(key, chart);
  }
  return built.get(key);
}
const shown = () => chart().all.filter((s) => !hidden.has(s.name));

// What is to be seen when all is shown. A window far above all else stays outside.
function whole() {
  const c = chart();
  let x0 = Infinity, x1 = -Infinity;
  for (const t of P.time) { if (t < x0) x0 = t; if (t > x1) x1 = t; }
  if (!(x1 > x0)) { x0 = N ? x0 - 0.5 : 0; x1 = x0 + 1; }
  if (c.ladder) {
    const few = N ? P.time[Math.min(N - 1, 30)] : 1, room = Math.max(1e-6, few - x0);
    return { x0: 0, x1: 1, y0: x0 + room * 1.04, y1: x0 - room * 0.04 };
  }
  const range = (own) => {
    let low = Infinity, high = -Infinity;
    for (const s of own) for (const ys of s.y2 ? [s.y, s.y2] : [s.y]) for (const y of ys) {
      if (y < low) low = y; if (y > high) high = y;
    }
    return [low, high];
  };
  const others = range(shown().filter((s) => s.look !== "dash")), windows = range(shown().filter((s) => s.look === "dash"));
  let [y0, y1] = others;
  state.above = y1 > 0 && windows[1] > 3 * y1;
  if (!state.above) { y0 = Math.min(y0, windows[0]); y1 = Math.max(y1, windows[1]); }
  if (!(y1 >= y0)) { y0 = 0; y1 = 1; }
  if (c.zero) y0 = Math.min(0, y0);
  if (y1 === y0) y1 = y0 + 1;
  const dx = (x1 - x0) * 0.02, dy = (y1 - y0) * 0.04;
  return { x0: x0 - dx, x1: x1 + dx, y0: y0 - (c.zero ? 0 : dy), y1: y1 + dy };
}

const box = () => ({ left: chart().ladder ? 80 : 76, right: canvas.clientWidth - 14, top: 10, bottom: canvas.clientHeight - 46 });
function scales() {
  const b = box(), v = state.view;
  return { b, X: (x) => b.left + (x - v.x0) / (v.x1 - v.x0) * (b.right - b.left),
    Y: (y) => b.bottom - (y - v.y0) / (v.y1 - v.y0) * (b.bottom - b.top) };
}
function ticks(kind, from, to, pixels, gap) {
  const low = Math.min(from, to), high = Math.max(from, to), unit = unitFor(kind, Math.max(Math.abs(low), Math.abs(high)));
  const step = roundUp((high - low) / Math.max(1, pixels / gap) / unit[1]);
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  const list = [];
  for (let k = Math.ceil(low / unit[1] / step); k * step * unit[1] <= high && list.length < 200; k++)
    list.push([k * step * unit[1], group((k * step).toFixed(decimals))]);
  return { unit: unit[0], list };
}
function group(text) {
  const [whole, rest] = text.split(".");
  const grouped = whole.replace("-", "").length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u2009") : whole;
  return rest ? grouped + "." + rest : grouped;
}

let waiting = false;
function draw() { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } }
function paint() {
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
  }
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, w, h);
  if (!state.view) state.view = whole();
  keep();
  const style = getComputedStyle(document.documentElement), c = chart(), { b, X, Y } = scales(), v = state.view;
  const [grid, edge, fore] = ["--grid", "--edge", "--fore"].map((name) => style.getPropertyValue(name));
  ctx.font = "12px system-ui, Helvetica, Arial, sans-serif";
  ctx.lineWidth = 1; ctx.fillStyle = fore; ctx.strokeStyle = grid;
  const ys = ticks(c.unit, v.y0, v.y1, b.bottom - b.top, 60);
  ctx.textAlign = "right"; ctx.textBaseline = "middle";
  for (const [value, label] of ys.list) {
    const y = Math.round(Y(value)) + 0.5;
    rule(b.left, y, b.right, y); ctx.fillText(label, b.left - 6, y);
  }
  ctx.textAlign = "center";
  if (!c.ladder) {
    const xs = ticks("s", v.x0, v.x1, b.right - b.left, 110);
    ctx.textBaseline = "top";
    for (const [value, label] of xs.list) {
      const x = Math.round(X(value)) + 0.5;
      rule(x, b.top, x, b.bottom); ctx.fillText(label, x, b.bottom + 6);
    }
    ctx.fillText(`time since the connection's first packet (${xs.unit})`, (b.left + b.right) / 2, b.bottom + 26);
  }
  ctx.save();
  ctx.translate(12, (b.top + b.bottom) / 2); ctx.rotate(-Math.PI / 2); ctx.textBaseline = "middle";
  ctx.fillText(c.ladder ? `time (${ys.unit}), downwards` : `${c.label} (${ys.unit})`, 0, 0);
  ctx.restore();
  ctx.save();
  ctx.beginPath(); ctx.rect(b.left, b.top, b.right - b.left, b.bottom - b.top); ctx.clip();
  if (c.ladder) ladder(b, Y, fore); else for (const s of shown()) plot(s, b, X, Y);
  ctx.restore();
  ctx.strokeStyle = edge; ctx.strokeRect(b.left + 0.5, b.top + 0.5, b.right - b.left, b.bottom - b.top);
  if (!c.ladder && c.all.length === 0) {
    ctx.fillStyle = fore; ctx.textAlign = "center"; ctx.textBaseline = "middle";
    ctx.fillText("nothing to show", (b.left + b.right) / 2, (b.top + b.bottom) / 2);
  }
}
function rule(x0, y0, x1, y1) { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); }

// The first of the sorted values that is at least this.
function lower(values, value) {
  let low = 0, high = values.length;
  while (low < high) { const mid = (low + high) >> 1; if (values[mid] < value) low = mid + 1; else high = mid; }
  return low;
}
function seen(s) {
  if (!s.sorted) return [0, s.x.length];
  return [Math.max(0, lower(s.x, state.view.x0) - 1), Math.min(s.x.length, lower(s.x, state.view.x1) + 2)];
}
function shape(look, x, y) {
  switch (look) {
    case "cross": ctx.moveTo(x - 4, y - 4); ctx.lineTo(x + 4, y + 4); ctx.moveTo(x + 4, y - 4); ctx.lineTo(x - 4, y + 4); break;
    case "triangle": ctx.moveTo(x, y - 5); ctx.lineTo(x + 5, y + 4); ctx.lineTo(x - 5, y + 4); ctx.closePath(); break;
    case "square": ctx.rect(x - 3, y - 3, 6, 6); break;
    case "ring": ctx.moveTo(x + 5, y); ctx.arc(x, y, 5, 0, 7); break;
    default: ctx.rect(x - 1, y - 1, 2, 2);
  }
}
function plot(s, b, X, Y) {
  const [from, to] = seen(s), tall = (y) => Math.max(-1e4, Math.min(1e4, y));
  ctx.strokeStyle = ctx.fillStyle = colour(s.hue);
  ctx.lineWidth = s.look === "bar" ? 1.6 : 1.4;
  ctx.setLineDash(s.look === "dash" ? [6, 3] : []);
  ctx.beginPath();
  if (s.look === "bar") {
    const wide = to - from < 2 * (b.right - b.left);
    let column = NaN, low = 0, high = 0;
    for (let k = from; k < to; k++) {
      const x = X(s.x[k]), y0 = tall(Y(s.y[k])), y1 = tall(Y(s.y2[k]));
      // Bars that touch the one before, in the same place, lengthen it.
      if (Math.abs(x - column) < 0.5 && y0 <= high + 1 && y1 >= low - 1 && Math.min(y0, y1) <= high + 1) {
        low = Math.min(low, y0, y1); high = Math.max(high, y0, y1);
      } else {
        if (!Number.isNaN(column)) { ctx.moveTo(column, low); ctx.lineTo(column, Math.max(high, low + 1)); }
        column = x; low = Math.min(y0, y1); high = Math.max(y0, y1);
      }
    }
    if (!Number.isNaN(column)) { ctx.moveTo(column, low); ctx.lineTo(column, Math.max(high, low + 1)); }
    ctx.stroke();
    // Ends of single segments, once there is room for them.
    if (wide && to - from < 400) {
      ctx.beginPath();
      for (let k = from; k < to; k++) for (const y of [s.y[k], s.y2[k]]) {
        const x = X(s.x[k]); ctx.moveTo(x - 3, tall(Y(y))); ctx.lineTo(x + 3, tall(Y(y)));
      }
      ctx.stroke();
    }
  } else if (["line", "step", "dash"].includes(s.look)) {
    line(s, from, to, X, Y, tall);
    ctx.stroke();
  } else {
    const taken = new Set();
    for (let k = from; k < to; k++) {
      const x = X(s.x[k]), y = tall(Y(s.y[k])), place = Math.round(x) * 65536 + Math.round(y);
      if (!taken.has(place)) { taken.add(place); shape(s.look, x, y); }
    }
    if (s.look === "dot") ctx.fill(); else ctx.stroke();
  }
  ctx.setLineDash([]);
}
// A line, of which each column of pixels has the first, the lowest, the highest and the last.
function line(s, from, to, X, Y, tall) {
  const steps = s.look !== "line";
  let column = NaN, first = 0, last = 0, low = 0, high = 0, begun = false;
  const go = (x, y) => {
    if (!begun) { ctx.moveTo(x, y); begun = true; } else { if (steps) ctx.lineTo(x, last); ctx.lineTo(x, y); }
    last = y;
  };
  const flush = () => {
    if (Number.isNaN(column)) return;
    const end = last_of_column;
    go(column, first);
    if (low !== high) { ctx.lineTo(column, low); ctx.lineTo(column, high); ctx.lineTo(column, end); }
    last = end;
  };
  let last_of_column = 0;
  for (let k = from; k < to; k++) {
    const x = X(s.x[k]), y = tall(Y(s.y[k])), place = Math.max(-1e4, Math.min(1e4, Math.round(x * 2) / 2));
    if (place !== column) { flush(); column = place; first = low = high = y; } else { low = Math.min(low, y); high = Math.max(high, y); }
    last_of_column = y;
  }
  flush();
  if (steps && begun && to === s.x.length) ctx.lineTo(Math.min(1e4, X(s.name.startsWith("in each") ? P.time[N - 1] : s.x[to - 1])), last);
}

function words(i) {
  const names = Object.entries(FLAG).filter(([name, bit]) => (P.flags[i] & bit) && name !== "ACK").map(([name]) => name);
  let text = names.join(" ");
  if (space(i) > 0) text += ` ${P.sequence[i]}:${P.sequence[i] + P.length[i]} (${P.length[i]})`;
  if (acks(i)) text += ` ack ${P.acknowledgment[i]} win ${P.window[i]}`;
  return text.trim();
}
const notes = (i) => NOTES.filter(([bit]) => P.marks[i] & bit).map(([, name]) => name).join(", ");
function hueOf(i) {
  const marks = P.marks[i];
  if (marks & MARK.again) return "vermilion";
  if (marks & MARK.order) return "purple";
  if (P.flags[i] & 7) return "plain";
  if (marks & (MARK.probe | MARK.alive)) return "orange";
  return P.length[i] > 0 ? "blue" : "green";
}
const ends = (b) => { const room = Math.min(240, (b.right - b.left) * 0.33); return [b.left + room, b.right - room]; };
function ladder(b, Y, fore) {
  const [left, right] = ends(b), narrow = left - b.left < 150, v = state.view;
  ctx.strokeStyle = fore; ctx.lineWidth = 1;
  rule(left, b.top, left, b.bottom); rule(right, b.top, right, b.bottom);
  let from = 0, to = N;
  if (about.sorted) { from = lower(P.time, Math.min(v.y0, v.y1)); to = lower(P.time, Math.max(v.y0, v.y1)); }
  const said = [-1e9, -1e9], lines = new Set();
  ctx.textBaseline = "middle";
  for (let i = from; i < to; i++) {
    const y = Y(P.time[i]), a = fromA(i), line = Math.round(y * 2) * 2 + (a ? 1 : 0);
    if (!lines.has(line) || (P.marks[i] & ~1)) {
      lines.add(line);
      ctx.strokeStyle = colour(hueOf(i));
      ctx.beginPath();
      const [start, end, back] = a ? [left, right, -7] : [right, left, 7];
      ctx.moveTo(start, y); ctx.lineTo(end, y); ctx.moveTo(end + back, y - 3.5); ctx.lineTo(end, y); ctx.lineTo(end + back, y + 3.5);
      ctx.stroke();
    }
    const side = a ? 0 : 1;
    if (y - said[side] >= 13) {
      said[side] = y;
      ctx.fillStyle = fore; ctx.textAlign = a ? "right" : "left";
      ctx.font = narrow ? "10px sans-serif" : "11px sans-serif";
      ctx.fillText(words(i), a ? left - 6 : right + 6, y);
      const note = notes(i);
      if (note) { ctx.fillStyle = colour(hueOf(i)); ctx.textAlign = "center"; ctx.fillText(note, (left + right) / 2, y - 6); }
    }
  }
  ctx.fillStyle = fore; ctx.font = "bold 12px sans-serif"; ctx.textAlign = "center"; ctx.textBaseline = "top";
  const fits = [about.a, about.b].every((name) => ctx.measureText(name).width < right - left - 12);
  for (const [x, name] of [[left, fits ? about.a : about.letters[0]], [right, fits ? about.b : about.letters[1]]]) {
    const width = ctx.measureText(name).width + 8;
    ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--back");
    ctx.fillRect(x - width / 2, b.top + 1, width, 18);
    ctx.fillStyle = fore; ctx.fillText(name, x, b.top + 4);
  }
}

// The packet nearest to the pointer, within some pixels.
function nearest(mx, my) {
  const { b, X, Y } = scales();
  let best = 24 * 24, packet = -1;
  if (chart().ladder) {
    for (let i = 0; i < N; i++) { const d = (Y(P.time[i]) - my) ** 2; if (d < best) { best = d; packet = i; } }
    return { packet, x: mx };
  }
  let at = mx;
  for (const s of shown()) {
    const [from, to] = seen(s);
    for (let k = from; k < to; k++) {
      const x = X(s.x[k]), dx = x - mx;
      if (dx * dx >= best) continue;
      const y0 = Y(s.y[k]), y1 = s.y2 ? Y(s.y2[k]) : y0;
      const dy = my < Math.min(y0, y1) ? Math.min(y0, y1) - my : my > Math.max(y0, y1) ? my - Math.max(y0, y1) : 0;
      const d = dx * dx + dy * dy;
      if (d < best) { best = d; packet = s.index[k]; at = x; }
    }
  }
  return { packet, x: at };
}
function tell(mx, my) {
  const { packet: i } = nearest(mx, my);
  tip.hidden = i < 0;
  if (i < 0) return;
  const flags = Object.entries(FLAG).filter(([, bit]) => P.flags[i] & bit).map(([name]) => name).join(" ");
  const lines = [`packet ${about.firstPacket + P.number[i]}, ${fromA(i) ? about.a + " → " + about.b : about.b + " → " + about.a}`,
    `${P.time[i].toFixed(6)} s   ${flags || "no flags"}`, `sequence ${P.sequence[i]}   length ${P.length[i]}`];
  if (acks(i)) lines.push(`ack ${P.acknowledgment[i]}   window ${P.window[i]}`);
  if (P.inFlight[i] !== NONE) lines.push(`in flight ${P.inFlight[i]}`);
  if (!Number.isNaN(P.rtt[i])) lines.push(`measured a round trip of ${amount("s", P.rtt[i] / 1e3)}`);
  if (notes(i)) lines.push(notes(i));
  tip.textContent = lines.join("\n");
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(0, Math.min(mx + 14, canvas.clientWidth - w)) + "px";
  tip.style.top = (my + 14 + h > canvas.clientHeight ? Math.max(0, my - h - 10) : my + 14) + "px";
}

function zoom(factor, mx, my, onlyX, onlyY) {
  const v = state.view, { b } = scales();
  const fx = (mx - b.left) / (b.right - b.left), fy = (b.bottom - my) / (b.bottom - b.top);
  const ladder = chart().ladder;
  if (!onlyY && !ladder) {
    const x = v.x0 + fx * (v.x1 - v.x0), width = Math.max(1e-8, (v.x1 - v.x0) * factor);
    v.x0 = x - fx * width; v.x1 = v.x0 + width;
  }
  if (!onlyX || ladder) {
    const y = v.y0 + fy * (v.y1 - v.y0), least = ladder ? -1e-6 : chart().unit === "s" ? 1e-8 : 1;
    let height = (v.y1 - v.y0) * factor;
    if (Math.abs(height) < Math.abs(least)) height = least;
    v.y0 = y - fy * height; v.y1 = v.y0 + height;
  }
  draw();
}
function move(dx, dy) {
  const v = state.view, { b } = scales();
  if (!chart().ladder) { const x = dx / (b.right - b.left) * (v.x1 - v.x0); v.x0 -= x; v.x1 -= x; }
  const y = dy / (b.bottom - b.top) * (v.y1 - v.y0); v.y0 += y; v.y1 += y;
  draw();
}
const reset = () => { state.view = whole(); draw(); };
const middle = (factor) => { const { b } = scales(); zoom(factor, (b.left + b.right) / 2, (b.top + b.bottom) / 2); };
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { b } = scales(), turn = (event.deltaY || event.deltaX) * (event.deltaMode ? 30 : 1);
  const factor = Math.exp(Math.max(-1, Math.min(1, turn / 300)));
  zoom(factor, event.offsetX, event.offsetY, event.shiftKey || event.offsetY > b.bottom, event.offsetX < b.left);
}, { passive: false });
const pointers = new Map();
canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, [event.offsetX, event.offsetY]); canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  const last = pointers.get(event.pointerId), now = [event.offsetX, event.offsetY];
  if (!last) return tell(...now);
  tip.hidden = true;
  if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    zoom(apart(last) / apart(now), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  } else move(now[0] - last[0], now[1] - last[1]);
  pointers.set(event.pointerId, now);
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("dblclick", reset);
canvas.addEventListener("keydown", (event) => {
  const keys = { "+": () => middle(0.7), "=": () => middle(0.7), "-": () => middle(1.4), 0: reset, ArrowLeft: () => move(40, 0),
    ArrowRight: () => move(-40, 0), ArrowUp: () => move(0, 40), ArrowDown: () => move(0, -40) };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

function button(text, pressed, click) {
  const b = document.createElement("button");
  b.textContent = text;
  if (pressed !== null) b.setAttribute("aria-pressed", pressed);
  b.onclick = click;
  return b;
}
function choose(change) { Object.assign(state, change); state.view = null; hidden.clear(); controls(); draw(); }
function controls() {
  const put = (id, ...items) => document.getElementById(id).replaceChildren(...items);
  put("kinds", ...KINDS.map(([kind, name]) => button(name, kind === state.kind, () => choose({ kind }))));
  const way = (a, text) => button(text, state.a === a, () => choose({ a }));
  put("ways", ...(chart().ladder ? [] : [way(true, `${about.letters[0]} → ${about.letters[1]}`), way(false, `${about.letters[1]} → ${about.letters[0]}`)]));
  put("tools", button("+", null, () => middle(0.6)), button("−", null, () => middle(1.6)), button("show all", null, reset));
  if (!chart().ladder) whole();
  put("legend", ...chart().all.map((s) => {
    const b = button("", !hidden.has(s.name), () => { if (!hidden.delete(s.name)) hidden.add(s.name); controls(); draw(); });
    const sample = document.createElement("canvas"), ratio = devicePixelRatio || 1;
    sample.width = 18 * ratio; sample.height = 14 * ratio; sample.style.width = "18px"; sample.style.height = "14px";
    sketch(sample.getContext("2d"), s, ratio);
    const above = s.look === "dash" && state.above ? ", above the picture" : "";
    b.append(sample, `${s.name} (${group(String(s.x.length))}${above})`);
    return b;
  }));
}
function sketch(c, s, ratio) {
  const own = ctx_of(c);
  c.scale(ratio, ratio); c.strokeStyle = c.fillStyle = colour(s.hue); c.lineWidth = 2;
  c.setLineDash(s.look === "dash" ? [5, 3] : []);
  c.beginPath();
  if (s.look === "bar") { c.moveTo(9, 1); c.lineTo(9, 13); } else if (["line", "step", "dash"].includes(s.look)) { c.moveTo(0, 7); c.lineTo(18, 7); } else own(s.look === "dot" ? "square" : s.look, 9, 7);
  if (s.look === "dot") c.fill(); else c.stroke();
}
// The shapes of marks, on another canvas.
function ctx_of(c) {
  return (look, x, y) => {
    if (look === "cross") { c.moveTo(x - 4, y - 4); c.lineTo(x + 4, y + 4); c.moveTo(x + 4, y - 4); c.lineTo(x - 4, y + 4); }
    else if (look === "triangle") { c.moveTo(x, y - 5); c.lineTo(x + 5, y + 4); c.lineTo(x - 5, y + 4); c.closePath(); }
    else if (look === "square") c.rect(x - 3, y - 3, 6, 6);
    else { c.moveTo(x + 5, y); c.arc(x, y, 5, 0, 7); }
  };
}
new ResizeObserver(draw).observe(canvas);
DARK.addEventListener("change", () => { controls(); draw(); });
controls();
draw();
