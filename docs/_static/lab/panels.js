// The panels of the page: plots of both queues, and the lists of their drops and marks.
"use strict";
(globalThis.lab ??= {}).panels = (function () {
  // Rows of the list of drops and marks.
  const LISTED = 6;
  // A plot without points is hidden after this time.
  const EMPTY_MS = 2000;
  // Flows in a plot; the names of the first half are listed.
  const MOST_FLOWS = 16;
  // Samples over which goodput is averaged: a sample may contain a part of a burst.
  const SMOOTHED = 10;
  const REASONS = [
    ["drops", "overlimit", "full"],
    ["drops", "aqm", "AQM"],
    ["drops", "ack_filter", "ACK filter"],
    ["drops", "replaced", "replaced"],
    ["drops", "wire", "lost"],
    ["marks", "aqm", "marked"],
    ["marks", "ce_threshold", "marked, threshold"],
  ];

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const empty = [[], []];

  function cumulative(values) {
    let sum = 0;
    return values.map((value) => (sum += value));
  }

  /** Means of the values up to each. */
  function smooth(values) {
    let sum = 0;
    return values.map((value, n) => {
      sum += value - (values[n - SMOOTHED] ?? 0);
      return sum / Math.min(n + 1, SMOOTHED);
    });
  }

  /** The plots of two series. */
  class Panels {
    #host;
    #names = ["", ""];
    #series = [];
    #shown = [0, 0];
    #figures = new Map();
    #state = null;
    #signature = "";
    #marks = [];

    constructor(host) {
      this.#host = host;
      this.#add("ping", "Ping above the idle line [ms]");
      this.#add("backlog", "Backlog [packets]");
      this.#add("rate0", "Goodput per flow, mean of 10 samples [Mbit/s]", 0);
      this.#add("rate1", "Goodput per flow, mean of 10 samples [Mbit/s]", 1);
      this.#add("window0", "Congestion window per flow [packets]", 0);
      this.#add("window1", "Congestion window per flow [packets]", 1);
      this.#add("state", "State of the queue:");
      this.#add("events", "Drops and marks at the queue shown, by reason");
      this.select = element("select", { ariaLabel: "State of the queue" });
      this.select.addEventListener("change", () => {
        this.#state = this.select.value;
        this.show();
      });
      this.#figures.get("state").caption.append(" ", this.select);
    }

    #add(key, title, arm) {
      const host = element("div", { className: "lab-plot", role: "img", ariaLabel: title });
      const name = element("span");
      const heading = element("span", { textContent: title });
      const key_ = element("span", { className: "lab-legend" });
      const caption = element("figcaption", {}, heading, " ", name, key_);
      const figure = element("figure", {}, caption, host);
      this.#host.append(figure);
      this.#figures.set(key, { figure, plot: new lab.plots.Plot(host), host, caption, name, legend: key_, arm, title });
    }

    /** Shows two runs; `shown` is the link of each whose queue is plotted, `marks` are the times of changes. */
    begin(names, series, shown, marks) {
      this.#names = names;
      this.#series = series;
      this.#shown = shown;
      this.#marks = marks;
      this.#signature = "";
      this.show();
    }

    restyle() {
      this.#figures.forEach(({ plot }) => plot.restyle());
      this.#signature = "";
      this.show();
    }

    #link(n) {
      return this.#series[n].links[this.#shown[n]];
    }

    /** The lines of each plot: a label, a colour, and the points. */
    #lines() {
      const both = (points) => this.#names.map((label, n) => ({ label, colour: n, points: points(n) }));
      const lines = {
        ping: both((n) => this.#pings(this.#series[n])),
        backlog: both((n) => [this.#link(n).t_s ?? [], this.#link(n).backlog_packets ?? []]),
        state: both((n) => this.#states(n)),
        events: [0, 1].flatMap((n) => this.#reasons(n)),
      };
      for (const n of [0, 1]) {
        lines[`rate${n}`] = this.#flows(n, "mbit_per_s");
        lines[`window${n}`] = this.#flows(n, "cwnd_packets");
      }
      return lines;
    }

    #pings(series) {
      const number = series.plan.flows.findIndex((_, n) => series.pings[n].t_s.length > 0);
      if (number < 0) {
        return empty;
      }
      const { t_s: sent, rtt_ms: rtts } = series.pings[number];
      const base = series.plan.flows[number].base_rtt_ms;
      return [sent, rtts.map((rtt) => (rtt === null ? null : Math.max(rtt - base, 0)))];
    }

    #states(n) {
      const link = this.#link(n);
      const values = link.state?.[this.#state];
      return values === undefined ? empty : [link.t_s, values];
    }

    #reasons(n) {
      const link = this.#link(n);
      const lines = REASONS.flatMap(([kind, reason, label]) => {
        const values = link[kind]?.[reason] ?? [];
        return values.some((value) => value > 0)
          ? [{ label: `${this.#names[n]}: ${label}`, colour: n, points: [link.t_s, cumulative(values)] }]
          : [];
      });
      return lines.map((line, dash) => ({ ...line, dash }));
    }

    /** The flows with values, those of datagrams last. */
    #flows(n, key) {
      const series = this.#series[n];
      const lines = series.plan.flows.flatMap(({ name, type }, flow) => {
        const { t_s: times, [key]: values } = series.flows[flow];
        const known = values?.some((value) => value !== null && (key !== "cwnd_packets" || value > 0));
        const shown = key === "mbit_per_s" ? smooth(values) : values;
        return known && type !== "ping" ? [{ label: name, points: [times, shown] }] : [];
      });
      const drawn = lines.slice(0, MOST_FLOWS);
      return drawn.map((line, place) => ({ ...line, colour: place, dash: Math.floor(place / 8) }));
    }

    #offerStates() {
      const names = [...new Set([0, 1].flatMap((n) => Object.keys(this.#link(n).state ?? {})))].sort();
      if (names.join() === [...this.select.options].map(({ value }) => value).join()) {
        return;
      }
      if (!names.includes(this.#state)) {
        const usual = ["prob", "average", "count", "dropping_flows", "delay", "backlog"];
        this.#state = usual.find((name) => names.includes(name)) ?? names[0] ?? null;
      }
      this.select.hidden = names.length === 0;
      this.#figures.get("state").name.textContent = names.length === 0 ? "these queues have none" : "";
      this.select.replaceChildren(...names.map((name) => new Option(name, name)));
      this.select.value = this.#state ?? "";
    }

    /** Selects a number of the state of the queues. */
    choose(state) {
      this.#state = state;
      if ([...this.select.options].some(({ value }) => value === state)) {
        this.select.value = state;
      }
      this.show();
    }

    /** Scrolls the plot of the state into view. */
    reveal() {
      this.#figures.get("state").figure.scrollIntoView({ block: "nearest" });
    }

    /** Draws what was sampled so far. */
    show() {
      if (this.#series.length === 0) {
        return;
      }
      this.#offerStates();
      const lines = this.#lines();
      const end = this.#series[0].plan.duration_ms / 1000;
      const signature = JSON.stringify([end, Object.values(lines).map((all) => all.map(({ label }) => label))]);
      const isNew = signature !== this.#signature;
      this.#signature = signature;
      const most = this.#most(lines);
      for (const [key, { plot, figure, legend, arm, name }] of this.#figures) {
        plot.show(lines[key].map(({ points }) => points), most(key));
        // Some scenarios have no pings, and some queues no state.
        const isEmpty = lines[key].every(({ points: [, values] }) => values.length === 0);
        figure.hidden = isEmpty && this.#series[0].now > EMPTY_MS;
        if (isNew) {
          plot.begin(lines[key], end, this.#marks);
          if (arm !== undefined) {
            name.textContent = `with ${this.#names[arm]}`;
          }
          legend.replaceChildren(...this.#legend(lines[key]));
        }
      }
    }

    /** The largest value of a plot; of both, if the other one shows the same of the other queue. */
    #most(lines) {
      const largest = (key) =>
        lines[key].reduce((all, { points: [, values] }) => values.reduce((one, two) => Math.max(one, two ?? 0), all), 0);
      const pair = { rate0: "rate1", rate1: "rate0", window0: "window1", window1: "window0" };
      return (key) => Math.max(largest(key), key in pair ? largest(pair[key]) : 0);
    }

    #legend(lines) {
      const more = lines.length - MOST_FLOWS / 2;
      const rest = more > 0 ? [`and ${more} more`] : [];
      const entries = lines.slice(0, MOST_FLOWS / 2).map(({ label, colour, dash = 0 }) => {
        const swatch = element("span", { className: `lab-swatch lab-dash-${dash % 4}`, ariaHidden: "true" });
        swatch.style.setProperty("--lab-colour", lab.plots.colour(colour));
        return element("span", { className: "lab-entry" }, swatch, label);
      });
      return [...entries, ...rest];
    }

    /** Describes the plots in words, for those who do not see them. */
    describe() {
      const lines = this.#lines();
      for (const [key, { host, title, arm }] of this.#figures) {
        const last = lines[key].map(({ label, points: [, values] }) => {
          const value = values.findLast((one) => one !== null);
          const most = values.reduce((one, two) => Math.max(one, two ?? 0), 0);
          const shown = value === undefined ? "nothing" : lab.answer.significant(value);
          return `${label}: now ${shown}, at most ${lab.answer.significant(most)}`;
        });
        const what = key === "state" ? `${title} ${this.#state}` : title;
        const whose = arm === undefined ? "" : ` with ${this.#names[arm]}`;
        host.ariaLabel = `${what}${whose}. ${last.join("; ") || "Nothing yet."}`;
      }
    }

    /** The lists of the newest drops and marks; `ask(arm, number)` explains one. */
    list(host, ask) {
      const tables = this.#series.map((series, arm) => {
        const rows = series.events.slice(-LISTED).reverse().map((event) => this.#row(event, arm, ask));
        const caption = element("caption", {
          textContent: `${this.#names[arm]}: ${series.count.toLocaleString("en")} drops, marks and losses`,
        });
        const heads = ["Time", "Flow", "What", "Why"].map((textContent) => element("th", { scope: "col", textContent }));
        const head = element("thead", {}, element("tr", {}, ...heads));
        return element("div", { className: "lab-table" }, element("table", {}, caption, head, element("tbody", {}, ...rows)));
      });
      host.replaceChildren(...tables);
    }

    #row([number, at, link, flow, action, reason], arm, ask) {
      const { plan } = this.#series[arm];
      const button = element("button", {
        type: "button",
        textContent: "Why?",
        ariaLabel: `Why this ${action} at ${at.toFixed(3)} s?`,
      });
      button.addEventListener("click", () => ask(arm, number));
      const what = `${action} (${reason === "wire" ? "on the wire" : reason}) at ${plan.links[link].name}`;
      const cells = [`${at.toFixed(3)} s`, plan.flows[flow].name, what];
      return element("tr", {}, ...cells.map((textContent) => element("td", { textContent })), element("td", {}, button));
    }
  }

  return { Panels, element };
})();
