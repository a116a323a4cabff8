"""Runs as data files of flent: format version 4, one file per run."""

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from sojourn import _core
from sojourn.exchange.flent import HTTP, VERSION, Fit, fitted
from sojourn.exchange.selection import LONGEST_NAME, Product, Selection, plain_name
from sojourn.result import Result, metrics

# Simulated time has no date. A fixed one gives equal files for equal results.
T0 = datetime(2000, 1, 1, tzinfo=UTC)
HOST = "simulated"
SUFFIX = ".flent.gz"
# As in flent: a ping series has no value where the next reply is more than this many steps away.
LONGEST_GAP = 5
MBITS, MS = "Mbits/s", "ms"
Series = dict[str, list[float | None]]
Raw = dict[str, list[dict[str, float]]]


class _Run:
    """The series of one run on a common grid of times, and what they were computed from."""

    def __init__(self, result: Result, arm: str, replication: int) -> None:
        self.of_run = (pl.col("arm") == arm) & (pl.col("replication") == replication)
        self.result = result
        self.flows = result.flows.filter(self.of_run)
        self.samples = result.link_series.filter(self.of_run)
        duration_s = result.scenario.checked.duration_s
        sampled = [self.samples["t_s"], result.flow_series.filter(self.of_run)["t_s"]]
        times = pl.concat(sampled).unique().sort().to_list()
        self.times: list[float] = times or [duration_s]
        self.step = self.times[0]
        self.values: Series = {}
        self.raw: Raw = {}
        self.units: dict[str, str] = {}

    def add(self, name: str, values: list[float | None], unit: str) -> None:
        self.values[name] = values
        self.units[name] = unit

    def add_goodput(self, flow: str, name: str) -> None:
        """Add the goodput of a flow, with its congestion window and smoothed RTT."""
        rows = self.result.flow_series.filter(self.of_run, pl.col("flow") == flow)
        self.raw[name] = _entries(
            rows,
            val="goodput_mbit_per_s",
            dur=pl.lit(self.step),
            tcp_cwnd="cwnd_packets",
            tcp_rtt="srtt_ms",
        )
        self.add(name, self._on_grid(rows, "goodput_mbit_per_s"), MBITS)

    def _on_grid(self, rows: pl.DataFrame, column: str) -> list[float | None]:
        found = dict(rows.select("t_s", column).iter_rows())
        return [found.get(at) for at in self.times]

    def add_delays(self, name: str, ended: Sequence[float], delays: Sequence[float]) -> None:
        """Add delays that were measured at any time, such as those of pings."""
        order = np.argsort(np.asarray(ended), kind="stable")
        times, values = np.asarray(ended)[order], np.asarray(delays)[order]
        self.raw[name] = [
            {"t": _at(at), "val": value}
            for at, value in zip(times.tolist(), values.tolist(), strict=True)
        ]
        grid: list[float | None] = [None] * len(self.times)
        if times.size:
            at = np.asarray(self.times)
            following = np.minimum(np.searchsorted(times, at), times.size - 1)
            near = np.abs(times[following] - at) <= LONGEST_GAP * max(self.step, 0.2)
            on_grid = np.interp(at, times, values)
            grid = [
                value if there else None
                for value, there in zip(on_grid.tolist(), near.tolist(), strict=True)
            ]
        self.add(name, grid, MS)

    def add_queue(self, link: str) -> None:
        """Add the series of a queue, under the names that flent gives them."""
        name = f"qdisc_stats_{link}"
        rows = self.samples.filter(pl.col("link") == link).with_columns(
            dropped=metrics.DROPS,
            ecn_mark=pl.col("marks_aqm") + pl.col("marks_ce_threshold"),
        )
        self.raw[name] = _entries(
            rows,
            backlog_bytes="backlog_bytes",
            backlog_pkts="backlog_packets",
            dropped="dropped",
            ecn_mark="ecn_mark",
            sent_bytes="sent_bytes",
            sent_pkts="sent_packets",
            delay="sojourn_ms_mean",
        )
        for key in ("dropped", "ecn_mark"):
            self.add(f"{name}::{key}", self._on_grid(rows, key), "packets")

    def add_computed(self, fit: Fit) -> None:
        """Add the averages and sums that flent computes from other series."""
        of_sides = []
        for side, prefix in fit.totals.items():
            directed = self.flows.filter(pl.col("direction") == side)["flow"]
            parts = [
                self.values[fit.series[flow]]
                for flow in directed
                if fit.series.get(flow, "").startswith(prefix)
            ]
            of_sides += parts
            self.add(f"{prefix} avg", _across(parts, _mean), MBITS)
            self.add(f"{prefix} sum", _across(parts, sum), MBITS)
            if fit.test in {"tcp_nup", "tcp_ndown"}:
                self.add(f"{prefix} fairness", _fairness(parts), "Idx")
        if fit.test.startswith("rrul"):
            self.add("TCP totals", _across(of_sides, sum), MBITS)
            pings = [values for name, values in self.values.items() if name.startswith("Ping (ms)")]
            if pings:
                self.add("Ping (ms) avg", _across(pings, _mean), MS)


def _entries(rows: pl.DataFrame, **values: str | pl.Expr) -> list[dict[str, float]]:
    """Return raw values of flent: those of each sample that are known."""
    return [
        {"t": _at(at)} | {key: value for key, value in row.items() if value is not None}
        for at, row in zip(rows["t_s"], rows.select(**values).iter_rows(named=True), strict=True)
    ]


def _at(t_s: float) -> float:
    """Convert a time of a run to the Unix time of flent's raw values."""
    return round(T0.timestamp() + t_s, 6)


