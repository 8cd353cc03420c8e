// The recent past in columns: one time axis, and a column of values for each number of `now/1`. The history of the
// daemon fills it; rows of the stream extend it. Counters become rates per second, gauges stay values.

/** Fields of `now/1` that are values; all others are counters. */
const GAUGES = new RegExp("^(at_s|uptime_s|rss_bytes|subscribers\\.by_(state|version)\\..*|tunnels\\.by_state\\..*|tunnels\\.sessions|"
  + "(prefix_)?pools\\..*|radius\\.(outstanding|waiting)|bgp\\.(peers|established|prefixes|hold_margin_s))$");
const isGauge = name => GAUGES.test(name);

/** Every number of a row by its path: `{"radius":{"waiting":3}}` is `radius.waiting`; list items go by their `name`. */
function flatten(row, prefix = "", into = new Map()) {
  for (const [key, value] of Object.entries(row)) {
    const path = prefix + key;
    if (typeof value === "number") into.set(path, value);
    else if (Array.isArray(value)) {
      for (const item of value) if (item && item.name !== undefined) flatten(item, `${path}.${item.name}.`, into);
    } else if (value && typeof value === "object") flatten(value, `${path}.`, into);
  }
  return into;
}

/** Two rows as values and rates: the state of the moment. Without an earlier row, rates are absent. */
export function rates(before, after, clock = "at_s") {
  const now = flatten(after), out = new Map();
  const was = before ? flatten(before) : null, spent = was ? now.get(clock) - was.get(clock) : 0;
  // A restarted daemon counts from 0 again, so no difference to its predecessor has a meaning.
  const follows = spent > 0 && spent < 10 && !(after.uptime_s < before.uptime_s);
  for (const [name, value] of now) {
    if (isGauge(name)) out.set(name, value);
    else if (follows) {
      // A reason that was not there before had counted nothing.
      const by = value - (was.get(name) ?? 0);
      if (by >= 0) out.set(name, by / spent);
    }
  }
  return out;
}

/** Columns over one time axis of at most `length` steps of `step` seconds. */
export class Columns {
  constructor(step, length) {
    this.step = step;
    this.length = length;
    this.clear();
  }

  clear() {
    this.times = [];
    this.columns = new Map();
  }

  /** The values of a name; empty if there are none. */
  get(name) {
    return this.columns.get(name) || [];
  }

  /** The names below a prefix, without it. */
  below(prefix) {
    const names = [];
    for (const name of this.columns.keys()) if (name.startsWith(prefix)) names.push(name.slice(prefix.length));
    return names;
  }

  /** Appends one step. A pause before it leaves an empty step, so that curves end and begin again. */
  push(at, values) {
    const last = this.times.at(-1);
    if (last !== undefined && at <= last) return;
    if (last !== undefined && at - last > this.step * 2.5) this.add(last + this.step, new Map());
    this.add(at, values);
  }

  add(at, values) {
    this.times.push(at);
    for (const name of values.keys()) {
      if (!this.columns.has(name)) this.columns.set(name, new Array(this.times.length - 1).fill(null));
    }
    for (const [name, column] of this.columns) column.push(values.get(name) ?? null);
    const over = this.times.findIndex(time => time > at - this.step * this.length);
    if (over > 0) {
      this.times.splice(0, over);
      for (const column of this.columns.values()) column.splice(0, over);
    }
  }

  /** Takes the daemon's rows `history/1`. Steps that a restarted daemon does not know any more stay. */
  fill(rows) {
    const parts = rows.filter(row => row.step_s === this.step).map(row => ({ row, first: Math.round(row.first_s / this.step) }));
    const known = new Set(this.times);
    for (const { row, first } of parts) row.values.forEach((_, at) => known.add((first + at) * this.step));
    const all = [...known].sort((a, b) => a - b).slice(-this.length);
    // A pause leaves an empty step, as in `push`.
    const times = all.flatMap((time, at) => at && time - all[at - 1] > this.step * 2.5 ? [all[at - 1] + this.step, time] : [time]);
    const places = new Map(times.map((time, at) => [time, at])), columns = new Map();
    const column = name => {
      if (!columns.has(name)) columns.set(name, new Array(times.length).fill(null));
      return columns.get(name);
    };
    const put = (into, time, value) => {
      const place = value === null ? undefined : places.get(time);
      if (place !== undefined) into[place] = value;
    };
    for (const [name, values] of this.columns) {
      const into = column(name);
      values.forEach((value, at) => put(into, this.times[at], value));
    }
    for (const { row, first } of parts) {
      const into = column(row.series), by = row.is_rate ? row.step_s : 1;
      row.values.forEach((value, at) => put(into, (first + at) * this.step, value === null ? null : value / by));
    }
    this.times = times;
    this.columns = columns;
  }
}

