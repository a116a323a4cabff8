"""Random valid scenarios over all queues, controls, kinds of traffic, links and impairments."""

import json
import random

import sojourn as sj
from sojourn import _core

QUEUES = json.loads(_core.qdisc_catalogue())
CONTROLS = [control["name"] for control in json.loads(_core.cc_catalogue())]

# Whole sample intervals, so that series and totals cover the same time.
DURATION_S = 3.0
SAMPLE = "100ms"
STOP_S = 1.5

MAX_PAYLOAD = 4_000
RATES = ("300kbit", "1mbit", "2mbit", "5mbit", "10mbit", "20mbit")
# Of access links in both directions.
ASYMMETRIC_RATES = ("57kbit", "300kbit", "1mbit", "5mbit", "20mbit", "100mbit", "1gbit")


def _value(rng: random.Random, parameter: dict[str, object]) -> str:
    """Return words that set a parameter of a queue to something of its range."""
    key, unit = str(parameter["key"]), parameter["unit"]
    words = {
        "time": lambda: f"{key} {rng.choice([1, 5, 20, 100])}ms",
        "rate": lambda: f"{key} {rng.choice(RATES)}",
        "size": lambda: f"{key} {rng.choice([300, 1_514, 9_000, 30_000, 200_000])}b",
        "packets": lambda: f"{key} {rng.choice([1, 10, 100, 1_000])}",
        "count": lambda: f"{key} {rng.choice([1, 2, 3, 8, 64])}",
        "flag": lambda: rng.choice([key, f"no{key}"]),
    }
    if parameter["choices"]:
        return str(rng.choice(list(parameter["choices"])))
    if unit in words:
        return words[str(unit)]()
    return f"{key} {rng.choice([0, 0.01, 0.1, 0.5, 1, 2])}"


def queue(rng: random.Random) -> str:
    kind = rng.choice(QUEUES)
    text = kind["name"]
    for _ in range(rng.randrange(4)):
        parameters = [p for p in kind["parameters"] if p["key"] != "profile"]
        if not parameters:
            break
        longer = f"{text} {_value(rng, rng.choice(parameters))}"
        try:
            _core.parse_qdisc(longer)
        except sj.SojournError:
            continue
        text = longer
    return text


