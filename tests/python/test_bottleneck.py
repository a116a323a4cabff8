"""``sojourn.Path``: packets, times, events and errors."""

import re
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.bottleneck import Delivery, PathEvent

ROOT = Path(__file__).parents[2]
#: The loop of examples/path, and what it prints in every language.
EXAMPLE = "rate 10mbit delay 10ms jitter 2ms loss 1% drop 3,4,5 qdisc fq_codel"


def drained(path: sj.Path) -> list[Delivery]:
    """Poll at each deadline until nothing is inside."""
    found = []
    while (now := path.deadline()) is not None:
        found += path.poll(now)
    return found


def test_packets_arrive_at_the_rate_after_the_delay_with_their_bytes() -> None:
    path = sj.Path("rate 10mbit delay 5ms qdisc pfifo")
    assert [path.push(0.001, bytes([n]) * 1208, flow=n, ecn="ect0") for n in range(3)] == [0, 1, 2]
    found = drained(path)
    # 1,250 B take 1 ms.
    assert [delivery.at for delivery in found] == [0.007, 0.008, 0.009]
    assert [delivery.waited for delivery in found] == [0.0, 0.001, 0.002]
    assert [delivery.data for delivery in found] == [bytes([n]) * 1208 for n in range(3)]
    assert found[2][:3] == (2, 0.009, "forward")
    assert found[2][4:7] == ("ect0", 0, 2)
    assert path.counters() == {
        "sent_packets": 3,
        "sent_bytes": 3750,
        "drops_overlimit": 0,
        "drops_aqm": 0,
        "drops_ack_filter": 0,
        "marks_aqm": 0,
        "marks_ce_threshold": 0,
        "lost_packets": 0,
        "duplicated_packets": 0,
    }
    assert path.sojourn(1.0) == 0.002
    assert path.sojourn(0.5, "reverse") is None


def test_another_thread_may_use_a_path() -> None:
    path = sj.Path("rate 10mbit delay 5ms qdisc fq_codel")
    path.push(0, bytes(1208))
    with ThreadPoolExecutor(1) as pool:
        (delivery,) = pool.submit(drained, path).result()
    assert delivery.at == 0.006


def test_directions_are_independent_and_the_reverse_one_has_the_same_delay() -> None:
    path = sj.Path("rate 10mbit delay 5ms drop 1 qdisc pfifo", events=True)
    path.push(0, b"there")
    path.push(0, b"back", direction="reverse")
    (delivery,) = drained(path)
    assert (delivery.direction, delivery.at, delivery.data) == ("reverse", 0.005, b"back")
    # 60 B, the smallest of Ethernet, are not padded: 47 B take 37.6 us.
    assert path.events() == [
        PathEvent(0.0, "forward", 0, 47, "offered", None, None),
        PathEvent(0.0, "forward", 0, 47, "departed", None, 0.0),
        PathEvent(0.0, "reverse", 1, 46, "offered", None, None),
        PathEvent(0.0000376, "forward", 0, 47, "lost", None, None),
        PathEvent(0.005, "reverse", 1, 46, "arrived", None, None),
    ]
    assert path.events() == []
    assert path.counters()["lost_packets"] == 1


def test_a_queue_marks_or_drops_and_says_why() -> None:
    path = sj.Path("rate 1mbit qdisc fq_codel limit 200", events=True)
    for n in range(600):
        path.push(n / 500, bytes(1000), ecn="ect1" if n % 2 else "not-ect", flow=n % 2)
    found = drained(path)
    kinds = {(event.kind, event.reason) for event in path.events()}
    assert kinds == {
        ("offered", None),
        ("departed", None),
        ("arrived", None),
        ("marked", "aqm"),
        ("dropped", "aqm"),
        ("dropped", "overlimit"),
    }
    counters = path.counters()
    assert sum(delivery.ecn == "ce" for delivery in found) == counters["marks_aqm"] > 10
    assert {delivery.flow for delivery in found if delivery.ecn == "ce"} == {1}
    assert path.statistics()["new_flow_count"] >= 1


def test_a_trace_a_change_of_rate_and_a_change_of_the_wire_apply() -> None:
    path = sj.Path("qdisc pfifo", forward_trace="10\n20\n")
    path.push(0, bytes(1000))
    path.push(0, bytes(1000))
    assert [delivery.at for delivery in drained(path)] == [0.01, 0.02]

    path = sj.Path("rate 1mbit qdisc pfifo")
    path.set_rate(0, "10mbit")
    path.set_wire(0, "delay 50ms")
    path.push(0, bytes(1208))
    assert [delivery.at for delivery in drained(path)] == [0.051]


def test_an_ip_packet_is_marked_in_its_bytes() -> None:
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 2, 28, 0, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
    packet = header + struct.pack("!HHHH", 7, 443, 8, 0)
    path = sj.Path("delay 1ms ecn ce")
    path.push_ip(0, packet)
    (delivery,) = drained(path)
    assert (delivery.ecn, delivery.flow, delivery.data[1]) == ("ce", 7, 3)
    assert delivery.data[12:] == packet[12:]


