"""Write the tables of docs/validation/performance.md from ``benches/measured.json``.

``python tools/performance.py`` exits with status 1 if a table of the page and the stored
measurement differ; with ``--write`` it replaces the tables. ``--update FILE`` first stores the
measurements in FILE, which ``make bench`` or ``make bench-peers`` writes, with the date, the commit
and the class of the machine. A measurement that FILE lacks stays as it is.
``benches/reference.json`` has the budgets, and simulators that no command measures.
"""

import argparse
import datetime as dt
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measured import compare

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/validation/performance.md")
STORED = ROOT / "benches/measured.json"
REFERENCE = json.loads((ROOT / "benches/reference.json").read_text(encoding="utf-8"))
BUDGETS = REFERENCE["budgets"]
RUNS = list(BUDGETS["k_per_s"])
KINDS = {queue: kind for kind, queues in REFERENCE["queue_kinds"].items() for queue in queues}
#: Titles of the stored measurements, in the order of the page.
TITLES = {
    "runs": "S1 to S5",
    "instructions": "their instructions",
    "idle_flow": "idle flows",
    "web_connections": "web",
    "web3_connections": "web3",
    "python_queue": "Python queue",
    "queues": "S6",
    "slots": "slots of `predict`",
    "worst": "worst cases",
    "peers": "ns-3 and ns-2",
}
#: The keys of `make bench` that are a measurement each.
WHOLE = {"S6": "queues"} | {
    name: name for name in TITLES if name not in {"runs", "instructions", "queues", "worst"}
}
#: What the worst cases are, in the order of the table.
WORST = {
    "tcp": "4 CUBIC flows, 100 Mbit/s, 50 ms, CoDel, 20 s",
    "quic": "the same over QUIC",
    "bbr": "4 BBR flows",
    "dualpi2": "4 CUBIC flows with ECN, DualPI2",
    "prague": "4 Prague flows, DualPI2",
    "wifi": "4 CUBIC flows, 802.11n at 144 Mbit/s, FQ-CoDel",
    "series": "4 CUBIC flows, 16 links of 100 Mbit/s in series",
    "many_codel": "10,000 CUBIC flows, 10 Gbit/s, 50 ms, CoDel, 2 s",
    "many_fq_codel": "the same with FQ-CoDel",
}

#: The TCP of Sojourn and of ns-3.
CUBIC = "CUBIC, SACK, delayed ACKs"

Measurement = dict[str, Any]
#: What a packet of a worst case costs.
Cost = dict[str, float | None]


def measurements(bench: dict[str, Any]) -> dict[str, Any]:
    """Return the complete measurements of a file that ``make bench`` has written."""
    found = {WHOLE[key]: value for key, value in bench.items() if key in WHOLE}
    if all(name in bench for name in RUNS):
        found["runs"] = {
            name: {
                "delivered_per_cpu_s": round(bench[name]["delivered_per_cpu_s"]),
                "peak_rss_bytes": bench[name]["peak_rss_bytes"],
                "events_per_packet": round(bench[name]["events"] / bench[name]["delivered"], 2),
            }
            for name in RUNS
        }
        counts = {name: bench[name]["instructions_per_packet"] for name in RUNS}
        if None not in counts.values():
            found["instructions"] = {name: round(count) for name, count in counts.items()}
    if all(name in bench.get("worst", {}) for name in WORST):
        found["worst"] = {
            name: {
                "ns_per_packet": round(run["cpu_s"] * 1e9 / run["delivered"], 1),
                "instructions_per_packet": rounded(run["instructions_per_packet"]),
                "peak_rss_bytes": run["peak_rss_bytes"],
            }
            for name, run in bench["worst"].items()
        } | {"short": {"ms_per_run": round(bench["short_run_ms"], 3)}}
    speeds = [speed for run in bench.get("peers", {}).values() for speed in run.values()]
    if not all(speed > 0 for speed in speeds):
        sys.exit("peers: a simulator delivered nothing; expected a speed above 0 of each")
    return found


def rounded(count: float | None) -> int | None:
    """Return a whole number, if there is one."""
    return None if count is None else round(count)


def machine() -> str:
    """Return the class of this machine: its number of processors and their model."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{os.cpu_count()} processors, {model[1] if model else 'model unknown'}"


def commit() -> str:
    """Return the abbreviated commit, with ``-dirty`` if files of the repository differ from it."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def number(value: float | None, places: int = 0) -> str:
    """Write a number with thousands separators; a missing one is not zero."""
    return "not measured" if value is None else f"{value:,.{places}f}"


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def verdict(met: bool) -> str:  # noqa: FBT001 - the only argument
    """Return the word for a budget that is met or not."""
    return "met" if met else "missed"


