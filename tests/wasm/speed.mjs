// How many times faster than real time the lab simulates, as JSON: node speed.mjs MODULE.
import { compiled, scripts } from "./node.mjs";

const { Instance } = scripts("engine").engine();
const module = compiled(process.argv[2]);
const { cases, measure } = scripts("speed").speed();
// The time of the processor does not depend on what else runs.
const clock = () => process.cpuUsage().user / 1000;
const factors = cases.map(({ name, scenario }) => [name, measure(Instance, module, scenario, clock).factor]);
process.stdout.write(JSON.stringify(Object.fromEntries(factors)));
