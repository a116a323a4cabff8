// The simulator: instances of the WebAssembly module crates/wasm, each of which runs one arm of a scenario.
//
// A browser runs this in a worker, which gets the text of the function (lab.engine.toString()): a page opened from a
// file may not load a script into a worker. Node runs it in the tests.
"use strict";
(globalThis.lab ??= {}).engine = function () {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();

  /** An instance of the module. */
  class Instance {
    constructor(module) {
      // The module imports nothing: it has no clock, no randomness and no input but the scenario.
      this.exports = new WebAssembly.Instance(module, {}).exports;
    }

    /** Puts a text into the input. */
    #input(text) {
      const bytes = encoder.encode(text);
      const at = this.exports.input(bytes.length);
      new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    }

    /** Calls an export and returns its output. Throws an Error with the message of the module. */
    #call(name, ...values) {
      let failed;
      let trap = null;
      try {
        failed = this.exports[name](...values) === 1;
      } catch (error) {
        trap = error;
      }
      const { memory, output, output_length: length } = this.exports;
      const bytes = new Uint8Array(memory.buffer, output(), length()).slice();
      if (trap !== null) {
        throw new Error(`the simulator stopped: ${decoder.decode(bytes) || trap.message}`);
      }
      if (failed) {
        throw new Error(decoder.decode(bytes));
      }
      return bytes;
    }

    #json(name, ...values) {
      return JSON.parse(decoder.decode(this.#call(name, ...values)));
    }

    catalogue() {
      return this.#json("catalogue");
    }

    describe(text) {
      this.#input(text);
      return this.#json("describe");
    }

    start(text, arm, replication = 0) {
      this.#input(text);
      return this.#json("start", arm, replication);
    }

    advance(milliseconds) {
      this.#call("advance", milliseconds);
    }

    samples() {
      return this.#json("samples");
    }

    event(number) {
      return this.#json("event", number);
    }

    /** Returns the tables of the finished run: by name, a list of columns {name, type, missing, values}. */
    tables() {
      const bytes = this.#call("tables");
      const length = new DataView(bytes.buffer).getUint32(0, true);
      const header = JSON.parse(decoder.decode(bytes.subarray(4, 4 + length)));
      let at = 4 + length;
      const take = (count) => bytes.subarray(at, (at += count));
      const column = ({ name, type, rows, bytes: size }) => ({
        name,
        type,
        missing: take(rows),
        values: take(size),
      });
      return Object.fromEntries(header.map(([table, columns]) => [table, columns.map(column)]));
    }
  }

  return { Instance };
};
