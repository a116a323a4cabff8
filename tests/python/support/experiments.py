"""Experiments that are known to be wrong, each with its finding, and others that are right.

Each is small: 16 s of at most 10 Mbit/s, few replications. Traffic is given as in scenario files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Block = Mapping[str, Any]

RATE = "5mbit"
FIXED: Block = {"phase": "0s"}
# Starts at random times, so that replications differ.
TCP: Block = {"type": "tcp", "name": "bulk", "direction": "up", "start_jitter": "100ms"}
PING: Block = {"type": "ping", "name": "ping", "direction": "up", "interval": "37ms"}
FLOOD: Block = {"type": "udp", "name": "flood", "direction": "up", "rate": "6mbit", **FIXED}
POISSON: Block = {"type": "udp", "name": "random", "direction": "up", "spacing": "poisson"}
CALL: Block = {"type": "voip", "name": "call", "direction": "up", "start_jitter": "1s"}
WEB: Block = {"type": "web", "name": "web", "direction": "down", "page": "small", "think": "300ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A scenario, and what is expected of its findings."""

    name: str
    scenario: Mapping[str, Any]
    # A part of the finding of a wrong experiment.
    finding: str = ""
    # Parts of the notes of a right experiment.
    notes: Sequence[str] = ()
    severity: str = field(default="warning")


