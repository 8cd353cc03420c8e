// The view of BGP: the router, its peers, updates per second, the routes of a prefix and why one is the best.

import { h, setText, setAttribute, heading, visible, badge, table, tableRow, absent, card, sentence } from "./dom.js";
import { count, perSecond, short, age, NONE } from "./format.js";
import { Stream, getJson, path } from "./net.js";
import { Chart } from "./chart.js";
import { Detail } from "./detail.js";

/** What to do where the daemon has no BGP speaker. */
const WITHOUT = "The daemon has no BGP speaker. A section [bgp] in its configuration starts one.";

const PEERS = [["Peer", ""], ["AS", "n"], ["State", ""], ["For", "n"], ["Prefixes in", "n"], ["Prefixes out", "n"], ["Messages in/s", "n wide"],
  ["Messages out/s", "n wide"]];
const ROUTES = [["Prefix", "mono"], ["", "mono"], ["Next hop", "mono"], ["Path", "text mono"], ["Local pref.", "n"], ["MED", "n"], ["From", "mono"]];
const EVENTS = [["Ago", ""], ["Peer", "mono"], ["Kind", ""], ["Event", "text"]];

/** The table of peers, renewed in place. */
function peers() {
  const lines = new Map(), view = table("BGP peers", PEERS, []), body = view.querySelector("tbody");
  let before = new Map(), at = 0;
  const line = () => {
    const name = h("th", { scope: "row" }), cells = PEERS.slice(1).map(([, kind]) => h("td", { class: kind }));
    return { name, cells, element: h("tr", null, name, cells) };
  };
  const fill = (row, seconds) => {
    const { name, cells } = lines.get(row.address), was = before.get(row.address);
    const rate = field => was && seconds > 0 && row[field] >= was[field] ? perSecond((row[field] - was[field]) / seconds) : NONE;
    setText(name, row.name ? `${visible(row.name)} (${row.address})` : row.address);
    const values = [row.asn ?? NONE, null, row.since_s === null ? "never" : age(row.since_s), count(row.prefixes_in), count(row.prefixes_out),
      rate("messages_in"), rate("messages_out")];
    values.forEach((value, i) => value !== null && setText(cells[i], value));
    if (cells[1].textContent !== row.state) cells[1].replaceChildren(badge(row.state, row.state.toLowerCase() === "established" ? "good" : "bad"));
  };
  return {
    element: view,
    show(rows) {
      const now = performance.now(), seconds = at ? (now - at) / 1000 : 0;
      const keys = rows.map(row => row.address);
      for (const key of keys) if (!lines.has(key)) lines.set(key, line());
      for (const key of lines.keys()) if (!keys.includes(key)) lines.delete(key);
      if (keys.some((key, i) => body.children[i] !== lines.get(key).element) || body.children.length !== keys.length) {
        body.replaceChildren(...keys.map(key => lines.get(key).element));
      }
      for (const row of rows) fill(row, seconds);
      before = new Map(rows.map(row => [row.address, row]));
      at = now;
    },
  };
}

/** A path of a prefix: first whether and why it is the best, then every field. */
function pathOf(row) {
  const detail = new Detail("Attributes", ["schema", "prefix", "best", "because"]);
  detail.show(row);
  return h("article", { class: "path", "data-best": row.best }, h("h3", null, badge(row.best ? "best" : "not best", row.best ? "good" : "wait"),
    ` ${visible(row.because)}`), h("p", { class: "mono" }, `${visible(row.prefix)} via ${row.next_hop ?? "ourselves"}, path ${visible(row.as_path || "(local)")}`),
  h("details", null, h("summary", null, "Every attribute"), detail.element));
}

function found(rows, more) {
  if (!rows.length) return [absent("No route.")];
  if (rows[0].schema === "bgp.path/1") return [...rows].sort((a, b) => b.best - a.best).map(pathOf);
  const list = table("Routes found", ROUTES, rows.map(row => tableRow(ROUTES, [visible(row.prefix), row.status, row.next_hop ?? NONE,
    `${visible(row.as_path)} ${row.origin}`, row.local_pref ?? NONE, row.med ?? NONE, row.peer ?? "ourselves"])));
  return [list, more ? absent(`The first ${count(rows.length)} routes. A longer prefix shows fewer.`) : null].filter(Boolean);
}

