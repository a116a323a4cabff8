"""Check all mutated scenarios (tests/python/support/mutations.py), on two processes.

Used by ``make test-full``; the tests check the first of them only.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python"))

from scenario.test_mutations import checked
from support.mutations import COUNT

BATCH = 500
TIMEOUT_S = 600.0


def main() -> None:
    """Check every batch and print the sums of the outcomes."""
    sums: dict[str, int] = {}
    starts = range(0, COUNT, BATCH)
    with ThreadPoolExecutor(2) as pool:
        for outcomes in pool.map(lambda at: checked(at, at + BATCH, TIMEOUT_S), starts):
            for name, count in outcomes.items():
                sums[name] = sums.get(name, 0) + count
    print(", ".join(f"{name}: {count}" for name, count in sorted(sums.items())))


if __name__ == "__main__":
    main()
