// The hosts that use the line now. The shaper counts them only while this list is open.

import { h, setText, setAttribute, visible } from "./dom.js";
import { bits, count } from "./format.js";
import { Stream } from "./net.js";

/** Rows that the list has room for from the start, so that nothing moves when they come. */
const ROOM = 8;

function line() {
  const name = h("th", { scope: "row", class: "mono" }), down = h("td", { class: "n" }), up = h("td", { class: "n" }), fill = h("span", { class: "fill" });
  const meter = h("div", { class: "meter", "aria-hidden": "true" }, fill);
  return {
    element: h("tr", null, name, down, up, h("td", { class: "part wide" }, meter)),
    show(host, most) {
      setText(name, visible(host.address));
      setText(down, bits(host.down_bps));
      setText(up, bits(host.up_bps));
      fill.style.width = `${most > 0 ? (host.up_bps + host.down_bps) / most * 100 : 0}%`;
    },
  };
}

/** Opens the list and its stream. */
export function hosts() {
  const title = "Who uses the line", body = h("tbody"), lines = [], note = h("p", { class: "note" }, "The first rates come after a second.");
  const head = [["Host", ""], ["Down", "n"], ["Up", "n"], ["Share", "wide"]].map(([text, kind]) => h("th", { scope: "col", class: kind }, text));
  const element = h("section", { class: "card hosts" }, h("h2", null, title), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    h("table", null, h("caption", { class: "unseen" }, title), h("thead", null, h("tr", null, head)), body)), note);
  element.style.setProperty("--rows", ROOM);
  const take = rows => {
    const sums = rows.find(row => row.schema === "qos.hosts/1"), all = rows.filter(row => row.schema === "qos.host/1");
    if (!sums || sums.interval_s === undefined) return;
    while (lines.length < all.length) lines.push(line());
    const most = sums.up_bps + sums.down_bps;
    all.forEach((host, at) => lines[at].show(host, most));
    if (body.children.length !== all.length) body.replaceChildren(...lines.slice(0, all.length).map(one => one.element));
    const more = sums.hosts - all.length;
    setText(note, !all.length ? "No host uses the line." : more > 0 ? `${count(more)} more hosts use ${bits(sums.others_bps)}.` : `${count(all.length)} ${all.length === 1 ? "host uses" : "hosts use"} the line.`);
    setAttribute(element, "data-hosts", sums.hosts);
  };
  const stream = new Stream("/api/stream/hosts", "the shaper", { rows: take });
  return { element, close: () => stream.close() };
}
