"""What the datapath of real packets does on this machine: rates, delays, the fastest link.

Prints tables in Markdown for ``docs/validation/live.md``. Needs Linux and root. The exit code is 1
if a bound is not met: on the rate of a link, on the load of the datapath at 100 Mbit/s, on an idle
ping, or on losses at 1 Gbit/s.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import sojourn as sj

# Ethernet frame of a datagram with this payload.
PAYLOAD = 1_472
FRAME = PAYLOAD + 42
RATES = ("1mbit", "10mbit", "100mbit")
QUEUES = ("pfifo limit 1000", "fq_codel", "cake")
# Of the hosts beside htb.
DEVICE = "link0"
# The search for the fastest link ends when the rate is known to this factor.
RESOLUTION = 1.1
# A host that is busy with something else for a moment is not the datapath's limit.
ATTEMPTS = 3
RATE_BOUND_PERCENT = 0.5
# Of a processor, for the datapath of the fastest of `RATES`.
LOAD_BOUND_PERCENT = 20
MEDIAN_BOUND_MS = 0.2
P99_BOUND_MS = 0.6
# Where the search for the fastest link begins.
SLOWEST_MBIT = 50.0
# Devices between hosts and datapath; the backend uses TUN where it can be opened.
DEVICES = ("tun", "veth")
TUN = Path("/dev/net/tun")
# Verdicts on the bounds.
MET, MISSED = "yes", "no"


def run(rate: str, qdisc: str, traffic: list[sj.Traffic], *, rtt: str, seconds: int) -> sj.Result:
    """Run one link in each direction with real packets."""
    scenario = sj.Scenario(
        links={
            "down": sj.Link(rate=rate, qdisc=qdisc),
            "up": sj.Link(rate=rate, qdisc=qdisc),
        },
        traffic=traffic,
        rtt=rtt,
        duration=f"{seconds}s",
        warmup="1s",
    )
    return sj.run(scenario, on="live")


def facts(result: sj.Result) -> dict[str, str]:
    """Return what the backend says about the run, by name."""
    return {fact["name"]: fact["value"] for fact in result.provenance["validity"]}


def table(header: Iterable[str], rows: Iterable[Sequence[object]]) -> int:
    """Print a table in Markdown; return the number of rows that miss a bound."""
    missed = 0
    names = list(header)
    print(f"| {' | '.join(names)} |")
    print(f"|{'---|' * len(names)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        missed += MISSED in row
    print()
    return missed


def shaped_rate(rate: str, seconds: int) -> list[object]:
    """Offer a fifth more than a link carries, and compare what leaves it."""
    mbit = float(rate.removesuffix("mbit"))
    offered = f"{1.2 * mbit * PAYLOAD / FRAME:.4f}mbit"
    udp = sj.Udp(direction="down", rate=offered, payload=f"{PAYLOAD}b")
    result = run(rate, "pfifo limit 1000", [udp], rtt="10ms", seconds=seconds)
    sent = int(result.links.filter(link="down")["sent_bytes"].sum())
    measured = 8e-6 * sent / (seconds - 1)
    error = 100 * (measured / mbit - 1)
    found = facts(result)
    load = int(found["datapath_cpu"].split()[0])
    verdict = MET if abs(error) <= RATE_BOUND_PERCENT and load <= LOAD_BOUND_PERCENT else MISSED
    lateness = found["datapath_lateness"]
    return [rate, f"{measured:.4f}", f"{error:+.3f} %", f"{load} %", verdict, lateness]


def idle_ping(rtt: str, seconds: int) -> list[object]:
    """Ping over an idle link of 1 Gbit/s."""
    ping = sj.Ping(direction="up", interval="10ms")
    result = run("1gbit", "pfifo", [ping], rtt=rtt, seconds=seconds)
    flows = result.flows
    base = float(rtt.removesuffix("ms"))
    median = float(flows["ping_ms_median"][0]) - base
    p99 = float(flows["ping_ms_p99"][0]) - base
    verdict = MET if abs(median) <= MEDIAN_BOUND_MS and p99 <= P99_BOUND_MS else MISSED
    return [rtt, f"{median:+.3f}", f"{p99:+.3f}", verdict, facts(result)["datapath_lateness"]]


def carried(qdisc: str, mbit: float, seconds: int) -> str | None:
    """Fill a link with datagrams; return the load of the datapath, or None if the run is invalid.

    A run must fill the link without a loss outside the queue, and pass all checks of the backend.
    What it fails is printed to stderr.
    """
    udp = sj.Udp(direction="down", rate=f"{mbit * PAYLOAD / FRAME:.3f}mbit", payload=f"{PAYLOAD}b")
    result = run(f"{mbit:.3f}mbit", qdisc, [udp], rtt="2ms", seconds=seconds)
    sent = int(result.links.filter(link="down")["sent_bytes"].sum())
    share = 8e-6 * sent / (seconds - 1) / mbit
    found = facts(result)
    lost = found["lost_outside_queue"]
    failed = [
        f"{fact['name']}: {fact['value']}"
        for fact in result.provenance["validity"]
        if not fact["passed"]
    ]
    if share <= 1 - RATE_BOUND_PERCENT / 50:
        failed.append(f"only {100 * share:.1f} % of the link was used")
    if not lost.startswith("0 of"):
        failed.append(f"lost outside the queue: {lost}")
    if failed:
        print(f"{qdisc}, {mbit:.0f} Mbit/s: {'; '.join(failed)}", file=sys.stderr, flush=True)
        return None
    return found["datapath_cpu"]


def fastest(qdisc: str, seconds: int) -> list[object]:
    """Find the fastest link that datagrams fill without a loss outside the queue."""
    least, most, found = SLOWEST_MBIT, None, None
    mbit = least
    # Ends when the bounds are close, since each turn moves one of them.
    while most is None or most / least > RESOLUTION:
        cpu = next(filter(None, (carried(qdisc, mbit, seconds) for _ in range(ATTEMPTS))), None)
        if cpu is not None:
            least, found = mbit, cpu
            mbit = mbit * 2 if most is None else (least * most) ** 0.5
        else:
            most = mbit
            mbit = (least * most) ** 0.5
    if found is None:
        return [qdisc, "none", "none", "none"]
    return [qdisc, f"{least:.0f}", f"{least * 1e6 / 8 / FRAME:,.0f}", found]


def datagrams(qdisc: str, seconds: int) -> list[object]:
    """Fill a link of 1 Gbit/s with datagrams."""
    load = next(filter(None, (carried(qdisc, 1_000, seconds) for _ in range(ATTEMPTS))), None)
    return [qdisc, load or "invalid", MET if load else MISSED]


def bulk(qdisc: str, seconds: int) -> list[object]:
    """Fill a link of 1 Gbit/s with one CUBIC connection."""
    tcp = sj.Tcp(direction="down", cc="cubic")
    result = run("1gbit", qdisc, [tcp], rtt="2ms", seconds=seconds)
    found = facts(result)
    goodput = float(result.flows["goodput_mbit_per_s"][0])
    lost = found["lost_outside_queue"]
    verdict = MET if lost.startswith("0 of") else MISSED
    return [qdisc, f"{goodput:.0f}", lost, verdict, found["datapath_cpu"]]


@contextmanager
def pair_of_hosts() -> Iterator[tuple[str, str]]:
    """Create two network namespaces joined by a veth pair, without our datapath."""
    names = ("sojourn-bench-1", "sojourn-bench-2")
    try:
        for name in names:
            output("ip", "netns", "add", name)
        near = ("link", "add", DEVICE, "netns", names[0])
        output("ip", *near, "type", "veth", "peer", "name", DEVICE, "netns", names[1])
        for number, name in enumerate(names, 1):
            output("ip", "-n", name, "address", "add", f"10.0.0.{number}/24", "dev", DEVICE)
            # As in a live run: packets of one segment.
            output("ip", "-n", name, "link", "set", DEVICE, "up", "gso_max_segs", "1")
        yield names
    finally:
        for name in names:
            with suppress(subprocess.CalledProcessError):
                output("ip", "netns", "delete", name)


def output(*words: str) -> str:
    """Run a program; return what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def htb(rate: str, seconds: int) -> list[object]:
    """Fill a link that ``htb`` of the kernel shapes with one CUBIC connection."""
    with pair_of_hosts() as (client, server):
        for words in (
            ("qdisc", "add", "dev", DEVICE, "root", "handle", "1:", "htb", "default", "1"),
            ("class", "add", "dev", DEVICE, "parent", "1:", "classid", "1:1", "htb", "rate", rate),
            ("qdisc", "add", "dev", DEVICE, "parent", "1:1", *QUEUES[0].split()),
        ):
            output("tc", "-n", client, *words)
        inside = ("ip", "netns", "exec")
        serve = (*inside, server, "iperf3", "-s", "-1", "--forceflush")
        transfer = ("iperf3", "-c", "10.0.0.2", "-C", "cubic", "-O", "1", "-t", str(seconds), "-J")
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as listening:
            # It prints a line of dashes before it listens, and two more when it does.
            for _, _ in zip(range(3), listening.stdout or (), strict=False):
                pass
            done = output(*inside, client, *transfer)
    summary = json.loads(done)["end"]
    mbit = summary["sum_received"]["bits_per_second"] / 1e6
    return [rate, f"{mbit:.0f}", summary["sum_sent"]["retransmits"]]


