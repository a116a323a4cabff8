// The answer: what two queues did so far, in one sentence and a table.
"use strict";
(globalThis.lab ??= {}).answer = (function () {
  // The flows of a line start after 1 s; slow start is part of the answer, the idle line is not.
  const FROM_S = 1.5;
  // Fairness is that of the last seconds: flows may come and go.
  const RECENT_S = 10;
  // Groups of flows in the table.
  const GROUPS = 4;

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  function quantile(values, q) {
    const sorted = [...values].sort((one, two) => one - two);
    return sorted[Math.min(Math.floor(q * sorted.length), sorted.length - 1)];
  }

  /** Three significant digits, without an exponent below a million. */
  function significant(value) {
    const rounded = Number(value.toPrecision(3));
    return Math.abs(rounded) < 1e6 ? String(rounded) : value.toExponential(2);
  }

  /** Delays in the queue that pings met, in ms: their RTT without that of the idle line. */
  function pingDelays(series) {
    const delays = [];
    series.plan.flows.forEach((flow, n) => {
      const { t_s: sent, rtt_ms: rtts } = series.pings[n];
      rtts.forEach((rtt, k) => {
        if (rtt !== null && sent[k] >= FROM_S) {
          delays.push(Math.max(rtt - flow.base_rtt_ms, 0));
        }
      });
    });
    return delays;
  }

  const isBulk = ({ type }) => ["tcp", "quic"].includes(type);

  /** Mean goodput of a flow in Mbit/s from a time on; null if it was not at work. */
  function goodput(series, n, from) {
    const { t_s: times = [], mbit_per_s: rates = [] } = series.flows[n];
    const chosen = rates.filter((_, k) => times[k] >= from);
    return chosen.length > 0 ? mean(chosen) : null;
  }

  /** Goodput of all flows of a direction; null without flows. Flows count for the samples in which they are at work. */
  function total(series, direction) {
    const samples = (series.links[0]?.t_s ?? []).filter((at) => at >= FROM_S).length;
    const sums = series.plan.flows.flatMap((flow, n) => {
      const { t_s: times = [], mbit_per_s: rates = [] } = series.flows[n];
      return flow.direction === direction ? rates.filter((_, k) => times[k] >= FROM_S) : [];
    });
    return sums.length > 0 && samples > 0 ? sums.reduce((one, two) => one + two, 0) / samples : null;
  }

  /** Jain's index of the bulk flows of a direction: 1 if all get the same; null with fewer than two. */
  function fairness(series, direction) {
    const from = Math.max(FROM_S, series.now / 1000 - RECENT_S);
    const rates = series.plan.flows.flatMap((flow, n) => {
      const rate = isBulk(flow) && flow.direction === direction ? goodput(series, n, from) : null;
      return rate === null ? [] : [rate];
    });
    const squares = rates.reduce((sum, rate) => sum + rate * rate, 0);
    return rates.length > 1 && squares > 0
      ? rates.reduce((sum, rate) => sum + rate, 0) ** 2 / (rates.length * squares)
      : null;
  }

  /** The name of a flow without its number, in words. */
  function groupName(name) {
    const [, group] = /^(.*?)(?:[ /]\d+)?$/.exec(name);
    return group.replace(/ down\b/, " downloads").replace(/ up\b/, " uploads");
  }

  /** Delays that groups of bulk flows saw, in ms, by name: their smoothed RTT without that of the idle line. */
  function groupDelays(series) {
    const groups = new Map();
    series.plan.flows.forEach((flow, n) => {
      const { t_s: times = [], srtt_ms: srtts = [] } = series.flows[n];
      if (isBulk(flow)) {
        const name = groupName(flow.name);
        const delays = srtts.filter((srtt, k) => srtt !== null && times[k] >= FROM_S);
        const own = groups.get(name) ?? [];
        own.push(...delays.map((srtt) => Math.max(srtt - flow.base_rtt_ms, 0)));
        groups.set(name, own);
      }
    });
    const known = [...groups].filter(([, delays]) => delays.length > 0).slice(0, GROUPS);
    return Object.fromEntries(known.map(([name, delays]) => [name, mean(delays)]));
  }

  function sum(link, kind) {
    const columns = Object.values(link[kind] ?? {});
    return columns.flat().reduce((one, two) => one + two, 0);
  }

  /** The numbers of an arm. */
  function metrics(series, shown) {
    const pings = pingDelays(series);
    const link = series.links[shown];
    const sojourns = (link.sojourn_ms ?? []).filter((value, k) => value !== null && link.t_s[k] >= FROM_S);
    const name = series.plan.links[shown].name;
    const direction = ["up", "down"].includes(name) ? name : null;
    return {
      ping: pings.length > 0 ? mean(pings) : null,
      ping95: pings.length > 0 ? quantile(pings, 0.95) : null,
      sojourn: sojourns.length > 0 ? mean(sojourns) : null,
      longest: (link.sojourn_ms_max ?? []).reduce((one, two) => Math.max(one, two ?? 0), 0),
      groups: groupDelays(series),
      down: total(series, "down"),
      up: total(series, "up"),
      fairness: fairness(series, direction),
      drops: series.links.reduce((all, one) => all + sum(one, "drops"), 0),
      marks: series.links.reduce((all, one) => all + sum(one, "marks"), 0),
    };
  }

  const ROWS = [
    ["ping", "Ping above the idle line, mean", "ms"],
    ["ping95", "Ping above the idle line, 95th percentile", "ms"],
    ["sojourn", "Time in the queue shown, mean", "ms"],
    ["longest", "Longest time in the queue shown, from 0 s on", "ms"],
    ["down", "Downloads", "Mbit/s"],
    ["up", "Uploads", "Mbit/s"],
    ["fairness", "Jain's fairness index, last 10 s", ""],
    ["drops", "Packets dropped or lost, from 0 s on", ""],
    ["marks", "Packets marked, from 0 s on", ""],
  ];

  const shownValue = (value) => (value === null || value === undefined ? "–" : significant(value));

  /** The rows of the table that have a value: label, values as texts. */
  function rows(both) {
    const known = ROWS.filter(([key]) => both.some((one) => one[key] !== null));
    const groups = [...new Set(both.flatMap((one) => Object.keys(one.groups)))];
    return [
      ...known.map(([key, label, unit]) => [
        unit === "" ? label : `${label} [${unit}]`,
        ...both.map((one) => shownValue(one[key])),
      ]),
      ...groups.map((name) => [
        `RTT of ${name} above the idle line [ms]`,
        ...both.map((one) => shownValue(one.groups[name])),
      ]),
    ];
  }

  const isClose = (less, more) => more < 1.1 * less || more - less < 0.1;

  /** What two delays are, the shorter one first. */
  function compared(names, values, what, than) {
    const best = values[0] <= values[1] ? 0 : 1;
    const [less, more] = [values[best], values[1 - best]];
    return isClose(less, more)
      ? `With both queues, ${what} ${significant(more)} ms${than}.`
      : `With ${names[best]}, ${what} ${significant(less)} ms${than}; with ${names[1 - best]}, ${significant(more)} ms.`;
  }

  /** The group of flows whose delays differ, if those of pings do not. */
  function otherDelay(names, both) {
    const group = Object.keys(both[0].groups).find((name) => {
      const values = both.map((one) => one.groups[name] ?? 0).sort((one, two) => one - two);
      return values[1] > 2 * values[0] && values[1] - values[0] > 2;
    });
    if (group === undefined) {
      return "";
    }
    const values = both.map((one) => one.groups[group] ?? 0);
    return ` ${compared(names, values, `${group} wait`, " in queues")}`;
  }

  /** The answer in one or two sentences. */
  function sentence(names, both) {
    const isPing = both.every(({ ping }) => ping !== null);
    const delays = both.map(({ ping, sojourn }) => (isPing ? ping : sojourn));
    if (delays.some((delay) => delay === null)) {
      return "The line is idle.";
    }
    const delay = isPing
      ? compared(names, delays, "a ping takes", " longer than on an idle line")
      : compared(names, delays, "a packet waits", " in the queue");
    const key = both.every(({ down }) => down !== null) ? "down" : "up";
    const rates = both.map((one) => one[key]);
    const more = delay.startsWith("With both") ? otherDelay(names, both) : "";
    if (rates.some((rate) => rate === null)) {
      return delay + more;
    }
    const best = delays[0] <= delays[1] ? 0 : 1;
    const [one, two] = delay.startsWith("With both") ? [0, 1] : [best, 1 - best];
    const noun = key === "down" ? "Downloads" : "Uploads";
    const texts = [one, two].map((n) => `${significant(rates[n])} Mbit/s with ${names[n]}`);
    const isSame = significant(rates[0]) === significant(rates[1]);
    const total = isSame ? `${significant(rates[0])} Mbit/s with both` : texts.join(" and ");
    return `${delay}${more} ${noun} get ${total}.`;
  }

  return { metrics, rows, sentence, significant };
})();
