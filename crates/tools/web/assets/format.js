// Numbers with their units. A dash stands for an absent value.

export const NONE = "–";
const THIN = "\u202f";
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const STEPS = ["", "k", "M", "G", "T", "P"];

const absent = value => value === null || value === undefined || Number.isNaN(value);

/** Three significant digits: 0.042, 4.21, 42.1, 421. */
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return whole.format(value);
  return value.toFixed(size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

function scaled(value, unit, base, names) {
  if (absent(value)) return NONE;
  let step = 0, rest = value;
  while (Math.abs(rest) >= base * 0.99995 && step < names.length - 1) {
    rest /= base;
    step += 1;
  }
  const number = step === 0 && Number.isInteger(rest) ? whole.format(rest) : digits(rest);
  const name = names[step] + unit;
  return name ? `${number}${THIN}${name}` : number;
}

/** A count, with separators: 100,000. */
export const count = value => absent(value) ? NONE : whole.format(value);
/** A count on an axis: 1.2 M. */
export const short = value => scaled(value, "", 1000, STEPS);
/** A count per second. */
export const perSecond = value => absent(value) ? NONE : `${value >= 10000 ? scaled(value, "", 1000, STEPS) : digits(value)}/s`;
/** Bits per second from bits. */
export const bits = value => scaled(value, "bit/s", 1000, STEPS);
/** Bytes in powers of 1,024. */
export const bytes = value => scaled(value, "B", 1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"]);
/** A share of 1, in percent. */
export const share = value => absent(value) ? NONE : `${digits(value * 100)}${THIN}%`;

/** Microseconds as µs, ms or s. */
export function micros(value) {
  if (absent(value)) return NONE;
  if (value < 999.5) return `${digits(value)}${THIN}µs`;
  if (value < 999500) return `${digits(value / 1000)}${THIN}ms`;
  return `${digits(value / 1e6)}${THIN}s`;
}

/** A time span as the command line prints it: 4.2s, 3m05s, 2h07m, 5d03h. */
export function age(seconds) {
  if (absent(seconds)) return NONE;
  if (seconds < 59.95) return `${seconds.toFixed(1)}s`;
  const all = Math.round(seconds), two = number => String(number).padStart(2, "0");
  if (all < 3600) return `${Math.floor(all / 60)}m${two(all % 60)}s`;
  if (all < 86400) return `${Math.floor(all / 3600)}h${two(Math.floor(all / 60) % 60)}m`;
  return `${Math.floor(all / 86400)}d${two(Math.floor(all / 3600) % 24)}h`;
}

/** Seconds with one decimal. */
export const seconds = value => absent(value) ? NONE : `${value >= 100 ? whole.format(value) : value.toFixed(1)}${THIN}s`;

const clocks = [true, false].map(exact =>
  new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined }));
/** The time of day of a time in seconds since 1970. */
export const clock = (at, exact = true) => clocks[exact ? 0 : 1].format(new Date(at * 1000));

const WORDS = {
  lcp: "LCP", ipcp: "IPCP", ipv6cp: "IPv6CP", ppp: "PPP", ipv4: "IPv4", ipv6: "IPv6", mtu: "MTU", mru: "MRU", id: "id",
  dns: "name servers", pfc: "protocol field compression", acfc: "address and control compression", rtt: "round trip",
  octets: "bytes", in: "in", out: "out", nat: "NAT", vlan: "VLAN", mac: "MAC address", pppoe: "PPPoE", qos: "queues", ip: "IP",
};
const WHOLE = { up_s: "Up for", other: "Other end", claims: "Attempts", id: "Our id", pool: "Pool", mac: "MAC address" };
const UNITS = ["us", "ms", "s", "bps", "pps", "octets", "bytes"];

/** A field's name in words, without its unit: `echo_rtt_us` is "Echo round trip". */
export function label(name) {
  if (WHOLE[name]) return WHOLE[name];
  let words = String(name).split("_");
  const unit = words.at(-1);
  if (words.length > 1 && UNITS.includes(unit) && unit !== "octets" && unit !== "bytes") words = words.slice(0, -1);
  const text = words.map(word => WORDS[word] || word).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The text of a value, by the unit at the end of its field's name. */
export function byName(name, value) {
  if (value === null || value === undefined) return NONE;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (/(^|_)us$/.test(name)) return micros(value);
  if (/(^|_)ms$/.test(name)) return micros(value * 1000);
  if (/(^|_)s(_ago)?$/.test(name)) return age(value);
  if (/_bps$/.test(name)) return bits(value);
  if (/_ps$/.test(name)) return perSecond(value);
  if (/(^|_)(octets|bytes|mtu|mru)(_|$)/.test(name)) return value < 65536 ? `${count(value)}${THIN}B` : bytes(value);
  if (/(^|_)(id|asn|tunnel|session|pid|port|version)$/.test(name)) return String(value);
  return Number.isInteger(value) ? count(value) : digits(value);
}
