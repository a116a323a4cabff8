// Exports a line as the page does, for tests/python/lab/test_model.py: prints {toml, command, notebook, csv}
// and, in `hostile`, what it makes of texts that try to leave the file.
import { compiled, scripts } from "./node.mjs";

const lab = scripts("model", "engine", "share");
const { Instance } = lab.engine();
const module = compiled(process.argv[2]);
const state = lab.model.changed({ ...lab.model.initial(), duration: 6 }, 3001, "down", 5);
const text = JSON.stringify(lab.model.scenario(state).scenario);
const described = { ...new Instance(module).describe(text), link: "down" };
const run = new Instance(module);
run.start(text, 1);
const tables = run.tables();
const csv = lab.share.csv(tables.flow_series);
const { toml, command, notebook } = lab.share;
const hostile = { toml: process.argv[3] ?? "", link: "down" };
process.stdout.write(
  JSON.stringify({
    toml: toml(described),
    command: command(described),
    notebook: notebook(described),
    csv,
    hostile: { toml: toml(hostile), command: command(hostile), notebook: notebook(hostile) },
  }),
);
