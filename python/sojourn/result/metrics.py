"""Metrics of runs, their means over runs, and paired differences between arms.

:mod:`sojourn.result.catalogue` defines each metric; `crates/lab/src/metrics` computes them.
"""

from collections.abc import Sequence

import polars as pl

from sojourn import _core
from sojourn.result.latency import PINGS, in_polars, stream
from sojourn.result.metric import Metric
from sojourn.result.naming import described

KEYS = ("arm", "replication")

# Kinds of flows that have a connection, with a congestion window.
CONNECTIONS = ("tcp", "quic")
LEVEL = 0.95
# Bytes per packet that a link counts before the IP header.
ETHERNET_HEADER = 14
# Columns from which the metrics are computed, beside the keys.
_FLOWS = {
    "flow": pl.String(),
    "kind": pl.String(),
    "direction": pl.String(),
    "bytes": pl.Float64(),
    "delivered_bytes": pl.Float64(),
    "goodput_mbit_per_s": pl.Float64(),
    "started_s": pl.Float64(),
}
_LINKS = {
    "link": pl.String(),
    "sojourn_ms_p95": pl.Float64(),
    "driver_ms_p95": pl.Float64(),
    "drops_overlimit": pl.Float64(),
    "drops_aqm": pl.Float64(),
    "marks_aqm": pl.Float64(),
    "marks_ce_threshold": pl.Float64(),
}


def metrics_of(per_run: pl.DataFrame) -> list[Metric]:
    """Describe the columns of :func:`per_run_metrics`, in its order."""
    return described(column for column in per_run.columns if column not in KEYS)


def per_run_metrics(
    flows: pl.DataFrame,
    links: pl.DataFrame,
    pings: pl.DataFrame,
    *,
    warmup_s: float,
    measured_s: float,
) -> pl.DataFrame:
    """Compute every metric of every run."""
    computed = _core.per_run_metrics(
        stream(flows, _FLOWS),
        stream(links, _LINKS),
        stream(pings, PINGS),
        warmup_s=warmup_s,
        measured_s=measured_s,
    )
    return in_polars(computed, like=links)


def transport_metrics(
    flows: pl.DataFrame, links: pl.DataFrame, *, measured_s: float
) -> pl.DataFrame:
    """Compute the transport metrics that publications report, for comparisons with them."""
    ip_bytes = pl.col("sent_bytes") - ETHERNET_HEADER * pl.col("sent_packets")
    names = links["link"].unique(maintain_order=True).to_list()
    runs = links.group_by(KEYS, maintain_order=True).agg(
        (ip_bytes.filter(pl.col("link") == name).sum() * 8 / measured_s / 1e6).alias(
            f"throughput_{name}_mbit_per_s"
        )
        for name in names
    )
    tcp = _data_flows(flows).filter(pl.col("kind").is_in(CONNECTIONS))
    if tcp.is_empty():
        return runs
    rtts = tcp.group_by(KEYS, maintain_order=True).agg(
        pl.col("ack_rtt_ms_mean")
        .filter(pl.col("direction") == name)
        .mean()
        .alias(f"ack_rtt_{name}_ms")
        for name in directions(tcp)
    )
    return runs.join(rtts, on=KEYS, how="left", maintain_order="left")


def _data_flows(flows: pl.DataFrame) -> pl.DataFrame:
    data = flows.filter(pl.col("kind") != "ping")
    return data.with_columns(pl.col("direction").fill_null("total"))


def directions(flows: pl.DataFrame) -> list[str]:
    """List the directions of data, download first; ``"total"`` for flows with a path."""
    present = _data_flows(flows)["direction"].unique().to_list()
    return sorted(present, key=lambda name: (name != "down", name))


def summary(per_run: pl.DataFrame) -> pl.DataFrame:
    """Average every metric over the runs of each arm."""
    rows = []
    for arm in per_run["arm"].unique(maintain_order=True):
        of_arm = per_run.filter(pl.col("arm") == arm)
        for metric in metrics_of(per_run):
            values = of_arm[metric.column].drop_nulls().to_list()
            mean, low, high = mean_and_interval(values)
            rows.append((arm, metric.column, metric.unit, len(values), mean, low, high))
    return pl.DataFrame(rows, schema={"arm": pl.String, **_ESTIMATE}, orient="row")


def difference(per_run: pl.DataFrame, baseline: str, other: str) -> pl.DataFrame:
    """Average the difference `other` - `baseline` over pairs of runs.

    Replication `k` of both arms has the same seed, so that each pair differs only by the change
    between the arms.
    """
    left = _arm(per_run, baseline)
    pairs = left.join(
        _arm(per_run, other), on="replication", suffix="_other", maintain_order="left"
    )
    rows = [paired(pairs, metric) for metric in metrics_of(per_run)]
    return pl.DataFrame(rows, schema={**_ESTIMATE, "significant": pl.Boolean}, orient="row")


def paired(
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


def check_arms(per_run: pl.DataFrame, *names: str) -> None:
    """Check that arms exist and have a finished run."""
    for name in names:
        _arm(per_run, name)


def _arm(per_run: pl.DataFrame, name: str) -> pl.DataFrame:
    names = per_run["arm"].unique(maintain_order=True).to_list()
    if name not in names:
        message = f'no finished run of arm "{name}"; expected one of {", ".join(names)}'
        raise _core.ResultError(message)
    return per_run.filter(pl.col("arm") == name)


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
