"""Logs of Mahimahi as measured runs."""

from pathlib import Path

import polars as pl

from sojourn.exchange import mahimahi_logs
from sojourn.exchange.mahimahi_logs import LinkLog
from sojourn.exchange.measurement import MEASURED, Measurement

# Width of the intervals of series, in seconds.
STEP = 0.1
# Packets of a log begin with the 4 B header of the tun device; those of a result with the 14 B
# header of Ethernet.
TUN, ETHERNET = 4, 14


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a log of Mahimahi as a measured run of one link."""
    log = mahimahi_logs.load(path)
    times = log.events["time_s"].to_list()
    arrivals = log.events.filter(event="arrival")["time_s"].to_list()
    end_s = max(times, default=0.0)
    return Measurement(
        arm=MEASURED + (arm or Path(path).name),
        origin={"file": Path(path).name, "format": "Mahimahi log", "header": log.header},
        load_s=min(arrivals, default=0.0),
        end_s=end_s,
        tables={"link_series": _series(log)},
        totals={
            "links": lambda begin: _links(log, begin, end_s),
            "sojourn": lambda begin: _sojourn(log, begin),
        },
        series=log.events,
    )


def _departures(log: LinkLog, begin: float) -> pl.DataFrame:
    return log.events.filter(pl.col("event") == "departure", pl.col("time_s") >= begin)


def _links(log: LinkLog, begin: float, end: float) -> pl.DataFrame:
    """Compute the totals of the link over the measured time."""
    departed = _departures(log, begin)
    delays = departed["delay_ms"].cast(pl.Float64)
    since = log.events.filter(pl.col("time_s") >= begin)
    offered = since.filter(event="opportunity")["bytes"].sum()
    rate = float(offered) * 8e-6 / (end - begin) if end > begin else None
    return pl.DataFrame(
        {
            "link": [log.link],
            "capacity_mbit_per_s": [rate],
            "sent_packets": [departed.height],
            "sent_bytes": [departed["bytes"].sum() + (ETHERNET - TUN) * departed.height],
            "drops_overlimit": [since.filter(event="drop")["packets"].sum()],
            "drops_aqm": [0],
            "sojourn_ms_mean": [delays.mean()],
            **{
                f"sojourn_ms_p{percent}": [delays.quantile(percent / 100, "linear")]
                for percent in (50, 95, 99)
            },
            "sojourn_ms_max": [delays.max()],
        }
    )


def _sojourn(log: LinkLog, begin: float) -> pl.DataFrame:
    """Count delays, which a log states in whole milliseconds."""
    counts = (
        _departures(log, begin).drop_nulls("delay_ms").group_by("delay_ms").len().sort("delay_ms")
    )
    return counts.select(
        link=pl.lit(log.link),
        low_ms=pl.col("delay_ms"),
        high_ms=pl.col("delay_ms") + 1,
        count=pl.col("len"),
    )


def _series(log: LinkLog) -> pl.DataFrame:
    """Compute series of the log over intervals of equal length."""
    change = {"arrival": 1, "departure": -1}
    counted = pl.col("event").replace_strict(change, default=0, return_dtype=pl.Int64)
    dropped = pl.when(pl.col("event") == "drop").then(pl.col("packets")).otherwise(0)
    left = pl.col("event") == "departure"
    return (
        log.events.with_columns(
            t_s=((pl.col("time_s") / STEP).floor() + 1) * STEP,
            change=counted - dropped,
            byte_change=pl.when(pl.col("event") == "drop")
            .then(-pl.col("bytes"))
            .otherwise(counted * pl.col("bytes")),
        )
        .group_by("t_s", maintain_order=True)
        .agg(
            pl.col("change", "byte_change").sum(),
            sent_packets=left.sum(),
            sent_bytes=pl.col("bytes").filter(left).sum(),
            sojourn_ms_mean=pl.col("delay_ms").filter(left).mean(),
            sojourn_ms_max=pl.col("delay_ms").filter(left).max(),
            drops_overlimit=pl.col("packets").filter(pl.col("event") == "drop").sum(),
        )
        .with_columns(
            link=pl.lit(log.link),
            backlog_packets=pl.col("change").cum_sum(),
            backlog_bytes=pl.col("byte_change").cum_sum(),
            sent_bytes=pl.col("sent_bytes") + (ETHERNET - TUN) * pl.col("sent_packets"),
            drops_aqm=pl.lit(0),
        )
    )
