// The controls of the line and its traffic. A slider moves during the run; everything else starts it again.
"use strict";
(globalThis.lab ??= {}).controls = (function () {
  const { element } = lab.panels;

  // Steps of sliders: rates in Mbit/s, times in ms, shares in percent.
  const RATES = [0.5, 1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000];
  const TIMES = [2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500];
  const DELAYS = [0, 5, 10, 20, 50, 100, 200, 300];
  const LOSSES = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
  const COUNTS = Array.from({ length: 17 }, (_, n) => n);
  const CONTROLS = ["cubic", "reno", "bbr", "bbr3", "prague", "dctcp", "vegas", "ledbat", "copa", "westwood"];
  const ECN = [
    ["off", "no ECN"],
    ["classic", "ECN"],
    ["accurate", "Accurate ECN"],
    ["end-slow-start", "ECN, the first mark ends slow start"],
  ];
  const SLOW = [
    ["", "default start"],
    ["standard", "slow start"],
    ["hystart", "HyStart"],
    ["hystart++", "HyStart++"],
    ["search", "SEARCH"],
  ];

  const LINE = [
    ["down", "Downlink", "Mbit/s", RATES],
    ["up", "Uplink", "Mbit/s", RATES],
    ["rtt", "Round-trip time", "ms", TIMES],
    ["loss", "Random loss", "%", LOSSES],
  ];
  const FILE = [
    ["rate", "Rate of the link shown", "Mbit/s", RATES],
    ["delay", "Delay of the link shown", "ms", DELAYS],
    ["loss", "Loss of the link shown", "%", LOSSES],
  ];

  /** The place of the value that is nearest. */
  function nearest(values, value) {
    const distances = values.map((one) => Math.abs(Math.log((one + 0.01) / (value + 0.01))));
    return distances.indexOf(Math.min(...distances));
  }

  let made = 0;

  /** A slider over values, whose text has the unit. `move(value)` is called as it moves. */
  function slider(label, unit, values, value, move) {
    const id = `lab-slider-${(made += 1)}`;
    const input = element("input", { type: "range", id, min: 0, max: values.length - 1, step: 1 });
    const text = (number) => `${number}${unit === "" ? "" : ` ${unit}`}`;
    const output = element("output", { htmlFor: id, textContent: text(value) });
    input.value = nearest(values, value);
    input.ariaValueText = text(value);
    input.addEventListener("input", () => {
      const chosen = values[input.value];
      output.textContent = text(chosen);
      input.ariaValueText = text(chosen);
      move(chosen);
    });
    const name = element("label", { htmlFor: id, textContent: label });
    return element("div", { className: "lab-slider" }, name, output, input);
  }

  function choice(label, options, value, choose) {
    const select = element("select", { ariaLabel: label });
    select.append(...options.map(([key, text]) => new Option(text, key)));
    if (![...select.options].some((option) => option.value === value)) {
      select.append(new Option(value, value));
    }
    select.value = value;
    select.addEventListener("change", () => choose(select.value));
    return select;
  }

  /** The sliders of a state at a time; `set(key, value, row)` changes it during the run. */
  function sliders(state, now, defaults, set) {
    const list = state.kind === "line" ? LINE : FILE;
    return list
      .filter(([key]) => state.kind === "line" || defaults[key] !== null)
      .map(([key, label, unit, values]) => {
        const value = lab.model.current(state, key, undefined, now) ?? defaults[key];
        return slider(label, unit, values, value, (chosen) => set(key, chosen));
      });
  }

  /** The rows of the traffic at a time; `restart(state)` begins again with another state. */
  function traffic(state, now, set, restart) {
    const change = (edit) => {
      const next = structuredClone(state);
      edit(next);
      next.changes = [];
      restart(next);
    };
    const rows = state.rows.map((row, place) => {
      const noun = row.direction === "down" ? "downloads" : "uploads";
      const remove = element("button", { type: "button", textContent: "Remove", ariaLabel: `Remove these ${noun}` });
      remove.addEventListener("click", () => change((next) => next.rows.splice(place, 1)));
      const pick = (key, label, options) =>
        choice(`${label} of these ${noun}`, options, row[key], (value) =>
          change((next) => (next.rows[place][key] = value)),
        );
      const count = lab.model.current(state, "count", place, now);
      return element(
        "fieldset",
        {},
        element("legend", { textContent: row.direction === "down" ? "Downloads" : "Uploads" }),
        slider("Flows", "", COUNTS, count, (value) => set("count", value, place)),
        element(
          "div",
          { className: "lab-buttons" },
          pick("cc", "Congestion control", CONTROLS.map((name) => [name, name])),
          pick("ecn", "ECN", ECN),
          pick("slow", "Start", SLOW),
          ...(state.rows.length > 1 ? [remove] : []),
        ),
      );
    });
    const add = (direction, text) => {
      const button = element("button", { type: "button", textContent: text });
      const row = { direction, count: 1, cc: "cubic", ecn: "off", slow: "" };
      button.addEventListener("click", () => change((next) => next.rows.push(row)));
      return button;
    };
    const check = (key, text) => {
      const box = element("input", { type: "checkbox", checked: state[key] });
      box.addEventListener("change", () => change((next) => (next[key] = box.checked)));
      return element("label", { className: "lab-check" }, box, ` ${text}`);
    };
    return [
      ...rows,
      element("div", { className: "lab-buttons" }, add("down", "Add downloads"), add("up", "Add uploads")),
      check("call", "A voice call in both directions"),
      check("modem", "The queue is in a router before a modem"),
    ];
  }

  /** What a scenario file has of traffic, in words. */
  function groups(plan) {
    const counts = new Map();
    for (const { group, type } of plan.flows) {
      const key = group === type ? type : `${group} (${type})`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const items = [...counts].map(([name, count]) => element("li", { textContent: `${count} × ${name}` }));
    return [element("ul", {}, ...items)];
  }

  return { sliders, traffic, groups };
})();
