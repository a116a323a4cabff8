"""Metrics of groups of applications in each run.

:mod:`sojourn.result.catalogue` defines each metric.
"""

import polars as pl

from sojourn import _core
from sojourn.result.catalogue import of_kind
from sojourn.result.metrics import KEYS


def per_application(
    applications: pl.DataFrame, transactions: pl.DataFrame, *, warmup_s: float
) -> pl.DataFrame:
    """Compute the metrics of each group of applications in each run."""
    keys = [*KEYS, "group"]
    duration = pl.col("duration_s")
    waited = (
        transactions.filter(pl.col("started_s") >= warmup_s)
        .group_by(keys, maintain_order=True)
        .agg(
            transactions=pl.len(),
            cut_off=duration.is_null().sum().cast(pl.Float64),
            completed_percent=duration.is_not_null().mean() * 100,
            duration_s_mean=duration.mean(),
            duration_s_p50=duration.quantile(0.5, "linear"),
            duration_s_p95=duration.quantile(0.95, "linear"),
        )
    )
    ended = pl.col("completed_s").is_null() | (pl.col("completed_s") > warmup_s)
    under_way = (
        transactions.filter((pl.col("started_s") < warmup_s) & ended)
        .group_by(keys, maintain_order=True)
        .agg(begun_before=pl.len().cast(pl.Float64))
    )
    opened = pl.col("connections").sum()

    def share(column: str) -> pl.Expr:
        return (pl.col(column).sum() / opened * 100).fill_nan(None)

    connected = applications.group_by([*keys, "kind"], maintain_order=True).agg(
        connections=opened,
        handshake_hit_percent=share("handshake_hit"),
        initial_hit_percent=share("initial_hit"),
        startup_s_mean=pl.col("startup_s").mean(),
        stalls_mean=pl.col("stalls").mean(),
        stalled_s_mean=pl.col("stalled_s").mean(),
        bitrate_mbit_per_s_mean=pl.col("bitrate_mbit_per_s_mean").mean(),
        switches_mean=pl.col("switches").mean(),
        mos_mean=pl.col("mos").mean(),
        mos_min=pl.col("mos").min(),
        voice_loss_percent_mean=pl.col("voice_loss_percent").mean(),
        loss_interval_packets_mean=pl.col("loss_interval_packets_mean").mean(),
        rpm_mean=pl.col("rpm").mean(),
        foreign_rpm_mean=pl.col("foreign_rpm").mean(),
        loaded_rpm_mean=pl.col("loaded_rpm").mean(),
    )
    joined = connected.join(waited, on=keys, how="left", maintain_order="left").join(
        under_way, on=keys, how="left", maintain_order="left"
    )
    without = pl.col("kind").is_in(
        [kind for kind, unit in _core.traffic_transactions().items() if unit is None]
    )
    counted = joined.with_columns(
        transactions=pl.when(~without).then(pl.col("transactions").fill_null(0))
    )
    return counted.select(*keys, "kind", *(metric.column for metric in of_kind("application")))
