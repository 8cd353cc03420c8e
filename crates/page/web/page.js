// The page: takes files, lists connections, shows one. Everything it shows is text that was escaped by the DOM.
"use strict";

const PIECE = 5000;
const SHOWN = 500;
const COLUMNS = [
  ["number", "#"],
  ["lost_ns", "LOST TIME"],
  ["sentence", "VERDICT"],
  ["a", "CLIENT"],
  ["b", "SERVER"],
  ["elapsed_ns", "DURATION"],
  ["bytes", "BYTES"],
  ["rtt_ns", "RTT MIN"],
  ["retransmitted", "RETRANSMITS"],
  ["packets", "PACKETS"],
];

// The classes of the columns that are texts.
const TEXTS = { a: "text end", b: "text end", sentence: "text long" };

const find = (id) => document.getElementById(id);
const waiting = new Map();
let calls = 0;
let analyses = 0;
let worker;
let rows = [];
let order = { key: "lost_ns", down: true };

function make(name, text, attributes = {}) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function ask(call, ...values) {
  calls += 1;
  worker.postMessage({ id: calls, call, values });
  return new Promise((resolve, reject) => waiting.set(calls, { resolve, reject }));
}

function time(ns) {
  if (ns === null || ns === undefined) return "-";
  if (ns < 1e6) return `${(ns / 1e3).toFixed(0)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
  return `${(ns / 1e9).toFixed(2)} s`;
}

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) { bytes /= 1000; at += 1; }
  return `${at ? bytes.toFixed(1) : bytes} ${units[at]}`;
}

/** A cell of a table. An end, an address with its port, may be broken before each colon. */
function cell(text, kind) {
  const made = make("td", null, { class: kind });
  const parts = kind === "text end" ? text.split(/(?=:)/) : [text];
  parts.forEach((part, at) => made.append(...(at ? [make("wbr")] : []), part));
  return made;
}

/** The names of files, at most three. */
function named(files) {
  const more = files.length > 3 ? ` and ${files.length - 3} more` : "";
  return files.slice(0, 3).map((file) => file.name).join(", ") + more;
}

const SHOW = { bytes: size, elapsed_ns: time, rtt_ns: time, lost_ns: (ns) => (ns ? time(ns) : "-"), sentence: (text) => text ?? "-" };

/** A number with its noun. */
function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function say(text, bad = false) {
  find("status").textContent = text;
  find("status").className = bad ? "bad" : "";
}

async function start() {
  const packed = Uint8Array.from(atob(find("wasm").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const code = find("glue").textContent + find("worker").textContent;
  worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    if (data.progress) {
      const { done, total, packets, connections } = data.progress;
      find("bar").value = total ? done / total : 1;
      say(`${size(done)} of ${size(total)}: ${count(packets, "packet")}, ${count(connections, "connection")}`);
      return;
    }
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) reject(new Error(data.error)); else resolve(data.answer);
  };
  await ask("start", bytes);
  say("Drop captures here, or choose them.");
  document.body.dataset.ready = "yes";
}

async function analyse(files) {
  if (!files.length) return;
  analyses += 1;
  const mine = analyses;
  rows = [];
  find("bar").hidden = false;
  find("results").hidden = true;
  find("details").hidden = true;
  find("faults").replaceChildren();
  delete document.body.dataset.done;
  try {
    const found = await ask("analyse", files);
    const all = [];
    while (all.length < found.connections) all.push(...await ask("rows", all.length, PIECE));
    if (mine !== analyses) return;
    rows = all;
    for (const fault of found.faults) find("faults").append(make("li", fault));
    const left = found.left_out ? ` Connections that are not listed, because memory is full: ${found.left_out.toLocaleString("en")}.` : "";
    say(`${named(files)}: ${count(found.summary.packets, "packet")}, ${count(found.connections, "connection")} in ${size(found.bytes)}, read in ${found.seconds.toFixed(2)} s with ${size(found.memory)} of memory.${left}`);
    document.body.dataset.seconds = found.seconds;
    document.body.dataset.memory = found.memory;
    find("results").hidden = false;
    find("udp").hidden = !found.summary.seen["UDP packets"];
    find("flows").parentElement.hidden = true;
    list();
  } catch (error) {
    // Other captures were chosen meanwhile, and their analysis has taken the place of this one.
    if (mine !== analyses) return;
    say(error.message, true);
  }
  find("bar").hidden = true;
  document.body.dataset.done = "yes";
}

function list() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row) => words.every((word) => `${row.a} ${row.b} ${row.sentence ?? ""}`.toLowerCase().includes(word));
  const { key, down } = order;
  const value = (row) => row[key] ?? (typeof rows[0]?.[key] === "string" ? "" : -1);
  const chosen = rows.filter(fits).sort((one, other) => {
    if (value(one) === value(other)) return one.at - other.at;
    return value(one) < value(other) === down ? 1 : -1;
  });
  const head = make("tr");
  for (const [name, title] of COLUMNS) {
    const mark = name === key ? (down ? " ▼" : " ▲") : "";
    const column = make("th", title + mark, { class: TEXTS[name] ?? "" });
    column.onclick = () => { order = { key: name, down: name === key ? !down : true }; list(); };
    head.append(column);
  }
  find("head").replaceChildren(head);
  find("body").replaceChildren(...chosen.slice(0, SHOWN).map((row) => {
    const line = make("tr", null, { tabindex: "0" });
    for (const [name] of COLUMNS) {
      const text = SHOW[name] ? SHOW[name](row[name]) : row[name].toLocaleString("en", { useGrouping: name !== "number" });
      line.append(cell(text, TEXTS[name] ?? ""));
    }
    line.onclick = () => show(row).catch((error) => say(error.message, true));
    line.onkeydown = (event) => { if (event.key === "Enter") line.onclick(); };
    return line;
  }));
  const more = chosen.length - SHOWN;
  find("more").textContent = more > 0 ? `${more.toLocaleString("en")} more: filter or sort to see them.` : "";
}

function side(direction, verdict, life) {
  const part = make("section");
  part.append(make("h3", `${direction === "a2b" ? "Client to server" : "Server to client"}: ${verdict.sentence}`));
  const band = make("div", null, { class: "band" });
  const table = make("table");
  table.append(make("tr"));
  for (const title of ["CAUSE", "TIME", "PART", "SPANS", "LONGEST", "UNTIL PACKET"]) table.rows[0].append(make("th", title, { class: title === "CAUSE" ? "text" : "" }));
  const causes = Object.entries(verdict.causes).sort((one, other) => other[1].time_ns - one[1].time_ns);
  for (const [name, share] of causes) {
    const percent = life ? (100 * share.time_ns) / life : 0;
    const bar = make("span", null, { class: `cause ${name}`, title: `${name}: ${percent.toFixed(1)} %` });
    bar.style.width = `${percent}%`;
    band.append(bar);
    const line = make("tr");
    const key = make("td", null, { class: "text" });
    key.append(make("span", null, { class: `key ${name}` }), name.replaceAll("_", " "));
    line.append(key);
    for (const text of [time(share.time_ns), `${percent.toFixed(1)} %`, share.spans, time(share.longest_ns), share.longest_until_packet || "-"]) line.append(make("td", text));
    table.append(line);
  }
  part.append(band, table);
  part.append(make("p", `Confidence: ${verdict.confidence}. Captured near: ${verdict.vantage}; this does not show ${verdict.cannot_see}. Contradicted by: ${verdict.contradicted_by}.`));
  return part;
}

async function show(row) {
  const { values, why } = await ask("details", row.at);
  find("title").textContent = `Connection ${row.number}: ${row.a} to ${row.b}`;
  const names = why?.main === "b2a" ? ["b2a", "a2b"] : ["a2b", "b2a"];
  const sides = names.filter((name) => why?.[name]);
  find("causes").replaceChildren(...sides.map((name) => side(name, why[name], why.elapsed_ns)));
  if (!find("causes").children.length) find("causes").append(make("p", "Neither end sent data."));
  find("values").replaceChildren(...Object.entries(values).slice(2).map(([name, value]) => {
    const line = make("tr");
    line.append(make("td", name, { class: "text" }), make("td", value === null ? "-" : String(value)));
    return line;
  }));
  find("graph").hidden = true;
  find("draw").onclick = async () => {
    find("draw").disabled = true;
    try {
      // A document with an address of its own, because the graphs keep their state in its fragment.
      const text = await ask("graph", row.at);
      URL.revokeObjectURL(find("graph").src.split("#")[0]);
      const way = why ? `#tsg,${why.main}` : "";
      find("graph").src = URL.createObjectURL(new Blob([text], { type: "text/html" })) + way;
      find("graph").hidden = false;
      document.body.dataset.drawn = "yes";
    } catch (error) {
      say(error.message, true);
    }
    find("draw").disabled = false;
  };
  find("details").hidden = false;
  find("details").scrollIntoView();
}

