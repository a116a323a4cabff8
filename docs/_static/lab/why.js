// Why a packet was dropped or marked, in words: the same as sojourn.result.decisions writes for `sojourn why`.
"use strict";
(globalThis.lab ??= {}).why = (function () {
  // Parameters of queues that a decision depends on, by its reason.
  const PARAMETERS = {
    overlimit: ["limit", "memory_limit", "memlimit", "flow_limit"],
    aqm: ["target", "min", "max", "bytes"],
    ce_threshold: ["ce_threshold", "step_thresh"],
  };
  const DONE = { drop: "dropped", mark: "CE-marked", loss: "lost on the wire" };
  const REASONS = {
    overlimit: " because the queue was full",
    aqm: " by the AQM",
    ack_filter: " by the ACK filter",
    replaced: " with its queue",
    ce_threshold: " above the threshold",
    wire: "",
  };

  const significant = (value) => String(Number(value.toPrecision(3)));
  const milliseconds = (value) => `${significant(value)} ms`;
  const percent = (share) => `${significant(100 * share)} %`;
  const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  /** Bytes in powers of 1000. */
  function size(count) {
    let scaled = count / 1000;
    const units = ["kB", "MB", "GB", "TB"];
    while (units.length > 1 && scaled >= 1000) {
      scaled /= 1000;
      units.shift();
    }
    return `${scaled.toFixed(1)} ${units[0]}`;
  }

  /** Puts a space between a number and its unit. */
  function spaced(value) {
    const bytes = /^(\d+)b$/.exec(value);
    return bytes ? size(Number(bytes[1])) : value.replaceAll(/(\d)(?=[a-z])/g, "$1 ");
  }

  /** The parameters of a queue that a decision depends on. */
  function limitsOf(parameters, reason) {
    const known = PARAMETERS[reason] ?? [];
    return Object.fromEntries(known.flatMap((key) => (key in parameters ? [[key, parameters[key]]] : [])));
  }

  function average(state, limits) {
    const inBytes = limits.bytes === "on" || `${limits.min}`.endsWith("b");
    const text = inBytes ? size(state.average) : `${significant(state.average)} packets`;
    const known = ["min", "max"].filter((key) => key in limits).map((key) => `${key} ${spaced(limits[key])}`);
    return `average ${text}${known.length > 0 ? ` (${known.join(", ")})` : ""}`;
  }

  /** The other numbers of a state. */
  function details(state) {
    const parts = [];
    const own = { L: "prob_l", C: "prob_c" }[state.class] ?? "prob";
    if (state.matched) {
      parts.push("matched a packet of its flow");
    } else if (own in state) {
      parts.push(`probability ${percent(state[own])}`);
    }
    if ("samples" in state) {
      parts.push(`${counted(state.samples, "sample")} of its flow, fair share ${significant(state.fair_share ?? 0)}`);
    }
    if ("bucket" in state) {
      parts.push(`${counted(state.bucket, "packet")} in its emptiest bucket`);
    }
    if ("load" in state) {
      parts.push(`load ${percent(state.load)} in an RTT of ${milliseconds(state.active_rtt / 1000)}`);
    }
    if ("count" in state && !state.matched) {
      parts.push("drop_next" in state ? `count ${state.count}` : `packet ${state.count} since the last signal`);
    }
    return parts;
  }

  /** What a decision follows from. */
  function reasons(event, limits) {
    const state = event.state ?? {};
    const waited = milliseconds(event.waited_ms);
    const limited = Object.entries(limits);
    switch (event.reason) {
      case "overlimit":
        return limited.map(([key, value]) => `${key} ${spaced(value)}`);
      case "ack_filter":
        return ["a later acknowledgement in the queue makes it redundant"];
      case "replaced":
        return ["a change of the link replaced or emptied the queue"];
      case "ce_threshold":
        return limited.map(([key, value]) => `${waited} > ${key} ${spaced(value)}`);
      case "wire":
        return ["the loss of the link is random"];
      default:
    }
    const parts = [{ L: "queue L", C: "queue C" }[state.class] ?? state.class ?? ""];
    if ("delay" in state && "drop_next" in state) {
      const target = "target" in limits ? ` > target ${spaced(limits.target)}` : "";
      const since = "above" in state ? ` for ${milliseconds(state.above / 1000)}` : "";
      parts.push(`${target ? waited : `waited ${waited}`}${target}${since}`);
    } else if ("blue_prob" in state) {
      parts.push(`BLUE probability ${percent(state.blue_prob)}`);
    } else if ("average" in state) {
      parts.push(average(state, limits));
    } else if ("delay" in state && "target" in limits) {
      parts.push(`delay ${milliseconds(state.delay / 1000)}, target ${spaced(limits.target)}`);
    } else if (state.marking) {
      parts.push("marking is on");
    }
    return [...parts, ...details(state)];
  }

  /** The numbers behind a decision of a queue with these parameters, in one line. */
  function decision(event, parameters) {
    const parts = reasons(event, limitsOf(parameters, event.reason)).filter((part) => part !== "");
    const next = event.state?.drop_next;
    const text = parts.join(", ");
    if (next === undefined || event.reason !== "aqm") {
      return text;
    }
    const when = next > 0 ? `in ${milliseconds(next / 1000)}` : "due at once";
    return [text, `next ${event.action} ${when}`].filter((part) => part !== "").join("; ");
  }

  /** The whole explanation: a sentence, and lines of a name and a text. `plan` is that of the arm. */
  function explained(event, arm, plan, sender) {
    const [link, flow] = [plan.links[event.link], plan.flows[event.flow]];
    const waited = event.reason === "wire" ? "" : `, after waiting ${milliseconds(event.waited_ms)}`;
    const sentence =
      `${arm} at ${link.name}: a packet of ${flow.name} was ${DONE[event.action]}` +
      `${REASONS[event.reason]} at ${event.t_s.toFixed(4)} s${waited}.`;
    const backlog =
      event.backlog_packets > 0
        ? `${counted(event.backlog_packets, "other packet")} (${size(event.backlog_bytes)}) waited`
        : "nothing else waited";
    const lines = [
      ["queue", link.qdisc],
      ["decision", decision(event, link.parameters)],
      ...(event.reason === "wire" ? [] : [["backlog", backlog]]),
      ...(sender ? [["sender", sender]] : []),
    ];
    return { sentence, lines: lines.filter(([, text]) => text !== "") };
  }

  return { decision, explained };
})();
