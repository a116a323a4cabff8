"""iperf3, irtt, curl, flent and tshark with live runs, compared with the configuration."""

import gzip
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import flent_program
from support.captures import at, fields
from support.live_probe import SERVER, User, folder, link, measured, needed, parsed, program, saved

__all__ = ["folder"]

RESULT = ("--out", "result", "--force")
IRTT_SERVER = ("--server", "irtt server")
MBIT = 20
RTT_MS = 20
# What a link carries of a full packet, as in test_live.py.
PAYLOAD = 1448 / 1514
# The time that a full packet takes, and the limit of queues that do not separate flows.
PACKET_MS = 1514 * 8 / MBIT / 1e3
LIMIT = 100
FILE_BYTES = 1_500_000


@dataclass(frozen=True)
class Queue:
    """A queue, and what must be measured while one CUBIC connection fills the link.

    Parameters
    ----------
    spec
        The queue, in ``tc`` syntax.
    least_ms, most_ms
        Bounds of the median of what the queue adds to the RTT.
    least_share
        Smallest share of the capacity that the connection reaches, slow start included.
    """

    spec: str
    least_ms: float
    most_ms: float
    least_share: float


# A ping waits for the packet that is being sent and for few others where flows are separate; else
# for at most a full buffer. Of a buffer of 3 BDP, CUBIC fills more than a third after a loss. An
# AQM with a small delay, or the drop that ends slow start early, leaves the link idle at times.
SPARSE_MS = 13 * PACKET_MS
FULL_MS = LIMIT * PACKET_MS
QUEUES = [
    Queue(f"pfifo limit {LIMIT}", FULL_MS / 3, FULL_MS + 2, 0.9),
    Queue("fq_codel", 0, SPARSE_MS, 0.75),
    Queue("cake", 0, SPARSE_MS, 0.75),
    Queue("cocoa", 0, SPARSE_MS, 0.75),
    Queue(f"predict limit {LIMIT}", 0, FULL_MS + 2, 0.75),
]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.spec.split()[0])
def test_tools_measure_the_rate_and_the_delay_of_a_queue(folder: Path, queue: Queue) -> None:
    user = needed()
    program("iperf3", "irtt", "curl", "ping", "python3")
    flent_program.program()
    (folder / "file").write_bytes(bytes(FILE_BYTES))
    (folder / "small").write_bytes(b"small")
    found = measured(
        lambda: _measurements(user, folder, queue), lambda values: not _wrong(values, queue)
    )
    assert _wrong(found, queue) == []


def _measurements(user: User, folder: Path, queue: Queue) -> dict[str, float]:
    """Measure the idle link with irtt, then load it with curl, and with iperf3 beside flent."""
    # Each file needs a connection of its own: the server speaks HTTP 1.0.
    get = "curl -sS --retry 9 --retry-connrefused --retry-delay 1 -w '%{json}\\n'"
    small = "-o '#1' http://$SOJOURN_SERVER/small?[1-4]"
    flent = f"{flent_program.program()} ping -l 1 -s 0.1 -d 0 -H {SERVER} -D {folder}"
    lines = [
        "irtt client -d 600ms -i 10ms -q -o irtt.json $SOJOURN_SERVER",
        f"{get} {small} -o fetched http://$SOJOURN_SERVER/file > curl.txt",
        "iperf3 -c $SOJOURN_SERVER -R -C cubic -t 3 -J > iperf3.json &",
        f"HOME={folder} MPLBACKEND=agg {flent}; wait",
    ]
    servers = f"iperf3 -s & irtt server & exec python3 -m http.server 80 --directory {folder}"
    words = ("--link", f"{MBIT}mbit", "--rtt", f"{RTT_MS}ms", "--qdisc", queue.spec, *RESULT)
    server = ("--server", f'sh -c "{servers}"')
    done = user.run("live", *words, *server, "--", "sh", "-c", "\n".join(lines), folder=folder)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "ERROR" not in said
    assert (folder / "fetched").stat().st_size == FILE_BYTES
    stats = parsed(folder, "irtt.json")["stats"]
    fetched = [json.loads(line) for line in (folder / "curl.txt").read_text().splitlines()]
    last_s = fetched[-1]["time_total"] - fetched[-1]["time_pretransfer"]
    received = parsed(folder, "iperf3.json")["end"]["sum_received"]["bits_per_second"]
    pings = _flent_medians_ms(folder)
    capacity = MBIT * 1e6 * PAYLOAD
    return {
        "irtt median": stats["rtt"]["median"] / 1e6,
        "irtt delivered": stats["packets_received"] / stats["packets_sent"],
        "irtt packets": stats["packets_sent"],
        "curl connect": statistics.median(one["time_connect"] for one in fetched) * 1e3,
        "curl share": FILE_BYTES * 8 / last_s / capacity,
        "iperf3 share": received / capacity,
        "flent icmp": pings["Ping (ms) ICMP"],
        "flent udp": pings["Ping (ms) UDP"],
    }


def _wrong(found: dict[str, float], queue: Queue) -> list[str]:
    """Name what is outside its bounds, which follow from rate, RTT and queue."""
    added = (RTT_MS + queue.least_ms, RTT_MS + queue.most_ms)
    bounds = {
        "irtt median": (RTT_MS, RTT_MS + 1.5),
        "irtt delivered": (1, 1),
        "irtt packets": (55, 61),
        "curl connect": (RTT_MS, RTT_MS + 4),
        # Slow start takes a few round trips of the transfer.
        "curl share": (0.7, 1),
        "iperf3 share": (queue.least_share, 1.005),
        "flent icmp": added,
        "flent udp": added,
    }
    return _outside(found, bounds)


