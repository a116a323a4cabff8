"""Write the tables of docs/validation/rfc7928.md from what ``sojourn rfc7928 --json`` printed.

``python tools/rfc7928.py FILE…`` reads the output of one or several commands: the page has the
columns of all their queues.
"""

import argparse
import datetime as dt
import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from measured import compare

from sojourn import _core
from sojourn.rfc7928_suite.definitions import DEFINITIONS
from sojourn.rfc7928_suite.discussion import drop_times
from sojourn.rfc7928_suite.topology import DROP_TAIL, QueueUnderTest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/validation/rfc7928.md"
COSTS = json.loads((ROOT / "benches/measured.json").read_text(encoding="utf-8"))["queues"]["values"]
TARGET = "rfc7928-update"
MISSING = "–"
Reports = list[dict[str, Any]]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def about() -> str:
    """State when and by what the tables were measured."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return table(["date", "Sojourn"], [[today, f"{_core.version()} ({_core.commit()[:12]})"]])


def results(reports: Reports) -> str:
    """Write mean goodput and queueing delay of all traffic, per case: a column per queue."""
    means: dict[tuple[str, str], dict[str, str]] = {}
    for report in reports:
        grouped: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for run in report["runs"]:
            if run["group"] == "all":
                key = (run["number"], run["case"], run["arm"])
                grouped.setdefault(key, []).append(run)
        for (number, case, arm), runs in grouped.items():
            goodput = fmean(run["goodput_mbit_per_s"] for run in runs)
            delay = fmean(run["queueing_ms"] for run in runs)
            # The last case of section 10.2 has a name that depends on the queue.
            name = "another scheme at router L" if case.endswith(" at router L") else case
            if name != case and "doubled" in case:
                name = "other parameters at router L"
            row = means.setdefault((number, name), {})
            row.setdefault(arm, f"{goodput:.2f} / {delay:.1f}")
    arms = [DROP_TAIL, *(report["queue"] for report in reports)]
    rows = [
        [f"{number} {case}".strip(), *(row.get(arm, MISSING) for arm in arms)]
        for (number, case), row in means.items()
    ]
    return table(["scenario", *arms], rows)


def verdicts(reports: Reports) -> str:
    """Write the verdicts on the directions that the RFC states: a column per queue."""
    found: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for report in reports:
        seen: dict[tuple[str, str], int] = {}
        for one in report["verdicts"]:
            place = (one["number"], one["case"])
            index = seen[place] = seen.get(place, -1) + 1
            direction = DEFINITIONS[one["number"]].directions[index]
            metric = direction.expectation.split("[")[0].rpartition(".")[2]
            key = (*place, metric, one["section"])
            found.setdefault(key, {})[report["queue"]] = one["verdict"]
    queues = [report["queue"] for report in reports]
    rows = [
        [f"{number} {case}".strip(), f"`{metric}`", section, *(row[queue] for queue in queues)]
        for (number, case, metric, section), row in found.items()
    ]
    return table(["scenario", "metric", "stated in", *queues], rows)


def queues() -> str:
    """Write what sections 4.6, 11 and 12 ask about each queue of the catalogue."""
    rows = []
    for entry in json.loads(_core.qdisc_catalogue()):
        cost = COSTS.get(entry["name"], {})
        derived = [item["key"] for item in entry["parameters"] if item["derived"]]
        rows.append(
            [
                f"`{entry['name']}`",
                f"{len(entry['parameters'])}",
                ", ".join(f"`{key}`" for key in derived) or MISSING,
                drop_times(QueueUnderTest(entry["name"])),
                f"{cost['ns_per_packet']:.0f}" if cost else MISSING,
                f"{cost['empty_bytes'] / 1e3:.1f}" if cost else MISSING,
            ]
        )
    head = [
        "queue",
        "parameters",
        "derived by default",
        "when packets are dropped",
        "ns per packet",
        "empty queue [kB]",
    ]
    return table(head, rows)


def main() -> int:
    """Write the tables.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Write the tables of docs/validation/rfc7928.md.")
    parser.add_argument("files", type=Path, nargs="+", help="output of sojourn rfc7928 --json")
    arguments = parser.parse_args()
    reports: Reports = []
    for file in arguments.files:
        reports += json.loads(file.read_text(encoding="utf-8"))
    tables = {
        "about": about(),
        "results": results(reports),
        "verdicts": verdicts(reports),
        "queues": queues(),
    }
    return compare(PAGE, tables, target=TARGET, write=True)


if __name__ == "__main__":
    sys.exit(main())