def scenario(
    *traffic: Block,
    up: str = "pfifo limit 50",
    down: str = "pfifo limit 50",
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    links: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a scenario over an access link; `arms` gives the values that each sets."""
    return {
        "duration": "16s",
        "warmup": "5s",
        "rtt": "20ms",
        "replications": 3,
        "links": {
            "up": {"rate": RATE, "qdisc": up},
            "down": {"rate": RATE, "qdisc": down},
            **(links or {}),
        },
        "traffic": list(traffic),
        **({"arms": [{"name": n, "set": s} for n, s in arms.items()]} if arms else {}),
        **more,
    }


def queues(*names: str, link: str = "up") -> dict[str, dict[str, str]]:
    """Return arms that differ in the queue of a link."""
    return {name: {f"links.{link}.qdisc": name} for name in names}


def _each(finding: str, severity: str, of: Mapping[str, Mapping[str, Any]]) -> list[Experiment]:
    """Name experiments with a common finding."""
    return [
        Experiment(name=f"{finding}: {name}", scenario=one, finding=finding, severity=severity)
        for name, one in of.items()
    ]


def _through(*names: str, **block: Any) -> Block:
    """Return a TCP block with a path of its own."""
    return {"type": "tcp", "name": "bulk", "path": [*names], "return": ["down"], **block}


def _sent(name: str, rate: str, **more: Any) -> Block:
    """Return a UDP flow with constant intervals."""
    return {"type": "udp", "name": name, "direction": "up", "rate": rate, **FIXED, **more}


WAN = {"wan": {"rate": "4mbit", "qdisc": "pfifo limit 100"}}
FAST = {name: {"rate": "100mbit", "qdisc": "pfifo limit 100"} for name in ("up", "down")}
RANDOM_60 = {**POISSON, "rate": "3mbit"}
BURSTS = _sent("bursts", "480kbit", payload="6000b", count=5)

IDENTICAL = {
    "ECN that TCP did not negotiate": scenario(TCP, arms=queues("codel noecn", "codel ecn")),
    "ECN of FQ-CoDel": scenario(TCP, PING, arms=queues("fq_codel noecn", "fq_codel")),
    "CoDel at 60 % load": scenario(RANDOM_60, PING, arms=queues("pfifo", "codel")),
    "PIE at 40 % load": scenario({**POISSON, "rate": "2mbit"}, arms=queues("pfifo", "pie")),
    "RED for calls": scenario({**CALL, "count": 5}, arms=queues("pfifo", "red")),
    "targets that are never reached": scenario(
        RANDOM_60, arms=queues("codel target 200ms", "codel target 300ms")
    ),
    "buffers that are never full": scenario(
        TCP, arms=queues("codel limit 1000", "codel limit 2000")
    ),
    "the queue of acknowledgements": scenario(
        TCP, arms=queues("pfifo limit 100", "bfifo", link="down")
    ),
    "controls of transfers without loss": scenario(
        {**TCP, "bytes": "10kb"}, arms={cc: {"traffic.bulk.cc": cc} for cc in ("reno", "highspeed")}
    ),
}

NO_BOTTLENECK = {
    "calls": scenario({**CALL, "count": 3}, arms=queues("pfifo", "fq_codel")),
    "pings": scenario(PING, arms=queues("pfifo", "fq_codel")),
    "UDP at a tenth of the link": scenario(
        _sent("slow", "500kbit", start_jitter="1s"), arms=queues("codel", "pie")
    ),
    "video below the rate of the link": scenario(
        {"type": "dash", "direction": "down", "ladder": ["300kbit"], "rtt": "400ms"},
        arms=queues("pfifo", "codel", link="down"),
        links=FAST,
    ),
    "losses on the wire": scenario(
        TCP,
        arms=queues("pfifo", "codel"),
        links={**FAST, "up": {"rate": "100mbit", "qdisc": "pfifo", "loss": "5%"}},
    ),
    "flow control": scenario(
        {"type": "quic", "direction": "up", "max_data": "64kb", "max_stream_data": "64kb"},
        arms=queues("pfifo", "fq_codel"),
        links=FAST,
        rtt="100ms",
    ),
    "transfers that end before the measured time": scenario(
        {**TCP, "bytes": "100kb"}, arms=queues("pfifo", "codel")
    ),
    "one request at a time": scenario(
        {"type": "request", "direction": "down", "bytes": "5kb", "think": "50ms"},
        arms=queues("pfifo", "cake", link="down"),
        links=FAST,
    ),
}

BRIEFLY = {
    f"{queue} in the slow start of {cc}": scenario(
        {**TCP, "cc": cc, "bytes": "4mb", "slow_start": "standard"},
        arms=queues("pfifo", queue),
        rtt="600ms",
        duration="120s",
        warmup="0s",
    )
    for queue, cc in (("codel", "reno"), ("sfq_codel", "reno"))
}

ELSEWHERE = {
    "in the WAN": scenario(
        _through("up", "wan", count=2), links=WAN, arms=queues("pfifo", "codel", "pie")
    ),
    "in the WAN, with a ping": scenario(
        _through("up", "wan", count=4),
        {"type": "ping", "path": ["up", "wan"], "return": ["down"], "interval": "37ms"},
        links=WAN,
        arms=queues("pfifo", "fq_codel"),
    ),
    "before the queue": scenario(
        _through("wan", "up"), links=WAN, arms=queues("pfifo limit 100", "cake")
    ),
    "in the other direction": scenario(
        {**TCP, "direction": "down", "count": 2},
        {**CALL, "count": 2},
        arms=queues("pfifo", "sfq"),
    ),
    "at a flood": scenario(
        _sent("flood", "4500kbit", path=["up", "wan"], direction=None, start_jitter="1s"),
        links=WAN,
        arms=queues("pfifo", "red"),
    ),
    "behind two links": scenario(
        _through("up", "middle", "wan", cc="bbr"),
        links={**WAN, "middle": {"rate": "20mbit", "qdisc": "pfifo"}},
        arms=queues("pfifo", "codel", link="middle"),
    ),
}


def _besides(path: str, value: Any, *traffic: Block, **more: Any) -> dict[str, Any]:
    """Return a comparison of queues in which one arm changes something else too."""
    arms = {"pfifo": {}, "codel": {"links.up.qdisc": "codel", path: value}}
    return scenario(*(traffic or (TCP, PING)), arms=arms, **more)


CONFOUNDED = {
    "RTT": _besides("rtt", "60ms"),
    "RTT of a block": _besides("traffic.bulk.rtt", "60ms"),
    "delay of a link": _besides("links.up.delay", "30ms"),
    "rate": _besides("links.up.rate", "10mbit"),
    "loss": _besides("links.up.loss", "1%"),
    "number of flows": _besides("traffic.bulk.count", 4),
    "start": _besides("traffic.bulk.start", "2s"),
    "rate of UDP": _besides("traffic.random.rate", "3mbit", {**POISSON, "rate": "6mbit"}),
    "interval of pings": _besides("traffic.ping.interval", "90ms"),
    "think time": _besides("traffic.web.think", "1s", WEB, TCP),
    "host": _besides("traffic.bulk.host", 1),
    "class of service": _besides("traffic.bulk.dscp", "ef"),
    "burst of the link": _besides("links.up.burst", "20kb"),
    "control and RTT": scenario(
        TCP, arms={"cubic": {}, "bbr": {"traffic.bulk.cc": "bbr", "rtt": "80ms"}}
    ),
}

ENDS_EARLY = {
    "transfer": scenario({**TCP, "bytes": "2mb"}, PING, arms=queues("pfifo", "codel")),
    "QUIC transfer": scenario({"type": "quic", "direction": "up", "bytes": "3mb"}, PING),
    "transfers of several flows": scenario({**TCP, "bytes": "500kb", "count": 4}, PING),
    "UDP that stops": scenario({**POISSON, "rate": "6mbit", "stop": "9s"}, PING),
    "TCP that stops": scenario({**TCP, "stop": "8s"}, PING, arms=queues("pfifo", "pie")),
    "rounds": scenario(
        {"type": "request", "direction": "down", "bytes": "100kb", "rounds": 30}, PING
    ),
    "visits": scenario({**WEB, "visits": 4}, PING),
    "incast": scenario(
        {"type": "incast", "direction": "down", "bytes": "50kb", "servers": 4, "rounds": 10}, PING
    ),
    "late start": scenario({**TCP, "start": "11s"}, PING, arms=queues("pfifo", "codel")),
    "pause": scenario(
        {**TCP, "name": "first", "stop": "8s"}, {**TCP, "name": "second", "start": "13s"}, PING
    ),
}

NO_MARKS = {
    "DCTCP and CoDel without ECN": scenario(
        {**TCP, "cc": "dctcp"}, arms=queues("codel noecn", "pie noecn")
    ),
    "DCTCP and FIFO": scenario({**TCP, "cc": "dctcp"}, PING),
    "Prague and FIFO": scenario({**TCP, "cc": "prague"}, PING),
    "Prague and PIE without ECN": scenario({**TCP, "cc": "prague", "count": 2}, up="pie noecn"),
    "DCTCP and RED without ECN": scenario({**TCP, "cc": "dctcp", "count": 2}, up="red"),
    "Prague over QUIC": scenario(
        {"type": "quic", "name": "bulk", "direction": "up", "cc": "prague"}, PING
    ),
    "DCTCP of pages": scenario({**WEB, "cc": "dctcp"}, down="sfq"),
    "marks on another link": scenario(
        {**TCP, "cc": "dctcp"}, {**TCP, "name": "other", "direction": "down", "ecn": True},
        down="codel ecn",
    ),
}  # fmt: skip

NOT_NEGOTIATED = {
    "CoDel": scenario(TCP, PING, up="codel ecn"),
    "PIE": scenario(TCP, PING, up="pie ecn"),
    "RED": scenario({**TCP, "count": 3}, up="red ecn"),
    "threshold": scenario(TCP, PING, up="fq_codel ce_threshold 1ms"),
    "DualPI2": scenario(TCP, PING, up="dualpi2"),
    "DualPI2 and UDP": scenario({**POISSON, "rate": "6mbit"}, up="dualpi2"),
    "leaf": scenario(TCP, PING, up="drr classes 4 leaf codel ecn"),
    "COBALT without its ECN": scenario(TCP, arms=queues("cobalt", "cobalt noecn")),
    "ECN in the other direction only": scenario(
        TCP,
        {"type": "udp", "name": "u", "path": ["wan"], "rate": "1mbit", "spacing": "poisson"},
        {**_through("wan", ecn=True), "name": "ecn", "return": []},
        links=WAN,
        up="pie ecn",
    ),
}

REPEATED = {
    "two UDP flows": scenario(_sent("a", "3mbit"), _sent("b", "3mbit")),
    "four UDP flows": scenario(*(_sent(name, "1500kbit") for name in "abcd")),
    "two UDP flows and head drop": scenario(
        _sent("a", "3mbit"), _sent("b", "3mbit"), up="pfifo_head_drop limit 100"
    ),
    "two queues": scenario(
        FLOOD, arms=queues("pfifo limit 100", "codel limit 100"), replications=10
    ),
    "a call": scenario({**CALL, **FIXED, "start_jitter": "0s"}, _sent("u", "5mbit")),
}

IN_PHASE = {
    "two equal flows": scenario(_sent("a", "3mbit"), _sent("b", "3mbit"), PING),
    "flows of a block": scenario(_sent("a", "1500kbit", count=4), PING),
    "two to one": scenario(_sent("a", "4mbit"), _sent("b", "2mbit"), PING),
    "three to two": scenario(_sent("a", "3mbit"), _sent("b", "2mbit", start="1ms"), PING),
    "20 calls": scenario({**CALL, **FIXED, "start_jitter": "0s", "count": 20}, PING),
    "calls and UDP": scenario(
        {**CALL, **FIXED, "start_jitter": "0s", "count": 10},
        _sent("video", "2mbit", payload="5000b"),
        PING,
    ),
    "bursts and pings": scenario(
        {**BURSTS, "start_jitter": "0s"}, {**PING, **FIXED, "interval": "100ms"}
    ),
    "bursts and slower pings": scenario(BURSTS, {**PING, **FIXED, "interval": "300ms"}),
    "bursts and faster pings": scenario(BURSTS, {**PING, **FIXED, "interval": "20ms"}),
    "large datagrams and pings": scenario(
        _sent("u", "2620kbit", payload="32750b", start_jitter="1s"),
        {**PING, **FIXED, "interval": "100ms"},
    ),
    "beside TCP": scenario(TCP, _sent("a", "1mbit", payload="8000b", count=2), PING),
}

OTHER_ERRORS = [
    Experiment(
        name="short",
        scenario=scenario(TCP, duration="9s"),
        finding="only 4 s of each run is measured",
    ),
    Experiment(
        name="one run",
        scenario=scenario(TCP, replications=1),
        finding="n = 1: differences may be due to chance",
    ),
    Experiment(
        name="start-up",
        scenario=scenario(TCP, warmup="0s"),
        finding="still starting up when measuring begins",
    ),
    Experiment(
        name="drift",
        scenario=scenario(_sent("u", "5200kbit"), PING, up="pfifo limit 2000", warmup="3s"),
        finding="is not stationary",
    ),
    Experiment(
        name="shaper above the link",
        scenario=scenario(TCP, up="cake bandwidth 9mbit"),
        finding="is faster than the link",
    ),
    Experiment(
        name="assumed rate",
        scenario=scenario(
            TCP,
            links={"up": {"trace": {"gaps_ms": "2"}, "qdisc": "predict"}},
        ),
        finding="assumes a rate",
    ),
    Experiment(
        name="lost pings",
        scenario=scenario({**TCP, "count": 8}, PING, up="pfifo limit 5"),
        finding="of pings had no reply",
    ),
    Experiment(
        name="no connection",
        scenario=scenario(TCP, links={"up": {"rate": RATE, "qdisc": "pfifo", "loss": "100%"}}),
        finding="connections were never established",
    ),
    Experiment(
        name="no transaction",
        scenario=scenario({**WEB, "visits": 1}, TCP),
        finding="no transaction of web began after the warm-up",
    ),
    Experiment(
        name="cut off",
        scenario=scenario(
            {"type": "request", "name": "big", "direction": "down", "bytes": "8mb"}, warmup="1s"
        ),
        finding="were still in progress at the end of the run",
    ),
    Experiment(
        name="calls in a full queue",
        scenario=scenario({**TCP, "count": 4}, CALL, up="pfifo limit 1000", rtt="200ms"),
        finding="calls have the lowest possible MOS",
    ),
]

# Each experiment that must have its finding.
WRONG = [
    *_each("have identical results in every run", "warning", IDENTICAL),
    *_each("no link was a bottleneck", "error", NO_BOTTLENECK),
    *_each("packets waited only briefly", "warning", BRIEFLY),
    *_each("the bottleneck of every flow is another link", "warning", ELSEWHERE),
    *_each("these arms differ in", "warning", CONFOUNDED),
    *_each("load is offered for only", "warning", ENDS_EARLY),
    *_each("needs ECN marks, but no queue on its path", "warning", NO_MARKS),
    *_each("no flow that crosses it negotiated ECN", "warning", NOT_NEGOTIATED),
    *_each("and count as n = 1", "warning", REPEATED),
    *_each("in the same phase for the whole run", "warning", IN_PHASE),
    *OTHER_ERRORS,
]


def _right(name: str, notes: str, /, *traffic: Block, **more: Any) -> Experiment:
    """Return an experiment with notes, which are separated by bars."""
    found = [note for note in notes.split("|") if note]
    return Experiment(name=name, scenario=scenario(*traffic, **more), notes=found)


# Queues that keep a load of two TCP flows in check.
COMPARED = (
    *("codel", "pie", "fq_codel", "cake", "sfq", "fq_pie", "cobalt", "fq", "ared", "drr"),
    *("pfifo_head_drop limit 50", "fq_nocodel", "choke", "sfb"),
)
RANDOM_120 = {**POISSON, "rate": "6mbit"}
NOTE_OF_LIMITS = "no link was a bottleneck"
NOTE_OF_ARMS = "the arms differ in"

# Experiments with neither an error nor a warning.
RIGHT: Sequence[Experiment] = [
    *(
        _right(f"pfifo and {queue}", "", {**TCP, "count": 2}, PING,
               arms=queues("pfifo limit 50", queue))
        for queue in COMPARED
    ),
    *(
        _right(f"{cc} and cubic", "", TCP, PING,
               arms={name: {"traffic.bulk.cc": name} for name in (cc, "cubic")})
        for cc in ("reno", "bbr3", "highspeed", "vegas")
    ),
    _right("ECN that is negotiated", "", {**TCP, "ecn": True}, PING,
           arms=queues("codel noecn", "codel ecn")),
    _right("DCTCP and a threshold", "", {**TCP, "cc": "dctcp"}, PING,
           up="fq_codel ce_threshold 10ms"),
    _right("Prague and DualPI2", "", {**TCP, "cc": "prague"}, PING, up="dualpi2"),
    _right("DCTCP that is seldom congested", "",
           {"type": "sessions", "direction": "down", "bytes": "5kb", "every": "100ms", "count": 3,
            "cc": "dctcp", "start_jitter": "1s"}, down="codel ecn"),
    _right("DualPI2 with one flow of L4S", "", {**TCP, "cc": "prague"},
           {**TCP, "name": "classic"}, PING, up="dualpi2"),
    _right("UDP at random", "", RANDOM_120, arms=queues("pfifo limit 50", "codel")),
    _right("UDP at random times", "", _sent("a", "3mbit", spread=0.1),
           _sent("b", "3mbit", spread=0.1)),
    _right("UDP at random starts", "", _sent("a", "3mbit", start_jitter="1s"),
           _sent("b", "3mbit", start_jitter="1s")),
    _right("UDP with incommensurable intervals", "", _sent("a", "3mbit", start_jitter="1s"),
           _sent("b", "2718kbit", start_jitter="1s")),
    _right("bursts and incommensurable pings", NOTE_OF_LIMITS, {**BURSTS, "start_jitter": "1s"},
           {**PING, "interval": "97ms"}),
    _right("calls beside TCP", "", {**TCP, "count": 2}, {**CALL, "count": 3},
           arms=queues("fq_codel", "cake")),
    _right("calls that start at random", NOTE_OF_LIMITS, {**CALL, "count": 10}, PING),
    _right("shaper", "", {**TCP, "count": 2}, PING, up="cake bandwidth 4mbit"),
    _right("the queue of the WAN", "", _through("up", "wan", count=2, start_jitter="100ms"),
           links=WAN, arms=queues("pfifo limit 50", "codel", link="wan")),
    _right("a shaper before the WAN", "", _through("up", "wan", count=2, start_jitter="100ms"),
           links=WAN, arms=queues("pfifo", "cake bandwidth 3500kbit")),
    _right("both directions", "", TCP, {**TCP, "name": "back", "direction": "down"}, PING,
           arms={name: {f"links.{link}.qdisc": name for link in ("up", "down")}
                 for name in ("pfifo limit 50", "fq_codel")}),
    _right("QUIC", "", {"type": "quic", "direction": "up", "start_jitter": "100ms"}, PING,
           arms=queues("pfifo limit 50", "codel")),
    _right("pages", "", WEB, {**TCP, "direction": "down", "count": 2},
           arms=queues("pfifo limit 50", "fq_codel", link="down")),
    _right("requests", "", {"type": "request", "direction": "down", "bytes": "300kb",
                            "start_jitter": "1s"},
           arms=queues("pfifo limit 50", "codel", link="down")),
    _right("a step of the rate", "", {**TCP, "count": 2}, PING,
           links={"up": {"rate": RATE, "qdisc": "codel",
                         "changes": [{"at": "10s", "rate": "3mbit"}]}}),
    _right("an outage of a trace", "", {**TCP, "count": 2}, PING,
           links={"up": {"qdisc": "codel", "trace": {"gaps_ms": "2x500 600"}}}),
    _right("queues at two RTTs", NOTE_OF_ARMS, {**TCP, "count": 2}, PING,
           arms={f"{queue} {rtt}": {"links.up.qdisc": queue, "rtt": rtt}
                 for queue in ("pfifo limit 50", "codel") for rtt in ("10ms", "30ms")}),
    _right("three arms of two steps", NOTE_OF_ARMS, {**TCP, "count": 2}, PING,
           arms={"pfifo": {}, "codel": {"links.up.qdisc": "codel"},
                 "far": {"links.up.qdisc": "codel", "rtt": "40ms"}}),
    _right("only RTTs", NOTE_OF_ARMS, {**TCP, "count": 2}, PING, up="codel",
           arms={rtt: {"rtt": rtt} for rtt in ("10ms", "20ms", "40ms")}),
    _right("only loads", NOTE_OF_ARMS, TCP, PING, up="codel",
           arms={f"{count}": {"traffic.bulk.count": count} for count in (1, 4)}),
    _right("losses", f"{NOTE_OF_LIMITS}|{NOTE_OF_ARMS}", TCP, links=FAST,
           arms={loss: {"links.up.loss": loss} for loss in ("2%", "5%")}),
    _right("flow control", NOTE_OF_LIMITS,
           {"type": "quic", "direction": "up", "max_data": "64kb", "max_stream_data": "64kb",
            "start_jitter": "1s"}, links=FAST, rtt="100ms"),
    _right("transfers until the end", "", {**TCP, "bytes": "8mb"}, PING),
    _right("late flows", "", TCP, {**TCP, "name": "joins", "start": "9s"}, PING, up="fq_codel"),
]  # fmt: skip
