// The scripts of the lab for Node: the engine, and what the page does with its samples.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const require = createRequire(import.meta.url);

/** Loads scripts of docs/_static/lab, which add themselves to one object. */
export function scripts(...names) {
  names.forEach((name) => require(join(ROOT, "docs", "_static", "lab", `${name}.js`)));
  return globalThis.lab;
}

/** Compiles the module. */
export function compiled(path) {
  return new WebAssembly.Module(readFileSync(path));
}

/** Reads JSON from standard input. */
export function input() {
  return JSON.parse(readFileSync(0, "utf-8"));
}
