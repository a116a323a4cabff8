"""Run the random tests with new seeds: ``python tools/soak.py --minutes 10``.

The gate runs them with seed 0. A failure ends the soak and prints the command that repeats it.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
CARGO = ("cargo", "test", "--quiet")
TESTS = (
    (*CARGO, "-p", "sojourn-qdisc", "--test", "long_cases"),
    (*CARGO, "-p", "sojourn-scenario", "--test", "mutated"),
    (*CARGO, "-p", "sojourn-capture", "--test", "mutated"),
    (sys.executable, "-m", "pytest", "-q", "tests/python/scenario/test_random_scenarios.py"),
    (sys.executable, "-m", "pytest", "-q", "tests/python/result/test_findings.py"),
)


def main() -> int:
    """Run the command; return 1 if a test fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=int(time.time()) // 60, help="the first seed")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    seed = arguments.seed
    while True:
        print(f"seed {seed}", flush=True)
        environment = os.environ | {"SOJOURN_SOAK_SEED": str(seed)}
        for test in TESTS:
            if subprocess.run(test, cwd=ROOT, env=environment, check=False).returncode:
                print(f"failed; again: SOJOURN_SOAK_SEED={seed} {' '.join(test)}", file=sys.stderr)
                return 1
        if time.monotonic() > end:
            return 0
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
