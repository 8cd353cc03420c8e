// A shaped line from the rows of `headend qos run`: two readings give the rates of every discipline and class. The views
// of queues and of the home gateway share one line, so its curves go on when one changes to the other.

import { Columns } from "./series.js";

export const WAYS = ["down", "up"];
const KEPT_S = 600;
/** So many siblings of the same kind are one row until it is opened. */
const FOLD_FROM = 12;

const keyOf = node => `${node.way} ${node.is_class ? "class" : "qdisc"} ${node.handle}`;

/** The name of a node that people know: that of the policy, or its kind and handle. */
export const nameOfNode = node => node.name || (node.is_class ? `class ${node.handle}` : `${node.kind} ${node.handle}`);

function rateOf(was, is, seconds) {
  if (!was || !(seconds > 0) || seconds > 10) return null;
  const by = name => is[name] >= was[name] ? (is[name] - was[name]) / seconds : null;
  const bytes = by("bytes");
  return { bps: bytes === null ? null : bytes * 8, pps: by("packets"), drops_ps: by("drops"), marks_ps: by("ecn_mark") };
}

/** The time that a queue needs to send its backlog at a rate, in microseconds. */
export const drainTime = (backlog, bps) => backlog > 0 ? bps > 0 ? backlog * 8e6 / bps : null : 0;

/** What like nodes have in common: their kind and the kinds below them. */
const likeOf = node => `${node.row.kind} ${node.row.is_class}(${node.below.map(likeOf).join()})`;

/** The drops, marks and backlog of a node, which may be counted by the queues below it only. */
function loss(node) {
  const below = node.below.map(loss), sum = name => below.reduce((all, one) => all + one[name], 0);
  const own = { drops: node.rates?.drops_ps || 0, marks: node.rates?.marks_ps || 0, dropped: node.row.drops, marked: node.row.ecn_mark,
    bytes: node.row.backlog, packets: node.row.qlen };
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, Math.max(value, sum(name))]));
}

/** One node for like nodes: their sums, and the one that drops most, has the longest queue or is the busiest. */
function foldOf(members) {
  const all = members.map(node => ({ node, ...loss(node), bps: node.rates?.bps || 0 }));
  const sum = name => all.reduce((sum, one) => sum + one[name], 0), has = all.some(one => one.node.rates);
  const most = name => all.reduce((worst, one) => one[name] > (worst?.[name] || 0) ? one : worst, null);
  const [name, worst] = ["drops", "bytes", "bps"].map(name => [name, most(name)]).find(([, one]) => one) || [null, null];
  const { way, kind, is_class } = members[0].row, add = field => members.reduce((sum, node) => sum + node.row[field], 0);
  return {
    key: `${way} fold ${keyOf(members[0].row)}`, members, below: members,
    worst: worst ? { name: nameOfNode(worst.node.row), what: name, value: worst[name] } : null,
    row: { way, kind, is_class, name: null, handle: `${members[0].row.handle} to ${members.at(-1).row.handle}`, bytes: add("bytes"), packets: add("packets"),
      drops: sum("dropped"), ecn_mark: sum("marked"), backlog: sum("bytes"), qlen: sum("packets") },
    rates: has ? { bps: sum("bps"), pps: members.reduce((sum, node) => sum + (node.rates?.pps || 0), 0), drops_ps: sum("drops"), marks_ps: sum("marks") } : null,
  };
}

/** Siblings, with a fold in place of each group of like ones. */
function folded(siblings) {
  if (siblings.length < FOLD_FROM) return siblings;
  const groups = new Map(), likes = siblings.map(likeOf);
  siblings.forEach((node, at) => {
    if (!groups.has(likes[at])) groups.set(likes[at], []);
    groups.get(likes[at]).push(node);
  });
  const done = new Set(), out = [];
  for (const [at, node] of siblings.entries()) {
    const like = likes[at], group = groups.get(like);
    if (group.length < FOLD_FROM) out.push(node);
    else if (!done.has(like)) {
      done.add(like);
      out.push(foldOf(group));
    }
  }
  return out;
}

