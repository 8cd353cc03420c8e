// The page of `headend qos graph`: places the boxes for the window's width, folds groups of like boxes, and highlights
// what a box is connected to. `T` has the tree: `below` (children), `roots`, `edges` (from, to,
// 1 for an arrow), `folds`, `deep` (whether lines carry rates). The server's picture has every box; without this script
// it is complete. layout.rs places the boxes in the same way.

const q = document.querySelector("svg.q"), groups = T.below.map((_, id) => document.getElementById("n" + id)), box = id => groups[id];
const frames = groups.map(group => group.querySelector("rect")), labels = T.below.map((_, id) => document.getElementById("r" + id));
const lines = [...q.children].filter(one => one.tagName === "path");
const GAP = 16, PAD = 9, TOP = T.top, NARROW = 700;
const folds = new Set(T.folds), open = new Set();
const home = T.below.map((_, id) => {
  return ["x", "y", "width", "height"].map(name => Number(frames[id].getAttribute(name)));
});
const kids = id => folds.has(id) && !open.has(id) ? [] : T.below[id];
const wide = id => home[id][2], high = id => home[id][3];

// Parents before their children, with depths.
function order() {
  const all = [], stack = T.roots.map(root => [root, 0]).reverse();
  while (stack.length) {
    const [id, depth] = stack.pop();
    all.push([id, depth]);
    for (const child of [...kids(id)].reverse()) stack.push([child, depth + 1]);
  }
  return all;
}

// Children without children of their own form a grid: how many stand in a row.
function across(id) {
  const below = kids(id);
  if (below.length < T.grid || below.some(child => kids(child).length)) return 0;
  let n = 1;
  while (n * n * 3 < below.length) n += 1;
  return n;
}

const rows = (list, n) => Array.from({ length: Math.ceil(list.length / n) }, (_, at) => list.slice(at * n, at * n + n));
const tallest = list => Math.max(0, ...list.map(high));

/** Places in columns, parents to the left of their children. */
function columns() {
  const all = order(), most = [], left = [24], heights = [], bands = [], at = [];
  for (const [id, depth] of all) most[depth] = Math.max(most[depth] || 0, wide(id));
  for (const width of most) left.push(left.at(-1) + width + T.between[0]);
  for (const [id] of [...all].reverse()) {
    const below = kids(id), n = across(id);
    const sum = n ? rows(below, n).reduce((sum, row) => sum + tallest(row) + GAP, 0) : below.reduce((sum, child) => sum + heights[child] + GAP, 0);
    heights[id] = Math.max(high(id), Math.max(sum - GAP, 0));
  }
  let down = TOP;
  for (const root of T.roots) {
    bands[root] = down;
    down += heights[root] + 2 * GAP;
  }
  for (const [id, depth] of all) {
    const below = kids(id), n = across(id);
    if (n) {
      const step = Math.max(...below.map(wide)) + T.between[1];
      let y = bands[id];
      for (const row of rows(below, n)) {
        row.forEach((child, i) => at[child] = { x: left[depth + 1] + i * step, y, inner: i > 0 });
        y += tallest(row) + GAP;
      }
    } else {
      const sum = below.reduce((sum, child) => sum + heights[child] + GAP, 0) - (below.length ? GAP : 0);
      let y = bands[id] + Math.floor((heights[id] - Math.min(sum, heights[id])) / 2);
      for (const child of below) {
        bands[child] = y;
        y += heights[child] + GAP;
      }
    }
    at[id] ||= { x: left[depth], y: bands[id] + Math.floor((heights[id] - high(id)) / 2), inner: false };
    Object.assign(at[id], { w: wide(id), h: high(id) });
  }
  return { at, width: Math.max(560, ...all.map(([id]) => at[id].x + at[id].w + 40)), height: Math.max(...all.map(([id]) => at[id].y + at[id].h)) + 24 };
}

/** Places one below the other, children further in. */
function outline() {
  const all = order(), deepest = Math.max(...all.map(([, depth]) => depth)), view = document.documentElement.clientWidth, at = [];
  const need = Math.max(...all.map(([id, depth]) => wide(id) + depth * 12)) + 34, width = Math.max(view, need);
  const step = Math.max(4, Math.min(14, 70 / (deepest || 1)));
  let y = TOP + 20;
  for (const [id, depth] of all) {
    const x = 8 + depth * step;
    at[id] = { x, y, w: width - x - 26, h: high(id), inner: false };
    y += high(id) + 10;
  }
  return { at, width, height: y + 14 };
}

// The line from the parent's right edge to the child's left edge; in a grid, through the gap above the child's row.
function held(from, to, flat) {
  const x0 = from.x + from.w, y0 = from.y + from.h / 2, y1 = to.y + to.h / 2;
  if (to.inner) return `M${x0} ${y0}H${x0 + 32}V${to.y - 7}H${to.x - 12}V${y1}H${to.x}`;
  const end = Math.max(to.x - flat, x0), middle = Math.max(end - 32, x0);
  return `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${end} ${y1}H${to.x}`;
}

