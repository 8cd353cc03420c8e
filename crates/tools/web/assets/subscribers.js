// The view of subscribers: search while typing, a filter by state, and the worst ten. The daemon searches; the page
// receives only as many rows as it asked for.

import { h, setText, heading, nameOf, badge, table, tableRow, absent, speak, sentence } from "./dom.js";
import { count, bytes, age, micros, clock, NONE } from "./format.js";
import { getJson, path } from "./net.js";
import { List } from "./list.js";

/** A search waits for the next key this long. */
const TYPING_MS = 180;
const LIMITS = [200, 1000];
const STATES = ["up", "networks", "asking", "link", "ending"];
const KINDS = { up: "good", ending: "bad" };

/** The address of a subscriber's page. */
const linkTo = row => `#/subscriber/${encodeURIComponent(row.name || row.address || "")}`;
/** A word for a subscriber's state. */
export const stateOf = state => badge(state, KINDS[state] || "wait");

const COLUMNS = [["Name", ""], ["State", ""], ["Address", "wide mono"], ["IPv6", "wider mono"], ["Peer", "wider mono"], ["Up for", "n wide"], ["In", "n wide"], ["Out", "n"],
  ["Dropped", "n wide"]];
const cells = row => [h("a", { href: linkTo(row) }, nameOf(row.name)), stateOf(row.state), row.address || NONE, row.delegated || row.prefix || row.address_v6 || NONE, row.peer || NONE, age(row.up_s),
  bytes(row.octets_in), bytes(row.octets_out), count(row.dropped)];

const WORST = [
  ["dropped", "Most dropped packets", ["Dropped", "n"], row => count(row.dropped)],
  ["round-trip", "Longest echo round trip", ["Round trip", "n"], row => micros(row.echo_rtt_us)],
];

/** The ten worst by one measure. */
function worst([by, title, column, value]) {
  const columns = [["Name", ""], ["State", ""], ["Address", "wide mono"], column], place = h("div", { class: "ten" }, absent("…"));
  return {
    element: h("section", { class: "card" }, h("h2", null, title), place),
    async load(signal) {
      try {
        const { rows } = await getJson(path("/api/worst", { by }), signal);
        const some = rows.filter(row => by === "dropped" ? row.dropped > 0 : row.echo_rtt_us !== null && row.echo_rtt_us !== undefined);
        place.replaceChildren(some.length ? table(title, columns, some.map(row => tableRow(columns,
          [h("a", { href: linkTo(row) }, nameOf(row.name)), stateOf(row.state), row.address || NONE, value(row)])))
          : absent(by === "dropped" ? "No subscriber has a dropped packet." : "No subscriber has answered an echo request yet."));
      } catch (fault) {
        if (fault.name !== "AbortError") place.replaceChildren(absent(sentence(fault)));
      }
    },
  };
}

/** Chips to choose a state, each with the number of subscribers in it. */
function filter(chosen, change) {
  const numbers = new Map();
  const chip = (value, text) => {
    const number = h("b", { class: "n" }, NONE);
    numbers.set(value, number);
    return h("label", null, h("input", { type: "radio", name: "state", value, checked: value === chosen, onchange: () => change(value) }),
      h("span", null, text, " ", number));
  };
  return {
    element: h("fieldset", { class: "choice chips" }, h("legend", { class: "unseen" }, "State"), chip("", "all"), STATES.map(state => chip(state, state))),
    show(states) {
      const all = Object.values(states).reduce((a, b) => a + b, 0);
      for (const [value, number] of numbers) setText(number, count(value ? states[value] || 0 : all));
    },
  };
}

/** Opens the view. */
export function open(place, app) {
  const ended = new AbortController(), { found } = app;
  let limit = LIMITS[0], timer = 0, asked = null;
  const list = new List("Subscribers found", COLUMNS, cells), said = h("p", { class: "found", role: "status" }, "\u00a0");
  const more = h("button", { type: "button", hidden: true, onclick: () => {
    limit = LIMITS[1];
    search();
  } }, `Show ${count(LIMITS[1])}`);
  const input = h("input", { type: "search", id: "search", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    placeholder: "part of a name", "aria-describedby": "found", value: found.text });
  said.id = "found";
  async function search() {
    clearTimeout(timer);
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    try {
      const answer = await getJson(path("/api/subscribers", { name: found.text, state: found.state, limit }), signal);
      list.set(answer.rows);
      const shown = answer.rows.length;
      setText(said, answer.more ? `The first ${count(shown)} at ${clock(Date.now() / 1000)}. More match: type more of the name.`
        : shown ? `${count(shown)} found at ${clock(Date.now() / 1000)}` : nothing());
      more.hidden = !answer.more || limit === LIMITS[1];
    } catch (fault) {
      if (fault.name === "AbortError") return;
      setText(said, sentence(fault));
    }
  }
  const nothing = () => found.text || found.state ? "No subscriber matches." : "No subscriber is connected.";
  const later = () => {
    found.text = input.value;
    limit = LIMITS[0];
    clearTimeout(timer);
    timer = setTimeout(search, TYPING_MS);
  };
  input.addEventListener("input", later);
  input.addEventListener("keydown", event => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      list.focus(0);
    } else if (event.key === "Enter") {
      event.preventDefault();
      search();
    }
  });
  const chips = filter(found.state, state => {
    found.state = state;
    limit = LIMITS[0];
    search();
  });
  const tens = WORST.map(worst), load = () => tens.forEach(ten => ten.load(ended.signal));
  const refresh = h("button", { type: "button", onclick: () => {
    search();
    load();
    speak("Loading again");
  } }, "Refresh");
  place.append(heading("Subscribers"), h("section", { class: "card search" },
    h("div", { class: "bar" }, h("label", { for: "search", class: "field" }, h("span", null, "Search"), input), chips.element, refresh),
    h("div", { class: "bar under" }, said, more), list.element), h("div", { class: "pair" }, tens.map(ten => ten.element)));
  const row = () => app.past.row && chips.show(app.past.row.subscribers.by_state);
  row();
  search();
  load();
  return {
    row,
    back: () => {
      search();
      load();
    },
    focus: () => {
      input.focus();
      input.select();
      return true;
    },
    close: () => {
      clearTimeout(timer);
      asked?.abort();
      ended.abort();
    },
  };
}
