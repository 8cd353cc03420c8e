const { abs, ceil, exp, floor, hypot, log10, max, min, round, sqrt } = Math;

function clip(value, low, high) { return min(max(value, low), high); }

// Numbers as people read them.
function grouped(value, decimals) {
  const text = abs(value).toFixed(decimals), [whole, part] = text.split(".");
  const sign = value < 0 && /[1-9]/.test(text) ? "-" : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
}
function short(value, digits = 4) {
  if (value === 0) return "0";
  const magnitude = floor(log10(abs(value)));
  if (magnitude < -5 || magnitude > 14) return value.toExponential(digits - 1);
  const text = grouped(value, clip(digits - 1 - magnitude, 0, 9));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
// A value with as many decimals as tell it from a neighbour `step` away.
function fine(value, step) {
  return grouped(value, step > 0 ? clip(ceil(-log10(step)) + 1, 0, 9) : 3);
}
function clock(seconds, step) {
  const all = abs(step < 1 ? seconds : round(seconds));
  const h = floor(all / 3600), m = floor(all / 60) % 60, s = all % 60;
  const decimals = step < 1 ? min(ceil(-log10(step)), 6) : 0;
  const two = (value, decimals = 0) => value.toFixed(decimals).padStart(decimals ? 3 + decimals : 2, "0");
  return (seconds < 0 && all ? "-" : "") + (h ? h + ":" + two(m) : m) + ":" + two(s, decimals);
}

// The unit of its kind in which values up to `most` read well, as [factor, name].
const SECONDS = { s: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6, ns: 1e-9 };
const KINDS_OF_UNITS = [SECONDS, { GB: 1e9, MB: 1e6, kB: 1e3, bytes: 1 }, { "Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1 }];
function unit(name, most) {
  const kind = KINDS_OF_UNITS.find(kind => kind[name]), own = kind && kind[name];
  if (!own || !(most > 0) || most >= 0.9999 && most < 5000) return [1, name];
  const best = Object.keys(kind).find(u => most * own >= kind[u] * 0.9999) || Object.keys(kind).at(-1);
  return [own / kind[best], best];
}

// Ticks as [place, label]; a tick without a label is a faint line. Places are logarithms on a log axis.
function ticks(from, to, room, log, time, name) {
  const span = to - from, out = [];
  if (!(span > 0)) return out;
  const more = best => SECONDS[name] ? " " + best : "";
  if (log && span > 0.7) {
    const every = ceil(span / room), close = span * 3 <= room;
    for (let decade = floor(from); decade <= to; decade++) {
      for (let m = 1; m < 10; m++) {
        const place = decade + log10(m);
        if (place < from || place > to || m > 1 && span > 5) continue;
        const named = m === 1 ? decade % every === 0 : close && (m === 2 || m === 5);
        // A label of its own unit: seconds and their parts.
        const own = SECONDS[name], value = m * 10 ** decade * (own || 1), [factor, best] = unit(own && "s", value);
        out.push([place, named ? short(value * factor, 1) + more(best) : ""]);
      }
    }
    return out;
  }
  if (log) {
    const low = 10 ** from, high = 10 ** to, [factor, best] = unit(name, high);
    return ticks(low * factor, high * factor, room).map(([value, label]) => [log10(value / factor), label + more(best)]);
  }
  const least = span / room, decade = 10 ** floor(log10(least));
  let step = decade * [1, 2, 5, 10].find(f => f * decade >= least * 0.999);
  if (time && least > 5) {
    step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800].find(s => s >= least) || step;
  }
  const decimals = max(-floor(log10(step) + 1e-9), 0);
  for (let i = ceil(from / step - 1e-9); i <= to / step + 1e-9; i++) {
    out.push([i * step, time ? clock(i * step, step) : grouped(i * step, min(decimals, 12))]);
  }
  return out;
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
