"""Measured runs with the tables of a result, so that the same code computes their metrics.

Beside a simulated result they are further arms, for figures and means.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import polars as pl

from sojourn import _core
from sojourn.exchange.selection import Product
from sojourn.result import Result, metrics
from sojourn.result.catalogue import By, Metric, of_scope, shown
from sojourn.result.estimates import metrics_of
from sojourn.result.formatting import counted
from sojourn.result.metrics import CARRIES_DATA, OF_GROUPS, of_tables
from sojourn.result.rows import KEYS
from sojourn.scenario import Scenario

FORMAT, VERSION = "sojourn-measurement", 1
# Prefixes of arm names, which distinguish measurements from simulations; a file that Sojourn
# exported is a simulation.
MEASURED, SIMULATED = "measured: ", "simulated: "
TYPES = {"text": pl.String, "count": pl.Int64, "real": pl.Float64, "flag": pl.Boolean}
# Tables of a result that a measurement may have.
TABLES = (
    "flows",
    "links",
    "flow_series",
    "link_series",
    "pings",
    "sojourn",
    "applications",
    "transactions",
)
# Metrics of calls that only measured runs have: a simulated call has the delay to the ear instead.
OF_CALLS = tuple(
    Metric(
        column=name,
        label=label,
        unit="ms",
        digits=1,
        scope="application",
        description=f"`voip`: {description}",
    )
    for name, label, description in (
        ("owd_ms_mean", "one-way delay", "mean one-way delay of the packets that arrived."),
        ("owd_ms_p95", "one-way delay p95", "95th percentile of the one-way delay."),
        ("jitter_ms_mean", "jitter", "mean change of the one-way delay between packets."),
    )
)
OF_APPLICATIONS = (*shown("application"), *OF_CALLS)
# Metrics of applications that no file states.
UNKNOWN = ("connections", "cut_off", "completed_percent")


class Sample(NamedTuple):
    """The mean rate of a flow over a time that ends at `end_s`."""

    end_s: float
    length_s: float
    mbit_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured run."""

    arm: str
    origin: dict[str, Any]
    load_s: float
    end_s: float
    tables: dict[str, pl.DataFrame]
    series: pl.DataFrame
    totals: dict[str, Callable[[float], pl.DataFrame]] = field(default_factory=dict)
    replication: int = 0
    goodput: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    # What the reader left out, and why.
    notes: Sequence[str] = ()
    # No rate can be higher; unknown if the file does not state it.
    fastest_mbit_per_s: float | None = None

    def begin(self, warmup_s: float | None) -> float:
        """Return the begin of the measured time: of the load, unless a warm-up is given."""
        return self.load_s if warmup_s is None else warmup_s

    def table(self, name: str, *, warmup_s: float | None = None) -> pl.DataFrame:
        """Return a table with all columns of a result; values that were not measured are null."""
        begin = self.begin(warmup_s)
        total = self.totals.get(name)
        frame = self.tables.get(name, pl.DataFrame()) if total is None else total(begin)
        # Otherwise the totals of the flows have the goodput.
        if name == "flows" and self.goodput and not frame.is_empty():
            means = [self._mean(flow, begin) for flow in frame["flow"]]
            frame = frame.with_columns(pl.Series("goodput_mbit_per_s", means, dtype=pl.Float64))
        keys = {"arm": pl.lit(self.arm), "replication": pl.lit(self.replication, pl.UInt32)}
        return frame.select(
            *(value.alias(key) for key, value in keys.items()),
            *(
                pl.col(column).cast(kind)
                if column in frame.columns
                else pl.lit(None, kind).alias(column)
                for column, kind in _columns(name).items()
            ),
        ).head(frame.height)

    def _mean(self, flow: str, begin: float) -> float | None:
        """Divide the data of a flow in the measured time by that time."""
        parts = [
            (min(one.end_s, self.end_s) - max(one.end_s - one.length_s, begin), one.mbit_per_s)
            for one in self.goodput.get(flow, ())
        ]
        if not parts or self.end_s <= begin:
            return None
        # A flow that was silent all this time has a goodput of 0.
        return sum(length * rate for length, rate in parts if length > 0) / (self.end_s - begin)


@cache
def _columns(table: str) -> dict[str, Any]:
    """Return the columns of a table of a result, without those of the run, and their types."""
    for entry in json.loads(_core.column_catalogue()):
        if entry["name"] == table:
            return {
                one["name"]: TYPES[one["type"]]
                for one in entry["columns"]
                if one["name"] not in KEYS
            }
    raise KeyError(table)


