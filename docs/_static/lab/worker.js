// The worker: runs the arms that are compared, and answers the page.
//
// Each message is {id, call, ...}; its answer is {id, value} or {id, error}.
"use strict";
(globalThis.lab ??= {}).worker = function (engine) {
  let module = null;
  let runs = [];

  const calls = {
    /** Compiles the module. */
    async compile({ bytes }) {
      module = await WebAssembly.compile(bytes);
      return new engine.Instance(module).catalogue();
    },

    describe({ text }) {
      return new engine.Instance(module).describe(text);
    },

    /** Starts the arms, and runs them up to a time. */
    load({ text, arms, until }) {
      const loaded = arms.map((arm) => {
        const run = new engine.Instance(module);
        return { run, plan: run.start(text, arm) };
      });
      runs = loaded.map(({ run }) => run);
      runs.forEach((run) => run.advance(until));
      return { plans: loaded.map(({ plan }) => plan), samples: runs.map((run) => run.samples()) };
    },

    /** Runs the arms up to a time, at most for the given time of the clock. */
    advance({ from, until, budget }) {
      const began = performance.now();
      const steps = budget === undefined ? 1 : 20;
      for (let step = 1; step <= steps; step += 1) {
        const to = Math.round(from + ((until - from) * step) / steps);
        runs.forEach((run) => run.advance(to));
        if (performance.now() - began > budget) {
          break;
        }
      }
      return { samples: runs.map((run) => run.samples()) };
    },

    /** Runs the arms in steps until one has a further drop, mark or loss. */
    next({ from, step, until }) {
      const found = runs.map((run) => run.samples());
      const events = found.map((one) => one.event_count);
      const more = [];
      for (let at = from + step; at <= until; at += step) {
        runs.forEach((run) => run.advance(at));
        const samples = runs.map((run) => run.samples());
        more.push(samples);
        if (samples.some((one, n) => one.finished || one.event_count > events[n])) {
          break;
        }
      }
      return { samples: [found, ...more] };
    },

    event({ arm, number }) {
      return runs[arm].event(number);
    },

    tables({ arm }) {
      return runs[arm].tables();
    },
  };

  onmessage = async ({ data }) => {
    try {
      postMessage({ id: data.id, value: await calls[data.call](data) });
    } catch (error) {
      postMessage({ id: data.id, error: error.message });
    }
  };
};
