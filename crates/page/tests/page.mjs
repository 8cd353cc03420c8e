// The page's module under Node, against the command. HEADEND names the command, PAGE the page, CAPTURES the captures.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";

const { HEADEND, PAGE, CAPTURES } = process.env;
const page = readFileSync(PAGE, "utf8");
const part = (id) => page.match(new RegExp(`id="${id}">([^]*?)</script>`))[1];
const module = gunzipSync(Buffer.from(part("wasm"), "base64"));
const Analyser = new Function(`${part("glue")}; return Analyser`)();

/** A file as the worker passes it; `most` bytes at a time. */
function input(name, most = Infinity) {
  const file = openSync(name, "r");
  const { size } = fstatSync(file);
  return {
    name,
    size,
    read: (offset, length) => {
      const bytes = Buffer.alloc(Math.min(length, most));
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
    },
    close: () => closeSync(file),
  };
}

async function analyse(names, most) {
  const analyser = await Analyser.start(module);
  const files = names.map((name) => input(name, most));
  const found = await analyser.analyse(files);
  return { analyser, found, files };
}

const captures = readdirSync(CAPTURES).filter((name) => name.endsWith(".gz")).map((name) => join(CAPTURES, name));
const command = (...words) => spawnSync(HEADEND, ["trace", ...words, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }).stdout;

test("each line is the command's", async () => {
  assert(captures.length > 10);
  for (const name of captures) {
    const { analyser, files } = await analyse([name]);
    assert.equal(analyser.lines(), command(name), name);
    files.forEach((file) => file.close());
  }
});

test("each line of why is the command's", async () => {
  for (const name of captures) {
    const { analyser, found, files } = await analyse([name]);
    const lines = command("why", name).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const known = new Map(lines.filter((line) => line.kind === "why").map((line) => [line.connection, line]));
    for (const row of analyser.rows(0, found.connections)) {
      const { why } = analyser.details(row.at);
      assert.deepEqual(why, known.get(row.number) ?? null, `${name} ${row.number}`);
      assert.equal(row.sentence, why && why[why.main].sentence, `${name} ${row.number}`);
    }
    files.forEach((file) => file.close());
  }
});

test("each UDP flow is the command's", async () => {
  let flows = 0;
  for (const name of captures) {
    const { analyser, files } = await analyse([name]);
    const lines = command("why", "-u", name).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const known = lines.filter((line) => line.kind === "why_udp");
    const found = await analyser.udp();
    assert.equal(found.flows, known.length, name);
    assert.deepEqual(found.lines.sort((one, other) => one.flow - other.flow), known, name);
    flows += known.length;
    files.forEach((file) => file.close());
  }
  assert(flows > 0);
});

test("several files in small pieces give what they give at once", async () => {
  const names = captures.slice(0, 3);
  const small = await analyse(names, 1000);
  assert.equal(small.analyser.lines(), command(...names));
  [...small.files].forEach((file) => file.close());
});

test("a graph is drawn for a connection with data", async () => {
  const { analyser, found } = await analyse([join(CAPTURES, "conn-size.pcap.gz")]);
  const row = analyser.rows(0, found.connections).find((row) => row.bytes > 0);
  assert.ok((await analyser.graph(row.at)).includes("class=\"chart\""));
});

test("a file that is no capture is an error with its name", async () => {
  await assert.rejects(analyse([PAGE]), (error) => error.message.startsWith(PAGE));
  const analyser = await Analyser.start(module);
  assert.throws(() => analyser.rows(0, 1), /no capture has been read/);
});

test("the page names no address to load from", () => {
  assert.doesNotMatch(page, /<[a-z][^>]*\s(?:src|href)\s*=|https?:\/\/(?!www\.w3\.org)/);
  assert.match(page, /connect-src 'none'/);
});
