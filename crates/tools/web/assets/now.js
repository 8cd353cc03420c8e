// The view of the moment: what the daemon does now, and what it did in the last ten minutes or the last day.

import { h, setText, setAttribute, heading, absent, nameOf, visible } from "./dom.js";
import { count, short, perSecond, bits, bytes, share, micros, seconds, age, NONE } from "./format.js";
import { Chart } from "./chart.js";
import { buckets, quantile } from "./series.js";

/** The quantiles at the top are of this many seconds: one second has few samples. */
const WINDOW_S = 10;

/** Dropped packets above this share of all packets are shown as an alarm. */
const DROPPED_SHARE = 0.01;

const words = name => visible(name).replace(/[_-]/g, " ");

/** The parts of a sum as series. The history has the main ones, so what is left of the sum is a series too. */
function parts(columns, sum) {
  const names = columns.below(`${sum}.`), all = names.map(name => columns.get(`${sum}.${name}`)), rest = columns.get(sum).map((value, at) => {
    const left = value === null ? 0 : value - all.reduce((known, values) => known + (values[at] || 0), 0);
    return value === null ? null : left > value * 1e-6 ? left : 0;
  });
  return [...names.map((name, i) => ({ name: words(name), values: all[i] })), { name: "other reasons", values: rest }];
}
function times(values, by) {
  return by === 1 ? values : values.map(value => value === null ? null : value * by);
}
/** Subscribers that are neither up nor ending. */
function arriving(columns) {
  const all = ["link", "asking", "networks"].map(state => columns.get(`subscribers.by_state.${state}`)).filter(values => values.length);
  return all.length ? columns.times.map((_, at) => all[0][at] === null ? null : all.reduce((sum, values) => sum + (values[at] || 0), 0)) : [];
}

/** The pools of which a curve is shown, beside that of all. */
const POOLS = 6;
/** Leased addresses: of each pool while the page is open, and of all pools as far back as the history goes. */
function leased(columns) {
  const names = columns.below("pools.").filter(name => name.endsWith(".used")).map(name => name.slice(0, -".used".length)), all = columns.get("pools.used");
  if (names.length < 2) return [{ name: names.length ? visible(names[0]) : "leased", values: all }];
  const last = name => columns.get(`pools.${name}.used`).at(-1) || 0, most = [...names].sort((a, b) => last(b) - last(a)).slice(0, POOLS).sort();
  return [{ name: "all pools", values: all }, ...most.map(name => ({ name: visible(name), values: columns.get(`pools.${name}.used`) }))];
}

/** The charts of this view: each takes columns and answers its series. `needs` names a part that a daemon may lack. */
const CHARTS = [
  { id: "online", title: "Subscribers connected", format: count, axis: short, top: 4, series: columns => [
    { name: "connected", values: columns.get("subscribers.by_state.up") }, { name: "connecting", values: arriving(columns) }] },
  { id: "changes", title: "Sessions per second", format: perSecond, axis: short, series: columns => [
    { name: "came up", values: columns.get("subscribers.came_up") }, { name: "ended", values: columns.get("subscribers.ended") }] },
  { id: "refused", title: "Failed admissions/s by reason", format: perSecond, axis: short, stacked: true,
    empty: "no failed admission in this time", series: columns => parts(columns, "subscribers.refused") },
  { id: "leased", title: "Addresses leased", format: count, axis: short, top: 4, empty: "no address pool is configured", series: leased },
  { id: "traffic", title: "Traffic of subscribers", format: bits, top: 1000, series: columns => [
    { name: "down", values: times(columns.get("traffic.octets_out"), 8) }, { name: "up", values: times(columns.get("traffic.octets_in"), 8) }] },
  { id: "packets", title: "Packets/s of subscribers", format: perSecond, axis: short, series: columns => [
    { name: "down", values: columns.get("traffic.packets_out") }, { name: "up", values: columns.get("traffic.packets_in") }] },
  { id: "dropped", title: "Dropped packets/s by reason", format: perSecond, axis: short, stacked: true,
    empty: "no dropped packet in this time", series: columns => parts(columns, "traffic.dropped") },
  { id: "radius", needs: "has_radius", title: "RADIUS round trip", format: micros, empty: "no reply of a RADIUS server in this time", series: columns =>
    ["p50", "p99"].map(name => ({ name, values: columns.get(`radius.round_trips.${name}`) })) },
  { id: "outstanding", needs: "has_radius", title: "RADIUS requests open", format: count, axis: short, top: 4, empty: "no RADIUS server is configured", series: columns => [
    { name: "sent, no reply yet", values: columns.get("radius.outstanding") }, { name: "waiting for a slot", values: columns.get("radius.waiting") }] },
  { id: "late", title: "Timer lateness", format: micros, series: columns => [
    { name: "p99", values: columns.get("event_loop.lateness.p99") }] },
  { id: "margin", needs: "has_bgp", title: "Least BGP hold time margin", format: seconds, least: true, empty: "no BGP session in this time", series: columns => [
    { name: "margin", values: columns.get("bgp.hold_margin_s") }] },
  { id: "busy", title: "Event loop busy by handler", format: share, stacked: true, top: 0.1,
    series: columns =>
    columns.below("event_loop.handlers_s.").map(name => ({ name: words(name), values: columns.get(`event_loop.handlers_s.${name}`) })) },
];