async function explainUdp() {
  const { flows, lines } = await ask("udp");
  const head = make("tr");
  const columns = { "#": "", DURATION: "", RESULT: "text long", "NOT VISIBLE": "text long", CLIENT: "text end", SERVER: "text end", PROTOCOL: "text" };
  for (const [title, kind] of Object.entries(columns)) head.append(make("th", title, { class: kind }));
  find("rest").textContent = "";
  find("flows").replaceChildren(head, ...lines.map((flow) => {
    const line = make("tr");
    const end = (name) => `${flow[`${name}_address`]}:${flow[`${name}_port`]}`;
    const texts = [flow.flow, time(flow.elapsed_ns), flow.sentence, flow.not_visible, end("a"), end("b"), flow.protocol];
    Object.values(columns).forEach((kind, at) => line.append(cell(texts[at], kind)));
    return line;
  }));
  find("flows").parentElement.hidden = false;
  find("udp").hidden = true;
  if (flows > lines.length) find("rest").textContent = `${lines.length} of ${flows.toLocaleString("en")} UDP flows are shown.`;
}

find("udp").onclick = () => explainUdp().catch((error) => say(error.message, true));
find("choose").onchange = ({ target }) => {
  const files = [...target.files];
  // Otherwise the browser does not report that the same file is chosen again.
  target.value = "";
  analyse(files);
};
find("filter").oninput = list;
for (const name of ["dragover", "drop"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    if (name === "drop") analyse([...event.dataTransfer.files]);
  });
}
start().catch((error) => say(`This browser cannot run the page: ${error.message}`, true));
