// Explains events in words, for tests/python/lab/test_why.py: reads [{event, parameters}], prints texts.
import { input, scripts } from "./node.mjs";

const { why } = scripts("why");
process.stdout.write(JSON.stringify(input().map(({ event, parameters }) => why.decision(event, parameters))));
