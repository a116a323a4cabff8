"""Data files of flent as measured runs."""

import re
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange import flent_files
from sojourn.exchange.flent_files import FlentRun, Points
from sojourn.exchange.measurement import MEASURED, SIMULATED, Measurement
from sojourn.exchange.untrusted import text

FLOW = re.compile(
    r"(?P<kind>TCP|UDP) (?P<side>upload|download)(?!.*::tcp_)(?!.* (avg|sum|fairness)$)"
)
SIDES = {"upload": "up", "download": "down"}
QUEUE = "qdisc_stats_"
# Netperf stalls when it loses a packet; the duration of the stall is not a round-trip time.
STALLED_S = 10.0


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a data file of flent as a measured run."""
    run = flent_files.load(path)
    goodput = {
        name: points
        for name, points in run.grid.items()
        if points and FLOW.match(name) and run.units.get(name, "Mbits/s") == "Mbits/s"
    }
    begins = [points[0][0] for points in goodput.values()]
    ends = [points[-1][0] for points in goodput.values()]
    pings = _pings(run)
    queues = _link_series(run)
    load_s = min(begins, default=0.0)
    end_s = max(ends, default=max(pings["t_s"].to_list(), default=0.0))
    # The pings go on after the load.
    pings = pings.filter(pl.col("t_s") <= end_s)
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
            "flows": _flows(run, goodput, pings),
            "flow_series": _flow_series(run, goodput),
            "pings": pings,
            "link_series": queues,
        },
        totals={"links": lambda begin: _links(queues, begin)},
        series=run.frame().drop("run"),
        goodput=goodput,
    )


def _arm(run: FlentRun, name: str | None) -> str:
    """Name the arm by title and test; a file that Sojourn wrote is not a measurement."""
    prefix = SIMULATED if "SOJOURN" in run.metadata else MEASURED
    whole = run.title if run.title == run.test else f"{run.title} ({run.test})"
    return prefix + (name or whole)


def _flows(run: FlentRun, goodput: dict[str, Points], pings: pl.DataFrame) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for name, points in goodput.items():
        found = FLOW.match(name)
        if found is not None:
            row = {"kind": found["kind"].lower(), "direction": SIDES[found["side"]]}
            rows.append(row | {"flow": name, "group": run.test, "started_s": points[0][0]})
    rows += [
        {"kind": "ping", "direction": None, "flow": name, "group": name, "started_s": None}
        for name in pings["flow"].unique(maintain_order=True)
    ]
    kinds = ("flow", "group", "kind", "direction")
    return pl.DataFrame(rows, schema=dict.fromkeys(kinds, pl.String) | {"started_s": pl.Float64})


def _flow_series(run: FlentRun, goodput: dict[str, Points]) -> pl.DataFrame:
    return pl.DataFrame(
        [(at, name, run.test, y) for name, points in goodput.items() for at, y in points],
        schema={
            "t_s": pl.Float64,
            "flow": pl.String,
            "group": pl.String,
            "goodput_mbit_per_s": pl.Float64,
        },
        orient="row",
    )


def _pings(run: FlentRun) -> pl.DataFrame:
    """Return the pings with the times of their requests; flent records the times of replies."""
    rows = []
    for name in dict.fromkeys([*run.raw, *run.grid]):
        if not name.startswith("Ping") or name.endswith(" avg") or "::tcp_" in name:
            continue
        keys = run.raw.get(name, {})
        stalled = {at for at, seconds in keys.get("dur", []) if seconds > STALLED_S}
        points = keys.get("val") or run.grid.get(name, [])
        rows += [(at - y / 1e3, name, y) for at, y in points if at not in stalled]
    schema = {"t_s": pl.Float64, "flow": pl.String, "rtt_ms": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _link_series(run: FlentRun) -> pl.DataFrame:
    """Return the queue statistics of flent; its ``dropped`` counts drops for any reason."""
    names = {
        "backlog_bytes": "backlog_bytes",
        "backlog_pkts": "backlog_packets",
        "dropped": "drops_overlimit",
        "ecn_mark": "marks_aqm",
    }
    rows: dict[tuple[str, float], dict[str, Any]] = {}
    for series, keys in run.raw.items():
        if series.startswith(QUEUE) and "::" not in series:
            link = series.removeprefix(QUEUE)
            for key, column in names.items():
                for at, y in keys.get(key, []):
                    row = rows.setdefault((link, at), {"link": link, "t_s": at})
                    row[column] = round(y)
    # flent has no separate count of AQM drops.
    schema = {"t_s": pl.Float64, "link": pl.String} | dict.fromkeys(names.values(), pl.Int64)
    frame = pl.DataFrame(list(rows.values()), schema=schema)
    return frame.with_columns(drops_aqm=pl.lit(0), marks_ce_threshold=pl.lit(0))


def _links(series: pl.DataFrame, begin: float) -> pl.DataFrame:
    counts = ("drops_overlimit", "drops_aqm", "marks_aqm", "marks_ce_threshold")
    counted = series.filter(pl.col("t_s") >= begin)
    return counted.group_by("link", maintain_order=True).agg(pl.col(counts).sum())
