"""Run scenarios and hold their results."""

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl

from sojourn import _core
from sojourn.document import needs
from sojourn.result import app_metrics, flow_groups, metrics, processes, validity
from sojourn.scenario import Scenario


class Result:
    """The results of all runs of a scenario, as polars frames.

    Created by :func:`run` and :meth:`load`. Frames are tidy: one row per observation; the first
    columns are ``arm`` (str) and ``replication`` (from 0). A value that was not measured is null,
    never 0. ``help(Result.flows)`` lists the columns of a frame.

    Parameters
    ----------
    outcome
        The outcome that the core returned.
    """

    def __init__(self, outcome: _core.Outcome) -> None:
        self._outcome = outcome

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow and run.

        ``flow``, ``group``, ``kind``, ``direction``, ``cc``
            Name of the flow, of its traffic block, type of traffic, ``"up"`` or ``"down"`` (null
            for a path), congestion control.
        ``rtt_ms``
            Base round-trip time.
        ``started_s``, ``connected_s``, ``fct_s``
            Start of the flow, time at which the connection was established, completion time of a
            finite transfer from its first packet.
        ``aborted``
            Whether an endpoint gave up the connection; null without one.
        ``bytes``, ``delivered_bytes``
            Bytes to transfer (null: endless) and bytes delivered to the application.
        ``goodput_mbit_per_s``
            Rate of delivered payload from max(warm-up, start) to min(end, stop, completion).
        ``sent_packets``, ``received_packets``
            Packets; received UDP and voice packets without duplicates.
        ``retransmits``, ``timeouts``, ``syn_retransmits``
            Counts after the warm-up.
        ``handshake_losses``, ``initial_losses``
            Dropped or lost packets of the handshake, and these plus drops of segments of the
            initial window; both since the start of the flow, warm-up included.
        ``srtt_ms_mean``, ``ack_rtt_ms_mean``, ``cwnd_packets_mean``
            Mean smoothed RTT, mean RTT sample, mean congestion window.
        ``owd_ms_mean``, ``owd_ms_p95``, ``owd_ms_max``
            One-way delay.
        ``ping_ms_mean``, ``ping_ms_median``, ``ping_ms_min``, ``ping_ms_max``
            Round-trip times of pings.
        ``ping_ms_p95``, ``ping_ms_p99``
            Their percentiles.
        ``ping_loss``
            Share of pings without a reply.
        """
        return self._frame("flows")

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per link and run.

        ``link``, ``rate_mbit_per_s``, ``qdisc``
            Name, rate and queue of the link.
        ``sent_packets``, ``sent_bytes``, ``utilisation``
            Packets and bytes sent, and share of the rate that was used.
        ``drops_overlimit``, ``drops_aqm``
            Packets dropped by a full buffer and by an AQM.
        ``marks_aqm``, ``marks_ce_threshold``
            Packets CE-marked by an AQM and by ``ce_threshold``.
        ``lost_packets``, ``duplicated_packets``
            Packets lost and duplicated on the wire, after transmission.
        ``sojourn_ms_mean``, ``sojourn_ms_max``
            Sojourn times.
        ``sojourn_ms_p50``, ``sojourn_ms_p95``, ``sojourn_ms_p99``
            Their percentiles.
        ``busy_share``
            Share of the time in which more than one packet was queued.
        ``driver_ms_mean``, ``driver_ms_p95``
            Time below the queue of a wireless link, with the driver and on the air; null for
            others.
        """
        return self._frame("links")

    @cached_property
    def flow_series(self) -> pl.DataFrame:
        """One row per flow, run and interval.

        ``t_s``, ``flow``, ``group``
            End of the interval, name of the flow and of its traffic block.
        ``goodput_mbit_per_s``
            Goodput within the interval.
        ``cwnd_packets``, ``ssthresh_packets``, ``srtt_ms``, ``in_flight_packets``
            State of the sender at its end.
        """
        return self._frame("flow_series")

    @cached_property
    def link_series(self) -> pl.DataFrame:
        """One row per link, run and interval.

        ``t_s``, ``link``
            End of the interval and name of the link.
        ``backlog_packets``, ``backlog_bytes``
            Backlog of the queue at the end of the interval.
        ``sojourn_ms_mean``, ``sojourn_ms_max``
            Sojourn times of packets that left the queue within it.
        ``sent_packets``, ``sent_bytes``
            Packets and bytes sent.
        ``drops_overlimit``, ``drops_aqm``, ``marks_aqm``, ``marks_ce_threshold``
            Drops and marks, as in :attr:`links`.
        ``lost_packets``, ``duplicated_packets``
            Packets lost and duplicated on the wire.
        """
        return self._frame("link_series")

    @cached_property
    def pings(self) -> pl.DataFrame:
        """One row per ping.

        ``t_s``, ``flow``, ``rtt_ms``
            Send time, flow, and round-trip time; null without a reply.
        """
        return self._frame("pings")

    @cached_property
    def sojourn(self) -> pl.DataFrame:
        """One row per link, run and bucket of the histogram of sojourn times.

        ``link``, ``low_ms``, ``high_ms``, ``count``
            Link, limits of the bucket, and number of packets.
        """
        return self._frame("sojourn")

    @cached_property
    def queue_statistics(self) -> pl.DataFrame:
        """One row per queue statistic at the end of the run.

        ``link``
            Name of the link.
        ``part``, ``part_number``
            Part of the queue, such as ``"tins"`` and 0; null for the whole queue.
        ``name``, ``type``, ``value``
            Name as in ``tc -j -s``, ``"count"``, ``"real"`` or ``"flag"``, and value.
        """
        return self._frame("queue_statistics")

    @cached_property
    def events(self) -> pl.DataFrame:
        """One row per drop or mark; empty unless the scenario sets ``keep_events``.

        ``t_s``, ``link``, ``flow``
            Time, link and flow.
        ``action``
            ``"drop"``, ``"mark"`` or ``"loss"`` (on the wire).
        ``reason``
            ``"overlimit"``, ``"aqm"``, ``"ce_threshold"`` or ``"wire"``.
        """
        return self._frame("events")

    @cached_property
    def transactions(self) -> pl.DataFrame:
        """One row per transaction of an application.

        ``flow``, ``group``, ``kind``
            Application, traffic block and type. A transaction is a page of ``web``, a connection of
            ``sessions``, a response of ``request``, a round of ``incast``, a segment of ``dash``.
        ``started_s``, ``completed_s``, ``duration_s``
            Times; null if it was not completed within the run.
        ``bytes``
            Size of the responses.
        """
        return self._frame("transactions")

    @cached_property
    def applications(self) -> pl.DataFrame:
        """One row per application and run.

        ``flow``, ``group``, ``kind``
            Application, traffic block and type.
        ``connections``, ``failed``
            Connections opened, and those that TCP aborted; warm-up included.
        ``handshake_hit``, ``initial_hit``
            Connections with a dropped SYN of either side, and these plus those that lost a segment
            of the server's initial window; warm-up included.
        ``transactions``, ``completed``
            Transactions that began after the warm-up, and those completed.
        ``duration_s_mean``, ``duration_s_p50``, ``duration_s_p95``
            Their durations.
        ``startup_s``, ``stalls``, ``stalled_s``, ``bitrate_mbit_per_s_mean``, ``switches``
            Quality of ``dash`` since its start.
        ``mos``, ``mouth_to_ear_ms``, ``voice_loss_percent``
            Quality of ``voip`` after the warm-up; late packets count as lost.
        ``loss_runs``, ``loss_run_packets_max``, ``loss_interval_packets_mean``
            Runs of losses of ``voip``: their number, the longest, and packets sent per run.
        ``rpm``, ``foreign_rpm``, ``loaded_rpm``, ``rpm_confidence``, ``rpm_at_s``, ``rpm_probes``
            Result of ``responsiveness``; the confidence is ``"low"``, ``"medium"`` or ``"high"``.
        ``tcp_handshake_ms``, ``tls_handshake_ms``, ``http_foreign_ms``, ``http_loaded_ms``
            Trimmed means of its probes.
        """
        return self._frame("applications")

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Version, commit, scenario, scenario hash and seed: the data to reproduce the result."""
        manifest: dict[str, Any] = json.loads(self._outcome.manifest)
        return manifest

    @property
    def build(self) -> str:
        """Version and commit of Sojourn that produced the result."""
        made_by = self.provenance["sojourn"]
        commit = made_by["commit"] or "unknown commit"
        return f"{made_by['version']} ({commit[:12]}{'-dirty' if made_by['dirty'] else ''})"

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was run."""
        return Scenario.from_json(json.dumps(self.provenance["scenario"]))

    @property
    def arms(self) -> list[str]:
        """Names of the arms, in the order of the scenario."""
        return self.scenario.checked.arms

    @property
    def complete(self) -> bool:
        """Whether every run of every arm finished."""
        return self._outcome.complete

    @property
    def finished(self) -> int:
        """Number of finished runs."""
        return self._outcome.finished

    @property
    def total(self) -> int:
        """Number of runs of the scenario: arms times replications."""
        return self._outcome.total

    @cached_property
    def per_run(self) -> pl.DataFrame:
        """One row per run: ``arm``, ``replication`` and every metric (``docs/metrics.md``)."""
        checked = self.scenario.checked
        return metrics.per_run_metrics(
            self.flows,
            self.links,
            self.pings,
            warmup_s=checked.warmup_s,
            measured_s=checked.duration_s - checked.warmup_s,
        )

    @cached_property
    def per_group(self) -> pl.DataFrame:
        """One row per run and group of flows: goodput, losses, fairness, completion times."""
        return flow_groups.per_group(self.flows, warmup_s=self.scenario.checked.warmup_s)

    @cached_property
    def per_application(self) -> pl.DataFrame:
        """One row per run and group of applications: durations and quality of experience."""
        warmup_s = self.scenario.checked.warmup_s
        return app_metrics.per_application(self.applications, self.transactions, warmup_s=warmup_s)

    @cached_property
    def validity(self) -> validity.Validity:
        """Limitations of the result: links that were not a bottleneck, single runs, losses."""
        checked = self.scenario.checked
        return validity.assess(
            self.flows,
            self.links,
            finished=self.finished,
            total=self.total,
            replications=checked.replications,
            measured_s=checked.duration_s - checked.warmup_s,
            per_application=self.per_application,
            applications=self.applications,
        )

    def summary(self) -> pl.DataFrame:
        """Average every metric over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            One row per arm and metric: ``arm``, ``metric``, ``unit``, ``n``, ``mean``, and
            ``low`` and ``high``: the bootstrap interval of 95 %, null for fewer than two runs.
        """
        return metrics.summary(self.per_run)

    def group_summary(self) -> pl.DataFrame:
        """Average every metric of every group over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            As for :meth:`summary`, with ``group`` after ``arm``. Metrics that a group cannot
            have are left out.
        """
        return flow_groups.summary(self.per_group)

    def application_summary(self) -> pl.DataFrame:
        """Average the metrics of every group of applications over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            As for :meth:`group_summary`, over the columns of :attr:`per_application`. For ``web``,
            ``duration_s_mean`` is the page load time.
        """
        return flow_groups.summary(self.per_application, app_metrics.METRICS)

    def difference(self, baseline: str, other: str) -> pl.DataFrame:
        """Average the paired difference `other` - `baseline` of every metric.

        Parameters
        ----------
        baseline, other
            Names of arms.

        Returns
        -------
        polars.DataFrame
            One row per metric: ``metric``, ``unit``, ``n`` (pairs), ``mean``, ``low``, ``high``
            and ``significant``: whether the interval excludes 0.

        Raises
        ------
        ResultError
            An arm is unknown or has no finished run.
        """
        return metrics.difference(self.per_run, baseline, other)

    def group_difference(self, baseline: str, other: str) -> pl.DataFrame:
        """Average the paired difference `other` - `baseline` of every metric of every group.

        Parameters
        ----------
        baseline, other
            Names of arms.

        Returns
        -------
        polars.DataFrame
            As for :meth:`difference`, with ``group`` first, over the columns of
            :attr:`per_group`. Metrics that no pair of runs has are left out.

        Raises
        ------
        ResultError
            An arm is unknown or has no finished run.
        """
        metrics.check_arms(self.per_run, baseline, other)
        return flow_groups.difference(self.per_group, baseline, other)

    def application_difference(self, baseline: str, other: str) -> pl.DataFrame:
        """Average the paired difference `other` - `baseline` for every group of applications.

        Parameters
        ----------
        baseline, other
            Names of arms.

        Returns
        -------
        polars.DataFrame
            As for :meth:`group_difference`, over the columns of :attr:`per_application`.

        Raises
        ------
        ResultError
            An arm is unknown or has no finished run.
        """
        metrics.check_arms(self.per_run, baseline, other)
        return flow_groups.difference(self.per_application, baseline, other, app_metrics.METRICS)

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder: ``manifest.json`` and one Parquet file per table.

        Parameters
        ----------
        folder
            The folder, created if needed. Only an existing result is ever replaced.

        Raises
        ------
        ResultError
            The folder cannot be written, or contains other files.
        """
        self._outcome.save(str(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a result that :meth:`save` wrote.

        Parameters
        ----------
        folder
            The folder.

        Returns
        -------
        Result
            The result.

        Raises
        ------
        ResultError
            The folder contains no result or a damaged one; the message names the file.
        """
        return cls(_core.Outcome.load(str(folder)))

    def _frame(self, name: str) -> pl.DataFrame:
        return pl.DataFrame(self._outcome.table(name))

    def __repr__(self) -> str:
        """Return the name of the scenario and the number of finished runs."""
        checked = self.scenario.checked
        return f"<Result of {checked.name!r}: {self.finished} of {self.total} runs>"


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Run every arm and replication of a scenario.

    A run depends only on the scenario, its seed and the version of Sojourn; `jobs` affects only
    the duration of the computation. The GIL is released meanwhile.
    Scenarios with queues written in Python run on processes instead of threads if there is more
    than one run.

    Parameters
    ----------
    scenario
        The scenario.
    seed
        Seed to use instead of the scenario's.
    jobs
        Number of threads; by default one per processor.
    progress
        Called with the number of finished runs and of all runs.

    Returns
    -------
    Result
        The result; incomplete after an interrupt with Ctrl-C.

    Examples
    --------
    >>> from sojourn import Link, Ping, Scenario, Tcp
    >>> result = run(Scenario(
    ...     links={
    ...         "up": Link(rate="10mbit", qdisc="codel"),
    ...         "down": Link(rate="10mbit", qdisc="pfifo"),
    ...     },
    ...     traffic=[Tcp(direction="up"), Ping(direction="up", interval="100ms")],
    ...     rtt="50ms",
    ...     duration="5s",
    ...     warmup="1s",
    ... ))
    >>> result.complete
    True
    """
    needs("run", scenario, Scenario, "a Scenario")
    chosen = scenario if seed is None else scenario.replace(seed=seed)
    checked = chosen.checked
    if jobs != 1 and checked.replications * len(checked.arms) > 1 and processes.needed(checked):
        return Result(processes.run(checked, jobs=jobs, progress=progress))
    return Result(_core.run(checked, jobs=jobs, progress=progress))
