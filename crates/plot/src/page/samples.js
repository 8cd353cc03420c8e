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
  bytes(count) { return this.octets.subarray(this.at, this.at += count); }
}

// Samples as levels of columns, each level of half as many columns as the one before.
function unpack(data) {
  const reader = new Reader(data.octets), n = data.columns, x = new Float64Array(n + 1);
  let at = 0;
  const next = () => data.x + data.step * (at += reader.integer());
  for (let i = 0; i < n; i++) x[i] = next();
  x[n] = data.end;
  const min = reader.floats(n);
  let max = min, first = min, last = min;
  if (data.each > 1) {
    max = reader.floats(n);
    const part = () => Float32Array.from(reader.bytes(n), (share, i) => min[i] + (max[i] - min[i]) * share / 255);
    first = part();
    last = part();
  }
  const levels = [{ n, x, min, max, first, last, each: data.each }];
  for (let below = levels[0]; below.n > 256; below = levels[levels.length - 1]) levels.push(halved(below));
  // `before` is how many were lost before each span.
  const lost = { x: [], end: [], before: [0] };
  at = 0;
  for (let i = 0; i < data.lost; i++) {
    lost.x.push(next());
    lost.end.push(next());
    lost.before.push(lost.before[i] + reader.integer());
  }
  return { levels, lost, cdf: data.cdf ? distribution(data) : null };
}
function halved(below) {
  const n = below.n + 1 >> 1, x = new Float64Array(n + 1);
  const [min, max, first, last] = [0, 0, 0, 0].map(() => new Float32Array(n));
  for (let i = 0, a = 0; i < n; i++, a += 2) {
    const b = Math.min(a + 1, below.n - 1);
    x[i] = below.x[a];
    min[i] = Math.min(below.min[a], below.min[b]);
    max[i] = Math.max(below.max[a], below.max[b]);
    first[i] = below.first[a];
    last[i] = below.last[b];
  }
  x[n] = below.x[below.n];
  return { n, x, min, max, first, last, each: below.each * 2 };
}
function distribution(data) {
  const reader = new Reader(data.cdf), n = reader.integer();
  return { n, value: reader.floats(n), share: reader.floats(n) };
}
// How many of the first `n` values, ascending, are below `value`.
function below(values, n, value) {
  let low = 0, high = n;
  while (low < high) {
    const middle = low + high >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
