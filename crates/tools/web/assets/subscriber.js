// The page of one subscriber: every field of its row, its rate and its echo round trip as curves, its earlier sessions.

import { h, setText, heading, nameOf, visible, table, tableRow, absent, card, sentence } from "./dom.js";
import { bits, bytes, micros, perSecond, short, age, count, NONE } from "./format.js";
import { Stream, getJson, getFile, path, post } from "./net.js";
import { Chart, recent } from "./chart.js";
import { Columns, rates } from "./series.js";
import { Detail } from "./detail.js";
import { stateOf } from "./subscribers.js";

/** Of a name with more sessions than this, only the first ones are shown. */
const SESSIONS = 20;
/** The stream has at most this many sessions. */
const ROWS = 100;
/** Filters shown: sessions of one name mostly share one. */
const FILTERS = 4;
const CAPTURE_S = 10;
const DETAIL = "subscriber.detail/1", ENDED = "subscriber.ended/1";

/** Rates of a subscriber come from two of its rows, by the clock of this page: a row has no time of its own. */
class Session {
  constructor(app, key) {
    this.key = key;
    this.app = app;
    this.columns = new Columns(1, 600);
    this.row = null;
    const curve = about => new Chart({ sync: key, ...about, read: () => {
      const { times } = this.columns;
      return { times, ...recent(times, Date.now() / 1000), series: about.series(this.columns).filter(one => one.values.length) };
    } });
    const from = (columns, name, by = 1) => columns.get(name).map(value => value === null ? null : value * by);
    this.charts = [
      curve({ id: "rate", title: "Rate", format: bits, top: 1000, series: columns => [
        { name: "down", values: from(columns, "traffic.octets_out", 8) }, { name: "up", values: from(columns, "traffic.octets_in", 8) }] }),
      curve({ id: "echo", title: "LCP echo round trip", format: micros, empty: "no echo reply yet",
        series: columns => [{ name: "round trip", values: columns.get("echo_rtt_us") }] }),
      curve({ id: "drops", title: "Dropped packets/s", format: perSecond, axis: short, series: columns => [
        { name: "dropped", values: columns.get("traffic.dropped") }] }),
    ];
    this.detail = new Detail("Line", ["schema", "name"]);
    this.top = h("p", { class: "lead" });
    this.element = h("section", { class: "session" }, this.top, app.info.allow_changes ? this.tools() : null,
      h("div", { class: "charts three" }, this.charts.map(chart => chart.element)), this.detail.element);
  }

  take(row) {
    const at = Date.now() / 1000, stamped = { ...row, at_s: at };
    // The server sends rows once per second; a step of the same second replaces nothing.
    const values = rates(this.row, stamped);
    if (typeof row.echo_rtt_us === "number") values.set("echo_rtt_us", row.echo_rtt_us);
    else values.delete("echo_rtt_us");
    if (this.row) this.columns.push(Math.floor(at * 10) / 10, values);
    this.row = stamped;
    this.detail.show(row);
    const facts = [row.ipv4?.address, row.ipv6?.delegated || row.ipv6?.prefix || row.ipv6?.address || row.ipv6?.peer].filter(Boolean).join(", ");
    this.top.replaceChildren(stateOf(row.state), ` ${facts || "no address"}, up for ${age(row.times?.up_s)}`,
      row.ending ? `, ending: ${visible(row.ending)}` : "");
    this.charts.forEach(chart => chart.update());
  }

  /** What selects this session and no other of the same name. */
  get selector() {
    const { tunnel, session } = this.row;
    return tunnel && session ? { tunnel: tunnel.id, session: session.id } : { who: this.row.name };
  }

  tools() {
    const said = h("p", { class: "said", role: "status" });
    const drop = h("button", { type: "button", class: "danger", onclick: () => this.ask(said) }, "Drop …");
    const capture = h("button", { type: "button", onclick: () => this.capture(capture, said) }, `Capture ${CAPTURE_S} s`);
    return h("div", { class: "bar" }, drop, capture, said);
  }