def _outside(found: dict[str, float], bounds: dict[str, tuple[float, float]]) -> list[str]:
    """Name the values that are outside their bounds."""
    assert found.keys() == bounds.keys()
    return [
        f"{name} {value:.4g}, expected {bounds[name][0]:.4g} to {bounds[name][1]:.4g}"
        for name, value in found.items()
        if not bounds[name][0] <= value <= bounds[name][1]
    ]


def _flent_medians_ms(folder: Path) -> dict[str, float]:
    """Medians of the series in the newest data file of flent."""
    newest = max(folder.glob("*.flent.gz"), key=lambda file: file.stat().st_mtime)
    with gzip.open(newest, "rt") as file:
        results: dict[str, Any] = json.load(file)["results"]
    return {
        name: statistics.median(value for value in values if value is not None)
        for name, values in results.items()
    }


def test_irtt_measures_the_rtt_and_half_of_it_in_each_direction(folder: Path) -> None:
    user = needed()
    program("irtt")
    client = "irtt client -d 1s -i 10ms -q -o irtt.json $SOJOURN_SERVER"
    words = ("live", "--rtt", "30ms", "--link", "100mbit", *RESULT, *IRTT_SERVER)

    def wrong() -> list[str]:
        done = user.run(*words, "--", "sh", "-c", client, folder=folder)
        assert done.returncode == 0, done.stderr
        stats = parsed(folder, "irtt.json")["stats"]
        delays = ("rtt", "send_delay", "receive_delay")
        found = {name: stats[name]["median"] / 1e6 for name in delays}
        found |= {name: stats[name] for name in ("packets_sent", "packets_received")}
        # Two packets open and close the session.
        found["up"] = link(saved(folder), "up")["sent_packets"]
        bounds = {
            "rtt": (30, 31),
            "send_delay": (15, 15.7),
            "receive_delay": (15, 15.7),
            "packets_sent": (90, 101),
            "packets_received": (found["packets_sent"], found["packets_sent"]),
            "up": (90, 110),
        }
        return _outside(found, bounds)

    assert measured(wrong, lambda found: not found) == []


# Findings of at least a warning. Wireshark suspects that some retransmissions are out of order,
# warns of duplicates that a receiver reports, and iperf3 may end its connections with a reset.
FINDINGS = (
    "_ws.malformed || ip.checksum.status == 0 || (_ws.expert.severity >= 6291456 && "
    "!tcp.analysis.out_of_order && !tcp.options.sack.dsack && !tcp.connection.rst)"
)


@pytest.mark.parametrize(
    ("queue", "reason", "column"),
    [
        ("pfifo limit 20", "dropped: pfifo overlimit", "drops_overlimit"),
        ("fq_codel target 1ms interval 10ms", "dropped: fq_codel aqm", "drops_aqm"),
    ],
)
def test_wireshark_reads_the_packets_of_a_live_run(
    folder: Path, queue: str, reason: str, column: str
) -> None:
    user = needed()
    program("iperf3", "tshark")
    words = ("--link", "10mbit", "--rtt", "20ms", "--qdisc", queue, "--pcap", "packets.pcapng")
    transfer = ("iperf3", "-c", "$SOJOURN_SERVER", "-R", "-C", "cubic", "-t", "1")
    done = user.run(
        "live", *words, *RESULT, "--server", "iperf3 -s -1", "--", *transfer, folder=folder
    )
    assert done.returncode == 0, done.stderr
    file = folder / "packets.pcapng"
    names = ("interface_name", "packet_id", "time_epoch", "comment", "interface_queue")
    rows = fields(file, "frame", *(f"frame.{name}" for name in names), "ip.id")
    result = saved(folder)
    for name in ("down", "up"):
        entered, left, dropped = (
            {row[1]: row for row in rows if row[0] == f"{name}.{point}"}
            for point in ("enq", "deq", "drop")
        )
        counts = link(result, name)
        # The run begins and ends with the program: packets may still be on their way.
        assert len(left) == pytest.approx(counts["sent_packets"], abs=5)
        assert len(dropped) == counts[column]
        assert len(dropped) == counts["drops_overlimit"] + counts["drops_aqm"]
        assert left.keys() | dropped.keys() <= entered.keys()
        assert left.keys().isdisjoint(dropped)
        assert len(entered) - len(left) - len(dropped) <= 25
        # The packet of a number is the same at each point, and leaves after it has entered.
        for number, row in (left | dropped).items():
            assert row[4:] == entered[number][4:]
            assert float(row[2]) >= float(entered[number][2])
        assert {row[3] for row in dropped.values()} <= {reason}
    assert len([row for row in rows if row[0] == "down.deq"]) > 500
    assert [row for row in rows if row[3] == reason]
    # Only a fair queue has queues of its own: at least the data and the parameters of iperf3.
    queues = {row[4] for row in rows if row[0] == "down.deq"}
    assert queues == {""} if queue.startswith("pfifo") else len(queues - {""}) == len(queues) > 1
    faults = fields(at(file, "up.enq", "down.enq"), FINDINGS, "_ws.expert.message")
    assert faults == []
