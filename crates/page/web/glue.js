// Calls the analyser. A file is an object with `name`, `size` and `read(offset, length)`, which returns a Uint8Array. It may
// have `fill(offset)`, which fetches the bytes from that offset on and returns a promise.
"use strict";

class Analyser {
  /** Starts the module of those bytes. */
  static async start(bytes) {
    const analyser = new Analyser();
    const imports = { headend: {
      open: (file) => analyser.open(file),
      read: (handle, to, room) => analyser.read(handle, to, room),
      progress: (packets, connections) => analyser.progress(packets, connections),
    } };
    const { instance } = await WebAssembly.instantiate(bytes, imports);
    analyser.exports = instance.exports;
    return analyser;
  }

  constructor() {
    this.files = [];
    this.handles = [];
    this.onProgress = () => {};
    // The handle that was read last.
    this.present = null;
    // The number of the analysis, and the end of the readings that have been asked for.
    this.turn = 0;
    this.free = Promise.resolve();
  }

  open(file) {
    this.handles.push({ file: this.files[file], offset: 0 });
    return this.handles.length - 1;
  }

  read(handle, to, room) {
    const { file, offset } = this.present = this.handles[handle];
    try {
      const bytes = file.read(offset, Math.min(room, file.size - offset));
      // The memory may have moved since the last call.
      new Uint8Array(this.exports.memory.buffer, to, room).set(bytes);
      this.handles[handle].offset += bytes.length;
      return bytes.length;
    } catch {
      return -1;
    }
  }

  progress(packets, connections) {
    const done = this.handles.reduce((sum, handle) => sum + handle.offset, 0);
    this.onProgress({ done, packets, connections });
  }

  text(length) {
    const bytes = new Uint8Array(this.exports.memory.buffer, this.exports.answer() >>> 0, Math.abs(length));
    const text = new TextDecoder().decode(bytes);
    if (length < 0) throw new Error(text);
    return text;
  }

  /** Reads all files, after the readings before. `start` tells the module what for; the result is its answer. */
  async pass(start) {
    const { turn, free } = this;
    let end;
    this.free = new Promise((resolve) => { end = resolve; });
    await free;
    try {
      this.handles = [];
      this.present = null;
      if (turn === this.turn) start();
      while (turn === this.turn) {
        const more = this.exports.step();
        if (more < 0) this.text(more);
        if (more === 0) return this.text(this.exports.finish());
        await this.present?.file.fill?.(this.present.offset);
      }
      throw new Error("other captures were chosen");
    } finally {
      end();
    }
  }

  /** Analyses files as one capture; returns the overview. Readings for earlier files end. */
  async analyse(files) {
    this.turn += 1;
    return JSON.parse(await this.pass(() => {
      this.files = files;
      const names = new TextEncoder().encode(JSON.stringify(files.map((file) => file.name)));
      const place = this.exports.room(names.length) >>> 0;
      new Uint8Array(this.exports.memory.buffer, place, names.length).set(names);
      this.exports.analyse();
    }));
  }

  /** The UDP flows, the worst first. */
  async udp() {
    return JSON.parse(await this.pass(() => this.text(this.exports.udp())));
  }

  /** The page with the graphs of a connection. */
  graph(at) {
    return this.pass(() => this.text(this.exports.graph(at)));
  }

  rows(start, count) {
    return JSON.parse(this.text(this.exports.rows(start, count)));
  }

  details(at) {
    return JSON.parse(this.text(this.exports.details(at)));
  }

  lines() {
    return this.text(this.exports.lines());
  }
}
