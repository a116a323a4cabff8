"""Compare instruction counts of short runs of some scenarios with the recorded ones.

``python benches/instructions.py`` builds ``sojourn-bench`` as ``make setup`` builds the extension,
runs it under callgrind and exits with status 1 if a scenario executes over 2 % more instructions
than ``benches/instructions.json`` has; it names the components that grew. ``--update`` records the
counts. Only instructions of the program itself count, not those of the C library, so that a count
depends on the version of Rust and on the processor's architecture, not on the machine. With another
version of Rust, without callgrind or with compiler flags there is nothing to compare with: it says
so and exits with status 0.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "benches/instructions.json"
#: The scenarios, and how many seconds of each: enough to leave slow start.
SECONDS = {
    "S1": 20,
    "S2": 60,
    "S3": 2,
    "S5": 10,
    "quic": 6,
    "bbr": 6,
    "prague": 5,
    "wifi": 5,
    "series": 2,
    "web": 1,
}
#: Growth that fails. Versions of the C library and of callgrind make less than 0.1 %.
TOLERANCE = 0.02
#: Components named when a scenario fails.
NAMED = 3

#: Instructions by component.
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was counted.

    Parameters
    ----------
    rust
        Version of the compiler.
    architecture
        Of the processor.
    scenarios
        By scenario, instructions of each component.
    """

    rust: str
    architecture: str
    scenarios: dict[str, Counts]


def component(file: str) -> str:
    """Return the component of a source file: a crate, and the module of its first level."""
    found = re.search(r"\bcrates/([a-z]+)/src/([a-z_0-9]+)", file)
    if found:
        return f"{found[1]}::{found[2]}"
    return "standard library and dependencies"


def counts_of(profile: Iterable[str], program: str) -> Counts:
    """Sum the instructions of ``program`` in a file of callgrind by component.

    Parameters
    ----------
    profile
        Lines of the file. Its format is described in the manual of Valgrind, "Callgrind Format
        Specification".
    program
        Name of the program. Costs in shared libraries are left out.

    Returns
    -------
    dict
        Number of instructions by component.
    """
    files: dict[str, str] = {}
    objects: dict[str, str] = {}
    totals: Counter[str] = Counter()
    ours, current = False, ""
    inclusive = False
    for line in profile:
        key, _, value = line.rstrip("\n").partition("=")
        if key in {"fl", "fi", "fe", "cfi", "cfl", "ob", "cob"}:
            # A name follows its number where it is first used.
            number, _, name = value.partition(" ")
            names = objects if key in {"ob", "cob"} else files
            name = names.setdefault(number, name)
            if key == "ob":
                ours = Path(name).name == program
            elif key in {"fl", "fi", "fe"}:
                current = component(name)
        elif key == "calls":
            inclusive = True
        elif line[:1].isdigit() or line[:1] in {"+", "-", "*"}:
            # The line after `calls` has the cost of the function called.
            if ours and not inclusive:
                totals[current] += int(line.split()[1])
            inclusive = False
    return dict(sorted(totals.items()))


def regressions(before: dict[str, Counts], after: dict[str, Counts]) -> list[str]:
    """Return a line for each scenario that executes too many instructions."""
    lines = []
    for name, counts in after.items():
        old = before.get(name)
        if old is None:
            lines.append(f"{name}: not recorded: make instructions-update")
            continue
        was, now = sum(old.values()), sum(counts.values())
        if now <= was * (1 + TOLERANCE):
            continue
        grown = {part: n - old.get(part, 0) for part, n in counts.items()}
        most = sorted(grown, key=grown.__getitem__, reverse=True)[:NAMED]
        parts = ", ".join(f"{part} {grown[part] / was:+.1%}" for part in most if grown[part] > 0)
        lines.append(
            f"{name}: {now / was - 1:+.1%} instructions ({was:,} before, {now:,} now): {parts}"
        )
    return lines


def rust_version() -> str:
    """Return the version of the compiler, with its commit."""
    command = ["rustc", "--version"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def build() -> Path:
    """Build the benchmark and return its path."""
    command = ["cargo", "build", "--profile", "local", "--quiet", "--package", "sojourn-bench"]
    command += ["--bin", "sojourn-bench", "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = map(json.loads, done.stdout.splitlines())
    programs = [message["executable"] for message in messages if message.get("executable")]
    return Path(programs[-1])


def count(program: Path, name: str) -> Counts:
    """Run a scenario under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        run = [str(program), "--profile", name, "--seconds", str(SECONDS[name])]
        subprocess.run([*valgrind, *run], check=True, stderr=subprocess.DEVNULL)
        with out.open(encoding="utf-8") as profile:
            return counts_of(profile, program.name)


def obstacle() -> str | None:
    """Return why nothing can be counted that could be compared."""
    if which("valgrind") is None:
        return "valgrind is not installed"
    for flags in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"):
        if os.environ.get(flags):
            return f"{flags} is set"
    return None


def main() -> int:
    """Compare or record."""
    parser = argparse.ArgumentParser(description="Compare instruction counts of short runs.")
    parser.add_argument("--update", action="store_true", help="record the counts")
    update: bool = parser.parse_args().update
    reason = obstacle()
    rust, architecture = rust_version(), platform.machine()
    stored = None
    if not update:
        stored = Recorded(**json.loads(STORED.read_text(encoding="utf-8")))
        if (stored.rust, stored.architecture) != (rust, architecture):
            recorded = f"{stored.rust} on {stored.architecture}"
            reason = reason or f"recorded with {recorded}, this is {rust} on {architecture}"
    if reason is not None:
        print(f"instruction counts: skipped: {reason}")
        if skipped := os.environ.get("SOJOURN_SKIPPED"):
            with Path(skipped).open("a", encoding="utf-8") as file:
                print(f"instruction counts: {reason}", file=file)
        return 2 if update else 0
    program = build()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = dict(
            zip(SECONDS, pool.map(lambda name: count(program, name), SECONDS), strict=True)
        )
    if stored is None:
        text = json.dumps(asdict(Recorded(rust, architecture, found)), indent=2)
        STORED.write_text(text + "\n", encoding="utf-8")
        return 0
    lines = regressions(stored.scenarios, found)
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
