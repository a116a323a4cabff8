"""JSON of irtt (``irtt client -o``) as measured runs: round-trip times, one-way delays and losses.

The fields are those that irtt 0.9 writes and its manual describes: times in ns.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.flent_runs import call
from sojourn.exchange.measurement import MEASURED, Measurement
from sojourn.exchange.untrusted import damaged, number, read_object, text

# The version of the format that irtt 0.9 writes.
FORMAT = 1
# The direction in which irtt lost a packet: it knows it if the server counts packets.
LOST = {"up": ("true", "true_up"), "down": ("true", "true_down")}
DELAYS = {"up": "send", "down": "receive"}
PINGS = {"t_s": pl.Float64, "flow": pl.String, "rtt_ms": pl.Float64}


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a measurement as a measured run: pings, and one call for each direction."""
    document = read_object(path)
    version = _inner(document, "version")
    if version.get("json_format") != FORMAT:
        damaged(path, f"json_format {version.get('json_format')!r}; expected {FORMAT}")
    trips = document.get("round_trips")
    if not isinstance(trips, list) or not trips:
        damaged(path, "round_trips: expected a list of at least one")
    config = _inner(document, "config")
    interval = number(_inner(config, "params").get("interval")) or 0.0
    ends = [text(config.get(f"{side}_address")) for side in ("local", "remote")]
    flow = " > ".join(["irtt " + ends[0], ends[1]]) if all(ends) else "irtt"
    packets = [one for one in trips if isinstance(one, dict)]
    times = _times(packets, interval)
    pings = pl.DataFrame(
        [
            (at / 1e9, flow, None if delay is None else delay / 1e6)
            for at, one in zip(times, packets, strict=True)
            for delay in [_delay(one, "rtt")]
        ],
        schema=PINGS,
        orient="row",
    )
    end_s = max(times, default=0.0) / 1e9
    started = text(_inner(document, "stats").get("start_time"))
    return Measurement(
        arm=MEASURED + (arm or Path(path).name),
        origin={
            "file": Path(path).name,
            "format": f"irtt {text(version.get('irtt'))}",
            "time": started[:19] + "Z" if started else "",
        },
        load_s=0.0,
        end_s=end_s,
        tables={"pings": pings, "flows": _flows(flow, pings)},
        totals={"applications": partial(_calls, packets, times, end_s)},
        series=pings.rename({"t_s": "time_s"}),
        notes=_notes(packets),
    )


def _inner(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _delay(packet: Mapping[str, Any], name: str) -> float | None:
    """Return a delay in ns; None if the packet was lost, or the clocks show a negative one."""
    found = number(_inner(packet, "delay").get(name))
    return found if found is not None and found >= 0 else None


def _times(packets: list[dict[str, Any]], interval: float) -> list[float]:
    """Return when each packet was sent, in ns since the first; without stamps, as planned."""

    def sent(packet: Mapping[str, Any]) -> float | None:
        of = _inner(_inner(_inner(packet, "timestamps"), "client"), "send")
        return number(of.get("monotonic", of.get("wall")))

    stamps = [sent(one) for one in packets]
    if packets and all(stamp is not None for stamp in stamps):
        known = [stamp for stamp in stamps if stamp is not None]
        return [stamp - min(known) for stamp in known]
    return [(number(one.get("seqno")) or 0.0) * interval for one in packets]


def _flows(flow: str, pings: pl.DataFrame) -> pl.DataFrame:
    missing = pings["rtt_ms"].null_count()
    return pl.DataFrame(
        {
            "flow": [flow],
            "group": ["ping up"],
            "kind": ["ping"],
            "sent_packets": [pings.height],
            "received_packets": [pings.height - missing],
            "missing_packets": [missing],
        }
    )


def _calls(
    packets: list[dict[str, Any]], times: list[float], end: float, begin: float
) -> pl.DataFrame:
    """Return the packets of each direction as a call, as those of flent are."""
    rows = []
    for side, name in DELAYS.items():
        raw = [number(_inner(one, "delay").get(name)) for one in packets]
        delays = [
            (at / 1e9, delay / 1e6)
            for at, delay in zip(times, raw, strict=True)
            if delay is not None
        ]
        stamped = list(zip(times, packets, strict=True))
        numbers = [(at / 1e9, number(one.get("seqno")) or 0.0) for at, one in stamped]
        lost = [(at / 1e9, 1.0) for at, one in stamped if one.get("lost") in LOST[side]]
        found = call(delays, numbers, lost, begin, end)
        rows.append({"flow": f"irtt {side}", "group": f"irtt {side}", "kind": "voip"} | found)
    return pl.DataFrame(rows, infer_schema_length=None)


def _notes(packets: list[dict[str, Any]]) -> list[str]:
    notes = []
    if any(one.get("lost") == "true" for one in packets):
        notes.append(
            "lost packets count in both directions: the server did not count those that it received"
        )
    for side, name in DELAYS.items():
        raw = [number(_inner(one, "delay").get(name)) for one in packets]
        if any(delay is not None and delay < 0 for delay in raw):
            notes.append(
                f"no one-way delay {side}: the clocks of the hosts differ so much that some are "
                "negative"
            )
    return notes
