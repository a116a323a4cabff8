"""Metrics of runs and their parts, their means over runs, and paired differences between arms.

`crates/lab/src/metrics` declares and computes them.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.result.catalogue import By, Metric, of_link, shown
from sojourn.result.naming import described


def averaged(pings: pl.DataFrame) -> pl.DataFrame:
    """Average the pings of every run as flent does for its series *Ping (ms) avg*."""
    return in_polars(_core.averaged_pings(stream(pings)), like=pings)


def stream(frame: pl.DataFrame) -> bytes:
    """Write a table of runs as an Arrow IPC stream."""
    return frame.write_ipc_stream(None).getvalue()


def in_polars(table: _core.Table, *, like: pl.DataFrame) -> pl.DataFrame:
    """Convert a table of runs to polars, with replications of the type that `like` has."""
    frame = pl.DataFrame(table)
    return frame.with_columns(pl.col("replication").cast(like.schema["replication"]))


_TYPES = _core.traffic_types()


def _is_any(kinds: list[str]) -> pl.Expr:
    return pl.col("kind").is_in(kinds)


def jain(rate: pl.Expr) -> pl.Expr:
    """Compute Jain's index of the known values; null if all are 0 or there are none."""

    def of(values: pl.Series) -> pl.Series:
        return pl.Series([_core.jain(values.cast(pl.Float64).to_list())], dtype=pl.Float64)

    return rate.map_batches(of, return_dtype=pl.Float64, returns_scalar=True)


# Flows that are a connection, with a congestion window.
HAS_CONNECTION = _is_any([name for name, of in _TYPES.items() if of["has_connection"]])
# Flows whose goodput counts, those of unknown types included.
CARRIES_DATA = ~_is_any([name for name, of in _TYPES.items() if not of["carries_data"]])
# Flows whose rate the scenario sets, whatever the network does.
HAS_CONSTANT_RATE = _is_any([name for name, of in _TYPES.items() if of["constant_rate"]])
# Types of traffic that consist of transactions.
WITH_TRANSACTIONS = [name for name, of in _TYPES.items() if of["transactions"]]
# Flows that groups of flows have metrics of.
IS_MEASURED_AS_FLOW = _is_any([name for name, of in _TYPES.items() if of["measured"] == "group"])


def transactions(kind: str) -> str | None:
    """Return what the transactions of a type of traffic are called, such as ``"pages"``."""
    return _TYPES[kind]["transactions"]


KEYS = ("arm", "replication")
# All packets that a queue dropped. Earlier results count those of ACK filters as drops of the AQM.
DROPS = (
    pl.col("drops_overlimit")
    + pl.col("drops_aqm")
    + pl.col("drops_ack_filter").fill_null(0)
    + pl.col("drops_replaced").fill_null(0)
)

LEVEL = 0.95
# Tables from which the metrics of parts of runs are computed.
OF_GROUPS = ("flows", "links", "classes", "applications", "transactions")


def metrics_of(per_run: pl.DataFrame) -> list[Metric]:
    """Describe the columns of a table of metrics of runs, in its order."""
    return described(column for column in per_run.columns if column not in KEYS)


def metrics_by(by: By, table: pl.DataFrame) -> Sequence[Metric]:
    """List the metrics of a table that summaries show, in order."""
    return metrics_of(table) if by == "run" else shown(by)


def of_tables(
    by: By, tables: Mapping[str, pl.DataFrame], *, warmup_s: float, measured_s: float
) -> pl.DataFrame:
    """Compute the metrics of every run of some tables, which are given by name."""
    streams = {name: stream(table) for name, table in tables.items()}
    computed = _core.table_metrics(by, streams, warmup_s=warmup_s, measured_s=measured_s)
    return in_polars(computed, like=next(iter(tables.values())))


def of_links(links: pl.DataFrame) -> pl.DataFrame:
    """Put the metrics of every link of a run in one row, with the name of the link in their names.

    Examples
    --------
    >>> keys = {"arm": ["a", "a"], "replication": [0, 0], "group": ["up", "down"]}
    >>> of_links(pl.DataFrame({**keys, "drops": [1.0, 2.0]})).to_dicts()
    [{'arm': 'a', 'replication': 0, 'drops_up': 1.0, 'drops_down': 2.0}]
    """
    runs = links.select(KEYS).unique(maintain_order=True)
    for (name,), rows in links.group_by("group", maintain_order=True):
        metrics = [column for column in rows.columns if column not in (*KEYS, "group")]
        named = (pl.col(column).alias(of_link(column, f"{name}")) for column in metrics)
        runs = runs.join(rows.select(*KEYS, *named), on=KEYS, how="left", maintain_order="left")
    return runs


