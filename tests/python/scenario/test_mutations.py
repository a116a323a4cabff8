"""Mutated scenarios are refused in one line, or checked, estimated and run: 1,500 of 10,000.

``make test-full`` takes all of them (``tools/check_mutations.py``).
"""

import json
import resource
import subprocess
import sys

from support.shell import ROOT, environment

GATE = 1_500
# Every scenario whose number this divides is run if it is small.
RUN_EVERY = 10
ADDRESS_SPACE = 6 << 30


def checked(first: int, last: int, timeout: float) -> dict[str, int]:
    """Check mutated scenarios in a process with little memory; return the outcomes."""
    program = ROOT / "tests/python/support/mutations.py"
    paths = [str(program.parents[1]), *filter(None, [environment().get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, str(program), f"{first}", f"{last}", f"{RUN_EVERY}"],
        env=environment() | {"PYTHONPATH": ":".join(paths), "POLARS_MAX_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE,) * 2),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    *numbers, last_line = done.stdout.splitlines() or ["none"]
    assert done.returncode == 0, f"number {last_line}: {done.stderr[-3_000:]}"
    outcomes: dict[str, int] = json.loads(last_line)
    assert len(numbers) == sum(outcomes.values()) == last - first
    return outcomes


def test_mutated_scenarios_are_refused_or_run() -> None:
    outcomes = checked(0, GATE, timeout=110)
    assert outcomes["refused"] > GATE // 3
    assert outcomes["valid"] > GATE // 20
    assert outcomes["run"] > GATE // 300
