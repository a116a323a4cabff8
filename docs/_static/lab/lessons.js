// Six lessons: each a state to begin with and steps that change it. Texts are HTML.
"use strict";
(globalThis.lab ??= {}).lessons = (function () {
  const row = (direction, count, cc = "cubic", more = {}) => ({
    direction,
    count,
    cc,
    ecn: "off",
    slow: "",
    ...more,
  });

  const line = (keys) => ({ ...lab.model.initial(), ...keys });

  const predict = (keys) =>
    line({
      a: "codel limit 100000",
      b: "predict limit 100000 nodrop fallback",
      rtt: 150,
      duration: 12,
      rows: [row("down", 4, "reno", { ecn: "end-slow-start", slow: "standard" })],
      ...keys,
    });

  return [
    {
      name: "bufferbloat",
      title: "Bufferbloat",
      text:
        "Two downloads fill a home line. A FIFO of 1000 packets, <code>pfifo</code>, accepts whatever the senders put into " +
        "it, until each packet waits behind hundreds of others. <code>fq_codel</code> keeps the queue short.",
      state: line({ rows: [row("down", 2)] }),
      steps: [
        {
          text: "Watch the ping. With <code>pfifo</code> it rises to hundreds of milliseconds, yet the downloads gain only a few percent.",
        },
        {
          label: "Halve the downlink",
          text: "A full buffer takes twice as long to empty at half the rate: in the plot, the delay of <code>pfifo</code> doubles. (The table still averages both rates.)",
          change: (state, at) => lab.model.changed(state, at, "down", 10),
        },
        {
          label: "Shorten the FIFO to 50 packets",
          text: "A short FIFO bounds the delay for one rate only. CoDel measures the delay itself, at any rate.",
          state: line({ a: "pfifo limit 50", down: 10, rows: [row("down", 2)] }),
        },
      ],
    },
    {
      name: "red",
      title: "RED against CoDel",
      text:
        "RED drops by the average length of the queue, CoDel by how long packets wait. RED needs thresholds that suit " +
        "the rate; these are for 20 Mbit/s.",
      state: line({
        a: "red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.1 bandwidth 20mbit",
        b: "codel",
        rows: [row("down", 4)],
      }),
      steps: [
        { text: "At 20 Mbit/s, both queues keep the mean ping below 20 ms above the idle line." },
        {
          label: "Slow the downlink to 4 Mbit/s",
          text: "The same number of bytes now takes five times as long. RED does not notice: the ping stays near 70 ms. CoDel drops until packets wait about 15 ms; a single packet alone takes 3 ms at this rate.",
          change: (state, at) => lab.model.changed(state, at, "down", 4),
        },
        {
          label: "Show what RED averages",
          text: "The plot <b>State of the queue</b> shows RED's <code>average</code> in bytes. To see why a packet was dropped, choose <b>Why?</b> in the list of drops.",
          show: "average",
        },
      ],
    },
    {
      name: "fairness",
      title: "Fairness and FQ",
      text:
        "One BBR flow meets three CUBIC flows. In a single queue, whoever sends more gets more. Fair queueing gives each flow its " +
        "own queue and takes turns.",
      state: line({ a: "codel", b: "fq_codel", rows: [row("down", 1, "bbr"), row("down", 3, "cubic")] }),
      steps: [
        { text: "Compare the rates per flow. Jain's index in the table is 1 if all flows get the same." },
        {
          label: "Add four CUBIC flows",
          text: "With <code>fq_codel</code> the shares stay equal, an eighth each; with <code>codel</code> they do not.",
          change: (state, at) => lab.model.changed(state, at, "count", 7, 1),
        },
        {
          label: "Add a call",
          text: "Sparse flows such as a call or the ping overtake the queues of the others: compare the ping, which barely waits with <code>fq_codel</code>. The run begins again.",
          change: (state) => ({ ...state, call: true }),
        },
      ],
    },
    {
      name: "l4s",
      title: "L4S",
      text:
        "A Prague flow asks for many gentle marks instead of rare drops. <code>dualpi2</code> gives it a queue of its own " +
        "that marks beyond 1 ms, and couples it with the queue of classic flows so that both get their share.",
      state: line({
        a: "pie",
        b: "dualpi2",
        rtt: 20,
        rows: [row("down", 1, "prague", { ecn: "accurate" }), row("down", 1, "cubic")],
      }),
      steps: [
        {
          text: "In <code>dualpi2</code>, packets of Prague wait about 2 ms and those of CUBIC about 16 ms, at similar rates. In <code>pie</code>, both wait alike once slow start is over; without marks, it costs Prague some 1,700 packets.",
        },
        {
          label: "Add two CUBIC flows",
          text: "The coupling turns the drop probability of classic flows into marks for Prague: the rates stay comparable.",
          change: (state, at) => lab.model.changed(state, at, "count", 3, 1),
        },
        {
          label: "Show the probability for L4S",
          text: "<code>prob_l</code> is the probability that a packet of Prague is marked. Classic packets are dropped with the square of half of it, so CUBIC reacts to rare drops as strongly as Prague to many marks.",
          show: "prob_l",
        },
      ],
    },
    {
      name: "predict",
      title: "Slow start and Predict",
      text:
        "Slow start doubles the window each round trip until a loss or a mark. With a long RTT the queue overshoots before " +
        "the sender can know. <code>predict</code> observes the growth and marks one RTT ahead. This is a reconstruction " +
        "from the slides of a talk.",
      state: predict({}),
      steps: [
        { text: "Compare the longest time in the queue in the table, and the first peak of the backlog." },
        {
          label: "With HyStart at the sender",
          text: "The senders are now CUBIC with HyStart, which ends slow start when the RTT grows: CoDel's longest time in the queue falls from about 195 to 110 ms.",
          state: predict({ rows: [row("down", 4, "cubic", { ecn: "end-slow-start", slow: "hystart" })] }),
        },
        {
          label: "Double the RTT",
          text: "Back to Reno without HyStart, at twice the RTT: CoDel drops while the windows still grow, and the windows take long to recover. Compare the downloads.",
          state: predict({ rtt: 300 }),
        },
      ],
    },
    {
      name: "home",
      title: "The home line",
      text:
        "A router can only manage the queue that it owns. A shaper a little below the rate of the line moves the queue " +
        "from the modem into the router: <code>cake bandwidth</code> does both.",
      state: line({
        a: "pfifo",
        b: "cake bandwidth 4500kbit",
        down: 50,
        up: 5,
        call: true,
        rows: [row("up", 2), row("down", 1)],
        modem: true,
        link: "up",
      }),
      steps: [
        {
          text: "The plots show the queue of the modem (<b>up</b>). With a FIFO in the router it fills; with CAKE at 4.5 Mbit/s it stays empty. This costs a tenth of the uplink; uploads lose more, because the faster download sends more acknowledgements.",
        },
        {
          label: "The line slows to 4 Mbit/s",
          text: "Now the shaper is faster than the line: the queue moves back into the modem, and CAKE cannot help. That is why a shaper must know the rate of its line.",
          change: (state, at) => lab.model.changed(state, at, "up", 4),
        },
        {
          label: "Shape at 3.6 Mbit/s",
          text: "Once the shaper is below the new rate, the queue is back in the router, where CAKE manages it.",
          state: line({
            a: "pfifo",
            b: "cake bandwidth 3600kbit",
            down: 50,
            up: 4,
            call: true,
            modem: true,
            link: "up",
            rows: [row("up", 2), row("down", 1)],
          }),
        },
      ],
    },
  ];
})();
