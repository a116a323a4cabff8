"""Metrics of runs and their parts, their means and paired differences, as polars frames.

`crates/lab/src/metrics` declares and computes them.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from sojourn import _core
from sojourn.result import estimates
from sojourn.result.catalogue import By, Metric, of_link
from sojourn.result.rows import CONNECTIONS, KEYS, WITHOUT_DATA, Columns


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


def jain(rate: pl.Expr) -> pl.Expr:
    """Compute Jain's index of the known values; null if all are 0 or there are none."""

    def of(values: pl.Series) -> pl.Series:
        return pl.Series([_core.jain(values.cast(pl.Float64).to_list())], dtype=pl.Float64)

    return rate.map_batches(of, return_dtype=pl.Float64, returns_scalar=True)


# Flows that are a connection, with a congestion window.
HAS_CONNECTION = pl.col("kind").is_in(sorted(CONNECTIONS))
# Flows whose goodput counts, those of unknown types included.
CARRIES_DATA = ~pl.col("kind").is_in(sorted(WITHOUT_DATA))
# All packets that a queue dropped. Earlier results count those of ACK filters as drops of the AQM.
DROPS = (
    pl.col("drops_overlimit")
    + pl.col("drops_aqm")
    + pl.col("drops_ack_filter").fill_null(0)
    + pl.col("drops_replaced").fill_null(0)
)

# Tables from which the metrics of parts of runs are computed.
OF_GROUPS = ("flows", "links", "classes", "applications", "transactions")


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
    """Average metrics over the runs of each arm, as :func:`sojourn.result.estimates.summary`."""
    keys = ["arm", "group"] if "group" in table.columns else ["arm"]
    rows = estimates.summary(_columns(table, metrics), metrics)
    return pl.DataFrame(rows, schema={**dict.fromkeys(keys, pl.String), **_ESTIMATE})


def difference(
    table: pl.DataFrame, metrics: Sequence[Metric], baseline: str, other: str
) -> pl.DataFrame:
    """Average paired differences, as :func:`sojourn.result.estimates.difference`."""
    group = {"group": pl.String} if "group" in table.columns else {}
    rows = estimates.difference(_columns(table, metrics), metrics, baseline, other)
    return pl.DataFrame(rows, schema={**group, **_ESTIMATE, "significant": pl.Boolean})


def _columns(table: pl.DataFrame, metrics: Sequence[Metric]) -> Columns:
    """Return the columns from which metrics are estimated."""
    names = [name for name in (*KEYS, "group") if name in table.columns]
    chosen = list(dict.fromkeys([*names, *(metric.column for metric in metrics)]))
    return table.select(chosen).to_dict(as_series=False)


_ESTIMATE = {
    "metric": pl.String,
    "unit": pl.String,
    "n": pl.Int64,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
