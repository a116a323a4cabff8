// What has been sampled of an arm so far.
"use strict";
(globalThis.lab ??= {}).series = (function () {
  // The newest drops and marks, which the page lists.
  const LISTED = 200;

  function append(to, from) {
    for (const [key, value] of Object.entries(from)) {
      if (Array.isArray(value)) {
        (to[key] ??= []).push(...value);
      } else {
        append((to[key] ??= {}), value);
      }
    }
  }

  /** The samples of an arm, whose plan is that of the engine. */
  class Series {
    constructor(plan) {
      // A flow with a path has no direction; those of a line with a modem have it in their names.
      const direction = (flow) => flow.direction ?? / (up|down)( |$)/.exec(flow.name)?.[1] ?? null;
      this.plan = {
        ...plan,
        flows: plan.flows.map((flow) => ({ ...flow, direction: direction(flow) })),
      };
      this.now = 0;
      this.finished = false;
      this.links = plan.links.map(() => ({}));
      this.flows = plan.flows.map(() => ({}));
      this.pings = plan.flows.map(() => ({ t_s: [], rtt_ms: [] }));
      this.events = [];
      this.count = 0;
    }

    /** Adds what the engine returned. */
    add(samples) {
      this.finished = samples.finished;
      if (samples.now_ms === undefined) {
        return;
      }
      this.now = samples.now_ms;
      samples.links.forEach((link, n) => this.#addLink(this.links[n], link));
      samples.flows.forEach((flow, n) => append(this.flows[n], flow));
      samples.pings.forEach(({ from, t_s: sent, rtt_ms: rtts }, n) => {
        const own = this.pings[n];
        own.t_s.splice(from, Infinity, ...sent);
        own.rtt_ms.splice(from, Infinity, ...rtts);
      });
      this.events.push(...samples.events);
      this.events.splice(0, this.events.length - LISTED);
      this.count = samples.event_count;
    }

    /** The names of the state may change with the queue, so that columns have gaps. */
    #addLink(to, { state, ...link }) {
      const before = to.t_s?.length ?? 0;
      append(to, link);
      to.state ??= {};
      for (const [name, values] of Object.entries(state)) {
        const own = (to.state[name] ??= []);
        while (own.length < before) {
          own.push(null);
        }
        own.push(...values);
      }
      for (const own of Object.values(to.state)) {
        while (own.length < to.t_s.length) {
          own.push(null);
        }
      }
    }
  }

  return { Series };
})();
