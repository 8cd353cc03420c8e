// The view for a home gateway: how long packets wait while the line is in use, who and what uses it, and its rate.

import { h, setText, setAttribute, heading, visible, absent } from "./dom.js";
import { bits, bytes, count, micros, perSecond, share, NONE } from "./format.js";
import { Stream, getJson, path } from "./net.js";
import { Chart, recent } from "./chart.js";
import { Line, WAYS, drainTime, nameOfNode } from "./line.js";
import { WITHOUT } from "./queues.js";
import { hosts } from "./hosts.js";
import { rates } from "./rate.js";

const NAMES = { down: "Down", up: "Up" };
/** Of a client with more connections than this, only the first is shown. */
const SESSIONS = 20;

/** A word for a wait: calls and games notice 30 ms, and everybody notices 100 ms. */
function verdict(us) {
  if (us === null) return ["unknown", "wait"];
  return us <= 30000 ? ["good", "good"] : us <= 100000 ? ["noticeable", "warn"] : ["slow", "bad"];
}

const many = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** One large figure with a word and a note. */
function figure(title, id) {
  const value = h("p", { class: "value", "data-tile": id }, NONE), word = h("span", { class: "badge" }, "\u00a0"), note = h("p", { class: "note" }, "\u00a0");
  return {
    element: h("section", { class: "tile big" }, h("h2", null, title), value, h("p", { class: "word" }, word), note),
    show(us, text) {
      const [said, kind] = verdict(us);
      setText(value, micros(us));
      setText(word, said);
      setAttribute(word, "data-kind", kind);
      setText(note, text);
    },
  };
}

/** What uses the line in one direction: a bar for each class. */
function users(model, way) {
  const list = h("ul", { class: "bars" }), bars = new Map();
  const bar = () => {
    const name = h("bdi", { class: "name" }), rate = h("span", { class: "n" }), fill = h("span", { class: "fill" }), note = h("p", { class: "note" });
    const meter = h("div", { class: "meter", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" }, fill);
    return { name, rate, fill, note, meter, element: h("li", null, h("div", { class: "line" }, name, rate), meter, note) };
  };
  // The fair queue of a class counts hosts and flows.
  const within = node => {
    const all = [node, ...node.below], sum = name => all.reduce((total, one) => total + (one.row.details?.[name] || 0), 0);
    return all.some(one => one.row.details && "hosts" in one.row.details) ? [`${many(sum("hosts"), "host")}, ${many(sum("flows"), "flow")}`] : [];
  };
  return {
    element: h("section", { class: "card" }, h("h2", null, `${NAMES[way]}: what uses the line`), list),
    show() {
      const all = model.leaves(way);
      for (const key of bars.keys()) if (!all.some(node => node.key === key)) {
        bars.get(key).element.remove();
        bars.delete(key);
      }
      for (const node of all) {
        if (!bars.has(node.key)) bars.set(node.key, bar());
        const { name, rate, fill, note, meter } = bars.get(node.key), { row, rates } = node, { rate_bps } = model.run[way];
        const part = rate_bps && rates?.bps ? Math.min(1, rates.bps / rate_bps) : 0, shown = visible(nameOfNode(row));
        setText(name, shown);
        setText(rate, rate_bps ? `${bits(rates?.bps)} (${share(part)})` : bits(rates?.bps));
        fill.style.width = `${part * 100}%`;
        setAttribute(meter, "aria-label", shown);
        setAttribute(meter, "aria-valuenow", Math.round(part * 100));
        setAttribute(meter, "aria-valuetext", `${bits(rates?.bps)}, ${share(part)} of the line`);
        const wait = drainTime(row.backlog, rates?.bps);
        if (!row.backlog && !rates?.bps && !rates?.drops_ps) setText(note, "idle");
        else setText(note, [...within(node), row.backlog ? `${bytes(row.backlog)} waiting${wait ? `, sent in ${micros(wait)}` : ""}` : "nothing waiting",
          rates?.drops_ps > 0 ? `${perSecond(rates.drops_ps)} dropped` : null].filter(Boolean).join(" · "));
      }
      const order = all.map(node => bars.get(node.key).element);
      if (order.some((element, at) => list.children[at] !== element)) list.replaceChildren(...order);
    },
  };
}

/** The round trip to the provider: that of the LCP echoes of our own PPP client, if the daemon runs one. */
function echo(show, signal) {
  let stream = null;
  const start = async () => {
    try {
      const { rows } = await getJson(path("/api/subscribers", { limit: SESSIONS }), signal), client = rows.find(row => row.role === "client");
      if (!client || signal.aborted) return;
      stream = new Stream(path("/api/stream/subscriber", { who: client.name || client.address }), "the daemon", { rows: all => {
        const row = all.find(one => one.role === "client");
        if (row) show(row);
      } });
    } catch {
      // Without the daemon, the view has the shaper's figures alone.
    }
  };
  start();
  return () => stream?.close();
}

/** Opens the view. */
export function open(place, app) {
  place.append(heading("Home", h("p", { class: "sub" }, "Latency under load now, and who uses the line")));
  const model = app.line ||= new Line(), ended = new AbortController();
  const waits = Object.fromEntries(WAYS.map(way => [way, figure(`${NAMES[way]}: queue wait`, `wait-${way}`)])), trip = figure("Round trip to the provider", "echo");
  trip.element.hidden = true;
  const chart = new Chart({ id: "waits", title: "Queue wait", format: micros, sync: "line", top: 10000, empty: "no reading yet", read: () => {
    const { times } = model.past.down;
    return { times, ...recent(times, model.at || Date.now() / 1000), series: WAYS.map(way => ({ name: NAMES[way].toLowerCase(), values: model.past[way].get("wait") })).filter(one => one.values.length) };
  } });
  const what = WAYS.map(way => users(model, way)), none = absent(WITHOUT);
  const who = app.info.has_qos ? hosts() : null, rate = app.info.has_qos ? rates(app, WAYS) : null;
  const parts = app.info.has_qos ? [h("div", { class: "tiles home" }, WAYS.map(way => waits[way].element), trip.element),
    h("div", { class: "charts home" }, chart.element, who.element, rate.element, what.map(one => one.element))]
    : [h("div", { class: "tiles home" }, trip.element), none];
  place.append(...parts);
  const show = () => {
    if (!model.run) return;
    for (const way of WAYS) {
      const { rate_bps, backlog } = model.run[way], busy = model.rates[way]?.bps;
      waits[way].show(model.wait(way), `${bytes(backlog)} queued; ${bits(busy)}${rate_bps ? ` of ${bits(rate_bps)}` : ""} in use`);
    }
    what.forEach(one => one.show());
    rate.show(model.run);
    chart.update();
  };
  show();
  const stream = app.info.has_qos ? new Stream("/api/stream/queues", "the shaper", { rows: rows => {
    model.take(rows);
    show();
  } }) : null;
  const stop = echo(row => {
    trip.element.hidden = false;
    trip.show(row.echo_rtt_us ?? null, "last LCP echo");
  }, ended.signal);
  return {
    who: stream ? "the shaper" : null,
    close: () => {
      ended.abort();
      stop();
      stream?.close();
      who?.close();
      rate?.close();
      chart.close();
    },
  };
}