def test_a_capture_has_the_packets(tmp_path: Path) -> None:
    file = tmp_path / "test.pcapng"
    path = sj.Path("rate 1mbit qdisc pfifo", capture=file)
    path.push(0, b"payload")
    drained(path)
    path.finish_capture()
    assert b"payload" in file.read_bytes()
    with pytest.raises(sj.ResultError, match="No such file"):
        sj.Path("delay 1ms", capture=tmp_path / "no" / "test.pcapng")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sj.Path("rate 10 qdisc pfifo"), "forward.rate: "),
        (lambda: sj.Path("delay 1ms", "los 1%"), "reverse.los: unknown key; expected delay,"),
        (lambda: sj.Path("loss 101%"), 'forward.loss: "101%" is not a percentage; expected 0% to'),
        (lambda: sj.Path("qdisc pfifo", forward_trace="x"), "forward_trace: line 1: not a time"),
        (lambda: sj.Path("").push(0, b"", flow=1, ecn="ECT"), 'ecn: unknown ECN field "ECT"; exp'),
        (lambda: sj.Path("", seed=-1), "seed: -1 is out of range; expected 0 to 922337203685477"),
        (lambda: sj.Path("").push(0, b"", flow=65_536), "flow: 65536 is out of range; expected 0"),
        (lambda: sj.Path("").push(0, b"", direction="up"), 'direction: unknown direction "up"; e'),
        (lambda: sj.Path("").push_ip(0, b"E"), "packet: 1 bytes are not a complete IPv4 or IPv6"),
        (lambda: sj.Path("").poll(-1), "now: -1 is out of range; expected 0 to 4000000 s"),
        (lambda: sj.Path("").poll(float("nan")), "now: NaN is out of range"),
        (lambda: sj.Path("").sojourn(2), "quantile: 2 is out of range; expected 0 to 1"),
        (lambda: sj.Path("").set_wire(0, "delay"), "forward.delay: the value is missing"),
    ],
)
def test_what_is_wrong_is_named(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(message)}"):
        make()


def test_a_strict_path_refuses_a_late_poll() -> None:
    path = sj.Path("rate 10mbit delay 5ms qdisc pie", strict=True)
    path.push(0.0, bytes(1000))
    late = "now: packet 0 arrived at 5.833600ms and was polled at 6.000000ms; call poll at each"
    with pytest.raises(sj.ScenarioError, match=late):
        path.poll(0.006)
    path.push(0.006, bytes(1000))
    numbers = []
    while (now := path.deadline()) is not None:
        numbers += [delivery.packet for delivery in path.poll(now)]
    assert numbers == [1]


def test_time_that_goes_back_is_an_error_and_changes_nothing() -> None:
    path = sj.Path("delay 1ms")
    path.push(1.0, b"first")
    with pytest.raises(sj.ScenarioError, match=r"^now: 999\.0*ms precedes the time of an earlier"):
        path.push(0.999, b"never")
    assert [delivery.data for delivery in drained(path)] == [b"first"]


def example() -> str:
    """Run the loop of examples/path."""
    path = sj.Path(EXAMPLE, seed=1, events=True)
    now, following, sent, arrived, events = 0.0, 0.0, 0, 0, 0
    digest = 0xCBF29CE484222325
    kinds = ["offered", "dropped", "marked", "departed", "lost", "arrived"]
    while now < float("inf"):
        for delivery in path.poll(now):
            arrived += 1
            if delivery.direction == "forward" and delivery.packet % 2 == 0:
                path.push(now, bytes(40), direction="reverse")
        if now == following:
            flow = sent % 2
            path.push(now, bytes(1200), ecn="not-ect" if flow else "ect0", flow=flow)
            sent += 1
            following = sent * 400_000 / 1e9 if sent < 5000 else float("inf")
        for event in path.events():
            # The bytes of the struct in C; AQM is reason 1 of drops and reason 0 of marks.
            reason = int(event.kind == "dropped" and event.reason == "aqm")
            at, waited = round(event.at * 1e9), round((event.waited or 0) * 1e9)
            direction = int(event.direction == "reverse")
            of = (at, event.packet, waited, event.size, direction, kinds.index(event.kind), reason)
            for byte in struct.pack("<QQQIBBBx", *of):
                digest = (digest ^ byte) * 0x100000001B3 % 2**64
            events += 1
        due = path.deadline()
        now = following if due is None else min(due, following)
    counters, p95 = path.counters(), path.sojourn(0.95)
    assert p95 is not None
    return (
        f"arrived {arrived}, dropped {counters['drops_aqm']}, marked {counters['marks_aqm']}, "
        f"lost {counters['lost_packets']}, p95 {round(p95 * 1e9) // 1000} us, events {events}, "
        f"digest {digest:016x}"
    )


def test_the_example_has_the_same_events_in_every_language() -> None:
    readme = (ROOT / "examples/path/README.md").read_text(encoding="utf-8")
    assert f"\n{example()}\n" in readme