def round_trips(flows: pl.DataFrame) -> pl.DataFrame:
    """Average the round-trip times that the connections of each direction measured, per run."""
    connections = flows.filter(HAS_CONNECTION).with_columns(pl.col("direction").fill_null("total"))
    rtt = pl.col("ack_rtt_ms_mean")
    return connections.group_by(KEYS, maintain_order=True).agg(
        rtt.filter(pl.col("direction") == name).mean().alias(f"ack_rtt_{name}_ms")
        for name in directions(connections)
    )


def directions(flows: pl.DataFrame) -> list[str]:
    """List the directions of data, download first; ``"total"`` for flows with a path."""
    present = flows.filter(CARRIES_DATA)["direction"].fill_null("total").unique().to_list()
    return sorted(present, key=lambda name: (name != "down", name))


def summary(table: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Average metrics over the runs of each arm, or of each group of each arm.

    Metrics that do not apply to a group are omitted; those of whole runs are null instead.
    """
    of_groups = "group" in table.columns
    keys = ["arm", "group"] if of_groups else ["arm"]
    rows = []
    for names, runs in table.group_by(keys, maintain_order=True):
        for metric in metrics:
            values = runs[metric.column].drop_nulls().to_list()
            if values or not of_groups:
                estimate = mean_and_interval(values)
                rows.append((*names, metric.column, metric.unit, len(values), *estimate))
    schema = {**dict.fromkeys(keys, pl.String), **_ESTIMATE}
    return pl.DataFrame(rows, schema=schema, orient="row")


def difference(
    table: pl.DataFrame, metrics: Sequence[Metric], baseline: str, other: str
) -> pl.DataFrame:
    """Average the difference `other` - `baseline` of whole runs, or of each group.

    Replication `k` of both arms has the same seed, so that each pair differs only by the change
    between the arms. Metrics of a group without a pair of runs are omitted.
    """
    of_groups = "group" in table.columns
    groups = table.group_by("group", maintain_order=True) if of_groups else [((), table)]
    rows = []
    for names, runs in groups:
        pairs = runs.filter(arm=baseline).join(
            runs.filter(arm=other), on="replication", suffix="_other", maintain_order="left"
        )
        estimates = (_paired(pairs, metric) for metric in metrics)
        rows += [(*names, *row) for row in estimates if row[2] or not of_groups]
    group = {"group": pl.String} if of_groups else {}
    schema = {**group, **_ESTIMATE, "significant": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _paired(
    pairs: pl.DataFrame, metric: Metric
) -> tuple[str, str, int, float | None, float | None, float | None, bool | None]:
    """Average the difference of `metric` over pairs of runs."""
    both = pairs.select(
        baseline=pl.col(metric.column), other=pl.col(f"{metric.column}_other")
    ).drop_nulls()
    mean, low, high = _paired_interval(both["other"].to_list(), both["baseline"].to_list())
    significant = None if low is None or high is None else low > 0 or high < 0
    return metric.column, metric.unit, both.height, mean, low, high, significant


_ESTIMATE = {
    "metric": pl.String,
    "unit": pl.String,
    "n": pl.Int64,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}

Interval = tuple[float | None, float | None, float | None]


def check_arms(per_run: pl.DataFrame, argument: str, *names: str) -> None:
    """Check that the arms that an argument names exist and have a finished run."""
    known = per_run["arm"].unique(maintain_order=True).to_list()
    for name in names:
        if name not in known:
            rule = "no finished run of this arm; expected one of {known}"
            raise ArgumentError(argument, name, rule, known=", ".join(known))


def mean_and_interval(values: Sequence[float]) -> Interval:
    """Compute the mean and its interval: no mean without values, no interval for one value."""
    if not values:
        return None, None, None
    if len(values) == 1:
        return values[0], None, None
    return _core.bootstrap_mean(values, level=LEVEL)


def _paired_interval(values: Sequence[float], baseline: Sequence[float]) -> Interval:
    if not values:
        return None, None, None
    if len(values) == 1:
        return values[0] - baseline[0], None, None
    return _core.bootstrap_difference(values, baseline, level=LEVEL)
