// What the page shows, as a value: a line with two queues and its traffic, or a scenario file; and the changes that
// the user made during the run. A state gives a scenario, so that any moment can be run again, shared and exported.
"use strict";
(globalThis.lab ??= {}).model = (function () {
  // Part of the RTT that is not the delay of a link, so that the other part can change during the run.
  const FIXED_RTT_MS = 1;
  const START_MS = 1000;
  // As the table of the page, which leaves out the start of the flows.
  const WARMUP_MS = 1500;
  const SAMPLE_MS = 50;
  // With a modem, the queues that are compared are in the router, and these in the modem and at the provider.
  const MODEM = { up: "pfifo", down: "fq_codel" };

  /** The line that the page opens with. */
  const initial = () => ({
    kind: "line",
    a: "pfifo",
    b: "fq_codel",
    down: 20,
    up: 5,
    rtt: 40,
    loss: 0,
    call: false,
    modem: false,
    link: "down",
    rows: [
      { direction: "down", count: 2, cc: "cubic", ecn: "off", slow: "" },
      { direction: "up", count: 1, cc: "cubic", ecn: "off", slow: "" },
    ],
    duration: 30,
    changes: [],
  });

  const ms = (milliseconds) => `${Math.round(milliseconds * 1e6)}ns`;
  const kbit = (mbit) => `${Math.round(mbit * 1000)}kbit`;
  const wire = (rtt) => ms((rtt - FIXED_RTT_MS) / 2);
  const percent = (share) => `${share}%`;

  /** A time of a scenario, such as "50ms", in milliseconds; 0 if it has none. */
  function milliseconds(text = "0s") {
    const [, number, unit] = /^\s*([\d.]+)\s*(ns|us|ms|s)/.exec(text) ?? [null, 0, "s"];
    return Number(number) * { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3 }[unit];
  }

  /** Changes of a link by time: those of one time are one change. */
  function changes(list) {
    const byTime = new Map();
    for (const { at, ...keys } of list) {
      byTime.set(at, { ...byTime.get(at), ...keys });
    }
    const sorted = [...byTime].sort(([one], [two]) => one - two);
    return sorted.map(([at, keys]) => ({ at: ms(at), ...keys }));
  }

  function lineLink(state, direction) {
    const qdisc = state.modem ? MODEM[direction] : state.a;
    const link = { rate: kbit(state[direction]), qdisc, delay: wire(state.rtt) };
    if (state.loss > 0) {
      link.loss = percent(state.loss);
    }
    const keys = {
      [direction]: (value) => ({ rate: kbit(value) }),
      rtt: (value) => ({ delay: wire(value) }),
      loss: (value) => ({ loss: percent(value) }),
    };
    const own = state.changes.filter(({ key }) => key in keys);
    const changed = changes(own.map(({ at, key, value }) => ({ at, ...keys[key](value) })));
    return changed.length > 0 ? { ...link, changes: changed } : link;
  }

  /** A flow of a row: a block of its own, so that another number of flows leaves it as it is. */
  function flow(state, place, number, start) {
    const row = state.rows[place];
    const alike = (one) => one.cc === row.cc && one.direction === row.direction;
    const earlier = state.rows.slice(0, place).filter(alike).length;
    const block = {
      name: `${row.cc} ${row.direction}${earlier > 0 ? ` (${earlier + 1})` : ""} ${number}`,
      type: "tcp",
      direction: row.direction,
      cc: row.cc,
      start: ms(start),
      start_jitter: "100ms",
    };
    if (row.ecn !== "off") {
      block.ecn = row.ecn === "accurate" ? "accurate" : true;
    }
    if (row.ecn === "end-slow-start") {
      block.on_ce = "end-slow-start";
    }
    if (row.slow) {
      block.slow_start = row.slow;
    }
    return block;
  }

  /** All flows: those of the start, then those that changes added, each until a change stops it. */
  function flows(state) {
    const running = state.rows.map(() => []);
    const numbers = state.rows.map(() => 0);
    const blocks = [];
    const add = (place, start) => {
      numbers[place] += 1;
      const block = flow(state, place, numbers[place], start);
      running[place].push(block);
      blocks.push(block);
    };
    state.rows.forEach((row, place) => {
      for (let n = 0; n < row.count; n += 1) {
        add(place, START_MS);
      }
    });
    for (const { at, key, row, value } of state.changes) {
      if (key === "count") {
        while (running[row].length < value) {
          add(row, at);
        }
        while (running[row].length > value) {
          // A flow that has not started is stopped as it starts.
          running[row].pop().stop = ms(Math.max(at, START_MS + 101));
        }
      }
    }
    return blocks;
  }

  /** The names of the arms, which differ. */
  function armNames(state) {
    return state.a === state.b ? [state.a, `${state.b} (again)`] : [state.a, state.b];
  }

  /** The links that a block crosses: by its direction, or by way of the router. */
  function routed(state, { direction, ...block }) {
    if (!state.modem) {
      return { ...block, direction };
    }
    const [up, down] = [["router", "up"], ["down"]];
    const isUp = direction === "up";
    const back = block.type === "voip" ? {} : { return: isUp ? down : up };
    return { ...block, path: isUp ? up : down, ...back };
  }

  function lineScenario(state) {
    const [a, b] = armNames(state);
    const set = (queue) =>
      state.modem ? { "links.router.qdisc": queue } : { "links.up.qdisc": queue, "links.down.qdisc": queue };
    const router = { router: { rate: "1gbit", qdisc: state.a } };
    const calls = ["up", "down"].map((direction) => ({
      name: `call ${direction}`,
      type: "voip",
      direction,
      start: ms(START_MS),
    }));
    const traffic = [
      { name: "ping", type: "ping", direction: "up", interval: "50ms" },
      ...(state.call ? calls : []),
      ...flows(state),
    ];
    return {
      name: "lab",
      duration: `${state.duration}s`,
      warmup: ms(WARMUP_MS),
      replications: 1,
      rtt: ms(FIXED_RTT_MS),
      sample: ms(SAMPLE_MS),
      keep_events: true,
      sample_state: true,
      links: { ...(state.modem ? router : {}), up: lineLink(state, "up"), down: lineLink(state, "down") },
      traffic: traffic.map((block) => routed(state, block)),
      arms: [
        { name: a, set: set(state.a) },
        { name: b, set: set(state.b) },
      ],
    };
  }

  /** The scenario of a file, with what the page needs and the changes. `described` is what the engine makes of it. */
  function fileScenario(state, described) {
    const scenario = structuredClone(described.scenario);
    Object.assign(scenario, {
      duration: `${state.duration}s`,
      replications: 1,
      sample: "100ms",
      keep_events: true,
      sample_state: true,
    });
    if (state.duration * 1000 <= described.warmup_ms) {
      scenario.warmup = "0s";
    }
    const keys = {
      rate: (value) => ({ rate: kbit(value) }),
      delay: (value) => ({ delay: ms(value) }),
      loss: (value) => ({ loss: percent(value) }),
    };
    if (state.changes.length > 0) {
      const link = scenario.links[state.link];
      const own = state.changes.map(({ at, key, value }) => ({ at, ...keys[key](value) }));
      link.changes = [...(link.changes ?? []), ...changes(own)];
    }
    return scenario;
  }

  /** The scenario of a state, and which of its arms are compared. */
  function scenario(state, described) {
    if (state.kind === "line") {
      return { scenario: lineScenario(state), arms: [0, 1] };
    }
    const arms = [state.a, state.b].map((name) => {
      const arm = described.arms.indexOf(name);
      if (arm < 0) {
        throw new Error(`no arm "${name}"; expected one of ${described.arms.join(", ")}`);
      }
      return arm;
    });
    return { scenario: fileScenario(state, described), arms };
  }

  /** The value of a control at a time. */
  function current(state, key, row, at) {
    const last = state.changes.findLast((change) => change.key === key && change.row === row && change.at <= at);
    if (last !== undefined) {
      return last.value;
    }
    return row === undefined ? state[key] : state.rows[row][key];
  }

  /** The state with a control at another value from a time on; at 0 ms from the start. */
  function changed(state, at, key, value, row) {
    const next = structuredClone(state);
    if (at > 0) {
      const same = (change) => change.at === at && change.key === key && change.row === row;
      next.changes = next.changes.filter((change) => !same(change));
      const change = { at, key, value };
      next.changes.push(row === undefined ? change : { ...change, row });
      next.changes.sort((one, two) => one.at - two.at);
    } else if (row === undefined) {
      next[key] = value;
    } else {
      next.rows[row][key] = value;
    }
    return next;
  }

  /** A state as a part of an address. */
  function encoded(state) {
    const bytes = new TextEncoder().encode(JSON.stringify(state));
    const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  /** The state in an address; null if there is none. */
  function decoded(text) {
    try {
      const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
      const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
      const state = JSON.parse(new TextDecoder().decode(bytes));
      const fits = state.kind === "line" ? Array.isArray(state.rows) : state.kind === "file";
      return fits && Array.isArray(state.changes) ? { ...initial(), ...state } : null;
    } catch {
      return null;
    }
  }

  return { initial, scenario, current, changed, milliseconds, encoded, decoded, armNames };
})();
