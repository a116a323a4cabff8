// Runs scenarios in WebAssembly and prints the digests of all columns, as tests/golden/golden.py computes them:
// node digests.mjs MODULE < {name: scenario}.
import { createHash } from "node:crypto";
import { compiled, input, scripts } from "./node.mjs";

const { Instance } = scripts("engine").engine();
const module = compiled(process.argv[2]);

/** A JSON array of texts as json.dumps of Python writes it. */
function dumped(bytes) {
  const texts = JSON.parse(new TextDecoder().decode(bytes));
  const escaped = (text) =>
    JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return Buffer.from(`[${texts.map(escaped).join(", ")}]`);
}

/** The columns of all replications in a row. */
function joined(runs, table) {
  return runs[0][table].map(({ name, type }, n) => {
    const parts = runs.map((tables) => tables[table][n]);
    const bytes = (key) => Buffer.concat(parts.map((part) => part[key]));
    const texts = () => parts.flatMap((part) => JSON.parse(new TextDecoder().decode(part.values)));
    const values = type === "String" ? Buffer.from(JSON.stringify(texts())) : bytes("values");
    return { name, type, missing: bytes("missing"), values };
  });
}

function digest({ type, missing, values }) {
  if (missing.length === 0) {
    return "";
  }
  const hash = createHash("sha256").update(missing);
  return hash.update(type === "String" ? dumped(values) : values).digest("hex");
}

function digests(scenario) {
  const text = JSON.stringify(scenario);
  const { replications } = new Instance(module).describe(text);
  const runs = Array.from({ length: replications }, (_, replication) => {
    const run = new Instance(module);
    run.start(text, 0, replication);
    // In steps, as the page does.
    [137, 1000, 5500].forEach((time) => {
      run.advance(time);
      run.samples();
    });
    return run.tables();
  });
  return Object.fromEntries(
    Object.keys(runs[0]).map((table) => [
      table,
      Object.fromEntries(joined(runs, table).map((column) => [`${column.name}:${column.type}`, digest(column)])),
    ]),
  );
}

const results = Object.entries(input()).map(([name, scenario]) => [name, digests(scenario)]);
process.stdout.write(JSON.stringify(Object.fromEntries(results)));
