// Changes a running line as the page does: prints whether what was sampled before the change stays the same.
import { compiled, scripts } from "./node.mjs";

const lab = scripts("model", "engine");
const { Instance } = lab.engine();
const module = compiled(process.argv[2]);
const NOW = 4000;

function sampled(state, until) {
  const { scenario } = lab.model.scenario(state);
  const run = new Instance(module);
  run.start(JSON.stringify(scenario), 1);
  run.advance(until);
  return run.samples();
}

const state = { ...lab.model.initial(), call: true };
const before = sampled(state, NOW);
const moves = [["down", 3], ["up", 1], ["rtt", 5], ["rtt", 300], ["loss", 1], ["count", 5, 0], ["count", 0, 0], ["count", 2, 1]];
const results = moves.map(([key, value, row]) => {
  const changed = lab.model.changed(state, NOW + 1, key, value, row);
  const after = sampled(changed, NOW);
  // Flows that are added later have no samples yet.
  const same = { ...after, flows: after.flows.slice(0, before.flows.length), pings: after.pings.slice(0, before.pings.length) };
  const later = JSON.stringify(sampled(changed, 12000).links) !== JSON.stringify(sampled(state, 12000).links);
  return { key, value, same: JSON.stringify(same) === JSON.stringify(before), later };
});
process.stdout.write(JSON.stringify(results));
