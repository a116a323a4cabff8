// The plots: uPlot with the colours of the page, which change with its theme.
"use strict";
(globalThis.lab ??= {}).plots = (function () {
  const HEIGHT = 170;
  // Colours of Okabe and Ito, those of the first two for the two queues.
  const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#666666"];
  const DARK = ["#56A9E0", "#F07F35", "#21B98F", "#D995BB", "#E69F00", "#8CCBF2", "#C8638F", "#A8A8A8"];
  // Dashes tell lines of one colour apart.
  const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

  const isDark = () => document.documentElement.dataset.theme === "dark";
  const colour = (n) => (isDark() ? DARK : LIGHT)[n % LIGHT.length];
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** A value of an axis, in thousands or millions if it is long. */
  function short(value) {
    const units = [[1e6, "M"], [1e4, "k"]];
    const [, unit] = units.find(([least]) => value >= least) ?? [0, ""];
    const scaled = { M: value / 1e6, k: value / 1e3, "": value }[unit];
    return `${lab.answer.significant(scaled)}${unit}`;
  }

  function axis(more) {
    return {
      stroke: style("--pst-color-text-muted") || "#666",
      grid: { stroke: style("--pst-color-border") || "#ccc", width: 1 },
      ticks: { stroke: style("--pst-color-border") || "#ccc", width: 1 },
      font: "12px system-ui, sans-serif",
      ...more,
    };
  }

  /** A plot over the time of the run. */
  class Plot {
    #host;
    #plot = null;
    #lines = [];
    #end = 1;
    #data = [[]];
    #most = 0;
    #marks = [];

    constructor(host) {
      this.#host = host;
      new ResizeObserver(() => this.#resize()).observe(host);
    }

    /** Shows lines {label, colour, dash} and marks times: the first time, and when they or the end change. */
    begin(lines, end, marks) {
      this.#lines = lines;
      this.#end = end;
      this.#marks = marks;
      this.#build();
    }

    /** Draws again with the colours of the theme. */
    restyle() {
      this.#build();
    }

    #build() {
      this.#plot?.destroy();
      const lines = this.#lines.map(({ label, colour: own, dash = 0 }) => ({
        label,
        stroke: colour(own),
        width: 1.5,
        dash: DASHES[dash % DASHES.length],
        points: { show: false },
        spanGaps: true,
        value: (_, value) => (value == null ? "–" : lab.answer.significant(value)),
      }));
      const options = {
        width: Math.max(this.#host.clientWidth, 100),
        height: HEIGHT,
        scales: {
          x: { time: false, range: () => [0, this.#end] },
          y: { range: () => [0, Math.max(this.#most, 1e-3) * 1.05] },
        },
        axes: [
          axis({ values: (_, ticks) => ticks.map((tick) => `${tick} s`), size: 30 }),
          axis({ size: 52, values: (_, ticks) => ticks.map(short) }),
        ],
        series: [{ label: "t", value: (_, value) => (value == null ? "–" : `${value.toFixed(2)} s`) }, ...lines],
        cursor: { sync: { key: "lab" }, drag: { x: false, y: false }, y: false },
        legend: { show: false },
        hooks: { drawAxes: [(plot) => this.#drawMarks(plot)] },
      };
      this.#plot = new uPlot(options, this.#data, this.#host);
    }

    /** A vertical line at each change. */
    #drawMarks(plot) {
      const { ctx: context, bbox } = plot;
      context.save();
      context.strokeStyle = style("--pst-color-text-muted") || "#666";
      context.lineWidth = devicePixelRatio;
      context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      context.beginPath();
      for (const mark of this.#marks) {
        const x = Math.round(plot.valToPos(mark, "x", true));
        context.moveTo(x, bbox.top);
        context.lineTo(x, bbox.top + bbox.height);
      }
      context.stroke();
      context.restore();
    }

    #resize() {
      const width = this.#host.clientWidth;
      if (this.#plot !== null && width > 0 && width !== this.#plot.width) {
        this.#plot.setSize({ width, height: HEIGHT });
      }
    }

    /** Shows lines of points, each a pair of times and values; the axis ends at `most`. */
    show(lines, most) {
      const all = lines.length > 0 ? uPlot.join(lines) : [[]];
      this.#most = most;
      while (all.length <= this.#lines.length) {
        all.push(all[0].map(() => null));
      }
      this.#data = all;
      this.#plot?.setData(all);
    }
  }

  return { Plot, colour };
})();
