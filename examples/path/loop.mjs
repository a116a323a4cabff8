// The loop of a test in JavaScript, as loop.c: node loop.mjs sojournpath.wasm

import { readFile } from "node:fs/promises";
import { argv } from "node:process";

import { Direction, Ecn, NEVER, load } from "./sojourn_path.mjs";

const FORWARD = "rate 10mbit delay 10ms jitter 2ms loss 1% drop 3,4,5 qdisc fq_codel";
const SECOND = 1_000_000_000n;
const GAP = 400_000n;

const Path = await load(await readFile(argv[2]));
const path = new Path({ forward: FORWARD, seed: 1n, events: true, strict: true });
// The stack of another project would be called here.
const payload = new Uint8Array(1200);
const answer = new Uint8Array(40);
let [events, sent, arrived] = [0, 0, 0];
let digest = 0xcbf29ce484222325n; // FNV-1a
for (let now = 0n, next = 0n; now !== NEVER; ) {
  for (let delivery; (delivery = path.poll(now)); arrived++) {
    if (delivery.direction === Direction.FORWARD && delivery.packet % 2n === 0n) {
      path.push(now, Direction.REVERSE, answer, Ecn.NOT_ECT, 0);
    }
  }
  if (now === next) {
    // Two flows; only the first is ECN-capable.
    const flow = sent++ % 2;
    path.push(now, Direction.FORWARD, payload, flow === 0 ? Ecn.ECT0 : Ecn.NOT_ECT, flow);
    next = now + GAP < 2n * SECOND ? now + GAP : NEVER;
  }
  const bytes = path.eventBytes();
  for (const byte of bytes) digest = BigInt.asUintN(64, (digest ^ BigInt(byte)) * 0x100000001b3n);
  events += bytes.length / 32;
  const due = path.deadline();
  now = next < due ? next : due;
}
const { dropsAqm, marksAqm, lostPackets } = path.counters(Direction.FORWARD);
const p95 = path.sojourn(Direction.FORWARD, 0.95) / 1000n;
const shown = digest.toString(16).padStart(16, "0");
console.log(
  `arrived ${arrived}, dropped ${dropsAqm}, marked ${marksAqm}, lost ${lostPackets}, p95 ${p95} us, ` +
    `events ${events}, digest ${shown}`,
);
path.free();
