"""Compare the measured tables of a page of docs/validation with those that a program has written.

``python tools/measured.py --target TARGET PAGE TABLES`` exits with status 1 if they differ; with
``--write`` it replaces the tables of the page. TABLES has each table under a heading that names its
section of the page; lines that are not of a table, such as those of a test, are ignored. TARGET is
the target of the Makefile that writes the tables.
"""

import argparse
import re
import sys
from pathlib import Path

from generators.files import replace_between

BEGIN = "<!-- begin measured: {name}; `make {target}` writes this -->"
END = "<!-- end measured: {name} -->"


def sections(tables: str) -> dict[str, str]:
    """Return the tables by the name of their section; parts of a section have the same head."""
    _, *parts = re.split(r"^# (\w+)\n", tables, flags=re.MULTILINE)
    found: dict[str, list[str]] = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        head, rule, *rows = (line for line in text.splitlines() if line.startswith("|"))
        found.setdefault(name, [head, rule]).extend(rows)
    return {name: "\n".join(lines) for name, lines in found.items()}


def compare(path: Path, measured: dict[str, str], *, target: str, write: bool) -> int:
    """Compare the tables of a page with `measured`, or write them.

    Parameters
    ----------
    path
        A page of docs/validation.
    measured
        The tables by the name of their section. Each section of the page that names `target` must
        be among them, and each of them in the page.
    target
        The target of the Makefile that writes the sections.
    write
        Replace the tables of the page.

    Returns
    -------
    int
        The exit status: 1 if a section is missing, or if a table differs and is not written.
    """
    page = path.read_text(encoding="utf-8")
    marked = set(re.findall(rf"<!-- begin measured: (\w+); `make {target}`", page))
    if marked - measured.keys():
        names = ", ".join(sorted(marked - measured.keys()))
        print(f"{path}: not measured: {names}", file=sys.stderr)
        return 1
    new = page
    stale = []
    for name, table in measured.items():
        begin, end = BEGIN.format(name=name, target=target), END.format(name=name)
        replaced = replace_between(new, begin, end, f"\n{table}\n", where=str(path))
        if replaced != new:
            stale.append(name)
        new = replaced
    if not stale:
        return 0
    names = ", ".join(stale)
    if write:
        path.write_text(new, encoding="utf-8")
        print(f"wrote: {path} ({names})")
        return 0
    print(
        f"{path}: tables differ from what was measured: {names}; `make {target}` writes them",
        file=sys.stderr,
    )
    return 1


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
    parser.add_argument("--target", required=True, help="the target that writes the tables")
    parser.add_argument("--write", action="store_true", help="replace the tables of the page")
    options = parser.parse_args()
    measured = sections(options.tables.read_text(encoding="utf-8"))
    return compare(options.page, measured, target=options.target, write=options.write)


if __name__ == "__main__":
    sys.exit(main())