/** The largest entries of a prefix at the moment, as a text. */
function foremost(now, prefix) {
  let most = null;
  for (const [name, value] of now) {
    if (name.startsWith(prefix) && value > 0 && (!most || value > most[1])) most = [name.slice(prefix.length), value];
  }
  return most && `mostly ${words(most[0])}`;
}
// The latest value of a sliding quantile, from the steps it needs only.
function latest(columns, prefix, of) {
  return quantile(buckets(columns.columns.keys(), prefix, name => columns.get(name).slice(-WINDOW_S).reduce((all, value) => all + (value || 0), 0)), of);
}

/** The figures at the top: a label, the value, and a note below it. */
const TILES = [
  ["online", "Connected", ({ row }) => {
    const states = row.subscribers.by_state, all = Object.values(states).reduce((a, b) => a + b, 0), up = states.up || 0;
    const versions = row.subscribers.by_version || {}, dual = versions.both || 0, six = versions.ipv6 || 0;
    const ipv6 = `${dual ? `, ${count(dual)} dual-stack` : ""}${six ? `, ${count(six)} IPv6 alone` : ""}`;
    return [count(up), `${count(all - up)} in other states${ipv6}`];
  }],
  ["changes", "Up and ended", ({ now }) => [`${perSecond(now.get("subscribers.came_up"))}`, `${perSecond(now.get("subscribers.ended"))} ended`]],
  ["refused", "Failed admissions", ({ now }) => {
    const value = now.get("subscribers.refused");
    return [perSecond(value), foremost(now, "subscribers.refused.") || "none at present", value > now.get("subscribers.came_up")];
  }],
  ["traffic", "Traffic down", ({ now }) => [bits(now.get("traffic.octets_out") * 8), `up ${bits(now.get("traffic.octets_in") * 8)}`]],
  ["dropped", "Dropped packets", ({ now }) => {
    const value = now.get("traffic.dropped"), all = now.get("traffic.packets_in") + now.get("traffic.packets_out");
    return [perSecond(value), foremost(now, "traffic.dropped.") || "none at present", value > all * DROPPED_SHARE];
  }],
  ["radius", "RADIUS p99", ({ row, columns }) => row.radius
    ? [micros(latest(columns, "radius.round_trips", 0.99)), `p50 ${micros(latest(columns, "radius.round_trips", 0.5))}, ${count(row.radius.outstanding)} outstanding`]
    : [NONE, "not configured"]],
  ["busy", "Event loop busy", ({ now, columns }) => {
    const busy = now.get("event_loop.busy_s"), late = latest(columns, "event_loop.lateness", 0.99);
    return [share(busy === undefined ? null : Math.min(busy, 1)), `timers late p99 ${micros(late)}`, busy > 0.9];
  }],
  ["margin", "BGP hold margin", ({ row }) => row.bgp
    ? [seconds(row.bgp.hold_margin_s), `${count(row.bgp.established)} of ${count(row.bgp.peers)} peers established`, row.bgp.established < row.bgp.peers]
    : [NONE, "not configured"]],
];

function tiles() {
  const parts = TILES.map(([id, name, read]) => {
    const value = h("dd", { class: "value", "data-tile": id }, NONE), note = h("dd", { class: "note" }, "\u00a0");
    return { read, value, note, element: h("div", { class: "tile" }, h("dt", null, name), value, note) };
  });
  return {
    element: h("dl", { class: "tiles", "aria-label": "At the moment" }, parts.map(part => part.element)),
    show: state => parts.forEach(({ read, value, note, element }) => {
      const [text, more, alarm] = read(state);
      setText(value, text);
      setText(note, more);
      setAttribute(element, "data-alarm", Boolean(alarm));
    }),
  };
}

