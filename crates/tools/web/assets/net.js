// Requests and streams. A stream that breaks is opened again, after a pause that doubles up to 15 s.

const PAUSE_MIN_MS = 500, PAUSE_MAX_MS = 15000;
/** A hidden page closes its streams after this time: a browser opens few connections to one host. */
const HIDDEN_MS = 10000;

/** An answer other than 2xx, in the words of the server. */
class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function checked(answer) {
  if (answer.ok) return answer;
  let error = null;
  try {
    error = (await answer.json()).error;
  } catch {
    // The body is no JSON: a proxy answered, not headend web.
  }
  throw new Refused(answer.status, error?.code || "http", error?.message || `the server answered ${answer.status}`);
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refused(0, "unreachable", "headend web does not answer");
  }
  return checked(answer);
}

/** The path with those of the parameters that have a value. */
export function path(base, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${base}?${text}` : base;
}

/** A JSON document. */
export async function getJson(where, signal) {
  return (await ask(where, { signal })).json();
}

/** A file to download. */
export async function getFile(where, signal) {
  return (await ask(where, { signal })).blob();
}

/** Sends a change. */
export async function post(where, body, token) {
  const headers = { "Content-Type": "application/json", "X-Headend-CSRF": token || "" };
  return (await ask(where, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** What is known of the connections of this page, for the banner. */
export const status = new EventTarget();
const streams = new Set();

/** The states of the open streams: `who`, `state` ("wait", "up", "gone", "lost"), `reason`, `again_ms`. */
export const states = () => [...streams].map(stream => stream.known);

/** Tries every broken stream at once. */
export function retry() {
  for (const stream of streams) if (stream.known.state === "lost") stream.open();
}

/** A stream of events. `on` has a handler for each event name; `who` names what sends the rows. */
export class Stream {
  constructor(where, who, on) {
    this.where = where;
    this.on = on;
    this.known = { who, state: "wait", reason: null, again_ms: 0, since: Date.now() };
    this.pause = PAUSE_MIN_MS;
    streams.add(this);
    this.open();
  }

  open() {
    this.stop();
    const source = this.source = new EventSource(this.where);
    for (const name of ["row", "rows", "state"]) {
      source.addEventListener(name, event => {
        if (this.source !== source) return;
        this.pause = PAUSE_MIN_MS;
        this.take(name, event.data);
      });
    }
    source.onerror = () => this.source === source && this.broke();
  }

  take(name, data) {
    let value;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (name === "state") {
      this.tell(value.daemon === "up" ? "up" : "gone", value.reason);
      this.on.state?.(value);
    } else {
      if (this.known.state !== "up") this.tell("up", null);
      this.on[name]?.(value);
    }
  }

  // The browser would try again by itself, but not after an error status, and without a growing pause.
  broke() {
    this.stop();
    const again = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, PAUSE_MAX_MS);
    this.tell("lost", this.known.state === "lost" ? this.known.reason : null, Date.now() + again);
    this.timer = setTimeout(() => this.open(), again);
    this.ask();
  }

  // A stream that breaks does not say why: another request does.
  async ask() {
    let reason = "headend web ends the stream of rows, for example because too many viewers are connected";
    try {
      await getJson("/api/info");
    } catch (fault) {
      if (fault.status === 401) location.assign("/login");
      reason = fault.message;
    }
    if (this.known.state === "lost") this.tell("lost", reason, this.known.again_ms);
  }

  tell(state, reason, again_ms = 0) {
    const changed = state !== this.known.state;
    Object.assign(this.known, { state, reason: reason || null, again_ms });
    if (changed) this.known.since = Date.now();
    status.dispatchEvent(new Event("change"));
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  close() {
    this.stop();
    streams.delete(this);
    status.dispatchEvent(new Event("change"));
  }
}

let hiding = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => streams.forEach(stream => stream.stop()), HIDDEN_MS);
  else for (const stream of streams) if (!stream.source) stream.open();
});
