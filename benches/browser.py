"""Measure the lab in Node and in Chromium: times real time at 100 Mbit/s.

The results are in docs/validation/performance.md. Exits with status 1 if a case is slower than
the goal.
"""

import base64
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "docs" / "_static" / "lab"
SITE = ROOT / "target" / "site" / "docs" / "lab.html"
MODULE = ROOT / "target" / "wasm32-unknown-unknown" / "wasm" / "sojourn_wasm.wasm"

# Times real time.
GOAL = 20
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
IN_PAGE = """(encoded) => {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const { Instance } = lab.engine();
    const { cases, measure } = lab.speed();
    return WebAssembly.compile(bytes).then((module) => Object.fromEntries(
        cases.map(({ name, scenario }) => [name, measure(Instance, module, scenario).factor])));
}"""


def chromium() -> str:
    """Find Chromium."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        sys.exit("Chromium is not installed")
    return program


def in_node() -> dict[str, float]:
    """Measure in Node."""
    words = ["node", str(ROOT / "tests" / "wasm" / "speed.mjs"), str(MODULE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def in_chromium() -> dict[str, float]:
    """Measure in a page of headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        for name in ("engine", "speed"):
            page.add_script_tag(path=SCRIPTS / f"{name}.js")
        encoded = base64.b64encode(MODULE.read_bytes()).decode()
        found: dict[str, float] = page.evaluate(IN_PAGE, encoded)
        browser.close()
    return found


def opens() -> float:
    """Return after how many seconds the page of the built site shows a run; NaN without a site."""
    if not SITE.exists():
        return math.nan
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(SITE.as_uri())
        page.wait_for_selector("#lab[data-state=ready]")
        shown = "performance.getEntriesByName('lab-shown')[0].startTime"
        milliseconds: float = page.evaluate(shown)
        browser.close()
    return milliseconds / 1000


def main() -> int:
    """Print the table; say whether every case meets the goal."""
    node, chromium = in_node(), in_chromium()
    print("| times real time | Node | Chromium |\n|---|---|---|")
    for name in node:
        print(f"| {name} | {node[name]:.0f} | {chromium[name]:.0f} |")
    print(f"the page shows a run after {opens():.2f} s")
    least = min(*node.values(), *chromium.values())
    print(f"least: {least:.0f} times real time; the goal is {GOAL}")
    return 0 if least >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
