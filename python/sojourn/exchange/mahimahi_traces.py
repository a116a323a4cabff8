"""The capacity of links as traces of Mahimahi.

A log of Mahimahi (``mm-link --uplink-log``) needs the time at which every packet arrives and
departs, which results do not record; a trace needs only the rate of the link.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

from sojourn import _core
from sojourn.exchange.selection import Product, Selection, named

# Size of one opportunity of a trace: a full-sized IP packet with its Ethernet header.
FULL_FRAME = 1514
# As in the reader of traces.
MAX_LINES = 10_000_000
CELL, CELL_PAYLOAD, PTM_BLOCK = 53, 48, 64
Table = dict[str, Any]


def files(selection: Selection) -> list[Product]:
    """Write the capacity of each link of each arm as a trace of delivery opportunities."""
    if selection.replication is not None:
        message = "--replication: a trace is the same for every replication; omit it"
        raise _core.ResultError(message)
    checked = selection.result.scenario.checked
    arms = dict.fromkeys(arm for arm, _ in selection.runs())
    written = []
    for arm in arms:
        links = _of_arm(checked, arm)["links"]
        for name, link in links.items():
            if isinstance(link, str):
                continue  # A link that is not simulated.
            data, notes = _trace(f'arm "{arm}", links.{name}', link, checked.duration_s)
            written.append(Product(name=named(f"{arm}-{name}", ".trace"), data=data, notes=notes))
    if not written:
        message = "no link has a rate or a trace"
        raise _core.ResultError(message)
    return written


def _of_arm(checked: _core.Scenario, arm: str) -> Table:
    """Return the scenario of an arm, with the values that the arm sets."""
    document: Table = json.loads(checked.to_json())
    for one in document.pop("arms", []):
        if one["name"] == arm:
            changes = [(path, json.dumps(value)) for path, value in one["set"].items()]
            alone = _core.Scenario.from_json(json.dumps(document))
            changed: Table = json.loads(alone.changed(changes).to_json())
            return changed
    return document


def _trace(place: str, link: Table, duration_s: float) -> tuple[bytes, list[str]]:
    """Write the trace of a link; return it with notes on what it does not express."""
    if "medium" in link:
        message = f"{place}: a trace cannot express a wireless link; its rate depends on the load"
        raise _core.ResultError(message)
    notes = [f"{place}: {text}" for text in _not_expressed(link)]
    if "trace" in link:
        at = 0
        times = []
        for gap in link["trace"]["gaps_ms"].split():
            at += int(gap)
            times.append(at)
    else:
        frame = _charged(place, link)
        times = list(_opportunities(place, _rates(link, duration_s), frame))
    if not times or times[-1] == 0:
        message = f"{place}: too slow for a trace; the link sends no full-sized packet in the run"
        raise _core.ResultError(message)
    return "".join(f"{at}\n" for at in times).encode(), notes


def _not_expressed(link: Table) -> Iterator[str]:
    delayed = _core.parse_time_s(link["delay"]) > 0
    delayed |= any("delay" in change for change in link.get("changes", []))
    keys = [key for key in ("loss", "duplicate", "jitter", "burst") if key in link]
    for key in [*(["delay"] if delayed else []), *keys]:
        yield f"{key} is not part of a trace"
    words = link["qdisc"].split()
    if "bandwidth" in words or words[0] == "tbf":
        yield "the rate of the shaper in the queue is not part of a trace"


def _charged(place: str, link: Table) -> int:
    """Return the bytes that the link counts for an IP packet of 1500 B."""
    try:
        # Sizes of scenarios have no sign.
        overhead = link["overhead"]
        sign = -1 if overhead.startswith("-") else 1
        extra = sign * _core.parse_size_bytes(overhead.removeprefix("-"))
    except _core.ScenarioError:
        message = (
            f'{place}.overhead: "{link["overhead"]}" cannot be exported; expected a number of '
            'bytes, such as "16b"'
        )
        raise _core.ResultError(message) from None
    size = max(FULL_FRAME + extra, _core.parse_size_bytes(link.get("mpu", "0b")))
    framing = link.get("framing", "noatm")
    if framing == "atm":
        return CELL * math.ceil(size / CELL_PAYLOAD)
    return size + math.ceil(size / PTM_BLOCK) if framing == "ptm" else size


def _rates(link: Table, duration_s: float) -> list[tuple[float, float, int]]:
    """List the intervals of constant rate: begin and end in seconds, and bits per second."""
    steps = [(0.0, _core.parse_rate_bits_per_s(link["rate"]))]
    for change in link.get("changes", []):
        if "rate" in change:
            at = _core.parse_time_s(change["at"])
            steps.append((at, _core.parse_rate_bits_per_s(change["rate"])))
    ends = [begin for begin, _ in steps[1:]] + [duration_s]
    return [
        (begin, min(end, duration_s), rate)
        for (begin, rate), end in zip(steps, ends, strict=True)
        if begin < duration_s
    ]


def _opportunities(place: str, rates: list[tuple[float, float, int]], frame: int) -> Iterator[int]:
    """Yield the times in ms at which a full-sized packet has been sent, at full load."""
    total = sum((end - begin) * rate for begin, end, rate in rates) / (8 * frame)
    if total > MAX_LINES:
        message = (
            f"{place}: the trace would have {total:.3g} lines, more than {MAX_LINES}; "
            "a shorter duration gives a shorter trace"
        )
        raise _core.ResultError(message)
    sent = 0.0
    number = 1
    for begin, end, rate in rates:
        after = sent + (end - begin) * rate / (8 * frame)
        # Without the margin, rounding loses an opportunity on the boundary.
        while number <= after + 1e-9:
            at_s = begin + (number - sent) * 8 * frame / rate
            yield math.ceil(round(at_s * 1e3, 6))
            number += 1
        sent = after
