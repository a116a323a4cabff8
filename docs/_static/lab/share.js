// What leaves the page: a link, a scenario file, a command, a notebook, tables. All of it is made here.
"use strict";
(globalThis.lab ??= {}).share = (function () {
  const FILE = "lab.toml";
  const NOTE =
    "# From the lab of the documentation of Sojourn. The run of the lab is replication 0;\n" +
    "# with more replications, results have confidence intervals.\n";

  const toml = (described) => NOTE + described.toml;

  function command(described) {
    const text = toml(described);
    // No line of the file may end it early.
    let end = "EOF";
    while (text.split("\n").includes(end)) end += "_";
    return `cat > ${FILE} <<'${end}'\n${text}${end}\nsojourn run ${FILE} --out lab\nsojourn plot lab\n`;
  }

  /** A text as lines of a literal of Python, whose escapes are those of JSON. */
  const literal = (text) => text.split(/(?<=\n)/).map((line) => `    ${JSON.stringify(line)}\n`).join("");

  function notebook(described) {
    const lines = (text) => text.trimEnd().split(/(?<=\n)/);
    const markdown = (text) => ({ cell_type: "markdown", metadata: {}, source: lines(text) });
    const code = (text) => ({
      cell_type: "code",
      execution_count: null,
      metadata: {},
      outputs: [],
      source: lines(text),
    });
    const cells = [
      markdown("# A comparison from the lab of Sojourn"),
      code(`import sojourn as sj\n\nscenario = sj.Scenario.from_toml(\n${literal(toml(described))})`),
      code("result = sj.run(scenario)\nresult.summary()"),
      code(`result.plot("ping", "sojourn_${described.link}", "backlog_${described.link}")`),
    ];
    return JSON.stringify(
      {
        cells,
        metadata: { kernelspec: { display_name: "Python 3", language: "python", name: "python3" } },
        nbformat: 4,
        nbformat_minor: 4,
      },
      null,
      1,
    );
  }

  /** The values of a column {type, missing, values} of a table as an array, with null for missing ones. */
  function values({ type, missing, values: bytes }) {
    let next;
    if (type === "String") {
      const texts = JSON.parse(new TextDecoder().decode(bytes)).values();
      next = () => texts.next().value;
    } else {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      let at = 0;
      const read = {
        UInt32: () => view.getUint32((at += 4) - 4, true),
        UInt64: () => view.getBigUint64((at += 8) - 8, true),
        Float64: () => view.getFloat64((at += 8) - 8, true),
        Boolean: () => view.getUint8((at += 1) - 1) === 1,
      };
      next = read[type];
    }
    return Array.from(missing, (flag) => (flag === 1 ? null : next()));
  }

  /** A table as CSV. */
  function csv(columns) {
    const quoted = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const all = columns.map(values);
    const rows = all[0].map((_, row) => all.map((column) => quoted(column[row])).join(","));
    return [columns.map(({ name }) => name).join(","), ...rows].join("\n") + "\n";
  }

  /** Lets the user save a text. */
  function save(name, text, type = "text/plain") {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return { FILE, toml, command, notebook, csv, values, save };
})();
