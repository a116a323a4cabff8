"""Metrics of the classes of queues in each run.

:mod:`sojourn.result.catalogue` defines each metric.
"""

import polars as pl

from sojourn.result.metrics import KEYS

_COUNTS = (
    "sent_bytes",
    "drops_overlimit",
    "drops_aqm",
    "marks_aqm",
    "marks_ce_threshold",
)


def per_class(classes: pl.DataFrame, *, measured_s: float) -> pl.DataFrame:
    """Compute the metrics of each class of each queue in each run.

    A class that flows are hashed to has a row in the table only in runs in which it had a packet.
    Here it has one in every run of the arm, with 0 packets in the others, so that means are over
    all runs.
    """
    counted = _in_every_run(classes).with_columns(pl.col(_COUNTS).fill_null(0))
    return counted.select(
        *KEYS,
        group=pl.format("{}: {}", pl.col("link"), pl.col("class")),
        sent_mbit_per_s=pl.col("sent_bytes") * 8e-6 / measured_s,
        sojourn_ms_mean=pl.col("sojourn_ms_mean"),
        sojourn_ms_p95=pl.col("sojourn_ms_p95"),
        sojourn_ms_p99=pl.col("sojourn_ms_p99"),
        drops=(pl.col("drops_overlimit") + pl.col("drops_aqm")).cast(pl.Float64),
        marks=(pl.col("marks_aqm") + pl.col("marks_ce_threshold")).cast(pl.Float64),
    )


def _in_every_run(classes: pl.DataFrame) -> pl.DataFrame:
    """Return a row for every run and class of an arm, null where the table has none."""
    # Runs, links and classes without a number have the order of the table.
    rows = classes.with_row_index("row")
    runs = rows.group_by(KEYS).agg(run=pl.col("row").min())
    links = rows.group_by("arm", "link").agg(at=pl.col("row").min())
    number = pl.col("class").str.extract(r"(\d+)$").cast(pl.UInt32)
    known = rows.group_by("arm", "link", "class").agg(first=pl.col("row").min())
    every = runs.join(known.join(links, on=["arm", "link"]), on="arm")
    ordered = every.sort("run", "at", number, "first")
    of_table = [*KEYS, "link", "class"]
    return ordered.select(of_table).join(classes, on=of_table, how="left", maintain_order="left")