def numbered(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Assign replication numbers to measurements with the same arm name."""
    counts: dict[str, int] = {}
    found = []
    for one in measurements:
        number = counts.get(one.arm, 0)
        counts[one.arm] = number + 1
        found.append(replace(one, replication=number))
    return found


def combined(
    measurements: Sequence[Measurement], name: str, *, warmup_s: float | None = None
) -> pl.DataFrame:
    """Return one table of all measurements."""
    return pl.concat([one.table(name, warmup_s=warmup_s) for one in measurements])


def per_run(measurements: Sequence[Measurement], *, warmup_s: float | None = None) -> pl.DataFrame:
    """Compute the metrics of measured runs with the code for simulated runs.

    Impossible values are missing; :func:`impossible` names them.
    """
    rows = pl.concat([_row(one, warmup_s) for one in measurements], how="diagonal")
    return _known(rows, _bounds(measurements))


def by_application(
    measurements: Sequence[Measurement], *, warmup_s: float | None = None
) -> pl.DataFrame:
    """Compute the metrics of the applications of measured runs, as :func:`per_run` does."""
    rows = [_of_applications(one, warmup_s) for one in measurements]
    return _known(pl.concat(rows, how="diagonal_relaxed"), _bounds(measurements))


def impossible(measurements: Sequence[Measurement], *, warmup_s: float | None = None) -> list[str]:
    """Name the metrics whose values are outside of their possible range."""
    bounds = _bounds(measurements)
    found = []
    for compute in (_row, _of_applications):
        for one in measurements:
            rows = compute(one, warmup_s)
            for metric in _metrics(rows):
                low, high = bounds(metric, one.arm, one.replication)
                bad = [y for y in rows[metric.column].drop_nulls() if not low <= y <= high]
                if bad:
                    found.append(
                        f"{one.origin['file']}: {metric.label} {bad[0]:.6g} {metric.unit} left "
                        f"out: impossible; expected {low:g} to {high:g}"
                    )
    return found


Bounds = Callable[[Metric, str, int], tuple[float, float]]


def _metrics(rows: pl.DataFrame) -> list[Metric]:
    """Describe the columns of a table of metrics of runs or applications."""
    if "group" not in rows.columns:
        return metrics_of(rows.columns)
    known = (*of_scope("application"), *OF_CALLS)
    return [metric for metric in known if metric.column in rows.columns]


def _bounds(measurements: Sequence[Measurement]) -> Bounds:
    """Return a function for the possible range of a metric of a run."""
    fastest = {(one.arm, one.replication): one.fastest_mbit_per_s for one in measurements}

    def bounds(metric: Metric, arm: str, replication: int) -> tuple[float, float]:
        # An increase may be a decrease.
        low = -float("inf") if metric.column.startswith("induced_") else 0.0
        if metric.unit == "%":
            return 0.0, 100.0
        if metric.column.startswith(("jain_", "utilisation")):
            return 0.0, 1.0 + 1e-9
        speed = fastest.get((arm, replication))
        if metric.unit == "Mbit/s" and speed is not None:
            return 0.0, speed
        return low, float("inf")

    return bounds


def _known(rows: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    """Remove impossible values, and the columns without any value."""
    for metric in _metrics(rows):
        values = []
        for row in rows.select(*KEYS, metric.column).iter_rows():
            low, high = bounds(metric, row[0], row[1])
            values.append(row[2] if row[2] is not None and low <= row[2] <= high else None)
        rows = rows.with_columns(pl.Series(metric.column, values, rows.schema[metric.column]))
    return rows.select(
        name for name in rows.columns if name in KEYS or rows[name].null_count() < rows.height
    )


def _row(one: Measurement, warmup_s: float | None) -> pl.DataFrame:
    begin = one.begin(warmup_s)
    flows, links, pings = (
        one.table(name, warmup_s=warmup_s) for name in ("flows", "links", "pings")
    )
    # The sum of missing values is 0, so values that were not measured are omitted.
    flows = flows.filter(~CARRIES_DATA | pl.col("goodput_mbit_per_s").is_not_null())
    if links.is_empty():
        # Metrics of runs are computed for every run that has a link.
        nothing = pl.DataFrame({"link": [""]})
        links = replace(one, tables={"links": nothing}, totals={}).table("links")
    span = _span(one, begin)
    row = metrics.of_tables("run", {"flows": flows, "links": links, "pings": pings}, **span)
    of_links = metrics.of_links(metrics.of_tables("link", {"links": links}, **span))
    throughputs = [name for name in of_links.columns if name.startswith("throughput_")]
    row = row.join(of_links.select(*KEYS, *throughputs), on=KEYS, how="left", maintain_order="left")
    for metric, column in (("drops", "drops_overlimit"), ("marks", "marks_aqm")):
        if links[column].null_count() == links.height:
            row = row.drop(metric)
    return row.select(name for name in row.columns if row[name].null_count() == 0)


def _span(one: Measurement, begin: float) -> dict[str, float]:
    return {"warmup_s": begin, "measured_s": max(one.end_s - begin, 1e-9)}


def _of_applications(one: Measurement, warmup_s: float | None) -> pl.DataFrame:
    """Compute the metrics of the applications of a run, those of calls included."""
    begin = one.begin(warmup_s)
    names = ("applications", "transactions")
    tables = {name: one.table(name, warmup_s=warmup_s) for name in names}
    rows = metrics.of_tables("application", tables, **_span(one, begin)).drop(UNKNOWN)
    total = one.totals.get("applications")
    if total is None or rows.is_empty():
        return rows
    raw = total(begin)
    of_calls = [metric.column for metric in OF_CALLS if metric.column in raw.columns]
    known = raw.select("group", *of_calls).unique("group", maintain_order=True)
    return rows.join(known, on="group", how="left", maintain_order="left")


def summary_by_application(table: pl.DataFrame) -> pl.DataFrame:
    """Average the metrics of applications over the runs of each arm."""
    present = [metric for metric in OF_APPLICATIONS if metric.column in table.columns]
    return metrics.summary(table, present)


def notes(measurements: Sequence[Measurement], *, warmup_s: float | None = None) -> list[str]:
    """List what was left out of the files and the metrics, each note with its files."""
    files: dict[str, list[str]] = {}
    for one in measurements:
        for note in one.notes:
            files.setdefault(note, []).append(one.origin["file"])
    left_out = [f"{_first(of)}: {note}" for note, of in files.items()]
    return left_out + impossible(measurements, warmup_s=warmup_s)


def _first(names: Sequence[str]) -> str:
    """Write the first of some files, and how many others there are."""
    more = f" and {counted(len(names) - 1, 'other')}" if names[1:] else ""
    return f"{names[0]}{more}"


def products(measurements: Sequence[Measurement]) -> list[Product]:
    """Return the files of measurements: tables, series, metrics and their origin."""
    frames = {name: combined(measurements, name) for name in TABLES}
    frames = {name: frame for name, frame in frames.items() if not frame.is_empty()}
    runs = per_run(measurements)
    frames["metrics"] = metrics.summary(runs, metrics_of(runs.columns))
    applications = by_application(measurements)
    if not applications.is_empty():
        frames["application_metrics"] = summary_by_application(applications)
    frames["series"] = pl.concat(
        [
            one.series.select(
                pl.lit(one.arm).alias("arm"), pl.lit(one.replication).alias("replication"), pl.all()
            ).cast({pl.Enum: pl.String})
            for one in measurements
        ],
        how="diagonal",
    )
    about = {
        "format": FORMAT,
        "format_version": VERSION,
        "backend": "imported",
        "sojourn": _core.version(),
        "runs": [
            {
                "arm": one.arm,
                "replication": one.replication,
                "load_s": one.load_s,
                "end_s": one.end_s,
                "notes": list(one.notes),
            }
            | one.origin
            for one in measurements
        ],
    }
    text = json.dumps(about, indent=2, sort_keys=True)
    return [
        Product(name="import.json", data=f"{text}\n".encode()),
        *(Product(name=f"{name}.parquet", data=_parquet(frame)) for name, frame in frames.items()),
    ]


def _parquet(frame: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream, compression="zstd")
    return stream.getvalue()


class Beside(Result):
    """A simulated result with measured runs as further arms.

    It has the metrics of the simulated result; for measured runs they cover the same time. A metric
    that was not measured is null. It cannot be saved, and has no differences between arms, because
    measured and simulated runs are not paired.
    """

    def __init__(self, simulated: Result, measurements: Sequence[Measurement]) -> None:
        self.simulated = simulated
        self.measurements = _distinct(simulated.arms, measurements)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the simulated result."""
        return self.simulated.provenance

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of the simulated result."""
        return self.simulated.manifest_sha256

    @cached_property
    def scenario(self) -> Scenario:
        """The simulated scenario."""
        return self.simulated.scenario

    @property
    def arms(self) -> list[str]:
        """The simulated arms, then the measured ones."""
        return list(dict.fromkeys([*self.simulated.arms, *(one.arm for one in self.measurements)]))

    def _measured(self, by: By) -> pl.DataFrame:
        """Compute metrics; of measured runs, only those that the simulated runs have."""
        warmup_s = self.scenario.checked.warmup_s
        if by == "application":
            measured = by_application(self.measurements, warmup_s=warmup_s)
            return pl.concat([self.simulated.table(by), measured], how="diagonal_relaxed")
        if by != "run":
            checked = self.scenario.checked
            return of_tables(
                by,
                {name: getattr(self, name) for name in OF_GROUPS},
                warmup_s=checked.warmup_s,
                measured_s=checked.duration_s - checked.warmup_s,
            )
        simulated = self.simulated.table()
        measured = per_run(self.measurements, warmup_s=warmup_s)
        known = [name for name in measured.columns if name in simulated.columns]
        return pl.concat([simulated, measured.select(known)], how="diagonal_relaxed")

    def _frame(self, name: str) -> pl.DataFrame:
        simulated: pl.DataFrame = getattr(self.simulated, name)
        if name not in TABLES:
            return simulated
        warmup_s = self.scenario.checked.warmup_s
        measured = combined(self.measurements, name, warmup_s=warmup_s)
        if "t_s" in measured.columns:
            # The axes of figures end with the simulated runs.
            measured = measured.filter(
                pl.col("t_s").is_between(0.0, self.scenario.checked.duration_s)
            )
        return pl.concat([simulated, measured], how="diagonal_relaxed").rechunk()


def _distinct(taken: Sequence[str], measurements: Sequence[Measurement]) -> list[Measurement]:
    """Rename measured arms if a simulated one has the name of one of them."""
    clash = {one.arm for one in measurements} & set(taken)
    if clash:
        return [replace(one, arm=f"{one.arm} (file)") for one in measurements]
    return list(measurements)
