"""Statistics of series in a window of time: ``<series>_<statistic>[<from>,<to>]``.

Series are ``ping_ms``, at the time of the request; ``ping_avg_ms``, the average of all pings at the
time of the reply, as in flent; ``goodput_mbit_per_s``, ``srtt_ms``, ``cwnd_packets``, and for each
link ``sojourn_<link>_ms``, ``backlog_<link>_packets`` and ``throughput_<link>_mbit_per_s``.
Statistics over the samples of a run: ``mean``, ``min``, ``max``, ``max_s``, the time of the largest
sample, and percentiles such as ``p95``. ``peak`` and ``peak_s``: value and time of the maximum of
the mean over the runs, by bins of the sample interval.
"""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from sojourn import _core
from sojourn.plot import curves
from sojourn.result import Result, metrics, student
from sojourn.result.metrics import HAS_CONNECTION
from sojourn.result.rows import KEYS
from sojourn.studies.claims import Subject
from sojourn.studies.verdicts import Estimate

_PATTERN = re.compile(
    r"(?P<series>.+)_(?P<statistic>mean|min|max|max_s|peak|peak_s|p\d{1,2})"
    r"\[(?P<begin>[\d.]+),(?P<end>[\d.]+)\]"
)
_OF_FLOWS = ("srtt_ms", "cwnd_packets")
# Runs without which a time of a maximum has no interval, as for medians, and draws of the runs.
LEAST, RESAMPLES = 6, 2000
# Bytes per packet that a link counts before the IP header.
ETHERNET_HEADER = 14
_OF_LINKS = re.compile(
    r"(?P<what>sojourn|backlog|throughput)_(?P<link>.+)_(?:ms|packets|mbit_per_s)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A statistic of a series in a window of time."""

    series: str
    statistic: str
    begin_s: float
    end_s: float


def parse(metric: str) -> Window | None:
    """Read the name of a statistic of a series; None for other metrics.

    Examples
    --------
    >>> parse("srtt_ms_p50[5,30]")
    Window(series='srtt_ms', statistic='p50', begin_s=5.0, end_s=30.0)
    >>> parse("jain")
    """
    if (match := _PATTERN.fullmatch(metric)) is None:
        return None
    begin_s, end_s = float(match["begin"]), float(match["end"])
    name, statistic = match["series"], match["statistic"]
    return Window(series=name, statistic=statistic, begin_s=begin_s, end_s=end_s)


def estimate(result: Result, window: Window, subject: Subject) -> Estimate:
    """Compute a statistic of a series of an arm."""
    rows = samples(result, window.series, subject.group, extreme=window.statistic == "max").filter(
        pl.col("arm") == subject.arm,
        pl.col("t_s") >= window.begin_s,
        pl.col("t_s") <= window.end_s,
    )
    if window.statistic.startswith("peak"):
        return _peak(rows, result, at=window.statistic == "peak_s")
    value = pl.col("value")
    named = {
        "mean": value.mean(),
        "min": value.min(),
        "max": value.max(),
        # In the middle of the interval of the sample.
        "max_s": pl.col("t_s").get(value.arg_max()) - sample_s(result) / 2,
    }
    statistic = (
        value.quantile(int(window.statistic[1:]) / 100, "linear")
        if window.statistic[0] == "p"
        else named[window.statistic]
    )
    runs = rows.group_by("replication", maintain_order=True).agg(statistic.alias("value"))
    values = runs["value"].drop_nulls().to_list()
    return Estimate.of(values)


def _peak(rows: pl.DataFrame, result: Result, *, at: bool) -> Estimate:
    """Find the maximum of the mean over runs, or its time, with its interval.

    The interval is that of the jackknife; of a time, which jumps from one maximum to another, the
    percentiles of the bootstrap over runs (Efron and Tibshirani, An Introduction to the Bootstrap,
    1993, sections 10.6 and 13.3), from six runs on.
    """
    width_s = sample_s(result)
    if (top := _largest(rows, width_s, at=at)) is None:
        return Estimate(0, None, None, None)
    runs = rows["replication"].unique(maintain_order=True).to_list()
    if len(runs) == 1:
        return Estimate(1, top, None, None)
    if at:
        ends = _resampled_times(rows, width_s) if len(runs) >= LEAST else (None, None)
        return Estimate(len(runs), top, *ends)
    without = [
        _largest(rows.filter(pl.col("replication") != run), width_s, at=False) or 0.0
        for run in runs
    ]
    _, low, high = student.mean_and_interval([(len(runs) - 1) * one for one in without])
    half = (high - low) / 2
    return Estimate(len(runs), top, top - half, top + half)


def _largest(rows: pl.DataFrame, width_s: float, *, at: bool) -> float | None:
    """Find the value or the time of the largest mean over runs."""
    means = averaged(rows, width_s)
    if means.is_empty():
        return None
    return float(means["t_s" if at else "value"][int(means["value"].arg_max() or 0)])


def _resampled_times(rows: pl.DataFrame, width_s: float) -> tuple[float, float]:
    """Return the 95 % interval of the time of the largest mean when runs are drawn again."""
    cells = (
        rows.drop_nulls("value")
        .group_by("replication", bin=_bins(width_s))
        .agg(pl.col("value").sum(), count=pl.len())
    )
    bins, column = np.unique(cells["bin"].to_numpy(), return_inverse=True)
    runs, row = np.unique(cells["replication"].to_numpy(), return_inverse=True)
    sums, counts = np.zeros((2, len(runs), len(bins)))
    sums[row, column], counts[row, column] = cells["value"], cells["count"]
    drawn = np.random.default_rng(1).multinomial(len(runs), [1 / len(runs)] * len(runs), RESAMPLES)
    samples = drawn @ counts
    means = np.full(samples.shape, -np.inf)
    np.divide(drawn @ sums, samples, out=means, where=samples > 0)
    times = (bins[means.argmax(axis=1)] + 0.5) * width_s
    low, high = np.quantile(times, [(1 - student.LEVEL) / 2, (1 + student.LEVEL) / 2])
    return float(low), float(high)


def sample_s(result: Result) -> float:
    """Return the sample interval of a result, in seconds: the time of its first sample."""
    return float(result.link_series["t_s"].min())  # type: ignore[arg-type]


def averaged(rows: pl.DataFrame, width_s: float) -> pl.DataFrame:
    """Average samples over runs, in bins of time."""
    return (
        rows.drop_nulls("value")
        .group_by(bin=_bins(width_s))
        .agg(pl.col("value").mean())
        .sort("bin")
        .select(t_s=(pl.col("bin") + 0.5) * width_s, value="value")
    )


def _bins(width_s: float) -> pl.Expr:
    """Return the number of the bin of a sample; one at the end of an interval belongs to it."""
    # Times are not exact multiples of the width.
    return ((pl.col("t_s") / width_s - 1e-6).ceil() - 1).clip(lower_bound=0)


def samples(
    result: Result, series: str, group: str | None = None, *, extreme: bool = False
) -> pl.DataFrame:
    """Return the samples of a series."""
    if series == "ping_ms":
        return curves.ping_times(result, group)
    if series == "ping_avg_ms":
        return metrics.averaged(curves.pings(result, group))
    if series == "goodput_mbit_per_s":
        return _summed(result, group)
    if series in _OF_FLOWS:
        return _of_connections(result, series, group)
    match = _OF_LINKS.fullmatch(series)
    if match is None or match["link"] not in result.links["link"].unique().to_list():
        links = ", ".join(curves.link_names(result))
        message = (
            f'no series "{series}"; expected ping_ms, ping_avg_ms, goodput_mbit_per_s, srtt_ms, '
            f"cwnd_packets, or sojourn_LINK_ms, backlog_LINK_packets, throughput_LINK_mbit_per_s "
            f"of {links}"
        )
        raise _core.ResultError(message)
    rows = result.link_series.filter(pl.col("link") == match["link"])
    if match["what"] == "backlog":
        value = pl.col("backlog_packets").cast(pl.Float64)
    elif match["what"] == "sojourn":
        value = pl.col("sojourn_ms_max" if extreme else "sojourn_ms_mean")
    else:
        ip_bytes = pl.col("sent_bytes") - ETHERNET_HEADER * pl.col("sent_packets")
        value = ip_bytes * 8e-6 / sample_s(result)
    return rows.select(*KEYS, "t_s", value=value)


def _summed(result: Result, group: str | None) -> pl.DataFrame:
    """Sum the goodput of data flows, or of one group of them, in each sample interval."""
    rows = result.flow_series
    if group is not None:
        rows = rows.filter(pl.col("group") == group)
    return rows.group_by(*KEYS, "t_s", maintain_order=True).agg(
        value=pl.col("goodput_mbit_per_s").sum()
    )


def _of_connections(result: Result, column: str, group: str | None) -> pl.DataFrame:
    """Average a column over the connections, or over one group of them, at each sample."""
    of = result.flows.filter(HAS_CONNECTION)
    if group is not None:
        of = of.filter(pl.col("group") == group)
    rows = result.flow_series.join(of.select(*KEYS, "flow"), on=[*KEYS, "flow"], how="semi")
    return rows.group_by(*KEYS, "t_s", maintain_order=True).agg(value=pl.col(column).mean())
