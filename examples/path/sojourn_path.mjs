// sojourn-path as WebAssembly, for node and browsers. Times are BigInt nanoseconds.
//
//     cargo build --release -p sojourn-path-c --target wasm32-unknown-unknown
//     node examples/path/loop.mjs target/wasm32-unknown-unknown/release/sojournpath.wasm

/** The deadline of a path without packets. */
export const NEVER = 2n ** 64n - 1n;
export const Ecn = { NOT_ECT: 0, ECT1: 1, ECT0: 2, CE: 3 };
export const Direction = { FORWARD: 0, REVERSE: 1 };

const KINDS = ["offered", "dropped", "marked", "departed", "lost", "arrived"];
const DROP_REASONS = ["overlimit", "aqm", "ack_filter"];
const MARK_REASONS = ["aqm", "ce_threshold"];
const COUNTERS = [
  "sentPackets", "sentBytes", "dropsOverlimit", "dropsAqm", "dropsAckFilter", "marksAqm", "marksCeThreshold",
  "lostPackets", "duplicatedPackets",
];
// Sizes and offsets of the structs of sojourn_path.h where a pointer has 4 bytes.
const ABI = 1;
const CONFIG = { size: 64, forward: 16, reverse: 24, forwardTrace: 32, reverseTrace: 40 };
const DELIVERY = 40;
const EVENT = 32;
const EVENTS = 256;
const TEXT = 8;
const STATISTIC = 48;

