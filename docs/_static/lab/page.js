// The page: holds the state, has the worker run it, and shows what it returns.
"use strict";
(function () {
  const { element, Panels } = lab.panels;
  const by = (id) => document.getElementById(`lab-${id}`);
  // Milliseconds of the clock between two answers of the worker while the run plays, and after the last move of a slider.
  const FRAME_MS = 60;
  const SETTLE_MS = 120;
  // The part of a run after which a step of a lesson comes too late.
  const LATE = 0.6;
  const PREFIX = "#lab=";

  const page = {
    state: lab.model.initial(),
    described: null,
    series: [],
    names: [],
    queues: [],
    panels: null,
    playing: true,
    // Number of the last load: answers about earlier ones are ignored.
    load: 0,
    // Number of the load that is shown; while another is under way, the worker has no run to advance.
    begun: 0,
    // Number of changes that the controls show.
    applied: null,
  };

  // --- The worker -----------------------------------------------------------------------------------------------

  const source = `(${lab.worker})((${lab.engine})());`;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const waiting = new Map();
  let asked = 0;

  worker.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) {
      resolve(value);
    } else {
      reject(new Error(error));
    }
  };

  function ask(call, values = {}) {
    asked += 1;
    const id = asked;
    worker.postMessage({ id, call, ...values });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  // --- Running --------------------------------------------------------------------------------------------------

  const durationMs = () => page.series[0].plan.duration_ms;
  const isFinished = () => page.series.length > 0 && page.series.every(({ finished }) => finished);

  function fail(error) {
    by("error").textContent = error.message;
    by("error").hidden = false;
    by("error").scrollIntoView({ block: "nearest" });
    page.playing = false;
    by("play").textContent = "Play";
  }

  /** Runs the state from the start up to a time. */
  async function load(until) {
    page.load += 1;
    const number = page.load;
    try {
      if (page.state.kind === "file") {
        page.described = await ask("describe", { text: fileText(page.state) });
      }
      const { scenario, arms } = lab.model.scenario(page.state, page.described);
      const { plans, samples } = await ask("load", { text: JSON.stringify(scenario), arms, until: Math.round(until) });
      if (number !== page.load) {
        return;
      }
      by("error").hidden = true;
      page.series = plans.map((plan) => new lab.series.Series(plan));
      page.series.forEach((series, n) => series.add(samples[n]));
      page.names = names(page.state);
      page.begun = number;
      begin();
    } catch (error) {
      if (number === page.load) {
        fail(error);
      }
    }
  }

  function fileText(state) {
    return state.text ?? lab.generated.studies[state.study].toml;
  }

  /** What the page calls the two queues: without their parameters if the names differ. */
  function names(state) {
    const whole = state.kind === "line" ? lab.model.armNames(state) : [state.a, state.b];
    const short = whole.map((name) => name.split(" ")[0]);
    return state.kind === "line" && short[0] !== short[1] ? short : whole;
  }

  function add(samples) {
    page.series.forEach((series, n) => series.add(samples[n]));
  }

  /** Advances to a time; the worker may stop earlier after `budget` milliseconds of the clock. */
  async function advance(until, budget) {
    const number = page.load;
    if (number !== page.begun) {
      return;
    }
    const from = page.series[0].now;
    const to = Math.min(Math.round(until), durationMs());
    const { samples } = await ask("advance", { from, until: Math.max(to, from), budget });
    if (number === page.load) {
      add(samples);
      show();
    }
  }

  let last = performance.now();
  let busy = false;

  async function tick() {
    const now = performance.now();
    const elapsed = Math.min(now - last, 250);
    last = now;
    if (page.playing && !busy && page.series.length > 0 && !isFinished()) {
      busy = true;
      try {
        await advance(page.series[0].now + elapsed * Number(by("speed").value), FRAME_MS);
      } catch (error) {
        fail(error);
      }
      busy = false;
    }
    setTimeout(tick, FRAME_MS);
  }

  function setPlaying(playing) {
    page.playing = playing;
    by("play").textContent = isFinished() ? "Play again" : playing ? "Pause" : "Play";
    if (!playing && page.series.length > 0) {
      page.panels.describe();
      by("status").textContent = `${isFinished() ? "Finished" : "Paused"} at ${by("now").textContent}. ${by("answer").textContent}`;
    }
  }

  // --- Showing --------------------------------------------------------------------------------------------------

  /** The number of the link that is shown, in each arm. */
  function shown() {
    return page.series.map(({ plan }) => Math.max(plan.links.findIndex(({ name }) => name === page.state.link), 0));
  }

  /** A new run: its names, links and controls. */
  function begin() {
    by("why").hidden = true;
    const links = page.series[0].plan.links.map(({ name }) => name);
    if (!links.includes(page.state.link)) {
      page.state.link = links.at(-1);
    }
    by("shown").replaceChildren(...links.map((name) => new Option(name, name)));
    by("shown").value = page.state.link;
    by("duration").textContent = String(durationMs() / 1000);
    document.querySelectorAll("#lab [data-name]").forEach((cell) => {
      cell.textContent = page.names[Number(cell.dataset.name)];
    });
    const times = [...new Set(page.state.changes.map(({ at }) => at / 1000))];
    page.panels.begin(page.names, page.series, shown(), times);
    page.applied = null;
    show();
    document.getElementById("lab").dataset.state = "ready";
    performance.mark("lab-shown");
    history.replaceState(null, "", PREFIX + lab.model.encoded(page.state));
    if (page.playing && isFinished()) {
      setPlaying(false);
    } else {
      by("play").textContent = page.playing ? "Pause" : isFinished() ? "Play again" : "Play";
    }
  }

  function show() {
    const places = shown();
    const both = page.series.map((series, n) => lab.answer.metrics(series, places[n]));
    by("answer").textContent = lab.answer.sentence(page.names, both);
    const rows = lab.answer.rows(both).map(([label, ...values]) => {
      const cells = values.map((textContent) => element("td", { textContent }));
      return element("tr", {}, element("th", { scope: "row", textContent: label }), ...cells);
    });
    by("numbers").replaceChildren(...rows);
    page.panels.show();
    const isAsking = by("events").contains(document.activeElement);
    if (!page.playing || !isAsking) {
      page.panels.list(by("events"), (arm, number) => explain(arm, number).catch(fail));
    }
    const now = page.series[0].now;
    const applied = page.state.changes.filter(({ at }) => at <= now + 1).length;
    if (applied !== page.applied) {
      page.applied = applied;
      controls(now + 1);
    }
    by("now").textContent = `${(now / 1000).toFixed(now % 100 === 0 ? 1 : 2)} s`;
    by("progress").value = now / durationMs();
    if (page.playing && isFinished()) {
      setPlaying(false);
    }
  }

  async function explain(arm, number) {
    setPlaying(false);
    const event = await ask("event", { arm, number });
    const { plan, flows } = page.series[arm];
    const { sentence, lines } = lab.why.explained(event, page.names[arm], plan, sender(flows[event.flow], event));
    const list = element("dl");
    lines.forEach(([name, text]) =>
      list.append(element("dt", { textContent: name }), element("dd", { textContent: text })),
    );
    by("why").replaceChildren(element("p", { textContent: sentence }), list);
    by("why").hidden = false;
    by("why").focus();
  }

  /** How the window of the sender changed within half a second after an event. */
  function sender({ t_s: times = [], cwnd_packets: windows = [] }, event) {
    const before = times.findLastIndex((at) => at <= event.t_s);
    if (before < 0 || windows[before] === null) {
      return "";
    }
    const after = windows.filter((window, n) => window !== null && n > before && times[n] <= event.t_s + 0.5);
    const least = Math.min(...after);
    if (after.length === 0) {
      return `window of ${windows[before]} packets; advance to see what it does`;
    }
    return least < windows[before]
      ? `the window falls from ${windows[before]} to ${least} packets within 0.5 s`
      : `the window of ${windows[before]} packets does not fall within 0.5 s`;
  }

  // --- Controls -------------------------------------------------------------------------------------------------

  let settling = null;

  /** A slider moved: the change holds from now on. The run is repeated up to now, which gives the same samples. */
  function set(key, value, row) {
    // After the end, a change shows nothing: it happens in the middle, and the run is repeated.
    const now = isFinished() ? durationMs() / 2 : page.series[0].now;
    const at = now > 0 ? Math.min(Math.round(now) + 1, durationMs() - 1) : 0;
    page.state = lab.model.changed(page.state, at, key, value, row);
    clearTimeout(settling);
    settling = setTimeout(() => load(isFinished() ? durationMs() : page.series[0].now), SETTLE_MS);
  }

  /** Begins again with another state. */
  function restart(state, playing = true) {
    clearTimeout(settling);
    page.state = state;
    page.playing = playing;
    return load(0);
  }

  /** Shows the values of the controls at a time: those of a change that the user just made, too. */
  function controls(now) {
    const { state } = page;
    // A control that has the focus keeps it: it already shows what the user chose.
    const focused = document.activeElement;
    const keep = (host) => host.contains(focused) && focused.type === "range";
    const link = page.series[0].plan.links.find(({ name }) => name === state.link);
    const told = page.described?.scenario.links[state.link] ?? {};
    const defaults = { rate: link.rate_mbit_per_s, delay: lab.model.milliseconds(told.delay), loss: parseFloat(told.loss ?? 0) };
    if (!keep(by("sliders"))) {
      by("sliders").replaceChildren(...lab.controls.sliders(state, now, defaults, set));
    }
    if (!keep(by("traffic"))) {
      const isLine = state.kind === "line";
      const traffic = isLine ? lab.controls.traffic(state, now, set, restart) : lab.controls.groups(page.series[0].plan);
      const before = [...by("traffic").querySelectorAll("select, input")].indexOf(focused);
      by("traffic").replaceChildren(...traffic);
      by("traffic").querySelectorAll("select, input")[before]?.focus();
    }
    by("a").value = state.a;
    by("b").value = state.b;
    const names = state.kind === "line" ? page.queues : page.described.arms.map((name) => ({ name, summary: "" }));
    by("queues").replaceChildren(...names.map(({ name, summary }) => new Option(summary, name)));
    by("hint").hidden = state.kind !== "line";
    by("seconds").value = state.duration;
  }

  // --- Lessons and studies --------------------------------------------------------------------------------------

  function offer() {
    const group = (label, options) => {
      const made = element("optgroup", { label });
      made.append(...options);
      return made;
    };
    const lessons = lab.lessons.map(({ name, title }) => new Option(title, `lesson ${name}`));
    const studies = Object.entries(lab.generated.studies);
    const papers = studies.map(([name, { title }]) => new Option(title, `study ${name}`));
    const own = new Option("Own line", "");
    by("begin").replaceChildren(own, group("Lessons", lessons), group("Figures of reproduced papers", papers));
  }

  /** Shows the text of a lesson or study, and the steps of a lesson. */
  function describe(value) {
    const [kind, name] = value.split(" ");
    const lesson = lab.lessons.find((one) => kind === "lesson" && one.name === name);
    const study = kind === "study" ? lab.generated.studies[name] : undefined;
    by("begin").value = lesson || study ? value : "";
    by("lesson").hidden = by("begin").value === "";
    by("lesson-steps").replaceChildren(...(lesson?.steps ?? []).map(lessonStep));
    by("lesson-text").innerHTML = lesson?.text ?? "";
    if (study) {
      by("lesson-text").textContent = study.text;
    }
    return { lesson, study, name };
  }

  function choose(value) {
    const { lesson, study, name } = describe(value);
    if (lesson) {
      restart({ ...structuredClone(lesson.state), lesson: name });
    } else if (study) {
      const { a, b, link, duration } = study;
      restart({ kind: "file", study: name, a, b, link, duration, changes: [] });
    } else {
      restart(lab.model.initial());
    }
  }

  /** The lesson or study of an address, in the words of the choice. */
  const chosen = ({ lesson, study }) => (lesson ? `lesson ${lesson}` : study ? `study ${study}` : "");

  function lessonStep(step) {
    const item = element("li");
    item.innerHTML = step.text;
    if (step.label !== undefined) {
      const button = element("button", { type: "button", textContent: step.label });
      button.addEventListener("click", () => take(step));
      item.prepend(button, " ");
    }
    return item;
  }

  async function take({ state, change, show: name }) {
    if (name !== undefined) {
      page.panels.choose(name);
      page.panels.reveal();
      return;
    }
    if (state !== undefined) {
      await restart({ ...structuredClone(state), lesson: page.state.lesson });
      return;
    }
    // A step late in a run happens in its middle, so that there is time to see what it does.
    const now = page.series[0].now > durationMs() * LATE ? durationMs() / 2 : page.series[0].now;
    const at = Math.max(Math.round(now) + 1, 1);
    const next = change(page.state, at);
    const isDuring = next.changes.length > page.state.changes.length || next.changes.some((one) => one.at === at);
    page.state = next;
    page.playing = true;
    await load(isDuring ? now : 0);
  }

  // --- What leaves the page -------------------------------------------------------------------------------------

  async function exported(kind) {
    const { scenario, arms } = lab.model.scenario(page.state, page.described);
    const described = { ...(await ask("describe", { text: JSON.stringify(scenario) })), link: page.state.link };
    const files = {
      toml: () => [lab.share.FILE, lab.share.toml(described)],
      command: () => ["lab.sh", lab.share.command(described)],
      notebook: () => ["lab.ipynb", lab.share.notebook(described)],
    };
    if (kind !== "csv") {
      return files[kind]();
    }
    await finish();
    const tables = await Promise.all(arms.map((_, arm) => ask("tables", { arm })));
    const texts = tables.map(({ flows }) => lab.share.csv(flows));
    const [, ...second] = texts[1].split(/(?<=\n)/);
    return ["flows.csv", texts[0] + second.join("")];
  }

  function offerText([name, text]) {
    by("export").hidden = false;
    by("export").dataset.name = name;
    by("export-text").value = text;
    by("export-text").focus();
  }

  async function finish() {
    while (page.load === page.begun && !isFinished()) {
      await advance(durationMs(), FRAME_MS * 4);
    }
  }

  // --- Events ---------------------------------------------------------------------------------------------------

  function listen() {
    by("play").addEventListener("click", () => {
      if (isFinished()) {
        restart(page.state);
      } else {
        setPlaying(!page.playing);
      }
    });
    const paused = (action) => async () => {
      setPlaying(false);
      try {
        await action();
      } catch (error) {
        fail(error);
      }
      setPlaying(false);
    };
    by("step").addEventListener("click", paused(() => advance(page.series[0].now + page.series[0].plan.sample_ms)));
    by("next").addEventListener("click", paused(nextEvent));
    by("end").addEventListener("click", paused(finish));
    by("restart").addEventListener("click", () => restart({ ...structuredClone(page.state), changes: [] }));
    by("shown").addEventListener("change", () => {
      page.state.link = by("shown").value;
      if (page.state.kind === "file" && page.state.changes.length > 0) {
        restart({ ...page.state, changes: [] });
      } else {
        begin();
      }
    });
    by("form").addEventListener("submit", (event) => event.preventDefault());
    for (const key of ["a", "b"]) {
      by(key).addEventListener("change", () => {
        const value = by(key).value.trim();
        restart({ ...page.state, [key]: value, changes: [] });
      });
    }
    by("seconds").addEventListener("change", () => {
      const duration = Math.min(Math.max(Math.round(Number(by("seconds").value)) || 30, 2), 600);
      restart({ ...page.state, duration, changes: [] });
    });
    by("begin").addEventListener("change", () => choose(by("begin").value));
    by("link").addEventListener("click", () => {
      const address = `${location.href.split("#")[0]}${PREFIX}${lab.model.encoded(page.state)}`;
      copy(address, by("link"), "Copy link");
    });
    // The address holds the state, so this link does not change it.
    by("jump").addEventListener("click", (event) => {
      event.preventDefault();
      by("controls").scrollIntoView();
      by("begin").focus();
    });
    document.querySelectorAll("#lab [data-export]").forEach((button) => {
      button.addEventListener("click", () => exported(button.dataset.export).then(offerText).catch(fail));
    });
    by("copy").addEventListener("click", () => copy(by("export-text").value, by("copy"), "Copy"));
    by("save").addEventListener("click", () => lab.share.save(by("export").dataset.name, by("export-text").value));
    by("close").addEventListener("click", () => (by("export").hidden = true));
    by("use").addEventListener("click", useOwn);
    window.addEventListener("hashchange", () => {
      const state = addressed();
      if (state !== null) {
        describe(chosen(state));
        restart(state);
      }
    });
    new MutationObserver(() => page.panels.restyle()).observe(document.documentElement, {
      attributeFilter: ["data-theme"],
    });
  }

  async function nextEvent() {
    const { now, plan } = page.series[0];
    const number = page.load;
    if (number !== page.begun) {
      return;
    }
    const { samples } = await ask("next", { from: now, step: plan.sample_ms, until: durationMs() });
    if (number === page.load) {
      samples.forEach(add);
      show();
    }
  }

  async function copy(text, button, label) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without permission, such as in a page opened from a file, the text can be copied by hand.
      offerText(["lab-link.txt", text]);
      by("export-text").select();
      button.textContent = "Select and copy";
    }
    setTimeout(() => (button.textContent = label), 1500);
  }

  async function useOwn() {
    const text = by("own").value;
    try {
      const { arms, duration_ms: duration, scenario } = await ask("describe", { text });
      const links = Object.entries(scenario.links).filter(([, link]) => typeof link === "object");
      describe("");
      await restart({
        kind: "file",
        text,
        a: arms[0],
        b: arms[1] ?? arms[0],
        link: links.at(-1)[0],
        duration: Math.min(Math.ceil(duration / 1000), 600),
        changes: [],
      });
    } catch (error) {
      fail(error);
    }
  }

  function addressed() {
    return location.hash.startsWith(PREFIX) ? lab.model.decoded(location.hash.slice(PREFIX.length)) : null;
  }

  async function start() {
    if (!lab.generated) {
      fail(new Error("This build of the site has no simulator: run rustup target add wasm32-unknown-unknown and make docs."));
      return;
    }
    page.panels = new Panels(by("plots"));
    offer();
    listen();
    const bytes = Uint8Array.from(atob(lab.generated.module), (character) => character.charCodeAt(0));
    try {
      page.queues = await ask("compile", { bytes });
      const state = addressed() ?? page.state;
      describe(chosen(state));
      await restart(state);
    } catch (error) {
      fail(error);
    }
    tick();
  }

  // Tests read it.
  lab.page = page;
  start();
})();
