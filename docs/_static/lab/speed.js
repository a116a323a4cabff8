// How many times faster than real time the simulator is here. Node and the tests in Chromium run it.
"use strict";
(globalThis.lab ??= {}).speed = function () {
  const SECONDS = 30;
  const RUNS = 3;

  const tcp = (count) => ({ type: "tcp", direction: "down", count, cc: "cubic", start_jitter: "100ms" });
  // What the page samples: every 50 ms, the state of queues, and all drops and marks.
  const scenario = (qdisc, ...traffic) => ({
    duration: `${SECONDS}s`,
    warmup: "0s",
    replications: 1,
    rtt: "40ms",
    sample: "50ms",
    keep_events: true,
    sample_state: true,
    links: { up: { rate: "100mbit", qdisc }, down: { rate: "100mbit", qdisc } },
    traffic: [{ type: "ping", direction: "up", interval: "50ms" }, ...traffic],
  });

  const cases = [
    { name: "1 CUBIC flow, pfifo", scenario: scenario("pfifo", tcp(1)) },
    { name: "4 CUBIC flows, fq_codel", scenario: scenario("fq_codel", tcp(4)) },
    {
      name: "RRUL, fq_codel",
      scenario: scenario("fq_codel", tcp(4), { ...tcp(4), direction: "up" }),
    },
  ];

  /** Runs a scenario as the page does, the fastest of a few runs, by a clock in milliseconds. */
  function measure(Instance, module, scenario, clock = () => performance.now()) {
    const times = Array.from({ length: RUNS }, () => {
      const run = new Instance(module);
      run.start(JSON.stringify(scenario), 0);
      const began = clock();
      for (let until = 300; until <= SECONDS * 1000; until += 300) {
        run.advance(until);
        run.samples();
      }
      return clock() - began;
    });
    return { seconds: SECONDS, factor: (SECONDS * 1000) / Math.min(...times) };
  }

  return { cases, measure };
};