/** Compiles the library: `await load(bytesOfTheWasmFile)` returns the class Path. */
export async function load(wasm) {
  const { instance } = await WebAssembly.instantiate(wasm);
  const library = instance.exports;
  const version = library.sojourn_path_abi();
  if (version !== ABI) throw new Error(`the library has version ${version} of the interface; expected ${ABI}`);

  // The memory may move with every call that allocates.
  const bytes = (at, size) => new Uint8Array(library.memory.buffer, at, size);
  const view = (at, size) => new DataView(library.memory.buffer, at, size);
  const allocate = (size) => {
    const at = library.sojourn_allocate(size);
    bytes(at, size).fill(0);
    return { at, size };
  };
  const copy = (data) => {
    const memory = allocate(data.length);
    bytes(memory.at, memory.size).set(data);
    return memory;
  };
  const release = ({ at, size }) => library.sojourn_release(at, size);
  const text = (of) => copy(new TextEncoder().encode(of));
  const read = (at, size) => new TextDecoder().decode(bytes(at, size));
  const putText = (to, offset, of) => {
    view(to.at + offset, TEXT).setUint32(0, of.at, true);
    view(to.at + offset, TEXT).setUint32(4, of.size, true);
  };

  return class Path {
    #path;
    #scratch = allocate(EVENTS * EVENT);

    /**
     * A path whose directions are texts such as "rate 20mbit delay 10ms qdisc fq_codel". If it is strict, poll throws
     * if a packet arrived before its time.
     */
    constructor({ forward, reverse = "", forwardTrace = "", reverseTrace = "", seed = 0n, events = false, strict = false }) {
      const config = allocate(CONFIG.size);
      const texts = { forward, reverse, forwardTrace, reverseTrace };
      const copies = Object.entries(texts).map(([name, of]) => [name, text(of)]);
      for (const [name, of] of copies) putText(config, CONFIG[name], of);
      const fields = view(config.at, config.size);
      fields.setUint32(0, ABI, true);
      fields.setUint32(4, (events ? 1 : 0) | (strict ? 2 : 0), true);
      fields.setBigUint64(8, BigInt(seed), true);
      this.#path = library.sojourn_path_new(config.at);
      for (const [, of] of copies) release(of);
      release(config);
      this.#check(library.sojourn_path_error(this.#path) !== 0);
    }

    /** Ends the path and releases its memory. */
    free() {
      library.sojourn_path_free(this.#path);
      release(this.#scratch);
      this.#path = 0;
    }

    #check(failed) {
      if (!failed) return;
      const at = library.sojourn_path_error(this.#path);
      const end = new Uint8Array(library.memory.buffer).indexOf(0, at);
      throw new Error(read(at, end - at));
    }

    #offer(data, call) {
      const memory = copy(data);
      const packet = BigInt.asUintN(64, call(memory));
      release(memory);
      this.#check(packet === NEVER);
      return packet;
    }

    /** Offers the payload of a UDP datagram; returns its number. */
    push(now, direction, payload, ecn, flow) {
      return this.#offer(payload, ({ at, size }) =>
        library.sojourn_path_push(this.#path, now, direction, at, size, ecn, flow));
    }

    /** Offers an IP packet; returns its number. */
    pushIp(now, direction, packet) {
      return this.#offer(packet, ({ at, size }) => library.sojourn_path_push_ip(this.#path, now, direction, at, size));
    }

    /** The next packet that has arrived, or null. */
    poll(now) {
      const more = library.sojourn_path_poll(this.#path, now, this.#scratch.at);
      this.#check(more < 0);
      if (more === 0) return null;
      const fields = view(this.#scratch.at, DELIVERY);
      return {
        packet: fields.getBigUint64(0, true),
        at: fields.getBigUint64(8, true),
        waited: fields.getBigUint64(16, true),
        bytes: bytes(fields.getUint32(24, true), fields.getUint32(28, true)).slice(),
        flow: fields.getUint32(32, true),
        direction: fields.getUint8(36),
        ecn: fields.getUint8(37),
        dscp: fields.getUint8(38),
      };
    }

    /** When to poll next, or NEVER. */
    deadline() {
      return BigInt.asUintN(64, library.sojourn_path_deadline(this.#path));
    }

    /** Removes and returns the events as the bytes of the C structs. */
    eventBytes() {
      const parts = [];
      for (;;) {
        const count = library.sojourn_path_events(this.#path, this.#scratch.at, EVENTS);
        parts.push(bytes(this.#scratch.at, count * EVENT).slice());
        if (count < EVENTS) break;
      }
      const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
      let end = 0;
      for (const part of parts) {
        all.set(part, end);
        end += part.length;
      }
      return all;
    }

    /** Removes and returns the events as objects. */
    events() {
      const all = this.eventBytes();
      return Array.from({ length: all.length / EVENT }, (_, n) => {
        const fields = new DataView(all.buffer, n * EVENT, EVENT);
        const kind = KINDS[fields.getUint8(29)];
        const reasons = { dropped: DROP_REASONS, marked: MARK_REASONS }[kind];
        return {
          at: fields.getBigUint64(0, true),
          packet: fields.getBigUint64(8, true),
          waited: fields.getBigUint64(16, true),
          size: fields.getUint32(24, true),
          direction: fields.getUint8(28),
          kind,
          reason: reasons?.[fields.getUint8(30)] ?? null,
        };
      });
    }

    /** Packets of a direction so far. */
    counters(direction) {
      this.#check(library.sojourn_path_counters(this.#path, direction, this.#scratch.at) !== 0);
      const fields = view(this.#scratch.at, 8 * COUNTERS.length);
      return Object.fromEntries(COUNTERS.map((name, n) => [name, Number(fields.getBigUint64(8 * n, true))]));
    }

    /** A quantile of the time in the queue of a direction, in nanoseconds. */
    sojourn(direction, quantile) {
      this.#check(library.sojourn_path_sojourn(this.#path, direction, quantile, this.#scratch.at) !== 0);
      return view(this.#scratch.at, 8).getBigUint64(0, true);
    }

    /** Statistics of the queue of a direction, with the names of tc -s. */
    statistics(direction) {
      const room = Math.floor((EVENTS * EVENT) / STATISTIC);
      const count = library.sojourn_path_statistics(this.#path, direction, this.#scratch.at, room);
      this.#check(library.sojourn_path_error(this.#path) !== 0);
      return Array.from({ length: Math.min(count, room) }, (_, n) => {
        const at = this.#scratch.at + n * STATISTIC;
        const fields = view(at, STATISTIC);
        const word = (offset) => read(fields.getUint32(offset, true), fields.getUint32(offset + 4, true));
        const isReal = fields.getBigUint64(24, true) === 1n;
        const value = isReal ? fields.getFloat64(40, true) : Number(fields.getBigUint64(32, true));
        return { name: word(0), list: word(8), place: Number(fields.getBigUint64(16, true)), value };
      });
    }
  };
}
