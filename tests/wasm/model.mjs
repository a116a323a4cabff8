// What the page makes of states, for tests/python/lab/test_model.py: reads [{state, described}], prints scenarios.
import { input, scripts } from "./node.mjs";

const lab = scripts("model", "lessons");
const all = input().map(({ state, described }) => {
  const whole = { ...lab.model.initial(), ...state };
  const shared = lab.model.decoded(lab.model.encoded(whole));
  return { shared: JSON.stringify(shared) === JSON.stringify(whole), ...lab.model.scenario(whole, described) };
});
const lessons = lab.lessons.flatMap(({ name, state, steps }) => {
  const states = [state, ...steps.map((step) => step.state ?? step.change?.(state, 5001) ?? state)];
  return states.map((one, n) => ({ name: `${name} ${n}`, ...lab.model.scenario(one) }));
});
process.stdout.write(JSON.stringify({ all, lessons }));