/** Histograms of `now/1`, and the quantiles of each that the daemon keeps a history of. */
const QUANTILES = [["radius.round_trips", [["p50", 0.5], ["p99", 0.99]]], ["event_loop.lateness", [["p99", 0.99]]]];
/** Groups of counters of which the daemon keeps the sum too. */
const SUMS = ["subscribers.ended", "subscribers.refused", "traffic.dropped"];
/** Values of each pool of which the daemon keeps the sum over all pools. */
const OF_POOLS = ["size", "used"];

/** The buckets of a histogram: pairs of upper bound and `count(name)`, by bound. */
export function buckets(names, prefix, count) {
  const found = [];
  for (const name of names) {
    if (!name.startsWith(`${prefix}.`)) continue;
    const text = name.slice(prefix.length + 1), bound = text === "inf" ? Infinity : Number(text);
    if (!Number.isNaN(bound)) found.push([bound, count(name)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

// Adds the sums and quantiles of a step to its values, under the names of the history.
function derive(values) {
  for (const sum of SUMS) {
    const parts = [...values].filter(([name]) => name.startsWith(`${sum}.`));
    if (parts.length) values.set(sum, parts.reduce((all, [, value]) => all + value, 0));
  }
  for (const what of OF_POOLS) {
    const parts = [...values].filter(([name]) => name.startsWith("pools.") && name !== `pools.${what}` && name.endsWith(`.${what}`));
    if (parts.length) values.set(`pools.${what}`, parts.reduce((all, [, value]) => all + value, 0));
  }
  for (const [name, each] of QUANTILES) {
    const all = buckets(values.keys(), name, bucket => values.get(bucket));
    for (const [as, of] of each) {
      const value = quantile(all, of);
      if (value !== null) values.set(`${name}.${as}`, value);
    }
  }
  return values;
}

/** The past of the daemon: ten minutes by second and a day by minute. */
export class Past {
  constructor() {
    this.second = new Columns(1, 600);
    this.minute = new Columns(60, 1440);
    this.row = null;
    this.now = new Map();
    this.gathered = null;
  }

  /** Takes the next row of the stream. */
  push(row) {
    this.now = derive(rates(this.row, row));
    const at = Math.floor(row.at_s);
    // The first row has no rates, and the history has that second already.
    if (this.row) this.second.push(at, this.now);
    this.row = row;
    this.gather(Math.floor(at / 60) * 60);
  }

  // The mean of a minute's rates and the last of its values, once the minute is over.
  gather(minute) {
    if (this.gathered && this.gathered.minute !== minute) {
      const { sums, steps, minute: of } = this.gathered, values = new Map();
      for (const [name, sum] of sums) values.set(name, isGauge(name) ? sum : sum / steps);
      this.minute.push(of + 60, derive(values));
      this.gathered = null;
    }
    this.gathered ||= { minute, sums: new Map(), steps: 0 };
    this.gathered.steps += 1;
    for (const [name, value] of this.now) {
      this.gathered.sums.set(name, isGauge(name) ? value : (this.gathered.sums.get(name) || 0) + value);
    }
  }
}

/** The quantile of a histogram: pairs of upper bound and count, by bound. Linear within a bucket; null if it is empty. */
export function quantile(buckets, of) {
  const total = buckets.reduce((sum, [, many]) => sum + many, 0);
  if (!(total > 0)) return null;
  let below = 0, low = 0;
  for (const [bound, many] of buckets) {
    if (below + many >= total * of && many > 0) {
      if (bound === Infinity) return low;
      return low + (bound - low) * Math.max(0, total * of - below) / many;
    }
    below += many;
    if (bound !== Infinity) low = bound;
  }
  return low;
}