def without_tun(arguments: Sequence[str]) -> int:
    """Measure in a mount namespace without TUN, so that the backend uses veth."""
    hide = f'mount -t tmpfs none {TUN.parent} && exec "$@"'
    measure = (sys.executable, __file__, *arguments)
    words = ("unshare", "--mount", "sh", "-c", hide, "sh", *measure)
    return subprocess.run(words, check=False).returncode


def main() -> int:
    """Print all tables; return 1 if a bound is not met."""
    parser = argparse.ArgumentParser(description="Measure the datapath of real packets.")
    parser.add_argument("--seconds", type=int, default=11, help="length of a run (default 11)")
    parser.add_argument("--device", choices=DEVICES, default=DEVICES[0], help="default tun")
    parser.add_argument("--only-fastest", action="store_true", help="only find the fastest links")
    options = parser.parse_args()
    seconds: int = options.seconds
    if options.device == "veth" and TUN.exists():
        return without_tun(sys.argv[1:])
    machine = f"{os.cpu_count()} processors, Linux {platform.release()}"
    print(f"{datetime.now(UTC):%d %B %Y}, {machine}, {options.device}\n")
    return limits(seconds) if options.only_fastest else everything(seconds)


def limits(seconds: int) -> int:
    """Find the fastest links; nothing can be missed."""
    return table(
        ["queue", "fastest link without loss [Mbit/s]", "packets per second", "datapath"],
        (fastest(qdisc, max(3, seconds // 3)) for qdisc in QUEUES),
    )


def everything(seconds: int) -> int:
    """Print all tables; return 1 if a bound is not met."""
    missed = table(
        ["link", "measured [Mbit/s]", "error", "datapath", "within 0.5 and 20 %", "lateness"],
        (shaped_rate(rate, seconds) for rate in RATES),
    )
    missed += table(
        ["RTT", "median above it [ms]", "p99 above it [ms]", "within 0.2 and 0.6 ms", "lateness"],
        (idle_ping(rtt, seconds) for rtt in ("10ms", "50ms")),
    )
    limits(seconds)
    missed += table(
        ["queue", "datapath with datagrams at 1 Gbit/s", "no loss"],
        (datagrams(qdisc, max(4, seconds // 2)) for qdisc in QUEUES),
    )
    missed += table(
        [
            "queue",
            "one CUBIC at 1 Gbit/s [Mbit/s]",
            "lost outside the queue",
            "no loss",
            "datapath",
        ],
        (bulk(qdisc, max(4, seconds // 2)) for qdisc in QUEUES),
    )
    if missing := [name for name in ("ip", "tc", "iperf3") if shutil.which(name) is None]:
        print(f"htb of Linux was not measured: {', '.join(missing)} not installed")
    else:
        table(
            ["htb of Linux with pfifo", "one CUBIC [Mbit/s]", "retransmits"],
            (htb(rate, max(4, seconds // 2)) for rate in ("1gbit", "3gbit")),
        )
    if missed:
        print(f"{missed} rows miss a bound", file=sys.stderr)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
