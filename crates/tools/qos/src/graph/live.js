// Fetches the rates while the page is visible, and draws the last minutes of each class. `every` is the time
// between two readings in milliseconds, `shape` changes with the boxes.

const state = document.getElementById("state"), SPAN = Math.max(180e3, every * 60), ROOM = Math.min(600, Math.ceil(SPAN / every) + 2);
const key = `past ${location.port}`, curves = new Map();
let looks = 0, last = new Date(), timer = 0;

const UNITS = ["", "k", "M", "G", "T"];
function bits(bps) {
  let unit = 0;
  for (; bps >= 999.5 && unit < 4; unit += 1) bps /= 1000;
  return `${bps.toPrecision(3)} ${UNITS[unit]}bit/s`;
}

document.querySelectorAll(".q .p").forEach(one => one.textContent = `${Math.round(SPAN / 60e3)} min ago`);

/** A ring of the last readings of one box: times in milliseconds, rates in bits per second. */
class Past {
  constructor() {
    this.times = new Float64Array(ROOM);
    this.values = new Float64Array(ROOM);
    this.count = 0;
  }

  push(time, value) {
    const at = this.count % ROOM;
    this.times[at] = time;
    this.values[at] = value;
    this.count += 1;
  }

  /** The readings from `from` on, the oldest first. */
  list(from) {
    const all = [];
    for (let i = Math.max(0, this.count - ROOM); i < this.count; i += 1) {
      const at = i % ROOM;
      if (this.times[at] >= from) all.push([this.times[at], this.values[at]]);
    }
    return all;
  }
}

function draw(id, now) {
  const curve = document.getElementById("k" + id), past = curves.get(id);
  if (!curve || !past || box(id).classList.contains("away")) return;
  const { x, y, w, h } = curve.dataset, list = past.list(now - SPAN), most = Math.max(0, ...list.map(one => one[1]));
  let d = "", before = -Infinity;
  for (const [time, value] of list) {
    const px = (Number(x) + w * (1 - (now - time) / SPAN)).toFixed(1), py = (Number(y) + h * (1 - (most ? value / most : 0))).toFixed(1);
    // A pause breaks the curve; a reading alone is a dot.
    d += time - before > every * 2.5 + 500 ? `M${px} ${py}h.1` : `L${px} ${py}`;
    before = time;
  }
  curve.setAttribute("d", d);
  document.getElementById("m" + id).textContent = most ? `peak ${bits(most)}` : "";
}

const redraw = () => curves.forEach((_, id) => draw(id, Date.now()));
q.addEventListener("click", redraw);
q.addEventListener("keyup", redraw);

/** Keeps the curves while the page is loaded again, by the boxes' names. */
function keep() {
  const all = [...curves].map(([id, past]) => [T.names[id], past.list(Date.now() - SPAN)]);
  try {
    sessionStorage.setItem(key, JSON.stringify(all));
  } catch { /* Too many to keep. */ }
}

try {
  const ids = new Map(T.names.map((name, id) => [name, id]));
  for (const [name, list] of JSON.parse(sessionStorage.getItem(key) || "[]")) {
    if (!ids.has(name)) continue;
    const past = new Past();
    list.forEach(([time, value]) => past.push(time, value));
    curves.set(ids.get(name), past);
  }
  sessionStorage.removeItem(key);
} catch { /* Nothing was kept. */ }

async function look() {
  clearTimeout(timer);
  // A hidden page asks for nothing.
  if (document.hidden) return;
  const stop = new AbortController(), late = setTimeout(() => stop.abort(), 5000);
  try {
    const answer = await fetch('rates.json', { cache: "no-store", signal: stop.signal }), told = await answer.json();
    if (told.error) throw Error(told.error);
    if (told.shape !== shape) {
      keep();
      location.reload();
      return;
    }
    const now = Date.now();
    for (const node of told.nodes) {
      const rate = document.getElementById("r" + node.id), line = document.getElementById("e" + node.id);
      if (rate) rate.textContent = node.label;
      if (line) line.style.strokeWidth = `${node.stroke}px`;
      document.querySelectorAll(`#n${node.id} .n`).forEach((text, i) => text.textContent = node.lines[i] ?? "");
      if (!node.rates || !document.getElementById("k" + node.id)) continue;
      if (!curves.has(node.id)) curves.set(node.id, new Past());
      curves.get(node.id).push(now, node.rates.bps);
      draw(node.id, now);
    }
    last = new Date();
    state.textContent = told.state;
    q.classList.remove("old");
    q.dataset.looks = looks += 1;
  } catch (error) {
    q.classList.add("old");
    state.textContent = `as of ${last.toLocaleTimeString()}: ${error.message || "no answer"}`;
  }
  clearTimeout(late);
  timer = setTimeout(look, every);
}
document.addEventListener("visibilitychange", look);
look();