def _across(
    series: Sequence[list[float | None]], compute: Callable[[list[float]], float]
) -> list[float | None]:
    """Compute a number from the known values of all series at each time."""
    rows = ([value for value in row if value is not None] for row in zip(*series, strict=True))
    return [compute(row) if row else None for row in rows]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _fairness(series: Sequence[list[float | None]]) -> list[float | None]:
    """Compute Jain's index at each time."""
    return [_core.jain(values) for values in zip(*series, strict=True)]


def files(selection: Selection) -> list[Product]:
    """Write every selected run as a data file of flent."""
    return [_file(selection.result, arm, replication) for arm, replication in selection.runs()]


def _file(result: Result, arm: str, replication: int) -> Product:
    run = _Run(result, arm, replication)
    flows = run.flows.to_dicts()
    fit = fitted(flows, _udp_pings(result))
    if fit is None:
        kinds = ", ".join(sorted({flow["kind"] for flow in flows})) or "none"
        message = (
            f'arm "{arm}": flent has no test for this traffic ({kinds}); expected TCP flows, web '
            "users, one UDP stream up, or pings"
        )
        raise _core.ResultError(message)
    _fill(run, fit)
    missing = sorted({flow["group"] for flow in flows if flow["flow"] not in fit.series})
    title = f"{result.scenario.checked.name} {arm} rep:{replication}"
    document = {
        "version": VERSION,
        "x_values": run.times,
        "results": run.values,
        "raw_values": run.raw,
        "metadata": _metadata(run, fit, title, missing, (arm, replication)),
    }
    # Without a time of compression, equal results give equal files.
    text = json.dumps(document, indent=2, sort_keys=True, allow_nan=False)
    notes = [f"{group}: flent has no series for it; left out" for group in missing]
    return Product(
        name=_name(fit.test, title), data=gzip.compress(text.encode(), mtime=0), notes=notes
    )


def _fill(run: _Run, fit: Fit) -> None:
    result = run.result
    replies = result.pings.filter(run.of_run, pl.col("rtt_ms").is_not_null())
    pages = result.transactions.filter(run.of_run, pl.col("duration_s").is_not_null())
    for flow, name in fit.series.items():
        if name.startswith("Ping (ms)"):
            of_flow = replies.filter(pl.col("flow") == flow)
            ended = of_flow["t_s"] + of_flow["rtt_ms"] / 1e3
            run.add_delays(name, ended.to_list(), of_flow["rtt_ms"].to_list())
        elif name.startswith(HTTP):
            of_flow = pages.filter(pl.col("flow") == flow)
            ended, taken = of_flow["completed_s"], of_flow["duration_s"] * 1e3
            run.add_delays(name, ended.to_list(), taken.to_list())
        else:
            run.add_goodput(flow, name)
    run.add_computed(fit)
    for link in run.samples["link"].unique(maintain_order=True):
        run.add_queue(link)


def _udp_pings(result: Result) -> dict[str, str | None]:
    """Return the groups of pings over UDP with their DSCP."""
    blocks = result.provenance["scenario"]["traffic"]
    return {
        block["name"]: block.get("dscp")
        for block in blocks
        if block["type"] == "ping" and block.get("protocol") == "udp"
    }


def _metadata(
    run: _Run, fit: Fit, title: str, missing: list[str], of: tuple[str, int]
) -> dict[str, Any]:
    checked = run.result.scenario.checked
    loads = run.flows.filter(pl.col("kind") != "ping")["started_s"]
    begin = min(loads.drop_nulls().to_list(), default=0.0)
    links = run.samples["link"].unique(maintain_order=True).to_list()
    names = ",".join(links)
    queues = {"qdisc_stats_hosts": names, "qdisc_stats_interfaces": names} if links else {}
    stamp = f"{T0:%Y-%m-%dT%H:%M:%S.%fZ}"
    return {
        "NAME": fit.test,
        "TITLE": title,
        "HOST": HOST,
        "HOSTS": [HOST],
        "LOCAL_HOST": HOST,
        "TIME": stamp,
        "T0": stamp,
        "LENGTH": max(round(checked.duration_s - begin), 1),
        "TOTAL_LENGTH": checked.duration_s,
        "STEP_SIZE": run.step,
        "IP_VERSION": 4,
        "NOTE": "Simulated by Sojourn; the date is not meaningful.",
        "TEST_PARAMETERS": fit.parameters | queues,
        "SERIES_META": {
            name: {"UNITS": unit} | _mean_of(run.values[name]) for name, unit in run.units.items()
        },
        "SOJOURN": _origin(run, of) | {"series": fit.series, "left_out": missing},
    }


def _mean_of(values: Sequence[float | None]) -> dict[str, float]:
    known = [value for value in values if value is not None]
    return {"MEAN_VALUE": _mean(known)} if known else {}


def _origin(run: _Run, of: tuple[str, int]) -> dict[str, Any]:
    """Return what is needed to find and repeat the run."""
    result = run.result
    columns = ("link", "rate_mbit_per_s", "qdisc")
    return {
        "sojourn": result.build,
        "scenario": result.scenario.checked.name,
        "scenario_sha256": result.scenario.hash,
        "manifest_sha256": result.manifest_sha256,
        "seed": result.scenario.seed,
        "arm": of[0],
        "replication": of[1],
        "warmup_s": result.scenario.checked.warmup_s,
        "links": result.links.filter(run.of_run).select(columns).to_dicts(),
    }


def _name(test: str, title: str) -> str:
    """Return the name that flent gives a data file."""
    before = f"{test}-{T0:%Y-%m-%dT%H%M%S.%f}."
    return before + plain_name(title)[: LONGEST_NAME - len(before) - len(SUFFIX)] + SUFFIX