  ask(said) {
    const close = () => dialog.close();
    const sure = async () => {
      close();
      try {
        const answer = await post("/api/subscriber/drop", this.selector, this.app.info.csrf);
        const outcome = answer.rows?.[0]?.outcome;
        setText(said, outcome === "ending" ? "The session was ending already." : "The session is being dropped.");
      } catch (fault) {
        setText(said, `Not dropped: ${fault.message}.`);
      }
    };
    const dialog = h("dialog", { "aria-labelledby": "ask-title", onclose: () => dialog.remove() },
      h("h2", { id: "ask-title" }, "Drop ", nameOf(this.row.name), "?"),
      h("p", null, `The daemon ends the session at ${this.row.ipv4?.address || "no address"} cleanly. The subscriber may connect again at once.`),
      h("div", { class: "bar" }, h("button", { type: "button", autofocus: true, onclick: close }, "Keep"),
        h("button", { type: "button", class: "danger", onclick: sure }, "Drop")));
    document.body.append(dialog);
    dialog.showModal();
  }

  async capture(button, said) {
    button.disabled = true;
    let left = CAPTURE_S;
    const tick = () => setText(said, left > 0 ? `Capturing: ${left} s left` : "Capturing: waiting for the file");
    tick();
    const timer = setInterval(() => {
      left -= 1;
      tick();
    }, 1000);
    try {
      const file = await getFile(path("/api/subscriber/capture", { who: this.row.name || this.row.ipv4?.address, seconds: CAPTURE_S }));
      const address = URL.createObjectURL(file), name = this.row.name.replace(/[^\w.@-]+/g, "_").slice(0, 80) || "subscriber";
      h("a", { href: address, download: `${name}.pcapng` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
      setText(said, `Captured ${bytes(file.size)}.`);
    } catch (fault) {
      setText(said, `No capture: ${fault.message}.`);
    }
    clearInterval(timer);
    button.disabled = false;
  }

  close() {
    this.charts.forEach(chart => chart.close());
  }
}

const LINES = [["Direction", ""], ["Rule", "mono text"], ["Line", "n wide"], ["Hits", "n"], ["Per second", "n"]];
/** Lines of a filter that are shown, and how often they are read. */
const LINES_MAX = 50, READ_MS = 2000;

/** The hits of a filter, line by line. The daemon counts them for all subscribers of the filter together. */
class Filter {
  constructor(name) {
    this.name = name;
    this.place = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Filter hits" }, absent("…"));
    this.note = h("p", { class: "note" }, "Hits are of all subscribers that use this filter.");
    this.element = h("section", { class: "card filter" }, h("h2", null, "Filter ", nameOf(name)), this.place, this.note);
    this.ended = new AbortController();
    this.load();
  }

  async load() {
    try {
      if (!document.hidden) this.show((await getJson(path("/api/filter", { name: this.name }), this.ended.signal)).rows);
    } catch (fault) {
      if (fault.name === "AbortError") return;
      this.place.replaceChildren(absent(sentence(fault)));
      this.lines = null;
    }
    this.timer = setTimeout(() => this.load(), READ_MS);
  }

  show(rows) {
    const at = Date.now() / 1000, shown = rows.slice(0, LINES_MAX), key = shown.map(row => `${row.direction} ${row.rule} ${row.text}`).join("\n");
    if (key !== this.lines) {
      this.cells = shown.map(() => [h("b", { class: "n" }), h("span", { class: "n" })]);
      this.place.replaceChildren(h("table", null, h("caption", { class: "unseen" }, "Filter hits"),
        h("thead", null, h("tr", null, LINES.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))),
        h("tbody", null, shown.map((row, i) => tableRow(LINES, [row.direction, visible(row.text), row.line ?? NONE, ...this.cells[i]])))));
      setText(this.note, `${rows.length > LINES_MAX ? `${count(rows.length - LINES_MAX)} more lines are not shown. ` : ""}Hits are of all subscribers that use this filter.`);
      this.before = null;
    }
    const spent = this.before ? at - this.before.at : 0;
    shown.forEach((row, i) => {
      const rise = this.before ? row.hits - this.before.hits[i] : 0;
      setText(this.cells[i][0], count(row.hits));
      setText(this.cells[i][1], spent > 0 && rise >= 0 ? perSecond(rise / spent) : NONE);
    });
    this.lines = key;
    this.before = { at, hits: shown.map(row => row.hits) };
  }

  close() {
    clearTimeout(this.timer);
    this.ended.abort();
  }
}

const COLUMNS = [["Ended", ""], ["Reason", "text"], ["Up for", "n"], ["Address", "mono"], ["In", "n"], ["Out", "n"], ["Dropped", "n"]];

function history(rows) {
  if (!rows.length) return absent("No ended session of this name is known.");
  return table("Earlier sessions", COLUMNS, rows.map(row => tableRow(COLUMNS, [`${age(row.ended_s_ago)} ago`, visible(row.reason),
    row.up_s === null ? "never up" : age(row.up_s), row.address || NONE, bytes(row.octets_in), bytes(row.octets_out), count(row.dropped)])));
}

/** Opens the page of the subscriber with this name or address. */
export function open(place, app, who) {
  const sessions = new Map(), live = h("div", null, absent("…")), filters = new Map(), used = h("div", { class: "filters" }), past = h("div", null, absent("…")), ended = new AbortController();
  place.append(heading(nameOf(who), h("p", { class: "sub" }, h("a", { href: "#/subscribers" }, "All subscribers"))), live);
  // The parts below appear with the first rows, so that nothing moves when they arrive.
  const below = [used, card("Earlier sessions", past)];
  const load = async () => {
    try {
      const { rows } = await getJson(path("/api/ended", { name: who }), ended.signal);
      past.replaceChildren(history(rows.filter(row => row.name === who || row.address === who)));
    } catch (fault) {
      if (fault.name !== "AbortError") past.replaceChildren(absent(sentence(fault)));
    }
  };
  let known = null;
  const more = number => number > SESSIONS ? [absent(`${count(number - SESSIONS)}${number >= ROWS ? " or" : ""} more sessions of this name are not shown.`)] : [];
  const filter = names => {
    for (const [name, one] of filters) if (!names.includes(name)) {
      one.close();
      one.element.remove();
      filters.delete(name);
    }
    for (const name of names) if (!filters.has(name)) {
      filters.set(name, new Filter(name));
      used.append(filters.get(name).element);
    }
  };
  const take = rows => {
    const all = rows.filter(row => row.schema === DETAIL), here = all.slice(0, SESSIONS), before = rows.filter(row => row.schema === ENDED);
    const keys = here.map(row => `${row.tunnel?.id}/${row.session?.id}/${row.account}`);
    for (const [key, session] of sessions) {
      if (keys.includes(key)) continue;
      session.close();
      sessions.delete(key);
    }
    here.forEach((row, at) => {
      if (!sessions.has(keys[at])) sessions.set(keys[at], new Session(app, keys[at]));
      sessions.get(keys[at]).take(row);
    });
    filter([...new Set(here.map(row => row.filter).filter(Boolean))].slice(0, FILTERS));
    const shown = `${keys.join(" ")} ${all.length}`;
    if (shown !== known) {
      live.replaceChildren(...keys.length ? [...keys.map(key => sessions.get(key).element), ...more(all.length)]
        : [absent(`${who ? visible(who) : "A subscriber without a name"} is not connected.`)]);
      // Another set of sessions: one has ended or started.
      if (before.length) past.replaceChildren(history(before));
      else load();
    }
    known = shown;
    if (!used.isConnected) place.append(...below);
  };
  const stream = new Stream(path("/api/stream/subscriber", { who }), "the daemon", { rows: take });
  return {
    back: load,
    close: () => {
      ended.abort();
      stream.close();
      sessions.forEach(session => session.close());
      filters.forEach(one => one.close());
    },
  };
}
