// The view of queues: the tree of disciplines and classes of each direction with rates, drops and backlog.

import { h, setText, setAttribute, heading, visible, absent } from "./dom.js";
import { bits, bytes, perSecond, short, share, count, age, label, NONE } from "./format.js";
import { Stream } from "./net.js";
import { Chart, recent } from "./chart.js";
import { Line, WAYS, nameOfNode } from "./line.js";
import { Spark, sparkHead } from "./spark.js";

const TITLES = { down: "Down, to the hosts", up: "Up, to the provider" };

/** What to do where no shaper is connected. */
export const WITHOUT = "No shaper is connected. Start headend web with the control socket of headend qos run to see its queues.";

/** A chart of what the line remembers below a prefix, by class. */
export function curve(line, way, about, prefix) {
  return new Chart({ sync: "line", colours: line.colours, ...about, read: () => {
    const past = line.past[way];
    return { times: past.times, ...recent(past.times, line.at || Date.now() / 1000), series: past.below(prefix).map(name => ({ name: visible(name), values: past.get(prefix + name) })) };
  } });
}

const COLUMNS = [["Queue", "tree"], ["Rate", "n"], ["Of the line", "n wide"], ["Packets/s", "n wide"], ["Dropped/s", "n"], ["Marked/s", "n wide"],
  ["Backlog", "n"], ["Packets waiting", "n wider"]];

const cellsOf = (row, rates, rate_bps) => {
  const bps = rates?.bps ?? null, each = value => perSecond(value).replace("/s", "");
  return [bits(bps), rate_bps && bps !== null ? share(bps / rate_bps) : NONE, each(rates?.pps), each(rates?.drops_ps), each(rates?.marks_ps), bytes(row.backlog), count(row.qlen)];
};

const WORST = { drops: value => `${perSecond(value)} dropped`, bytes: value => `${bytes(value)} waiting`, bps: bits };

/** The row of a group of like nodes: their sums and the worst. `toggle` opens and closes it. */
function group(node, depth, toggle) {
  const cells = COLUMNS.slice(1).map(([, kind]) => h("td", { class: kind })), name = h("bdi", null), worst = h("span", { class: "kind worst" }), spark = new Spark();
  const button = h("button", { type: "button", class: "fold group", "aria-expanded": "false", onclick: () => button.setAttribute("aria-expanded", String(toggle(node.key))) }, name);
  return {
    rows: [h("tr", { class: "group" }, h("th", { scope: "row", class: "tree", "data-depth": Math.min(depth, 6) }, button, worst, spark.element), cells)],
    spark,
    show({ row, rates, members, worst: one }, rate_bps, times, values) {
      setText(name, `${count(members.length)} ${row.kind} ${row.is_class ? "classes" : "disciplines"}`);
      setText(worst, one ? `${one.what === "bps" ? "busiest" : "worst"} ${visible(one.name)}, ${WORST[one.what](one.value)}` : `${row.handle}, idle`);
      cellsOf(row, rates, rate_bps).forEach((value, at) => setText(cells[at], value));
      setAttribute(cells[3], "data-alarm", rates?.drops_ps > 0);
      spark.show(times, values);
    },
  };
}

/** The rows of one node: its figures, and below them its options on demand. */
function line(node, depth) {
  const spark = new Spark(), cells = COLUMNS.slice(1).map(([, kind]) => h("td", { class: kind })), more = h("td", { colspan: COLUMNS.length });
  const below = h("tr", { class: "more", hidden: true }, more), id = `node-${node.key.replace(/\W+/g, "-")}`;
  below.id = id;
  const button = h("button", { type: "button", class: "fold", "aria-expanded": "false", "aria-controls": id, onclick: () => {
    below.hidden = !below.hidden;
    button.setAttribute("aria-expanded", String(!below.hidden));
  } }, h("bdi", null, visible(nameOfNode(node.row))));
  const head = h("th", { scope: "row", class: "tree", "data-depth": Math.min(depth, 6) }, button,
    h("span", { class: "kind" }, node.row.is_class ? node.row.kind : node.row.name ? node.row.kind : ""), spark.element);
  const pairs = h("p", null), rules = h("p", { class: "mono" });
  more.append(pairs, rules);
  return {
    rows: [h("tr", null, head, cells), below],
    spark,
    show({ row, rates }, rate_bps, times, values) {
      cellsOf(row, rates, rate_bps).forEach((value, at) => setText(cells[at], value));
      setAttribute(cells[3], "data-alarm", rates?.drops_ps > 0);
      spark.show(times, values);
      const known = Object.entries(row.details || {}).map(([name, value]) => `${label(name)} ${count(value)}`);
      setText(pairs, [row.options ? visible(row.options) : null, `sent ${bytes(row.bytes)}`, `dropped ${count(row.drops)}`, ...known].filter(Boolean).join(" · "));
      setText(rules, (row.rules || []).map(rule => `${rule.name ? `${visible(rule.name)}: ` : ""}${visible(rule.what)} → ${visible(rule.class)}`).join("; "));
    },
  };
}