export class Line {
  constructor() {
    this.run = null;
    this.nodes = new Map();
    this.past = Object.fromEntries(WAYS.map(way => [way, new Columns(1, KEPT_S)]));
    this.at = null;
    /** One colour for a class in every chart. */
    this.colours = new Map();
  }

  /** Takes the rows of one reading. */
  take(rows) {
    const run = rows.find(row => row.schema === "qos.run/1");
    if (!run) return;
    const seconds = this.run && this.run.pid === run.pid ? (run.taken_ns - this.run.taken_ns) / 1e9 : 0, nodes = new Map();
    for (const row of rows) {
      if (row.schema !== "qos.node/1") continue;
      const key = keyOf(row), was = this.nodes.get(key)?.row;
      nodes.set(key, { key, row, rates: rateOf(was, row, seconds), below: [] });
    }
    this.rates = Object.fromEntries(WAYS.map(way => [way, rateOf(this.run?.[way], run[way], seconds)]));
    this.lost = Object.fromEntries(WAYS.map(way => [way, this.reasons(way, run, seconds)]));
    this.roots = this.tree(nodes);
    this.run = run;
    this.nodes = nodes;
    this.at = Date.now() / 1000;
    if (seconds > 0) this.remember();
  }

  // Packets per second that the lane dropped, by reason.
  reasons(way, run, seconds) {
    const names = ["full", "overlimit", "late", "unclassified", "no_room", "too_long", "down"], was = this.run?.[way].lane, is = run[way].lane;
    return Object.fromEntries(names.map(name => [name, was && seconds > 0 && is[name] >= was[name] ? (is[name] - was[name]) / seconds : null]));
  }

  // A parent is a class if there is one of that handle in the direction, else a discipline.
  tree(nodes) {
    const roots = Object.fromEntries(WAYS.map(way => [way, []]));
    for (const node of nodes.values()) {
      const { way, parent, is_class } = node.row;
      const above = parent && (nodes.get(`${way} class ${parent}`) || nodes.get(`${way} qdisc ${parent}`));
      if (above && above !== node) above.below.push(node);
      else roots[way]?.push(node);
      node.leaf = is_class;
    }
    const leaves = node => {
      const under = node.below.map(leaves).some(Boolean);
      if (under) node.leaf = false;
      return node.leaf || under;
    };
    for (const way of WAYS) for (const root of roots[way]) {
      // Without classes, the discipline itself carries the traffic.
      if (!leaves(root)) root.leaf = true;
    }
    return roots;
  }

  /** The nodes of a direction that carry its traffic: classes without classes below them. */
  leaves(way) {
    return [...this.nodes.values()].filter(node => node.row.way === way && node.leaf);
  }

  /** The nodes of a direction in the order of the tree, each with its depth and the keys of the folds around it. */
  walk(way) {
    const all = [], visit = (node, depth, folds) => {
      // A tree is as deep as its policy; anything deeper is a fault of the rows.
      if (depth > 32) return;
      all.push([node, depth, folds]);
      const inside = node.members ? [...folds, node.key] : folds;
      for (const next of node.members || folded(node.below)) visit(next, depth + 1, inside);
    };
    for (const root of this.roots?.[way] || []) visit(root, 0, []);
    return all;
  }

  /** How long the backlog of a direction takes to send, in microseconds. */
  wait(way) {
    return drainTime(this.run[way].backlog, this.run[way].rate_bps || this.rates[way]?.bps);
  }

  remember() {
    for (const way of WAYS) {
      const values = new Map([["wait", this.wait(way)], ["backlog", this.run[way].backlog]]);
      for (const node of this.leaves(way)) {
        const name = nameOfNode(node.row);
        values.set(`rate.${name}`, node.rates?.bps ?? null);
        values.set(`backlog.${name}`, node.row.backlog);
        values.set(`drops.${name}`, node.rates?.drops_ps ?? null);
      }
      for (const [{ key, rates }] of this.walk(way)) values.set(`node.${key}`, rates?.bps ?? null);
      this.past[way].push(Math.floor(this.at * 10) / 10, values);
    }
  }
}
