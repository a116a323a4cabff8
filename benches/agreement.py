"""How far live runs agree with simulated ones: three congestion controls and RRUL, four queues.

Prints tables in Markdown for ``docs/validation/live.md``. Needs Linux and a machine with nothing
else to do.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import sojourn as sj

CONTROLS = ("cubic", "reno", "bbr")
RRUL = "rrul"
RATES = ("10mbit", "100mbit")
QUEUES = ("pfifo", "codel", "fq_codel", "pie")
RTT = "40ms"
# Flows that start in the same instant lose packets together. Simulated and live flows of one seed
# start at the same random times; sockets cannot be opened in the same instant.
START_JITTER = "200ms"
# How often a flow halves its window at the end of slow start varies by chance, and decides on the
# next seconds: a few simulated runs would show only some of what happens.
SIMULATED = 20
# Goodput and delay: names of metrics in Agreement.table, and how they are headed.
METRICS = {
    "goodput_down_mbit_per_s": "goodput down [Mbit/s]",
    "goodput_up_mbit_per_s": "goodput up [Mbit/s]",
    "ping_ms_p95": "ping p95 [ms]",
}


def traffic(kind: str) -> list[sj.Traffic]:
    """Return one download, or four transfers in each direction as RRUL has them, and a ping."""
    ping = sj.Ping(direction="up", interval="100ms")
    if kind != RRUL:
        return [sj.Tcp(direction="down", cc=kind), ping]
    four = [
        sj.Tcp(direction=where, cc="cubic", count=4, start_jitter=START_JITTER)
        for where in ("down", "up")
    ]
    return [*four, ping]


def scenario(kind: str, rate: str, *, seconds: int, replications: int) -> sj.Scenario:
    """Return a scenario with one arm per queue."""
    return sj.Scenario(
        name=f"{kind} {rate}",
        links={name: sj.Link(rate=rate, qdisc="pfifo") for name in ("down", "up")},
        traffic=traffic(kind),
        rtt=RTT,
        duration=f"{seconds}s",
        warmup="5s",
        replications=replications,
        arms=[
            sj.Arm(name=queue, set={f"links.{name}.qdisc": queue for name in ("down", "up")})
            for queue in QUEUES
        ],
    )


def rows(agreement: sj.Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of the comparison that the table shows."""
    for row in agreement.table.iter_rows(named=True):
        if row["metric"] in METRICS and row["group"] is None:
            yield row


def line(row: dict[str, Any]) -> str:
    """Write a row of the table."""
    change = row["measured"] - row["simulated"]
    share = 100 * change / row["simulated"]
    interval = "" if row["low"] is None else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
    cells = [
        row["arm"],
        METRICS[row["metric"]],
        f"{row['simulated']:.2f}",
        f"{row['measured']:.2f}",
        f"{change:+.2f}{interval}",
        f"{share:+.1f} %",
        row["verdict"] if row["valid"] else f"{row['verdict']}, live run invalid",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Run the comparisons and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--only", default="", help="words of the name of a scenario: 'bbr 10mbit'")
    options = parser.parse_args()
    verdicts: dict[str, int] = {}
    for rate in RATES:
        for kind in (*CONTROLS, RRUL):
            if options.only not in f"{kind} {rate}":
                continue
            agreement = sj.agree(
                scenario(kind, rate, seconds=options.seconds, replications=options.replications),
                simulated_replications=SIMULATED,
            )
            print(f"{kind}, {rate.replace('mbit', ' Mbit/s')}:\n")
            print("| queue | metric | simulated | live | difference | relative | verdict |")
            print(f"|{'---|' * 7}")
            for row in rows(agreement):
                print(line(row))
                verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
            for check in agreement.failed_checks:
                print(f"\n{check.arm}, run {check.replication}: {check.name}: {check.value}")
            print(flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
