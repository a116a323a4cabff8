"""Data files of flent as measured runs: bytes over time, delays, applications and queues."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.flent import HTTP, LOST, FlentRun, Points, load
from sojourn.exchange.measurement import MEASURED, SIMULATED, Measurement, Sample
from sojourn.exchange.untrusted import number, text
from sojourn.result.formatting import LISTED, counted, first_of

# Mbit/s per unit of flent.
RATES = {"Mbits/s": 1.0, "Kbits/s": 1e-3, "Gbits/s": 1e3, "bits/s": 1e-6}
# Series that flent computes from others, by their runner; old files state only their names.
COMPUTING = {"AverageRunner", "SmoothAverageRunner", "SumRunner", "DiffMinRunner", "FairnessRunner"}
COMPUTED = re.compile(r"(^| )(avg|sum|totals|fairness)$|::induced_delay$")
PROTOCOL = re.compile(r"\b(TCP|UDP|SCTP)(?=\b|_)")
# Netperf sends in every test but those named MAERTS, "stream" backwards.
NETPERF = re.compile(r" -t (?:TCP|UDP|SCTP)_(?P<test>[A-Z]+)")
OF_TEST = re.compile(r"(?:^|[_-])\d*n?(up|down)(?:load)?(?:[_-]|$)")
SPEED = re.compile(r"(\d+)Mb/s")
SIDES = {"upload": "up", "download": "down"}
QUEUE = "qdisc_stats_"
VOICE = "VoIP"
# Netperf stalls when it loses a packet; the duration of the stall is not a round-trip time.
STALLED_S = 10.0
# A sequence number that falls by more than reordering explains starts a new count.
RESTART = 100
# Shorter gaps between samples are the scheduling of the measuring program.
GAP_S = 1.0
# Raw values of flows and queues that the tables of a result have.
OF_FLOWS = {"tcp_cwnd": "cwnd_packets", "tcp_rtt": "srtt_ms"}
OF_QUEUES = {
    "backlog_bytes": "backlog_bytes",
    "backlog_pkts": "backlog_packets",
    "dropped": "drops_overlimit",
    "ecn_mark": "marks_aqm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A flow that loads the links."""

    kind: str
    direction: str | None
    samples: list[Sample]


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a data file of flent as a measured run."""
    run = load(path)
    notes = list(run.notes)
    streams = _streams(run, notes)
    pings = _pings(run, notes)
    pages = _pages(run, notes)
    calls = {name: keys for name, keys in run.raw.items() if name == VOICE}
    queues = _queues(run)
    load_s, end_s = _window(run, streams, pages, calls, pings)
    notes += _gaps(streams, load_s, end_s)
    notes += _unused(run, streams, pings, pages, calls)
    # The pings and transactions go on after the load.
    pings = pings.filter(pl.col("t_s") <= end_s)
    pages = pages.filter(pl.col("started_s") <= end_s)
    return Measurement(
        arm=_arm(run, arm),
        origin={
            "file": Path(path).name,
            "format": f"flent, version {run.version}",
            "test": run.test,
            "title": run.title,
            "time": text(run.metadata.get("TIME")),
        },
        load_s=load_s,
        end_s=end_s,
        tables={
            "flows": _flows(run, streams, pings),
            "flow_series": _flow_series(run, streams),
            "pings": pings,
            "link_series": queues,
            "transactions": pages,
        },
        totals={
            "links": partial(_links, queues),
            "applications": partial(_applications, pages, calls, end_s),
        },
        series=run.frame().drop("run"),
        goodput={name: stream.samples for name, stream in streams.items()},
        notes=notes,
        fastest_mbit_per_s=_interface(run),
    )


def _arm(run: FlentRun, name: str | None) -> str:
    """Name the arm by title and test; a file that Sojourn wrote is not a measurement."""
    prefix = SIMULATED if "SOJOURN" in run.metadata else MEASURED
    whole = run.title if run.title == run.test else f"{run.title} ({run.test})"
    return prefix + (name or whole)


def _interface(run: FlentRun) -> float | None:
    """Return the speed of the interface of the measuring host, if the file states it."""
    egress = run.metadata.get("EGRESS_INFO")
    link = egress.get("link_params") if isinstance(egress, dict) else None
    found = SPEED.fullmatch(text(link.get("speed"))) if isinstance(link, dict) else None
    return float(found[1]) if found else None


def _streams(run: FlentRun, notes: list[str]) -> dict[str, Stream]:
    """Return the flows with their samples: raw ones with a duration, or else those of the grid."""
    found = {}
    gridded = []
    for name in dict.fromkeys([*run.grid, *run.raw]):
        kind, scale = _kind(run, name), RATES.get(run.unit(name) or "Mbits/s")
        if kind is None or scale is None or _is_computed(run, name):
            continue
        samples = _sampled(run, name)
        if not samples:
            samples = _on_grid(run.grid.get(name, []))
            gridded += [name] if samples else []
        samples = [Sample(one.end_s, one.length_s, one.mbit_per_s * scale) for one in samples]
        samples = _possible(name, samples, _longest(run), notes)
        if samples:
            direction = _direction(run, name, notes)
            found[name] = Stream(kind=kind, direction=direction, samples=samples)
    if gridded:
        notes.append(
            f"goodput of {_quoted(gridded)} is the mean of values that flent interpolated; "
            "the file states no duration of samples"
        )
    return found


def _kind(run: FlentRun, name: str) -> str | None:
    """Return the protocol of a flow; None if the series is none."""
    about = run.about.get(name, {})
    runner, command = text(about.get("RUNNER")), text(about.get("COMMAND"))
    if runner == "NullRunner" or "::tcp_" in name or not (about or name in run.grid):
        return None
    if name.startswith("Ping") or "_RR " in f"{command} ":
        return None
    found = PROTOCOL.search(name) or PROTOCOL.search(command)
    if found is None and runner not in {"NetperfDemoRunner", "IperfCsvRunner"}:
        return None
    return found[1].lower() if found else "tcp"


def _is_computed(run: FlentRun, name: str) -> bool:
    """Whether flent computed a series from others."""
    runner = text(run.about.get(name, {}).get("RUNNER"))
    return runner in COMPUTING or (not runner and COMPUTED.search(name) is not None)


def _sampled(run: FlentRun, name: str) -> list[Sample]:
    keys = run.raw.get(name, {})
    durations: dict[float, list[float]] = {}
    for at, seconds in keys.get("dur", []):
        durations.setdefault(at, []).append(seconds)
    # Several samples may end at the same time.
    return sorted(
        Sample(at, durations[at].pop(0), y) for at, y in keys.get("val", []) if durations.get(at)
    )


def _on_grid(points: Points) -> list[Sample]:
    """Take each value of the grid of times as the mean of the step before it."""
    steps = [after - before for (before, _), (after, _) in pairwise(points)]
    step = min((step for step in steps if step > 0), default=0.0)
    return [Sample(at, step, y) for at, y in points] if step else []


def _longest(run: FlentRun) -> float:
    """Return the length of the test: no sample can be longer."""
    stated = number(run.metadata.get("TOTAL_LENGTH")) or number(run.metadata.get("LENGTH"))
    times = [points[-1][0] for keys in run.raw.values() for points in keys.values() if points]
    return max([stated or 0.0, *times, *(points[-1][0] for points in run.grid.values() if points)])


def _possible(
    name: str, samples: Sequence[Sample], longest: float, notes: list[str]
) -> list[Sample]:
    """Leave out samples that are impossible, and the part of a sample that another covers."""
    kept: list[Sample] = []
    covered = -float("inf")
    twice = 0.0
    for one in samples:
        if one.mbit_per_s < 0 or not 0 < one.length_s <= longest:
            continue
        overlap = covered - (one.end_s - one.length_s)
        # Shorter overlaps are the scheduling of the measuring program, but for equal samples.
        if overlap > GAP_S or (kept and one == kept[-1]):
            twice += min(overlap, one.length_s)
            if one.end_s <= covered:
                continue
            one = one._replace(length_s=one.end_s - covered)  # noqa: PLW2901 - the rest of it
        covered = max(covered, one.end_s)
        kept.append(one)
    if twice:
        notes.append(f'"{name}": samples overlap by {twice:.1f} s, which count once')
    bad = sum(one.mbit_per_s < 0 or not 0 < one.length_s <= longest for one in samples)
    if bad:
        notes.append(
            f'"{name}": {counted(bad, "sample")} left out: a negative rate, or a duration that is '
            f"not within 0 and {longest:.0f} s, the length of the test"
        )
    return kept


def _direction(run: FlentRun, name: str, notes: list[str]) -> str | None:
    """Return the direction that the name of a series states, or its command, or the test."""
    named = next((side for word, side in SIDES.items() if word in name.lower()), None)
    about = run.about.get(name, {})
    found = NETPERF.search(text(about.get("COMMAND")))
    remote = text(about.get("REMOTE_HOST"))
    ran = ("down" if found["test"] == "MAERTS" else "up") if found and not remote else None
    if named and ran and named != ran and found and found["test"] in {"MAERTS", "STREAM"}:
        notes.append(f'"{name}": its command sends {ran}; the direction is that of the name')
    of_test = OF_TEST.search(run.test)
    direction = named or ran or (of_test[1] if of_test else None)
    if direction is None:
        notes.append(f'"{name}": the file states no direction; counted as goodput total')
    return direction


def _window(
    run: FlentRun,
    streams: Mapping[str, Stream],
    pages: pl.DataFrame,
    calls: Mapping[str, Mapping[str, Points]],
    pings: pl.DataFrame,
) -> tuple[float, float]:
    """Return begin and end of the load: of the flows, or else of applications, or else of pings."""
    samples = [one for stream in streams.values() for one in stream.samples]
    if samples:
        begin = min(one.end_s - one.length_s for one in samples)
        end = max(one.end_s for one in samples)
        # Flows that fell silent before their time are still part of the load.
        planned = begin + (number(run.metadata.get("LENGTH")) or 0.0)
        known = [p[-1][0] for keys in run.raw.values() for p in keys.values() if p]
        silent_until = min(planned, max(known, default=end))
        return begin, silent_until if silent_until - end > GAP_S else end
    times = [pages["started_s"], pages["completed_s"]]
    of_calls = [points for keys in calls.values() for points in keys.values()]
    times += [pl.Series([at for at, _ in points]) for points in of_calls]
    of_apps = [at for one in times for at in one.to_list()]
    if of_apps:
        return min(of_apps), max(of_apps)
    return 0.0, max(pings["t_s"].to_list(), default=0.0)


def _gaps(streams: Mapping[str, Stream], begin: float, end: float) -> list[str]:
    """Name the times of the load for which flows have no samples."""
    found = {}
    for name, stream in streams.items():
        at = begin
        gaps = []
        for since, until in [
            *((one.end_s - one.length_s, one.end_s) for one in stream.samples),
            (end, end),
        ]:
            if since - at > GAP_S:
                gaps.append((at, since))
            at = max(at, until)
        if gaps:
            found[name] = gaps
    lengths = {name: sum(until - since for since, until in of) for name, of in found.items()}
    notes = []
    for name, gaps in list(found.items())[:LISTED]:
        times = first_of(f"{since:.1f} to {until:.1f} s" for since, until in gaps)
        notes.append(
            f'"{name}": no samples for {lengths[name]:.1f} s of the load ({times}); '
            "they count as 0 bytes"
        )
    if more := list(lengths.values())[LISTED:]:
        notes.append(
            f"{counted(len(more), 'further flow')} without samples for up to {max(more):.1f} s of "
            "the load, which count as 0 bytes"
        )
    return notes


def _flows(run: FlentRun, streams: Mapping[str, Stream], pings: pl.DataFrame) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "kind": stream.kind,
            "direction": stream.direction,
            "flow": name,
            "group": run.test,
            "started_s": stream.samples[0].end_s - stream.samples[0].length_s,
        }
        for name, stream in streams.items()
    ]
    rows += [
        {"kind": "ping", "direction": None, "flow": name, "group": name, "started_s": None}
        for name in pings["flow"].unique(maintain_order=True)
    ]
    kinds = ("flow", "group", "kind", "direction")
    return pl.DataFrame(rows, schema=dict.fromkeys(kinds, pl.String) | {"started_s": pl.Float64})


def _flow_series(run: FlentRun, streams: Mapping[str, Stream]) -> pl.DataFrame:
    """Return the samples of goodput, congestion window and round-trip time at their times."""
    rows: list[dict[str, Any]] = []
    for name, stream in streams.items():
        of_flow = {"flow": name, "group": run.test}
        times: dict[float, dict[str, Any]] = {}
        for one in stream.samples:
            row = times.setdefault(one.end_s, {"t_s": one.end_s} | of_flow)
            row["goodput_mbit_per_s"] = one.mbit_per_s
        for key, column in OF_FLOWS.items():
            for at, y in run.raw.get(name, {}).get(key, []):
                if 0 <= y < 2**53:
                    times.setdefault(at, {"t_s": at} | of_flow)[column] = y
        rows += [times[at] for at in sorted(times)]
    names = ("t_s", "flow", "group", "goodput_mbit_per_s", *OF_FLOWS.values())
    schema = {name: pl.String if name in {"flow", "group"} else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _pings(run: FlentRun, notes: list[str]) -> pl.DataFrame:
    """Return the pings with the times of their requests; flent records the times of replies."""
    rows = []
    for name in dict.fromkeys([*run.raw, *run.grid]):
        if not name.startswith("Ping") or _is_computed(run, name) or "::tcp_" in name:
            continue
        keys = run.raw.get(name, {})
        stalled = {at for at, seconds in keys.get("dur", []) if seconds > STALLED_S}
        points = keys.get("val") or run.grid.get(name, [])
        kept = [(at, y) for at, y in points if at not in stalled and y >= 0]
        if len(kept) < len(points):
            notes.append(
                f'"{name}": {counted(len(points) - len(kept), "ping")} left out: negative, or '
                f"longer than {STALLED_S:.0f} s, for which netperf stalls"
            )
        rows += [(at - y / 1e3, name, y) for at, y in kept]
    schema = {"t_s": pl.Float64, "flow": pl.String, "rtt_ms": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _pages(run: FlentRun, notes: list[str]) -> pl.DataFrame:
    """Return the page loads of *HTTP latency*, which flent stamps with their completion."""
    rows = []
    for name in dict.fromkeys([*run.raw, *run.grid]):
        if name.split("::", 1)[0] != HTTP:
            continue
        points = run.raw.get(name, {}).get("val") or run.grid.get(name, [])
        kept = [(at, y / 1e3) for at, y in points if y >= 0]
        if len(kept) < len(points):
            lost = counted(len(points) - len(kept), "page")
            notes.append(f'"{name}": {lost} left out: a negative duration')
        rows += [(name, HTTP, "web", at - took, at, took) for at, took in kept]
    names = ("flow", "group", "kind")
    times = ("started_s", "completed_s", "duration_s")
    schema = dict.fromkeys(names, pl.String) | dict.fromkeys(times, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _applications(
    pages: pl.DataFrame, calls: Mapping[str, Mapping[str, Points]], end: float, begin: float
) -> pl.DataFrame:
    """Return one row per application, of the time from `begin` to `end`."""
    rows: list[dict[str, Any]] = [
        {"flow": name, "group": HTTP, "kind": "web"}
        for name in pages["flow"].unique(maintain_order=True)
    ]
    for name, keys in calls.items():
        delays = keys.get("owd_up") or keys.get("val", [])
        rows.append(
            {"flow": name, "group": name, "kind": "voip"}
            | call(delays, keys.get("seq", []), keys.get(LOST), begin, end)
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _queues(run: FlentRun) -> pl.DataFrame:
    """Return the queue statistics of flent; its ``dropped`` counts drops for any reason."""
    rows: dict[tuple[str, float], dict[str, Any]] = {}
    for series, keys in run.raw.items():
        if series.startswith(QUEUE) and "::" not in series:
            link = series.removeprefix(QUEUE)
            for key, column in OF_QUEUES.items():
                for at, y in keys.get(key, []):
                    if 0 <= y < 2**53:
                        row = rows.setdefault((link, at), {"link": link, "t_s": at})
                        row[column] = round(y)
    # flent has one count of drops.
    schema = {"t_s": pl.Float64, "link": pl.String} | dict.fromkeys(OF_QUEUES.values(), pl.Int64)
    frame = pl.DataFrame(list(rows.values()), schema=schema)
    none = ("drops_aqm", "drops_ack_filter", "drops_replaced", "marks_ce_threshold")
    return frame.with_columns(pl.lit(0).alias(name) for name in none)


def _links(series: pl.DataFrame, begin: float) -> pl.DataFrame:
    counts = (
        "drops_overlimit",
        "drops_aqm",
        "drops_ack_filter",
        "drops_replaced",
        "marks_aqm",
        "marks_ce_threshold",
    )
    # A count is of the interval that ends at its time.
    since = series.filter(pl.col("t_s") > begin)
    return since.group_by("link", maintain_order=True).agg(pl.col(counts).sum())


def _unused(
    run: FlentRun,
    streams: Mapping[str, Stream],
    pings: pl.DataFrame,
    pages: pl.DataFrame,
    calls: Mapping[str, Any],
) -> list[str]:
    """Name the series and the raw values that no table has but `series`."""
    taken = {*streams, *pings["flow"], *pages["flow"], *calls}
    used = {"val", "dur", "seq", "size", LOST, "owd_up"}
    left: dict[str, None] = {}
    for name in dict.fromkeys([*run.raw, *run.grid]):
        base, _, key = name.rpartition("::")
        # A series named after a key of another has the values of that key.
        if _is_computed(run, name) or (base and key in run.raw.get(base, {})):
            continue
        if base in calls or (name in taken and name not in streams):
            keys = [key for key in run.raw.get(name, {}) if key not in used and base not in calls]
        elif name in streams:
            keys = [key for key in run.raw.get(name, {}) if key not in {*OF_FLOWS, "val", "dur"}]
        elif name.startswith(QUEUE):
            keys = [key for key in run.raw.get(name, {}) if key not in OF_QUEUES]
        else:
            left[re.sub(r"::\d+$", "", name)] = None
            continue
        plain = re.sub(r"(::)?\d+$", "", name)
        left |= {f"{plain}: {key}": None for key in keys}
    if not left:
        return []
    return [f"no metric uses {_quoted(sorted(left))}; their values are in series.parquet"]


def _quoted(names: Iterable[str]) -> str:
    """Write names of series."""
    return first_of(f'"{name}"' for name in names)


def call(
    delays: Points, numbers: Points, lost: Points | None, begin: float, end: float
) -> dict[str, Any]:
    """Compute the columns of a call from its packets in the time from `begin` to `end`.

    `lost` has the packets without a reply, of programs that report them; otherwise gaps between
    sequence numbers are losses. Clocks that differ give negative delays: then there is no delay.
    """
    values = [y for at, y in delays if begin <= at <= end]
    row: dict[str, Any] = {"owd_ms_mean": None, "owd_ms_p95": None, "jitter_ms_mean": None}
    if values and min(values) >= 0:
        row["owd_ms_mean"] = sum(values) / len(values)
        row["owd_ms_p95"] = _quantile(sorted(values), 0.95)
    if len(values) > 1:
        steps = [abs(after - before) for before, after in pairwise(values)]
        row["jitter_ms_mean"] = sum(steps) / len(steps)
    within = [(at, int(y)) for at, y in numbers if begin <= at <= end and 0 <= y < 2**53]
    gone = None if lost is None else {at for at, _ in lost}
    return row | _losses(sorted(within), gone)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _losses(numbers: Sequence[tuple[float, int]], gone: set[float] | None) -> dict[str, Any]:
    """Count packets that were sent and runs of lost ones (RFC 3357)."""
    runs: list[int] = []
    sent = 0
    for count in _counts(numbers):
        arrived = sorted({seq for at, seq in count if gone is None or at not in gone})
        known = sorted({seq for _, seq in count})
        sent += known[-1] - known[0] + 1
        edges = [known[0] - 1, *arrived, known[-1] + 1]
        runs += [after - before - 1 for before, after in pairwise(edges) if after - before > 1]
    if not sent:
        return {}
    return {
        "voice_loss_percent": 100 * sum(runs) / sent,
        "loss_runs": len(runs),
        "loss_run_packets_max": max(runs, default=0),
        "loss_interval_packets_mean": sent / len(runs) if runs else None,
    }


def _counts(numbers: Sequence[tuple[float, int]]) -> list[list[tuple[float, int]]]:
    """Split sequence numbers, in the order of arrival, where their counter restarted."""
    counts: list[list[tuple[float, int]]] = []
    highest = 0
    for at, seq in numbers:
        if not counts or seq < highest - RESTART:
            counts.append([])
            highest = seq
        counts[-1].append((at, seq))
        highest = max(highest, seq)
    return counts
