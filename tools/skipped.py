"""Say what ``make test`` skipped: ``python tools/skipped.py "make test" FILE``.

Where ``SOJOURN_SKIPPED`` names a file, every test and check that is skipped adds a line with its
reason: those of pytest in ``tests/python/conftest.py``, those of cargo where they find that
something is missing.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path


def summary(command: str, reasons: Iterable[str]) -> str:
    """Return the line that ends a command whose checks and tests passed."""
    counts = Counter(reason.strip() for reason in reasons)
    if not counts:
        return f"{command}: every check and every test passed"
    named = ", ".join(f"{reason} ({number})" for reason, number in counts.most_common())
    return f"{command}: passed, but {counts.total()} skipped: {named}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split(":", 1)[0])
    parser.add_argument("command", help="what has passed, such as make test")
    parser.add_argument("file", type=Path, help="a line with the reason for each skipped test")
    arguments = parser.parse_args()
    lines = []
    if arguments.file.exists():
        lines = arguments.file.read_text(encoding="utf-8").splitlines()
    print(summary(arguments.command, lines))


if __name__ == "__main__":
    main()
