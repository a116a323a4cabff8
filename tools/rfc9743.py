"""Write the tables of docs/validation/rfc9743*.md and cc_cases.md from what the commands printed.

``python tools/rfc9743.py FILE CASES ACCECN`` reads the output of ``sojourn rfc9743 --json`` and of
``sojourn cc-cases --json`` for each family. An overview has a column per control; each control that
has a page gets its table there.
"""

import argparse
import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

from measured import compare

from sojourn import _core

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/validation"
TARGET = "rfc9743-update"
Reports = list[dict[str, Any]]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def about() -> str:
    """State when and by what the tables were measured."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return table(["date", "Sojourn"], [[today, f"{_core.version()} ({_core.commit()[:12]})"]])


def overview(reports: Reports, noun: str) -> str:
    """Write the verdict on each criterion or case: a column per control."""
    rows = []
    has_levels = len({one["level"] for one in reports[0]["verdicts"]}) > 1
    for place, first in enumerate(reports[0]["verdicts"]):
        cells = []
        for report in reports:
            one = report["verdicts"][place]
            compared = [c for c in report["comparisons"] if c["number"] == one["number"]]
            passed = sum(c["verdict"] == "pass" for c in compared)
            counts = f" ({passed} of {len(compared)})" if compared else ""
            cells.append(f"{one['verdict']}{counts}")
        level = [first["level"]] if has_levels else []
        rows.append([f"{first['number']} {first['title']}", *level, *cells])
    head = [noun, *(["level"] if has_levels else [])]
    return table([*head, *(f"`{report['control']}`" for report in reports)], rows)


def of_control(report: dict[str, Any], noun: str) -> str:
    """Write the verdicts on one control, and what decided."""
    rows = [
        [
            f"{one['number']} {one['title']}",
            one["verdict"],
            one["comparison"],
            one["measured"],
            one["reason"],
        ]
        for one in report["verdicts"]
    ]
    return table([noun, "verdict", "decisive comparison", "measured", "reason"], rows)


def main() -> int:
    """Write the tables.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Write tables of docs/validation.")
    parser.add_argument("criteria", type=Path, help="output of sojourn rfc9743 --json")
    parser.add_argument("cases", type=Path, help="output of sojourn cc-cases --json")
    parser.add_argument("accecn", type=Path, help="the same with --family accecn")
    arguments = parser.parse_args()
    reports: Reports = json.loads(arguments.criteria.read_text(encoding="utf-8"))
    tried: Reports = json.loads(arguments.cases.read_text(encoding="utf-8"))
    tables = {"about": about(), "verdicts": overview(reports, "criterion")}
    code = compare(PAGES / "rfc9743.md", tables, target=TARGET, write=True)
    for report in reports:
        page = PAGES / f"rfc9743_{report['control']}.md"
        verdicts = {"verdicts": of_control(report, "criterion")}
        code |= compare(page, verdicts, target=TARGET, write=True)
    of_bbr3 = next(report for report in tried if report["control"] == "bbr3")
    accecn: Reports = json.loads(arguments.accecn.read_text(encoding="utf-8"))
    of_cubic = next(report for report in accecn if report["control"] == "cubic")
    tables = {
        "cases": overview(tried, "case"),
        "bbr3": of_control(of_bbr3, "case"),
        "accecn": overview(accecn, "case"),
        "accecn_cubic": of_control(of_cubic, "case"),
    }
    code |= compare(PAGES / "cc_cases.md", tables, target=TARGET, write=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