/** A bar for each pool of addresses and of IPv6 prefixes, the fullest first. A pool of each kind may have the same name. */
function pools() {
  const bars = new Map(), list = h("ul", { class: "bars" }), none = absent("No address pool is configured.");
  const both = row => [...row.pools.map(pool => ({ ...pool, key: `4 ${pool.name}`, of: "addresses" })),
    ...(row.prefix_pools || []).map(pool => ({ ...pool, key: `6 ${pool.name}`, of: "prefixes" }))];
  const bar = pool => {
    const fill = h("span", { class: "fill" }), text = h("span", { class: "n" }), kind = h("span", { class: "warn" });
    const meter = h("div", { class: "meter", role: "meter", "aria-label": `pool ${visible(pool.name)}`, "aria-valuemin": "0" }, fill);
    return { fill, text, kind, meter, element: h("li", null, h("div", { class: "line" }, nameOf(pool.name), kind, text), meter) };
  };
  return {
    element: h("section", { class: "card pools" }, h("h2", null, "Pools"), list, none),
    show(row) {
      const all = both(row);
      none.hidden = all.length > 0;
      const part = pool => pool.size ? pool.used / pool.size : 0;
      for (const key of bars.keys()) if (!all.some(pool => pool.key === key)) {
        bars.get(key).element.remove();
        bars.delete(key);
      }
      for (const pool of all) {
        if (!bars.has(pool.key)) bars.set(pool.key, bar(pool));
        const { fill, text, kind, meter } = bars.get(pool.key), used = part(pool);
        fill.style.width = `${Math.min(used, 1) * 100}%`;
        setAttribute(meter, "data-full", used >= 1 ? "full" : used >= 0.9 ? "nearly" : "no");
        setAttribute(meter, "aria-valuemax", pool.size);
        setAttribute(meter, "aria-valuenow", pool.used);
        setAttribute(meter, "aria-valuetext", `${count(pool.used)} of ${count(pool.size)} ${pool.of} leased`);
        setText(kind, used >= 1 ? "full" : used >= 0.9 ? "nearly full" : "");
        setText(text, `${count(pool.used)} of ${count(pool.size)}${pool.of === "prefixes" ? " prefixes" : ""} (${share(used)})`);
      }
      const order = all.sort((a, b) => part(b) - part(a)).map(pool => bars.get(pool.key).element);
      if (order.some((element, at) => list.children[at] !== element)) list.replaceChildren(...order);
    },
  };
}

/** Opens the view. */
export function open(place, app) {
  let range = app.range || "second";
  const top = tiles(), leases = pools(), { past } = app;
  const view = () => {
    const columns = past[range], to = past.row ? past.row.at_s : Date.now() / 1000;
    return { columns, from: to - columns.step * columns.length, to };
  };
  const wanted = CHARTS.filter(about => !about.needs || app.info[about.needs]), charts = wanted.map(about => new Chart({ ...about, read: () => {
    const { columns, from, to } = view();
    return { times: columns.times, from, to, series: about.series(columns).filter(one => one.values.length) };
  } }));
  const choose = h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Time shown"),
    [["second", "10 minutes"], ["minute", "1 day"]].map(([value, text]) => h("label", null,
      h("input", { type: "radio", name: "range", value, checked: value === range, onchange: () => {
        app.range = range = value;
        charts.forEach(chart => chart.update());
      } }), h("span", null, text))));
  const running = h("p", { class: "sub" }, "\u00a0");
  place.append(heading("Now", running, choose), top.element,
    h("div", { class: "charts many" }, charts.slice(0, 3).map(chart => chart.element), leases.element, charts.slice(3).map(chart => chart.element)));
  // The last chart fills its row, in three columns and in two, where the pools take a row of their own.
  const last = charts.at(-1).element, others = charts.length - 1;
  last.style.setProperty("--of-three", 3 - (others + 1) % 3);
  last.style.setProperty("--of-two", 2 - others % 2);
  let drawn = null;
  const show = () => {
    const { row, now } = past;
    if (row) {
      setText(running, `daemon running for ${age(row.uptime_s)}, memory ${bytes(row.rss_bytes)}`);
      top.show({ row, now, columns: past.second });
      leases.show(row);
    }
    // A picture of a day changes once a minute.
    const key = range === "second" ? past.second.times.at(-1) : `${past.minute.times.at(-1)} ${past.minute.times.length}`;
    if (key !== drawn) charts.forEach(chart => chart.update());
    drawn = key;
  };
  show();
  return { row: show, close: () => charts.forEach(chart => chart.close()) };
}
