"""Metrics of the classes of queues in each run.

:mod:`sojourn.result.catalogue` defines each metric.
"""

import polars as pl

from sojourn.result.catalogue import shown
from sojourn.result.metrics import KEYS

METRICS = shown("class")


def per_class(classes: pl.DataFrame, *, measured_s: float) -> pl.DataFrame:
    """Compute the metrics of each class of each queue in each run.

    Parameters
    ----------
    classes
        The table of an outcome.
    measured_s
        Time from the end of the warm-up to the end of the run, in seconds.

    Returns
    -------
    polars.DataFrame
        One row per run and class: ``arm``, ``replication``, ``group`` (the names of the link and of
        the class, such as ``"down: L"``), then the metrics of kind ``"class"`` in the catalogue.
    """
    return classes.select(
        *KEYS,
        group=pl.format("{}: {}", pl.col("link"), pl.col("class")),
        sent_mbit_per_s=pl.col("sent_bytes") * 8e-6 / measured_s,
        sojourn_ms_mean=pl.col("sojourn_ms_mean"),
        sojourn_ms_p95=pl.col("sojourn_ms_p95"),
        sojourn_ms_p99=pl.col("sojourn_ms_p99"),
        drops=(pl.col("drops_overlimit") + pl.col("drops_aqm")).cast(pl.Float64),
        marks=(pl.col("marks_aqm") + pl.col("marks_ce_threshold")).cast(pl.Float64),
    )