/** The form that looks up a prefix. */
function lookup(signal) {
  const place = h("div", { class: "answer", "aria-live": "polite" });
  const prefix = h("input", { type: "text", id: "prefix", autocomplete: "off", spellcheck: "false", placeholder: "192.0.2.0/24 or an address" });
  const longer = h("input", { type: "checkbox", id: "longer" });
  const search = async event => {
    event.preventDefault();
    const text = prefix.value.trim();
    if (!text) return place.replaceChildren(absent("Type a prefix or an address."));
    try {
      const answer = await getJson(path("/api/routes", { prefix: text, longer: longer.checked ? "true" : "" }), signal);
      place.replaceChildren(...found(answer.rows, answer.more));
    } catch (fault) {
      if (fault.name !== "AbortError") place.replaceChildren(absent(sentence(fault)));
    }
  };
  return card("Look up a prefix", h("form", { class: "bar", onsubmit: search, role: "search", "aria-label": "Routes" },
    h("label", { for: "prefix", class: "field" }, h("span", null, "Prefix"), prefix),
    h("label", { class: "check" }, longer, " prefixes within it"), h("button", { type: "submit" }, "Look up")), place);
}

/** The latest events of the peers. */
function events(signal) {
  const place = h("div", { class: "ten" }, absent("…"));
  const load = async () => {
    try {
      const { rows } = await getJson("/api/events/bgp", signal), some = rows.slice(0, 50);
      place.replaceChildren(some.length ? table("BGP events", EVENTS, some.map(row => tableRow(EVENTS,
        [age(row.s_ago), row.peer, row.kind, visible(row.what)]))) : absent("No event yet."));
    } catch (fault) {
      if (fault.name !== "AbortError") place.replaceChildren(absent(sentence(fault)));
    }
  };
  load();
  return { load, element: h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", null, "Latest events"),
    h("button", { type: "button", onclick: load }, "Refresh")), place) };
}

/** Opens the view. */
export function open(place, app) {
  const about = h("p", { class: "sub" }, "\u00a0");
  place.append(heading("Routes", about));
  if (!app.info.has_bgp) {
    place.append(absent(WITHOUT));
    return { close() {} };
  }
  const ended = new AbortController(), { past } = app, list = peers(), happened = events(ended.signal);
  const read = names => () => {
    const columns = past.second, to = past.row ? past.row.at_s : Date.now() / 1000;
    return { times: columns.times, from: to - 600, to, series: names.map(([field, name]) => ({ name, values: columns.get(`bgp.${field}`) })).filter(one => one.values.length) };
  };
  const charts = [
    new Chart({ id: "updates", title: "UPDATE messages per second", format: perSecond, axis: short, read: read([["updates_in", "received"], ["updates_out", "sent"]]) }),
    new Chart({ id: "prefixes", title: "Prefixes in the table", format: count, axis: short, top: 4, read: read([["prefixes", "prefixes"]]) }),
  ];
  // Everything appears at once with the first rows, so that nothing moves when the peers arrive.
  const wait = absent("Waiting for the peers."), left = h("p", { class: "note", hidden: true });
  const parts = [h("div", { class: "card" }, h("h2", null, "Peers"), list.element, left),
    h("div", { class: "charts" }, charts.map(chart => chart.element)), lookup(ended.signal), happened.element];
  place.append(wait);
  const stream = new Stream("/api/stream/routes", "the daemon", { rows: rows => {
    const summary = rows.find(row => row.schema === "bgp.summary/1");
    if (summary) {
      const families = Object.entries(summary.prefixes).map(([family, many]) => `${count(many)} ${family}`).join(", ");
      setText(about, `AS ${summary.asn}, router ${summary.router_id}, ${count(summary.established)} of ${count(summary.peers)} peers established; prefixes: ${families || "none"}`);
      setAttribute(about, "data-established", summary.established);
    }
    const shown = rows.filter(row => row.schema === "bgp.neighbor/1"), more = summary ? summary.peers - shown.length : 0;
    list.show(shown);
    left.hidden = more <= 0;
    setText(left, `${count(more)} more peers are not shown. headend show bgp neighbors lists all.`);
    if (wait.isConnected) wait.replaceWith(...parts);
  } });
  return {
    row: () => charts.forEach(chart => chart.update()),
    back: happened.load,
    close: () => {
      ended.abort();
      stream.close();
      charts.forEach(chart => chart.close());
    },
  };
}
