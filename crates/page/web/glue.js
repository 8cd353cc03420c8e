// Calls the analyser. A file is an object with `name`, `size` and `read(offset, length)`, which returns a Uint8Array.
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
  }

  open(file) {
    this.handles.push({ file: this.files[file], offset: 0 });
    return this.handles.length - 1;
  }

  read(handle, to, room) {
    const { file, offset } = this.handles[handle];
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

  /** Analyses files as one capture; returns the overview. */
  analyse(files) {
    this.files = files;
    this.handles = [];
    const names = new TextEncoder().encode(JSON.stringify(files.map((file) => file.name)));
    const place = this.exports.room(names.length) >>> 0;
    new Uint8Array(this.exports.memory.buffer, place, names.length).set(names);
    return JSON.parse(this.text(this.exports.analyse()));
  }

  /** The UDP flows, the worst first. */
  udp() {
    return JSON.parse(this.text(this.exports.udp()));
  }

  rows(start, count) {
    return JSON.parse(this.text(this.exports.rows(start, count)));
  }

  details(at) {
    return JSON.parse(this.text(this.exports.details(at)));
  }

  graph(at) {
    this.handles = [];
    return this.text(this.exports.graph(at));
  }

  lines() {
    return this.text(this.exports.lines());
  }
}
