// A row as sections of fields, whatever its fields are: a field that a later release adds is shown without a change here.

import { h, setText, visible } from "./dom.js";
import { byName, label, NONE } from "./format.js";

const isPart = value => value !== null && typeof value === "object" && !Array.isArray(value);

function textOf(name, value) {
  if (Array.isArray(value)) {
    if (!value.length) return "none";
    return value.map(item => isPart(item) ? pairs(item) : visible(byName(name, item))).join(", ");
  }
  if (isPart(value)) return pairs(value);
  if (value === "") return "empty";
  return typeof value === "string" ? visible(value) : byName(name, value);
}
const pairs = item => Object.entries(item).map(([name, value]) => `${label(name)} ${textOf(name, value)}`).join(", ");

/**
 * Sections of a row: `{ title, groups: [{ title, fields: [{ path, name, value }] }] }`. Plain fields are in the first
 * section, each object makes one, and objects within it make groups.
 */
function sections(row, first, leave) {
  const top = { title: first, groups: [{ title: null, fields: [] }] }, parts = [];
  const add = (groups, object, path, head) => {
    const own = { title: head.join(", ") || null, fields: [] };
    groups.push(own);
    for (const [name, value] of Object.entries(object)) {
      const here = `${path}.${name}`;
      if (isPart(value)) add(groups, value, here, [...head, label(name)]);
      else own.fields.push({ path: here, name, value });
    }
  };
  for (const [name, value] of Object.entries(row)) {
    if (leave.includes(name)) continue;
    if (isPart(value)) {
      const part = { title: label(name), groups: [] };
      add(part.groups, value, name, []);
      parts.push(part);
    } else top.groups[0].fields.push({ path: name, name, value });
  }
  for (const part of [top, ...parts]) part.groups = part.groups.filter(group => group.fields.length);
  return [top, ...parts].filter(part => part.groups.length);
}

/** Shows a row generically. `show(row)` renews the texts, and builds the sections again if fields come or go. */
export class Detail {
  constructor(first, leave = ["schema"]) {
    this.first = first;
    this.leave = leave;
    this.element = h("div", { class: "detail" });
    this.known = "";
  }

  show(row) {
    const parts = sections(row, this.first, this.leave), fields = parts.flatMap(part => part.groups.flatMap(group => group.fields));
    const known = fields.map(field => field.path).join(",");
    if (known !== this.known) this.build(parts);
    this.known = known;
    for (const { path, name, value } of fields) {
      const text = textOf(name, value), place = this.places.get(path);
      setText(place, text);
      place.classList.toggle("none", text === NONE || text === "none" || text === "empty");
    }
  }

  build(parts) {
    this.places = new Map();
    const field = ({ path, name }) => {
      const place = h("dd", { "data-field": path });
      this.places.set(path, place);
      return h("div", null, h("dt", null, visible(label(name))), place);
    };
    this.element.replaceChildren(...parts.map(({ title, groups }) => h("section", { class: "card" }, h("h2", null, visible(title)),
      groups.map(group => [group.title && h("h3", null, visible(group.title)), h("dl", { class: "fields" }, group.fields.map(field))]))));
  }
}
