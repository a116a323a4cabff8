"""Measured runs with the tables of a result, so that the same code computes their metrics.

Beside a simulated result they are further arms, for figures and means.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.exchange.selection import Product
from sojourn.result import Result, metrics
from sojourn.result.catalogue import By
from sojourn.result.metrics import CARRIES_DATA, KEYS, OF_GROUPS, of_tables
from sojourn.scenario import Scenario

FORMAT, VERSION = "sojourn-measurement", 1
# Prefixes of arm names, which distinguish measurements from simulations; a file that Sojourn
# exported is a simulation.
MEASURED, SIMULATED = "measured: ", "simulated: "
TYPES = {"text": pl.String, "count": pl.Int64, "real": pl.Float64, "flag": pl.Boolean}
# Tables of a result that a measurement may have.
TABLES = ("flows", "links", "flow_series", "link_series", "pings", "sojourn")


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
    goodput: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    def table(self, name: str, *, warmup_s: float | None = None) -> pl.DataFrame:
        """Return a table with all columns of a result; values that were not measured are null."""
        begin = self.load_s if warmup_s is None else warmup_s
        total = self.totals.get(name)
        frame = self.tables.get(name, pl.DataFrame()) if total is None else total(begin)
        if name == "flows" and not frame.is_empty():
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
        """Average the goodput of a flow over the measured time."""
        values = [y for at, y in self.goodput.get(flow, ()) if begin <= at <= self.end_s]
        return sum(values) / len(values) if values else None


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
    """Compute the metrics of measured runs with the code for simulated runs."""
    rows = pl.concat([_row(one, warmup_s) for one in measurements], how="diagonal")
    measured = [name for name in rows.columns if rows[name].null_count() < rows.height]
    return rows.select(measured)


def _row(one: Measurement, warmup_s: float | None) -> pl.DataFrame:
    begin = one.load_s if warmup_s is None else warmup_s
    flows, links, pings = (
        one.table(name, warmup_s=warmup_s) for name in ("flows", "links", "pings")
    )
    # The sum of missing values is 0, so values that were not measured are omitted.
    flows = flows.filter(~CARRIES_DATA | pl.col("goodput_mbit_per_s").is_not_null())
    if links.is_empty():
        # Metrics of runs are computed for every run that has a link.
        nothing = pl.DataFrame({"link": [""]})
        links = replace(one, tables={"links": nothing}, totals={}).table("links")
    seconds = max(one.end_s - begin, 1e-9)
    span = {"warmup_s": begin, "measured_s": seconds}
    row = metrics.of_tables("run", {"flows": flows, "links": links, "pings": pings}, **span)
    of_links = metrics.of_links(metrics.of_tables("link", {"links": links}, **span))
    throughputs = [name for name in of_links.columns if name.startswith("throughput_")]
    row = row.join(of_links.select(*KEYS, *throughputs), on=KEYS, how="left", maintain_order="left")
    for metric, column in (("drops", "drops_overlimit"), ("marks", "marks_aqm")):
        if links[column].null_count() == links.height:
            row = row.drop(metric)
    return row.select(name for name in row.columns if row[name].null_count() == 0)


def products(measurements: Sequence[Measurement]) -> list[Product]:
    """Return the files of measurements: tables, series, metrics and their origin."""
    frames = {name: combined(measurements, name) for name in TABLES}
    frames = {name: frame for name, frame in frames.items() if not frame.is_empty()}
    runs = per_run(measurements)
    frames["metrics"] = metrics.summary(runs, metrics.metrics_of(runs))
    frames["series"] = pl.concat(
        [
            one.series.select(
                pl.lit(one.arm).alias("arm"), pl.lit(one.replication).alias("replication"), pl.all()
            )
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
        if by != "run":
            checked = self.scenario.checked
            return of_tables(
                by,
                {name: getattr(self, name) for name in OF_GROUPS},
                warmup_s=checked.warmup_s,
                measured_s=checked.duration_s - checked.warmup_s,
            )
        simulated = self.simulated.table()
        measured = per_run(self.measurements, warmup_s=self.scenario.checked.warmup_s)
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
