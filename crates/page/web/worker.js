// Runs the analyser beside the page. Files stay in the browser: FileReaderSync reads it piece by piece.
"use strict";

const reader = new FileReaderSync();
let analyser;
let last = 0;

// Each read asks another process of the browser, so a read takes more than the analyser asks for.
const AHEAD = 8 << 20;

function input(file) {
  let start = 0;
  let ahead = new Uint8Array();
  return {
    name: file.name,
    size: file.size,
    read: (offset, length) => {
      if (offset < start || offset >= start + ahead.length) {
        start = offset;
        ahead = new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + AHEAD)));
      }
      return ahead.subarray(offset - start, offset - start + length);
    },
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
      const answer = analyser.analyse(values[0].map(input));
      answer.seconds = (performance.now() - begin) / 1000;
      answer.bytes = total;
      answer.memory = analyser.exports.memory.buffer.byteLength;
      postMessage({ id, answer });
      return;
    }
    postMessage({ id, answer: analyser[call](...values) });
  } catch (error) {
    postMessage({ id, error: error instanceof WebAssembly.RuntimeError ? `internal error: ${error.message}` : error.message });
  }
};
