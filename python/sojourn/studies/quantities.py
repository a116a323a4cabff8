"""Quantities of claims: metrics of runs, of groups of traffic, and of series in a window of time.

===========================================  =====================================================
without group                                metrics of :meth:`sojourn.Result.table`, by run;
                                             ``ack_rtt_<direction>_ms``, ``jain``,
                                             ``goodput_mbit_per_s``, ``sojourn_ms_mean``,
                                             ``sojourn_ms_max``, ``ack_rtt_rise_ms_best``,
                                             ``ack_rtt_rise_ms_worst``; for each link
                                             ``sojourn_<link>_ms_<p50, ..., mean, max>``,
                                             ``utilisation_<link>``, ``loss_<link>_percent``;
                                             ``queue_<link>_<statistic>`` at the end of the run
with group                                   metrics of :meth:`sojourn.Result.table`, by group
                                             and by application;
                                             ``goodput_mbit_per_s``, ``share_percent``
``<series>_<statistic>[<from>,<to>]``        :mod:`sojourn.studies.series`
``median_<metric>``                           the median over the runs, not the mean, of a metric
                                             that is not a series
===========================================  =====================================================
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

import polars as pl

from sojourn import _core
from sojourn.result import Result, metrics
from sojourn.result.metrics import CARRIES_DATA, HAS_CONNECTION
from sojourn.result.rows import KEYS
from sojourn.studies import series
from sojourn.studies.claims import Subject
from sojourn.studies.verdicts import Estimate

# Before the name of a metric: its median over the runs.
MEDIAN = "median_"


class Quantities:
    """The quantities of a result."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def estimate(self, subject: Subject) -> Estimate:
        """Average a metric over the runs of an arm."""
        if subject.arm not in self._result.arms:
            raise self._unknown(subject, f'arm "{subject.arm}"', self._result.arms)
        if (window := series.parse(subject.metric)) is not None:
            return series.estimate(self._result, window, subject)
        table = self.of_runs if subject.group is None else self._of_groups
        metric = subject.metric.removeprefix(MEDIAN)
        if metric not in table.columns:
            known = [name for name in table.columns if name not in (*KEYS, "group")]
            raise self._unknown(subject, f'metric "{metric}"', known)
        rows = table.filter(pl.col("arm") == subject.arm)
        if subject.group is not None:
            rows = rows.filter(pl.col("group") == subject.group)
            groups = table["group"].unique(maintain_order=True).to_list()
            if subject.group not in groups:
                raise self._unknown(subject, f'group "{subject.group}"', groups)
        values = rows[metric].cast(pl.Float64).drop_nulls()
        if metric != subject.metric:
            return Estimate.of_median(values.to_list())
        return Estimate.of(values.to_list())

    @staticmethod
    def _unknown(subject: Subject, what: str, known: Iterable[str]) -> Exception:
        accepted = ", ".join(known)
        return _core.ResultError(f"{subject}: no {what}; expected one of {accepted}")

    @cached_property
    def of_runs(self) -> pl.DataFrame:
        """One row per run: ``arm``, ``replication`` and every quantity without a group."""
        result = self._result
        return _joined(
            KEYS,
            result.table(),
            metrics.of_links(result.table("link")),
            metrics.round_trips(result.flows),
            _of_flows(result.flows, _measured_s(result)),
            _of_longest_link(result.links),
            _rises(result.flows),
            _of_queues(result.queue_statistics),
        )

    @cached_property
    def _of_groups(self) -> pl.DataFrame:
        result = self._result
        shares = _shares(result.flows, _measured_s(result))
        return _joined([*KEYS, "group"], shares, result.table("group"), result.table("application"))


def _joined(keys: Sequence[str], table: pl.DataFrame, *others: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of other tables; of columns with one name, the first counts."""
    for other in others:
        new = [column for column in other.columns if column not in table.columns]
        table = table.join(other.select(*keys, *new), on=keys, how="left", maintain_order="left")
    return table


def _measured_s(result: Result) -> float:
    checked = result.scenario.checked
    return checked.duration_s - checked.warmup_s


def _carried(measured_s: float) -> pl.Expr:
    """Goodput of a flow; of a transfer of a given size, averaged over the measured time."""
    over_all = pl.col("delivered_bytes") * 8e-6 / measured_s
    endless = pl.col("bytes").is_null()
    return pl.when(endless).then(pl.col("goodput_mbit_per_s")).otherwise(over_all)


def _of_flows(flows: pl.DataFrame, measured_s: float) -> pl.DataFrame:
    rate = pl.col("goodput_mbit_per_s")
    runs = flows.filter(CARRIES_DATA).group_by(KEYS, maintain_order=True)
    return runs.agg(jain=metrics.jain(rate), goodput_mbit_per_s=_carried(measured_s).sum())


def _shares(flows: pl.DataFrame, measured_s: float) -> pl.DataFrame:
    rate = pl.col("goodput_mbit_per_s")
    flows = flows.with_columns(goodput_mbit_per_s=_carried(measured_s))
    groups = (
        flows.filter(CARRIES_DATA).group_by(*KEYS, "group", maintain_order=True).agg(rate.sum())
    )
    share = 100 * rate / rate.sum().over(KEYS)
    return groups.with_columns(share_percent=share.fill_nan(None))


def _of_longest_link(links: pl.DataFrame) -> pl.DataFrame:
    longest = links.sort("sojourn_ms_mean", descending=True, nulls_last=True, maintain_order=True)
    runs = longest.group_by(KEYS, maintain_order=True).first()
    return runs.select(*KEYS, "sojourn_ms_mean", "sojourn_ms_max")


def _rises(flows: pl.DataFrame) -> pl.DataFrame:
    """Compute how far the ACK RTT of the best and of the worst connection rose above its base."""
    connections = flows.filter(HAS_CONNECTION)
    runs = flows.select(KEYS).unique(maintain_order=True)
    if "ack_rtt_ms_max" not in flows.columns:
        return runs
    rise = pl.col("ack_rtt_ms_max") - pl.col("base_rtt_ms")
    found = connections.group_by(KEYS, maintain_order=True).agg(
        ack_rtt_rise_ms_best=rise.min(), ack_rtt_rise_ms_worst=rise.max()
    )
    return runs.join(found, on=KEYS, how="left", maintain_order="left")


def _of_queues(statistics: pl.DataFrame) -> pl.DataFrame:
    """Give each statistic of a whole queue a column."""
    whole = statistics.filter(pl.col("part").is_null())
    name = pl.format("queue_{}_{}", "link", "name")
    return whole.with_columns(name=name).pivot("name", index=KEYS, values="value")
