"""Compare the records of the golden corpus with the recorded ones.

``README.md`` beside this file says what the corpus is and what to do when it differs.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

import sojourn as sj
from corpus import HERE, Document, corpus, quick
from sojourn import _core

EXPECTED = HERE / "expected.txt"
# Every table of a result.
TABLES = tuple(table["name"] for table in json.loads(_core.column_catalogue()))
# Digits of SHA-256 that the file keeps per table and per column.
TABLE_DIGITS = 16
COLUMN_DIGITS = 4

# The digest of each column, under its name and type such as "rtt_ms:Float64".
Columns = dict[str, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What was recorded.

    Parameters
    ----------
    columns
        The columns of each table.
    values
        By scenario and table: ``-`` for a table without rows, else the digest of the table and
        the shortened ones of its columns, in their order.
    """

    columns: dict[str, list[str]]
    values: dict[str, dict[str, str]]

    @staticmethod
    def read(text: str) -> "Expected":
        """Read what :meth:`text` wrote."""
        expected = Expected(columns={}, values={})
        tables: dict[str, str] = {}
        for line in text.splitlines():
            table, _, value = line.strip().partition(" ")
            if line.startswith("columns "):
                table, *names = value.split()
                expected.columns[table] = names
            elif line.startswith(" "):
                tables[table] = value
            else:
                tables = expected.values.setdefault(line, {})
        return expected

    def text(self) -> str:
        """Write everything, a line for each scenario and table."""
        lines = [f"columns {table} {' '.join(names)}" for table, names in self.columns.items()]
        for scenario, tables in sorted(self.values.items()):
            lines += [scenario, *(f"  {table} {value}" for table, value in tables.items())]
        return "\n".join(lines) + "\n"

    def differences(self, scenario: str, found: dict[str, Columns]) -> Iterator[str]:
        """Name the tables of a scenario that differ, with their columns."""
        if scenario not in self.values:
            yield f"{scenario}: not recorded"
            return
        for table in sorted(found.keys() - self.columns.keys()):
            # That of controllers: no scenario of the corpus has code of its own.
            if found[table]["arm:String"]:
                yield f"{scenario}: {table}: not recorded"
        for table, names in self.columns.items():
            if table not in found:
                yield f"{scenario}: {table}: missing"
                continue
            missing = [name for name in names if name not in found[table]]
            if missing:
                yield f"{scenario}: {table}: missing columns {', '.join(missing)}"
                continue
            before, after = self.values[scenario][table], table_value(names, found[table])
            if after != before:
                changed = _changed(names, before.split(), after.split())
                yield f"{scenario}: {table}: changed {', '.join(changed)}"


def _changed(names: list[str], before: list[str], after: list[str]) -> list[str]:
    if len(before) != len(after):
        return ["from or to no rows"]
    return [
        name for name, *pair in zip(names, before[1:], after[1:], strict=True) if pair[0] != pair[1]
    ]


def table_value(names: list[str], columns: Columns) -> str:
    """Return what the file holds of a table."""
    if not columns["arm:String"]:
        return "-"
    parts = [columns[name] for name in names]
    whole = hashlib.sha256("".join(parts).encode()).hexdigest()[:TABLE_DIGITS]
    return " ".join([whole, *(part[:COLUMN_DIGITS] for part in parts)])


def digests(document: Document, jobs: int = 1, program: Sequence[str] = ()) -> dict[str, Columns]:
    """Run a scenario and return the digests of all columns of all tables.

    A program, the words of the command ``sojourn`` without Python, runs it instead of this
    interpreter.
    """
    scenario = sj.Scenario.from_json(json.dumps(document))
    if not program:
        return _of_result(sj.run(scenario, jobs=jobs))
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "scenario.toml", Path(folder) / "result"
        file.write_text(scenario.to_toml(), encoding="utf-8")
        command = [*program, "run", str(file), "--out", str(out), "--jobs", str(jobs)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{document['name']}: exit code {done.returncode}: {done.stderr.strip()}")
        return _of_result(sj.Result.load(out))


def _of_result(result: sj.Result) -> dict[str, Columns]:
    return {table: column_digests(getattr(result, table)) for table in TABLES}


def column_digests(frame: pl.DataFrame) -> Columns:
    """Return the digest of each column; that of a column without rows is empty."""
    return {f"{column.name}:{_type(column)}": _digest(column) for column in frame}


def _type(column: pl.Series) -> str:
    return "String" if column.dtype in (pl.Categorical, pl.Enum) else str(column.dtype)


def _digest(column: pl.Series) -> str:
    """Hash the values, whatever their encoding and their chunks."""
    if column.is_empty():
        return ""
    hashed = hashlib.sha256(column.is_null().to_numpy().tobytes())
    values = column.drop_nulls()
    if _type(column) == "String":
        hashed.update(json.dumps(values.cast(pl.String).to_list()).encode())
    else:
        hashed.update(values.to_numpy().tobytes())
    return hashed.hexdigest()


def run_all(
    scenarios: dict[str, Document], jobs: int, program: Sequence[str] = ()
) -> dict[str, dict[str, Columns]]:
    """Run scenarios on `jobs` threads and return their digests."""
    run = partial(digests, program=program)
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(scenarios, pool.map(run, scenarios.values()), strict=True))


def record(found: dict[str, dict[str, Columns]]) -> Expected:
    """Take what was found for what is expected."""
    first = next(iter(found.values()))
    filled = {table for of in found.values() for table in TABLES if of[table]["arm:String"]}
    columns = {table: list(first[table]) for table in TABLES if table in filled}
    values = {
        scenario: {table: table_value(columns[table], tables[table]) for table in columns}
        for scenario, tables in found.items()
    }
    return Expected(columns=columns, values=values)


def new_columns(expected: Expected, found: dict[str, dict[str, Columns]]) -> list[str]:
    """Name the columns that were not recorded; they are no difference."""
    first = next(iter(found.values()))
    return [
        f"{table}.{name}"
        for table in first
        for name in first[table]
        if table in expected.columns and name not in expected.columns[table]
    ]


def main() -> int:
    """Compare, or record with ``--update``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a part of the corpus")
    parser.add_argument("--only", default="", help="the scenarios whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads")
    parser.add_argument(
        "--program",
        type=shlex.split,
        default=[],
        metavar="COMMAND",
        help="run this program without Python, such as 'qemu-aarch64-static sojourn'",
    )
    parser.add_argument("--update", action="store_true", help="record instead of comparing")
    options = parser.parse_args()

    scenarios = corpus()
    if options.update:
        EXPECTED.write_text(record(run_all(scenarios, options.jobs)).text(), encoding="utf-8")
        return 0
    expected = Expected.read(EXPECTED.read_text(encoding="utf-8"))
    gone = [f"{name}: not in the corpus" for name in expected.values if name not in scenarios]
    chosen = quick(scenarios) if options.quick else scenarios
    chosen = {name: document for name, document in chosen.items() if options.only in name}
    if not chosen:
        parser.error(f"--only {options.only}: no scenario has this in its name")
    found = run_all(chosen, options.jobs, options.program)
    differences = [d for name, tables in found.items() for d in expected.differences(name, tables)]
    for line in [*gone, *differences]:
        print(line)
    for column in new_columns(expected, found):
        print(f"new column, not compared: {column}")
    print(f"{len(found)} scenarios, {len(differences) + len(gone)} differences")
    return 1 if gone or differences else 0


if __name__ == "__main__":
    sys.exit(main())