function sent(from, to) {
  const y0 = from.y + from.h / 2, y1 = to.y + to.h / 2;
  if (to.x > from.x + from.w) return `M${from.x + from.w} ${y0}C${from.x + from.w + 40} ${y0} ${to.x - 40} ${y1} ${to.x} ${y1}`;
  const bulge = Math.max(0, Math.min(from.x, to.x) - 14 - Math.min(Math.abs(y0 - y1), 400) / 16);
  return `M${from.x} ${y0}C${bulge} ${y0} ${bulge} ${y1} ${to.x} ${y1}`;
}

const elbow = (from, to) => `M${from.x + 3} ${from.y + from.h}V${to.y + 14}H${to.x}`;
const around = (from, to) => {
  const x = Math.max(from.x + from.w, to.x + to.w), y0 = from.y + from.h / 2, y1 = to.y + to.h / 2;
  return `M${from.x + from.w} ${y0}C${x + 22} ${y0} ${x + 22} ${y1} ${to.x + to.w} ${y1}`;
};

// A box in a closed fold is represented by the fold.
const above = [];
T.below.forEach((below, id) => below.forEach(child => above[child] = id));
function standIn(at) {
  return id => {
    while (id !== undefined && !at[id]) id = above[id];
    return id;
  };
}

// In an outline the rates are in the boxes.
document.querySelectorAll(".r").forEach(one => q.append(one));

let placed = null;
function place() {
  const narrow = document.documentElement.clientWidth < NARROW, { at, width, height } = narrow ? outline() : columns(), shown = standIn(at);
  placed = at;
  q.classList.toggle("narrow", narrow);
  // A picture that is a little too wide shrinks; a wider one scrolls.
  const view = document.documentElement.clientWidth, shrunk = width > view && width < view * 1.25 ? view / width : 1;
  q.setAttribute("width", Math.floor(width * shrunk));
  q.setAttribute("height", Math.ceil(height * shrunk));
  document.getElementById("state")?.setAttribute("y", narrow ? 92 : 76);
  q.setAttribute("viewBox", `0 0 ${width} ${height}`);
  document.querySelectorAll(".l").forEach((one, i) => one.setAttribute("transform", narrow && i > 2 ? "translate(-300,18)" : ""));
  T.below.forEach((_, id) => {
    const group = box(id), to = at[id], [x, y, w] = home[id];
    group.classList.toggle("away", !to);
    if (!to) return;
    group.setAttribute("transform", `translate(${to.x - x},${to.y - y})`);
    frames[id].setAttribute("width", to.w);
    group.querySelector(".d")?.setAttribute("x", x + to.w - PAD);
  });
  const drawn = new Set();
  let arrows = 0;
  T.edges.forEach(([from, to, arrow], i) => {
    const line = lines[i], label = labels[to], a = shown(from), b = shown(to);
    // Arrows of many boxes in one fold are one arrow; a line within a fold is none.
    const key = `${a} ${b}`, away = arrow ? a === b || drawn.has(key) : !at[from] || !at[to];
    line.classList.toggle("away", away);
    if (!arrow) label?.classList.toggle("away", away);
    if (away) return;
    if (arrow) {
      drawn.add(key);
      arrows += 1;
      line.setAttribute("d", (narrow ? around : sent)(at[a], at[b]));
      return;
    }
    line.setAttribute("d", narrow ? elbow(at[from], at[to]) : held(at[from], at[to], T.deep ? T.flat : 0));
    if (!label) return;
    label.setAttribute("x", narrow ? at[to].x + at[to].w - PAD : at[to].x - 8);
    label.setAttribute("y", narrow ? at[to].y + T.first[to] : at[to].y + Math.floor(at[to].h / 2) - 8);
  });
  // Many arrows are faint, so that the boxes below them can be read.
  q.classList.toggle("many", arrows > 24);
}

function toggle(id) {
  const top = box(id).getBoundingClientRect().top;
  if (!open.delete(id)) open.add(id);
  box(id).setAttribute("aria-expanded", String(open.has(id)));
  box(id).querySelector(".o").textContent = open.has(id) ? "close" : "open";
  place();
  // The fold stays under the pointer.
  scrollBy(0, box(id).getBoundingClientRect().top - top);
}

for (const id of T.folds) {
  const group = box(id);
  group.setAttribute("role", "button");
  group.setAttribute("tabindex", "0");
  group.setAttribute("aria-expanded", "false");
  group.setAttribute("aria-label", [...group.querySelectorAll("text")].map(one => one.textContent).join(", "));
  group.addEventListener("click", () => toggle(id));
  group.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    toggle(id);
  });
}

q.addEventListener("mouseover", event => {
  const group = event.target.closest("g[id]");
  q.querySelectorAll(".on").forEach(one => one.classList.remove("on"));
  q.classList.toggle("some", !!group);
  if (!group) return;
  const id = Number(group.id.slice(1)), shown = standIn(placed);
  group.classList.add("on");
  T.edges.forEach(([from, to], i) => {
    const [a, b] = [shown(from), shown(to)];
    if (a !== id && b !== id) return;
    lines[i].classList.add("on");
    for (const one of [a, b]) box(one).classList.add("on");
    labels[to]?.classList.add("on");
  });
});

let width = 0;
addEventListener("resize", () => {
  if (width !== document.documentElement.clientWidth) place();
  width = document.documentElement.clientWidth;
});
place();
