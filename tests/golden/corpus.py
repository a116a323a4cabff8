"""The scenarios of the golden corpus: documents in the shape of scenario files, of one arm each."""

import json
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from sojourn import _core

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# Scenarios of papers/ run until their fastest link could have sent this many bits, at most to their
# end.
MOST_BITS = 20e9
# How long the parity tests wait for what is still under way, in seconds.
PARITY_AFTER_S = 3.0
PARITY_BUFFER = "67108864b"
# The quick check takes every 12th scenario of papers/ and of the parity tests.
QUICK_STEP = 12

Document = dict[str, Any]


def corpus() -> dict[str, Document]:
    """Return every scenario by its name."""
    return dict(sorted([*_own(), *_papers(), *_parity()]))


def quick(scenarios: dict[str, Document]) -> dict[str, Document]:
    """Choose those of the quick check: all made for the corpus, and some of the others."""
    others = [name for name in scenarios if name.startswith(("papers/", "parity/"))]
    left_out = set(others) - set(others[::QUICK_STEP])
    return {name: document for name, document in scenarios.items() if name not in left_out}


def _own() -> Iterator[tuple[str, Document]]:
    for path in HERE.glob("scenarios/*.toml"):
        yield from _by_arm(path.stem, _read(path))


def _papers() -> Iterator[tuple[str, Document]]:
    for path in ROOT.glob("papers/*/*.toml"):
        document = _read(path) | {"replications": 1}
        if "links" not in document:
            continue
        rates = [
            _core.parse_rate_bits_per_s(link["rate"])
            for link in document["links"].values()
            if link != "unlimited"
        ]
        longest_s = MOST_BITS / max(rates)
        if longest_s < float(document["duration"].removesuffix("s")):
            document |= {"duration": f"{longest_s}s", "warmup": "0s"}
        yield from _by_arm(f"papers/{path.parent.name}/{path.stem}", document)


def _read(path: Path) -> Document:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _by_arm(name: str, document: Document) -> Iterator[tuple[str, Document]]:
    for arm in document.get("arms", [{"name": "default"}]):
        yield f"{name}/{arm['name']}", deepcopy(document) | {"arms": [deepcopy(arm)]}


def _parity() -> Iterator[tuple[str, Document]]:
    path = ROOT / "tests/parity/data/linux-6.1.json"
    for measured in json.loads(path.read_text(encoding="utf-8"))["scenarios"]:
        yield f"parity/{measured['name']}", _as_measured(measured)


def _as_measured(measured: Document) -> Document:
    """Compose a scenario of the parity tests, as ``tests/parity/src/setup.rs`` does."""
    links = {"up": _parity_link(measured, "up", measured["qdisc"])}
    if measured["rate_down"]:
        links["down"] = _parity_link(measured, "down", measured["qdisc_down"] or measured["qdisc"])
    duration = measured["duration"] + PARITY_AFTER_S
    starts = measured["reps"][0]["starts"]
    traffic = [
        *(
            _flow(measured, flow, start)
            for flow, start in zip(measured["flows"], starts, strict=True)
        ),
        *(_stream(measured, stream) for stream in measured["udp"]),
        {
            "type": "ping",
            "interval": f"{measured['ping']}s",
            **_way("up", measured["rtt"], 0.0, measured["ping_stop"]),
        },
    ]
    for group in traffic:
        for key in ("path", "return"):
            group[key] = [link for link in group[key] if link in links]
    return {"duration": f"{duration}s", "links": links, "traffic": traffic}


def _flow(measured: Document, flow: Document, start: float) -> Document:
    way = _way(flow["dir"], flow["rtt"], start, flow["stop"])
    size = {} if flow["bytes"] is None else {"bytes": f"{flow['bytes']}b"}
    sender = {"type": "tcp", "cc": flow["cc"], "ecn": measured.get("ecn", False)}
    return sender | size | way | _receiver(measured) | _segments(measured)


def _receiver(measured: Document) -> Document:
    keys: Document = {}
    if "rcvbuf" in measured:
        # Linux reserves a segment.
        keys["receive_window"] = f"{measured['rcvbuf'] - 1460}b"
    if "rmem" in measured:
        keys["receive_buffer"] = f"{measured['rmem']}b"
    if "read_rate" in measured:
        keys["read_rate"] = f"{measured['read_rate']}mbit"
    if "pause" in measured:
        keys["read_pause"] = [f"{time}s" for time in measured["pause"]]
    return keys


def _segments(measured: Document) -> Document:
    keys: Document = {
        key: measured[key] for key in ("min_tso_segs", "gso_max_segs") if key in measured
    }
    if "quickack" in measured:
        keys |= {"ack_every": 1, "receive_buffer": PARITY_BUFFER}
    if "gro" in measured:
        timeout = f"{measured['gro'][0]}ns"
        keys |= {"gro": True, "gro_flush_timeout": timeout, "receive_buffer": PARITY_BUFFER}
    if "write_rate" in measured:
        keys |= {"rate": f"{measured['write_rate']}mbit"}
    if "write_block" in measured:
        keys |= {"block": f"{measured['write_block']}b"}
    return keys


def _stream(measured: Document, stream: Document) -> Document:
    way = _way("up", measured["rtt"], stream["start"], stream["stop"])
    sizes = {"rate": f"{stream['rate_mbps']}mbit", "payload": f"{stream['size']}b"}
    return {"type": "udp", **sizes, **way}


def _way(direction: str, rtt_ms: float, start_s: float, stop_s: float) -> Document:
    forward, back = ("up", "down") if direction == "up" else ("down", "up")
    times = {"rtt": f"{rtt_ms}ms", "start": f"{start_s}s", "stop": f"{stop_s}s"}
    return {"path": [forward], "return": [back], **times}


def _parity_link(measured: Document, direction: str, qdisc: str) -> Document:
    text = qdisc.removeprefix("root ")
    if measured["label"] == "red_asis":
        text = text.removesuffix(" adaptive")
    elif measured["label"] == "red_step":
        # What the kernel reads where tc 6.1 writes a probability of 1.
        text = text.replace("probability 1 ", "probability 0.6103515625 ")
    spec = {"qdisc": f"{text} profile linux"}
    if direction == "up" and "loss" in measured:
        spec["loss"] = f"{measured['loss']}%"
    if qdisc.startswith("root "):
        return spec | {"rate": "100gbit"}
    return spec | {"rate": f"{measured[f'rate_{direction}']}mbit", "burst": "htb"}
