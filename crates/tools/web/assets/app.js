// The page of `headend web`. Start reading here: this opens a view for the fragment of the address, keeps the stream of
// `now/1` rows, and says in the banner when the daemon or headend web is gone. Each view is a module of its own with
// `open(place, app, argument)`, which answers `{ row, close, ... }`.

import { h, setText, setAttribute, absent, visible, sentence } from "./dom.js";
import { age } from "./format.js";
import { Stream, getJson, path, retry, states, status } from "./net.js";
import { Past } from "./series.js";
import { recolour } from "./chart.js";
import * as now from "./now.js";
import * as subscribers from "./subscribers.js";
import * as subscriber from "./subscriber.js";
import * as queues from "./queues.js";
import * as routes from "./routes.js";
import * as home from "./home.js";

const VIEWS = { now, subscribers, subscriber, queues, routes, home };
const TITLES = { now: "Now", subscribers: "Subscribers", subscriber: "Subscriber", queues: "Queues", routes: "Routes", home: "Home" };
/** The first answer of the server is awaited by asking this often. */
const RETRY_MS = 2000;
const HISTORY_STEPS = [["second", 1], ["minute", 60]];

const find = id => document.getElementById(id);
const app = { info: null, past: new Past(), range: "second", found: { text: "", state: "" } };
let view = null, opened = false, wanted = "";

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/"), name = VIEWS[parts[0]] ? parts[0] : "now";
  let argument = parts.slice(1).join("/");
  try {
    argument = decodeURIComponent(argument);
  } catch {
    // A broken escape: take the text as it is.
  }
  return { name, argument };
}

function show() {
  const { name, argument } = route(), main = find("main"), key = `${name}/${argument}`;
  if (!app.info || key === wanted) return;
  const first = !opened;
  opened = true;
  wanted = key;
  view?.close();
  main.replaceChildren();
  document.title = `${visible(argument) || TITLES[name]} · headend`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === (name === "subscriber" ? "subscribers" : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view = VIEWS[name].open(main, app, argument);
  scrollTo(0, 0);
  // A screen reader continues at the heading of the new view. The first view keeps the focus at the top.
  banner();
  if (!first && !view.focus?.()) main.querySelector("h1")?.focus({ preventScroll: true });
}

// What the server is allowed to do. A daemon that was gone may have come back with a BGP speaker.
async function loadInfo() {
  const before = app.info;
  try {
    app.info = await getJson("/api/info");
  } catch (fault) {
    if (fault.status === 401) location.assign("/login");
    if (!before) find("main").replaceChildren(absent(`${sentence(fault)} Trying again.`));
    setTimeout(loadInfo, RETRY_MS);
    return;
  }
  setText(find("version"), app.info.version);
  if (before && ["allow_changes", "has_qos", "has_bgp", "has_radius"].some(name => before[name] !== app.info[name])) wanted = "";
  show();
}

async function loadHistory() {
  for (const [range, step_s] of HISTORY_STEPS) {
    try {
      app.past[range].fill((await getJson(path("/api/history", { step_s }))).rows);
    } catch {
      // The charts then begin at this moment. The next change of the stream loads the history again.
    }
  }
  view?.row?.();
}

function start() {
  let was = null;
  app.stream = new Stream("/api/stream/now", "the daemon", {
    row: row => {
      app.past.push(row);
      view?.row?.(row);
    },
    state: ({ daemon }) => {
      // After a break, the history has what this page missed.
      if (daemon === "up" && was !== "up") loadHistory();
      if (daemon === "up" && was === "gone") {
        loadInfo();
        view?.back?.();
      }
      was = daemon;
    },
  });
  let broken = false;
  status.addEventListener("change", () => {
    const lost = app.stream.known.state === "lost";
    if (lost) was = null;
    if (broken && app.stream.known.state === "up") {
      loadInfo();
      view?.back?.();
    }
    broken = lost || broken && app.stream.known.state !== "up";
    banner();
  });
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);
const LIVE = { up: "live", gone: "no data", lost: "no connection", wait: "connecting" };

// The worst state of the streams that the view needs, in words. The banner floats, so nothing moves when it appears.
function banner() {
  // A home gateway needs no daemon: its views are live as long as the shaper is.
  const order = ["lost", "gone", "wait", "up"], known = states(), own = known.filter(one => one.who === view?.who), all = own.length ? own : known;
  const worst = order.map(state => all.find(known => known.state === state)).find(Boolean);
  if (!worst) return;
  setAttribute(find("live"), "data-state", worst.state);
  setAttribute(document.body, "data-live", worst.state);
  setText(find("live").querySelector("b"), LIVE[worst.state]);
  const bar = find("banner"), since = age((Date.now() - worst.since) / 1000).replace(/\.\d/, "");
  const refused = worst.state === "up" && app.stream.known.reason;
  if ((worst.state === "up" || worst.state === "wait") && !refused) {
    if (bar.dataset.state && worst.state === "up") back(bar);
    return;
  }
  clearTimeout(bar.timer);
  const text = refused ? `The daemon refuses to show its state: ${refused}.` : worst.state === "gone"
    ? `${capital(worst.who)} is gone${worst.reason ? `: ${worst.reason}` : ""}. This page goes on when it is back.`
    : `No connection: ${worst.reason || "headend web does not answer"}.`;
  if (bar.dataset.state !== worst.state || bar.dataset.who !== worst.who) {
    bar.dataset.state = worst.state;
    bar.dataset.who = worst.who;
    bar.replaceChildren(h("span", null, text), h("span", { class: "n", "aria-hidden": "true" }),
      worst.state === "lost" ? h("button", { type: "button", onclick: retry }, "Try now") : "");
  } else setText(bar.firstChild, text);
  const wait = Math.max(0, Math.ceil((worst.again_ms - Date.now()) / 1000));
  setText(bar.children[1], worst.state === "lost" ? `for ${since}; next try in ${wait} s` : `for ${since}`);
}

function back(bar) {
  const { state, who } = bar.dataset, what = state === "gone" ? capital(who) : "The connection";
  delete bar.dataset.state;
  bar.dataset.back = "";
  bar.replaceChildren(h("span", null, `${what} is back.`));
  bar.timer = setTimeout(() => {
    delete bar.dataset.back;
    bar.replaceChildren();
  }, 4000);
}

function theme() {
  const choice = find("theme"), root = document.documentElement;
  choice.value = root.dataset.theme || "auto";
  choice.addEventListener("change", () => {
    if (choice.value === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice.value;
    try {
      localStorage.setItem("headend.theme", choice.value);
    } catch {
      // Without storage, the choice holds until the page is closed.
    }
    recolour();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
}

document.addEventListener("keydown", event => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (route().name === "subscribers") view?.focus?.();
  else location.hash = "#/subscribers";
});
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  find("main").focus();
});
addEventListener("hashchange", show);
setInterval(banner, 1000);
try {
  // All scripts are here: theme.js counts from 0 again.
  sessionStorage.removeItem("headend.reloads");
} catch {
  // Without storage nothing was counted.
}
theme();
start();
loadInfo();
