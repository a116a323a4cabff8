"""Compare the measured tables of a page of docs/validation with those that a program has written.

``python tools/measured.py PAGE TABLES`` exits with status 1 if they differ; with ``--write`` it
replaces the tables of the page. TABLES has each table under a heading that names its section of the
page. ``make parity`` and ``make parity-update`` call it.
"""

import argparse
import re
import sys
from pathlib import Path

from generators.files import replace_between

BEGIN = "<!-- begin measured: {name}; `make parity-update` writes this -->"
END = "<!-- end measured: {name} -->"


def sections(tables: str) -> dict[str, str]:
    """Return the tables by the name of their section."""
    _, *parts = re.split(r"^# (.+)\n", tables, flags=re.MULTILINE)
    return {name: table.strip() for name, table in zip(parts[::2], parts[1::2], strict=True)}


def main() -> int:
    """Check or write the tables of a page.

    Returns
    -------
    int
        The exit status: 1 if a table differs and ``--write`` is not given.
    """
    parser = argparse.ArgumentParser(description="Compare measured tables with those of a page.")
    parser.add_argument("page", type=Path, help="a page of docs/validation")
    parser.add_argument("tables", type=Path, help="what the program has written")
    parser.add_argument("--write", action="store_true", help="replace the tables of the page")
    options = parser.parse_args()
    page = options.page.read_text(encoding="utf-8")
    measured = sections(options.tables.read_text(encoding="utf-8"))
    marked = set(re.findall(r"<!-- begin measured: (\w+)", page))
    if marked - measured.keys():
        names = ", ".join(sorted(marked - measured.keys()))
        print(f"{options.page}: not in {options.tables}: {names}", file=sys.stderr)
        return 1
    new = page
    stale = []
    for name, table in measured.items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        replaced = replace_between(new, begin, end, f"\n{table}\n", where=str(options.page))
        if replaced != new:
            stale.append(name)
        new = replaced
    if not stale:
        return 0
    names = ", ".join(stale)
    if options.write:
        options.page.write_text(new, encoding="utf-8")
        print(f"wrote: {options.page} ({names})")
        return 0
    print(
        f"{options.page}: tables differ from this run: {names}; `make parity-update` writes them",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