def _link(rng: random.Random) -> dict[str, object]:
    link: dict[str, object] = {"qdisc": queue(rng)}
    capacity = rng.randrange(8)
    if capacity == 0:
        link["trace"] = {"gaps_ms": rng.choice(["1 2x10 3", "1", "5x3 1x20"])}
        return link
    link["rate"] = rng.choice(RATES)
    if capacity == 1:
        link["rate"] = rng.choice(["6mbit", "65mbit"])
        link["medium"] = {"type": "wifi", "sharing": rng.choice(["turns", "airtime"])}
    else:
        options: dict[str, list[object]] = {
            "burst": ["htb", "3000b", "20kb"],
            "overhead": ["-4b", "pppoe-vcmux", "conservative"],
            "framing": ["atm", "ptm"],
            "mpu": ["64b"],
            "changes": [[{"at": "1s", "rate": rng.choice(RATES)}], [{"at": "2s", "delay": "5ms"}]],
        }
        for key in rng.sample(sorted(options), rng.randrange(3)):
            link[key] = rng.choice(options[key])
    impairments: dict[str, list[object]] = {
        "delay": ["1ms", "20ms"],
        "duplicate": ["1%", "30%"],
        "loss": [
            "0.5%",
            "10%",
            {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"},
        ],
        "jitter": [
            "3ms",
            {"spread": "2ms", "distribution": "pareto"},
            {"spread": "2ms", "order": "free"},
        ],
    }
    for key in rng.sample(sorted(impairments), rng.randrange(3)):
        link[key] = rng.choice(impairments[key])
    return link


def _udp(rng: random.Random) -> dict[str, object]:
    return {
        "type": "udp",
        "rate": rng.choice(RATES),
        "payload": f"{rng.choice([40, 600, 1_448, MAX_PAYLOAD])}b",
        "spacing": rng.choice(["even", "poisson"]),
    }


def _connection(rng: random.Random) -> dict[str, object]:
    kind = rng.choice(
        ["tcp", "quic", "web", "sessions", "request", "incast", "dash", "responsiveness"]
    )
    block: dict[str, object] = {"type": kind}
    block["cc"] = rng.choice(CONTROLS)
    if kind in {"tcp", "quic"}:
        block["count"] = rng.choice([1, 2, 5])
        if rng.randrange(3) == 0:
            block["bytes"] = "100kb"
    else:
        block["transport"] = rng.choice(["tcp", "quic"])
    if rng.randrange(3) == 0:
        block["ecn"] = True
    needed: dict[str, dict[str, object]] = {
        "web": {"page": rng.choice(["small", "objects50"]), "think": "200ms"},
        "sessions": {"bytes": "20kb", "every": "200ms"},
        "request": {"bytes": "5kb", "think": "50ms"},
        "incast": {"bytes": "10kb", "servers": 8},
        "dash": {"segment": "1s"},
    }
    if kind == "web":
        block.pop("transport")
        block["http"] = rng.choice(["1.1", "2", "3"])
    return block | needed.get(kind, {})


def _traffic(rng: random.Random, *, only_udp: bool) -> dict[str, object]:
    choice = 0 if only_udp else rng.randrange(10)
    if choice == 0:
        block = _udp(rng)
    elif choice == 1:
        block = {"type": "ping", "interval": rng.choice(["20ms", "back-to-back"])}
        block["protocol"] = "udp"
    elif choice == 2:
        block = {"type": "voip"}
    else:
        block = _connection(rng)
    block["rtt"] = rng.choice(["1ms", "10ms", "100ms"])
    if rng.randrange(4) == 0:
        block["path"], block["return"] = ["up", "wan"], ["down"]
    else:
        block["direction"] = rng.choice(["up", "down"])
    if only_udp:
        block["stop"] = f"{STOP_S}s"
    elif rng.randrange(4) == 0:
        block["start"] = "300ms"
    return block


def scenario(seed: int) -> dict[str, object]:
    """Return a scenario as its tree of keys; a quarter have UDP alone, which stops half-way."""
    rng = random.Random(seed)  # noqa: S311 (nothing is secret)
    only_udp = rng.randrange(4) == 0
    return {
        "duration": f"{DURATION_S}s",
        "warmup": "0s" if only_udp else rng.choice(["0s", "500ms"]),
        "sample": SAMPLE,
        "seed": seed,
        "replications": rng.choice([1, 2]),
        "keep_events": True,
        "sample_state": True,
        "links": {name: _link(rng) for name in ("up", "down", "wan")},
        "traffic": [_traffic(rng, only_udp=only_udp) for _ in range(rng.randrange(1, 5))],
    }


def asymmetric(seed: int) -> dict[str, object]:
    """Return such a scenario whose links and datagrams have rates from 57 kbit/s to 1 Gbit/s."""
    rng = random.Random(f"asymmetric {seed}")  # noqa: S311
    tree = scenario(seed)
    links: dict[str, dict[str, object]] = tree["links"]  # type: ignore[assignment]
    traffic: list[dict[str, object]] = tree["traffic"]  # type: ignore[assignment]
    for block in [*links.values(), *traffic]:
        if "rate" in block and "medium" not in block:
            block["rate"] = rng.choice(ASYMMETRIC_RATES)
    duration = rng.choice(["3s", "10s"])
    return tree | {"duration": duration, "replications": 1, "keep_events": rng.random() < 0.5}


def is_udp_that_stops(tree: dict[str, object]) -> bool:
    """Whether all traffic is UDP that stops: no datagram is on its way to its first link."""
    stops = all(block["type"] == "udp" and "stop" in block for block in tree["traffic"])
    return stops and tree["warmup"] == "0s"