def runs(stored: dict[str, Measurement]) -> str:
    """Return the table of S1 to S5."""
    values, counts = stored["runs"]["values"], stored["instructions"]["values"]
    rows = []
    for name in RUNS:
        run, (budget, goal) = values[name], BUDGETS["k_per_s"][name]
        speed = run["delivered_per_cpu_s"] / 1e3
        memory = run["peak_rss_bytes"]
        rows.append(
            [
                name,
                number(speed),
                f"{number(budget)}: {verdict(speed >= budget)}",
                f"{number(goal)}: {verdict(speed >= goal)}",
                number(counts[name]),
                number(run["events_per_packet"], 1),
                number(None if memory is None else memory / 1e6, 1),
            ]
        )
    head = ["", "thousands of packets per CPU second", "budget", "goal"]
    return table([*head, "instructions per packet", "events per packet", "peak memory, MB"], rows)


def others(stored: dict[str, Measurement]) -> str:
    """Return the table of idle flows, web connections, the Python queue and the slots."""
    idle, python = stored["idle_flow"]["values"], stored["python_queue"]["values"]
    most = BUDGETS["idle_flow_bytes"]
    rows = [
        [f"idle flow {when}", f"{number(size)} B", f"{most} B", verdict(size <= most)]
        for when, size in (
            ("before its start", idle["waiting_bytes"]),
            ("after its end", idle["done_bytes"]),
        )
    ]
    for name in ("web", "web3"):
        web, most = stored[f"{name}_connections"]["values"], BUDGETS["web_bytes"][name]
        size = web["peak_rss_bytes"]
        shown = f"{number(web['connections'])} connections, {number(size / 1e6, 1)} MB"
        shown = f"{shown}, {number(web['cpu_s'], 1)} CPU s"
        rows.append([name, shown, f"{number(most / 1e6)} MB", verdict(size <= most)])
        first, *_, last = costs = web["ns_per_packet"]
        shown = ", ".join(number(cost) for cost in costs)
        growth, most = last / first, BUDGETS["web_growth"]
        budget = f"{most} times" if name == "web" else ""
        met = verdict(growth <= most) if name == "web" else ""
        shown = f"{shown} ns in seconds 1 to {len(costs)}; last / first: {growth:.2f}"
        rows.append([f"{name}, growth of the cost per packet", shown, budget, met])
    more, most = python["us_more_per_packet"], BUDGETS["python_queue_us"]
    rows.append(
        [
            "Python queue",
            f"{number(more, 2)} µs more per packet",
            f"{most} µs",
            verdict(more <= most),
        ]
    )
    most = BUDGETS["slot_percent"]
    for spec, ns in stored["slots"]["values"].items():
        share = ns / 1e6 * 100
        shown = f"{number(ns)} ns, {share:.2f} % of a core"
        rows.append([f"end of a slot, `{spec}`", shown, f"{most} %", verdict(share < most)])
    return table(["", "measured", "budget", ""], rows)


def ratio(values: dict[str, Cost], name: str, base: str) -> float | None:
    """Return how many times the instructions of case ``base`` a case executes per packet."""
    count, of_base = (values[case]["instructions_per_packet"] for case in (name, base))
    return None if count is None or of_base is None else count / of_base


def worst_budget(values: dict[str, Cost], name: str) -> str:
    """Return the budget of a worst case and whether it is met."""
    if name in BUDGETS["worst_ns"]:
        budget = BUDGETS["worst_ns"][name]
        ns = values[name]["ns_per_packet"]
        return f"{budget} ns: {verdict(ns is not None and ns <= budget)}"
    if name in BUDGETS["worst_ratio"]:
        base, budget = BUDGETS["worst_ratio"][name]
        times = ratio(values, name, base)
        if times is None:
            return f"{budget} times the instructions of {base}: not measured"
        return f"{budget} times the instructions of {base}: {times:.2f}, {verdict(times <= budget)}"
    return ""


def worst(stored: dict[str, Measurement]) -> str:
    """Return the table of the worst cases."""
    values = stored["worst"]["values"]
    rows = []
    for name, what in WORST.items():
        cost = values[name]
        count, memory = cost["instructions_per_packet"], cost["peak_rss_bytes"]
        times = ratio(values, name, "tcp")
        rows.append(
            [
                name,
                what,
                f"{number(cost['ns_per_packet'])} ns per packet",
                number(count),
                "" if times is None else f"{times:.2f}",
                number(None if memory is None else memory / 1e6, 1),
                worst_budget(values, name),
            ]
        )
    short = f"{number(values['short']['ms_per_run'], 2)} ms per run"
    what = "500 runs of 2 CUBIC flows, 10 Mbit/s, 50 ms, FQ-CoDel, 1 s"
    rows.append(["short", what, short, "", "", "", ""])
    head = ["case", "load", "CPU time", "instructions per packet", "times tcp"]
    return table([*head, "peak memory, MB", "budget"], rows)