/** One direction: its figures, two charts and the tree. */
function direction(model, way) {
  const name = way === "down" ? "Down" : "Up", summary = h("p", { class: "lead" }, "\u00a0"), body = h("tbody"), lines = new Map();
  const charts = [
    curve(model, way, { id: `${way}-rate`, title: `${name}: rate by class`, format: bits, stacked: true, empty: "nothing was sent" }, "rate."),
    curve(model, way, { id: `${way}-backlog`, title: `${name}: backlog by class`, format: bytes, binary: true, top: 3000, empty: "nothing has waited" }, "backlog."),
    curve(model, way, { id: `${way}-drops`, title: `${name}: dropped packets/s`, format: perSecond, axis: short,
      stacked: true, empty: "nothing was dropped" }, "drops."),
  ];
  const tree = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Queues, ${way}` }, h("table", { class: "nodes" },
    h("caption", { class: "unseen" }, `Queues, ${way}`), h("thead", null, h("tr", null, COLUMNS.map(([text, kind], at) => h("th", { scope: "col", class: kind }, text, at ? null : sparkHead())))), body));
  let known = "";
  const open = new Set();
  const toggle = key => {
    if (!open.delete(key)) open.add(key);
    reveal(model.walk(way));
    return open.has(key);
  };
  // Rows in a closed group take no part; details that were open stay so.
  const reveal = all => {
    for (const [node, , folds] of all) {
      const own = lines.get(node.key), away = !folds.every(fold => open.has(fold));
      if (!own || own.away === away) continue;
      own.away = away;
      own.rows.forEach(row => row.classList.toggle("away", away));
    }
  };
  return {
    element: h("section", { class: "way", "aria-label": TITLES[way] }, h("h2", null, TITLES[way]), summary,
      h("div", { class: "charts three" }, charts.map(chart => chart.element)), h("div", { class: "card" }, tree)),
    charts,
    close() {
      charts.forEach(chart => chart.close());
      lines.forEach(({ spark }) => spark.close());
    },
    show() {
      const { run } = model, sums = run[way], rates = model.rates[way], all = model.walk(way);
      setText(summary, `${bits(rates?.bps)} of ${sums.rate_bps ? bits(sums.rate_bps) : "an unshaped line"}, ${perSecond(rates?.drops_ps)} dropped, `
        + `${perSecond(rates?.marks_ps)} marked, ${bytes(sums.backlog)} waiting`);
      const keys = all.map(([node, depth]) => `${node.key} ${depth}`).join("\n");
      if (keys !== known) {
        const before = new Map(lines);
        lines.clear();
        for (const [node, depth] of all) lines.set(node.key, before.get(node.key) || (node.members ? group(node, depth, toggle) : line(node, depth)));
        for (const [key, { spark }] of before) if (!lines.has(key)) spark.close();
        body.replaceChildren(...[...lines.values()].flatMap(one => one.rows));
      }
      known = keys;
      reveal(all);
      const past = model.past[way];
      for (const [node] of all) {
        const own = lines.get(node.key);
        if (!own.away) own.show(node, sums.rate_bps, past.times, past.get(`node.${node.key}`));
      }
      charts.forEach(chart => chart.update());
    },
  };
}

/** Opens the view. */
export function open(place, app) {
  const about = h("p", { class: "sub" }, "\u00a0");
  place.append(heading("Queues", about));
  if (!app.info.has_qos) {
    place.append(absent(WITHOUT));
    return { close() {} };
  }
  const model = app.line ||= new Line(), ways = WAYS.map(way => direction(model, way)), wait = absent("Waiting for the first reading.");
  place.append(wait);
  const show = () => {
    if (!model.run) return;
    if (wait.isConnected) wait.replaceWith(...ways.map(way => way.element));
    const { run } = model;
    setText(about, `${visible(run.policy)}, running for ${age(run.uptime_s)}, ${visible(run.lan.name)} to ${visible(run.wan.name)}`);
    ways.forEach(way => way.show());
  };
  show();
  const stream = new Stream("/api/stream/queues", "the shaper", { rows: rows => {
    model.take(rows);
    show();
  } });
  return {
    who: "the shaper",
    close: () => {
      stream.close();
      ways.forEach(way => way.close());
    },
  };
}
