"""How long users of applications waited: of each run, then means over runs.

``docs/metrics.md`` defines each column.
"""

import polars as pl

from sojourn.result.metrics import KEYS, Metric

METRICS = (
    Metric(column="transactions", label="transactions", unit="", digits=0),
    Metric(column="begun_before", label="begun before", unit="", digits=1),
    Metric(column="completed_percent", label="completed", unit="%", digits=1),
    Metric(column="duration_s_mean", label="duration", unit="s", digits=3),
    Metric(column="duration_s_p95", label="duration p95", unit="s", digits=3),
    Metric(column="handshake_hit_percent", label="handshake lost", unit="%", digits=2),
    Metric(column="initial_hit_percent", label="initial loss", unit="%", digits=2),
    Metric(column="startup_s_mean", label="start-up", unit="s", digits=2),
    Metric(column="stalls_mean", label="stalls", unit="", digits=1),
    Metric(column="stalled_s_mean", label="stalled", unit="s", digits=1),
    Metric(column="bitrate_mbit_per_s_mean", label="bitrate", unit="Mbit/s", digits=2),
    Metric(column="switches_mean", label="switches", unit="", digits=1),
    Metric(column="mos_mean", label="MOS", unit="", digits=2),
    Metric(column="voice_loss_percent_mean", label="voice loss", unit="%", digits=2),
    Metric(column="loss_interval_packets_mean", label="loss interval", unit="packets", digits=0),
    Metric(column="rpm_mean", label="responsiveness", unit="RPM", digits=0),
    Metric(column="foreign_rpm_mean", label="foreign probes", unit="RPM", digits=0),
    Metric(column="loaded_rpm_mean", label="self probes", unit="RPM", digits=0),
)


def per_application(
    applications: pl.DataFrame, transactions: pl.DataFrame, *, warmup_s: float
) -> pl.DataFrame:
    """Compute what each group of applications did in each run.

    Parameters
    ----------
    applications, transactions
        The tables of an outcome.
    warmup_s
        Transactions that started before do not count, in seconds.

    Returns
    -------
    polars.DataFrame
        One row a run and group: ``arm``, ``replication``, ``group``, ``kind``, ``transactions``,
        ``begun_before`` (those left out that were under way when the warm-up ended; null: none),
        ``completed_percent``, ``duration_s_mean``, ``duration_s_p50``, ``duration_s_p95``,
        ``connections``, ``handshake_hit_percent`` and ``initial_hit_percent``; of video also
        ``startup_s_mean``, ``stalls_mean``, ``stalled_s_mean``, ``bitrate_mbit_per_s_mean`` and
        ``switches_mean``, over the players; of voices ``mos_mean``, ``mos_min``,
        ``voice_loss_percent_mean`` and ``loss_interval_packets_mean``; of tests of responsiveness
        ``rpm_mean``, ``foreign_rpm_mean`` and ``loaded_rpm_mean``.
    """
    keys = [*KEYS, "group"]
    duration = pl.col("duration_s")
    waited = (
        transactions.filter(pl.col("started_s") >= warmup_s)
        .group_by(keys, maintain_order=True)
        .agg(
            transactions=pl.len(),
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
    return joined.select(
        *keys,
        "kind",
        # Nobody waits for anything in these.
        pl.when(~pl.col("kind").is_in(("voip", "responsiveness"))).then(
            pl.col("transactions").fill_null(0)
        ),
        "begun_before",
        "completed_percent",
        "duration_s_mean",
        "duration_s_p50",
        "duration_s_p95",
        "connections",
        "handshake_hit_percent",
        "initial_hit_percent",
        "startup_s_mean",
        "stalls_mean",
        "stalled_s_mean",
        "bitrate_mbit_per_s_mean",
        "switches_mean",
        "mos_mean",
        "mos_min",
        "voice_loss_percent_mean",
        "loss_interval_packets_mean",
        "rpm_mean",
        "foreign_rpm_mean",
        "loaded_rpm_mean",
    )
