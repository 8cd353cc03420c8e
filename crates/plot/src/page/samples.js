// Octets: integers of seven bits an octet, then columns of little-endian numbers.
class Reader {
  constructor(text) {
    const binary = atob(text);
    this.at = 0;
    this.octets = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) this.octets[i] = binary.charCodeAt(i);
  }
  integer() {
    let value = 0, unit = 1, octet;
    do {
      octet = this.octets[this.at++];
      value += (octet & 127) * unit;
      unit *= 128;
    } while (octet & 128);
    return value;
  }
  floats(count) { return new Float32Array(this.octets.slice(this.at, this.at += 4 * count).buffer); }
}

// Samples as levels of columns, each level of half as many columns as the one before.
function unpack(data) {
  const reader = new Reader(data.octets), n = data.columns, x = new Float64Array(n + 1);
  let at = 0;
  const next = () => data.x + data.step * (at += reader.integer());
  for (let i = 0; i < n; i++) x[i] = next();
  x[n] = data.end;
  const low = reader.floats(n), high = data.each > 1 ? reader.floats(n) : low;
  const levels = [{ n, x, low, high, each: data.each }];
  for (let fine = levels[0]; fine.n > 256; fine = levels.at(-1)) levels.push(halved(fine));
  // `before` is how many were lost before each span.
  const lost = { x: [], end: [], before: [0] };
  at = 0;
  for (let i = 0; i < data.lost; i++) {
    lost.x.push(next());
    lost.end.push(next());
    lost.before.push(lost.before[i] + reader.integer());
  }
  let cdf = null;
  if (data.cdf) {
    const reader = new Reader(data.cdf), n = reader.integer();
    cdf = { n, value: reader.floats(n), share: reader.floats(n) };
  }
  return { levels, lost, cdf };
}
function halved(fine) {
  const n = fine.n + 1 >> 1, floats = () => new Float32Array(n);
  const half = { n, x: new Float64Array(n + 1), low: floats(), high: floats(), each: fine.each * 2 };
  for (let i = 0, a = 0; i < n; i++, a += 2) {
    const b = min(a + 1, fine.n - 1);
    half.x[i] = fine.x[a];
    half.low[i] = min(fine.low[a], fine.low[b]);
    half.high[i] = max(fine.high[a], fine.high[b]);
  }
  half.x[n] = fine.x[fine.n];
  return half;
}
// Where the samples of a column are.
function middle(level, i) { return level.each > 1 ? (level.x[i] + level.x[i + 1]) / 2 : level.x[i]; }
