// Runs the analyser beside the page. Files stay in the browser, which reads them piece by piece.
"use strict";

const reader = new FileReaderSync();
let analyser;
let last = 0;

// Bytes that are fetched ahead, and those that a block takes. More than the processor's cache holds is slower.
const AHEAD = 1 << 20;
const BLOCK = 512 << 10;

// The bytes of one file from `start` to `end`, and the stream of those that follow. A stream is the fastest way to read: the
// browser's process fills it while the analyser works. A read at once waits for that process.
const ahead = { file: null, start: 0, end: 0, room: new Uint8Array(AHEAD), stream: null };

// Not every browser has streams that fill a buffer of ours.
const FILLS = (() => {
  try {
    return Boolean(new Blob().stream().getReader({ mode: "byob" }));
  } catch {
    return false;
  }
})();

async function fill(file, offset) {
  if (ahead.file !== file || offset < ahead.start || offset > ahead.end) {
    ahead.stream?.cancel().catch(() => {});
    ahead.stream = FILLS ? file.slice(offset).stream().getReader({ mode: "byob" }) : null;
    [ahead.file, ahead.start, ahead.end] = [file, offset, offset];
  }
  if (ahead.end === file.size || ahead.end - offset >= BLOCK) return;
  if (!FILLS) {
    // Each of these reads costs several milliseconds.
    ahead.room = new Uint8Array(await file.slice(offset, offset + 8 * AHEAD).arrayBuffer());
    [ahead.start, ahead.end] = [offset, offset + ahead.room.length];
    return;
  }
  ahead.room.copyWithin(0, offset - ahead.start, ahead.end - ahead.start);
  ahead.start = offset;
  while (ahead.end < file.size && ahead.end - offset < AHEAD) {
    // This takes the buffer away and gives it back.
    const { value } = await ahead.stream.read(ahead.room.subarray(ahead.end - offset));
    ahead.room = new Uint8Array(value.buffer);
    ahead.end += value.length;
  }
}

function input(file) {
  return {
    name: file.name,
    size: file.size,
    read: (offset, length) => {
      const { start, end, room } = ahead;
      if (ahead.file === file && offset >= start && offset < end) return room.subarray(offset - start, Math.min(end, offset + length) - start);
      return new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + length)));
    },
    fill: (offset) => fill(file, offset).catch(() => {
      // The file cannot be read: so the next read at once finds too.
      [ahead.file, ahead.room] = [null, new Uint8Array(AHEAD)];
    }),
  };
}

onmessage = async ({ data: { id, call, values } }) => {
  try {
    if (call === "start") {
      analyser = await Analyser.start(values[0]);
      postMessage({ id, answer: null });
      return;
    }
    if (call === "analyse") {
      const total = values[0].reduce((sum, file) => sum + file.size, 0);
      analyser.onProgress = (counts) => {
        const now = performance.now();
        if (now - last < 100) return;
        last = now;
        postMessage({ progress: { ...counts, total } });
      };
      const begin = performance.now();
      const answer = await analyser.analyse(values[0].map(input));
      answer.seconds = (performance.now() - begin) / 1000;
      answer.bytes = total;
      answer.memory = analyser.exports.memory.buffer.byteLength;
      postMessage({ id, answer });
      return;
    }
    postMessage({ id, answer: await analyser[call](...values) });
  } catch (error) {
    postMessage({ id, error: error instanceof WebAssembly.RuntimeError ? `internal error: ${error.message}` : error.message });
  }
};