def peers(stored: dict[str, Measurement]) -> str:
    """Return the table of the simulators that were measured in one run with ours."""
    values = stored["peers"]["values"]

    def cells(name: str) -> list[str]:
        """Return the speeds of a simulator, and how many times as fast Sojourn is."""
        found = []
        for run in values.values():
            speed, times = run[name], run["sojourn"] / run[name]
            shown = f"{speed:,.0f}" if speed >= 100 else f"{speed:.1f}"  # noqa: PLR2004
            found.append(f"{shown} (Sojourn is {times:.3g} times as fast)")
        return found

    rows = [
        ["Sojourn", CUBIC, *(number(run["sojourn"]) for run in values.values())],
        ["ns-3 3.37 (Debian)", CUBIC, *cells("ns3")],
        [
            "ns-2 2.35 (Debian; PI or DRR for CoDel or FQ-CoDel)",
            "CUBIC, SACK, one ACK per packet",
            *cells("ns2"),
        ],
    ]
    return table(["simulator", "TCP", *values], rows)


def simulators() -> str:
    """Return the table of simulators that no command measures."""
    rows = [
        [
            f"{peer['name']} ({peer['note']})",
            peer["tcp"],
            *("does not finish" if speed is None else number(speed) for speed in peer["k_per_s"]),
        ]
        for peer in REFERENCE["peers"]["simulators"]
    ]
    return table(["simulator", "TCP", *RUNS], rows)


def queues(stored: dict[str, Measurement]) -> str:
    """Return the table of S6; a time over its budget is bold."""
    peer = REFERENCE["peers"]["queue_ns"]
    rows = []
    for name, cost in stored["queues"]["values"].items():
        kind = KINDS.get(name, "one")
        budget = BUDGETS["queue_ns"].get(kind, float("inf"))
        times = {"one": cost["ns_per_packet"], "flows": cost["ns_many_flows"]}
        over = {which: kind == which and ns > budget for which, ns in times.items()}
        rows.append(
            [
                name,
                kind,
                *(
                    f"**{number(ns, 1)}**" if over[which] else number(ns, 1)
                    for which, ns in times.items()
                ),
                number(cost["instructions_per_packet"]),
                number(cost["empty_bytes"]),
                number(cost["bytes_per_packet"]),
                number(cost["bytes_per_flow"]),
                number(peer["values"].get(name)) if name in peer["values"] else "",
            ]
        )
    head = ["queue", "kind", "ns, 100 flows", "ns, 1,000 flows", "instructions", "empty, bytes"]
    return table([*head, "bytes per packet", "bytes per flow", f"ns, {peer['simulator']}"], rows)


def origins(stored: dict[str, Measurement]) -> str:
    """Return the table of when and where each measurement was made."""
    rows = [
        [title, stored[name]["date"], stored[name]["commit"], stored[name]["machine"]]
        for name, title in TITLES.items()
    ]
    dated = REFERENCE["peers"]
    rows.append(["other simulators", dated["date"], "", dated["machine"]])
    return table(["measurement", "date", "commit", "machine"], rows)


def write_stored(stored: dict[str, Measurement]) -> None:
    """Write the stored measurements, with one line per run or queue."""
    sections = []
    for name in TITLES:
        fields = {**stored[name]}
        values = fields.pop("values")
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
        inner = [f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
        lines.append('    "values": {\n' + ",\n".join(inner) + "\n    }")
        sections.append(f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }")
    STORED.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="utf-8")


def main() -> int:
    """Store measurements, and check or write the tables of the page.

    Returns
    -------
    int
        The exit status: 1 if a table differs and is not written.
    """
    parser = argparse.ArgumentParser(description="Write the tables of the page on performance.")
    parser.add_argument("--write", action="store_true", help="replace the tables of the page")
    parser.add_argument("--update", type=Path, help="store what make bench has written here")
    options = parser.parse_args()
    stored: dict[str, Measurement] = json.loads(STORED.read_text(encoding="utf-8"))
    if options.update is not None:
        origin = {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "commit": commit(),
            "machine": machine(),
        }
        bench = json.loads(options.update.read_text(encoding="utf-8"))
        for name, values in measurements(bench).items():
            stored[name] = {**origin, "values": values}
        write_stored(stored)
    tables = {
        "origins": origins(stored),
        "runs": runs(stored),
        "others": others(stored),
        "peers": peers(stored),
        "simulators": simulators(),
        "queues": queues(stored),
        "worst": worst(stored),
    }
    write = options.write or options.update is not None
    return compare(PAGE, tables, target="bench-update", write=write)


if __name__ == "__main__":
    sys.exit(main())
