"""Running scenarios, and what comes back."""

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl

from sojourn import _core
from sojourn.document import needs
from sojourn.result import app_metrics, flow_groups, metrics, validity
from sojourn.scenario import Scenario


class Result:
    """What the runs of a scenario left behind.

    Made by :func:`run` and :meth:`load`. Frames are tidy: one row an observation, the first
    columns ``arm`` and ``replication``, the last word of a column its unit. What was not
    measured is null, never 0.

    Parameters
    ----------
    outcome
        What the core returned.
    """

    def __init__(self, outcome: _core.Outcome) -> None:
        self._outcome = outcome

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row a flow and run: goodput, retransmissions, round-trip times."""
        return self._frame("flows")

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row a link and run: utilisation, drops, marks, sojourn times."""
        return self._frame("links")

    @cached_property
    def flow_series(self) -> pl.DataFrame:
        """One row a flow, run and interval: goodput and the state of TCP."""
        return self._frame("flow_series")

    @cached_property
    def link_series(self) -> pl.DataFrame:
        """One row a link, run and interval: backlog, sojourn times, signals."""
        return self._frame("link_series")

    @cached_property
    def pings(self) -> pl.DataFrame:
        """One row an echo request: when it was sent, and how long the reply took."""
        return self._frame("pings")

    @cached_property
    def sojourn(self) -> pl.DataFrame:
        """One row a link, run and bucket of the histogram of sojourn times."""
        return self._frame("sojourn")

    @cached_property
    def queue_statistics(self) -> pl.DataFrame:
        """One row a number that a queue keeps about itself, under the names of ``tc -j -s``."""
        return self._frame("queue_statistics")

    @cached_property
    def events(self) -> pl.DataFrame:
        """One row a drop or mark; empty unless the scenario keeps events."""
        return self._frame("events")

    @cached_property
    def transactions(self) -> pl.DataFrame:
        """One row a thing that the user of an application waited for, such as a web page."""
        return self._frame("transactions")

    @cached_property
    def applications(self) -> pl.DataFrame:
        """One row an application and run: its connections, and how long its user waited."""
        return self._frame("applications")

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Version, commit, scenario, its hash and the seed: what it takes to run it again."""
        manifest: dict[str, Any] = json.loads(self._outcome.manifest)
        return manifest

    @property
    def build(self) -> str:
        """Version and commit of the Sojourn that made the result."""
        made_by = self.provenance["sojourn"]
        commit = made_by["commit"] or "unknown commit"
        return f"{made_by['version']} ({commit[:12]}{'-dirty' if made_by['dirty'] else ''})"

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was run."""
        return Scenario.from_json(json.dumps(self.provenance["scenario"]))

    @property
    def arms(self) -> list[str]:
        """The names of the variants, in the order of the scenario."""
        return self.scenario.checked.arms

    @property
    def complete(self) -> bool:
        """Whether every run of every arm finished."""
        return self._outcome.complete

    @property
    def finished(self) -> int:
        """How many runs finished."""
        return self._outcome.finished

    @property
    def total(self) -> int:
        """How many runs the scenario asks for."""
        return self._outcome.total

    @cached_property
    def per_run(self) -> pl.DataFrame:
        """One row a run: ``arm``, ``replication`` and every metric (``docs/metrics.md``)."""
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
        """One row a run and group of TCP or UDP flows: losses, fairness, completion times."""
        return flow_groups.per_group(self.flows, warmup_s=self.scenario.checked.warmup_s)

    @cached_property
    def per_application(self) -> pl.DataFrame:
        """One row a run and group of applications: how long their users waited."""
        warmup_s = self.scenario.checked.warmup_s
        return app_metrics.per_application(self.applications, self.transactions, warmup_s=warmup_s)

    @cached_property
    def validity(self) -> validity.Validity:
        """What limits the result: links that were no bottleneck, single runs, losses."""
        checked = self.scenario.checked
        return validity.assess(
            self.flows,
            self.links,
            finished=self.finished,
            total=self.total,
            replications=checked.replications,
            measured_s=checked.duration_s - checked.warmup_s,
            waited=self.per_application,
            applications=self.applications,
        )

    def summary(self) -> pl.DataFrame:
        """Average every metric over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            One row an arm and metric: ``arm``, ``metric``, ``unit``, ``n``, ``mean``, and
            ``low`` and ``high``: the bootstrap interval of 95 %, null for fewer than two runs.
        """
        return metrics.summary(self.per_run)

    def group_summary(self) -> pl.DataFrame:
        """Average every metric of every group over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            As :meth:`summary`, with ``group`` after ``arm``; what a group cannot have is left
            out.
        """
        return flow_groups.summary(self.per_group)

    def application_summary(self) -> pl.DataFrame:
        """Average how long users of applications waited over the runs of each arm.

        Returns
        -------
        polars.DataFrame
            As that of :meth:`group_summary`, of the columns of :attr:`per_application`:
            ``duration_s_mean`` is the load time of pages of ``web`` and the completion time of
            other transactions.
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
            One row a metric: ``metric``, ``unit``, ``n`` (pairs), ``mean``, ``low``, ``high``
            and ``significant``: whether the interval excludes 0.

        Raises
        ------
        ResultError
            There is no finished run of such an arm.
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
            As that of :meth:`difference`, with ``group`` first, of the columns of
            :attr:`per_group`. What no pair of runs has is left out.

        Raises
        ------
        ResultError
            There is no finished run of such an arm.
        """
        metrics.check_arms(self.per_run, baseline, other)
        return flow_groups.difference(self.per_group, baseline, other)

    def application_difference(self, baseline: str, other: str) -> pl.DataFrame:
        """Average the paired difference `other` - `baseline` of how long users waited.

        Parameters
        ----------
        baseline, other
            Names of arms.

        Returns
        -------
        polars.DataFrame
            As that of :meth:`group_difference`, of the columns of :attr:`per_application`.

        Raises
        ------
        ResultError
            There is no finished run of such an arm.
        """
        metrics.check_arms(self.per_run, baseline, other)
        return flow_groups.difference(self.per_application, baseline, other, app_metrics.METRICS)

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder: ``manifest.json`` and a Parquet file a table.

        Parameters
        ----------
        folder
            Where to; made if it is not there. Only a result is ever replaced.

        Raises
        ------
        ResultError
            The folder cannot be written, or holds something else.
        """
        self._outcome.save(str(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what :meth:`save` wrote.

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
            The folder holds no result, or a damaged one; the message names the file.
        """
        return cls(_core.Outcome.load(str(folder)))

    def _frame(self, name: str) -> pl.DataFrame:
        return pl.DataFrame(self._outcome.table(name))

    def __repr__(self) -> str:
        """Say what was run and how much of it finished."""
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

    A run is a pure function of the scenario, its seed and the version of Sojourn; `jobs`
    changes how long it takes and nothing else. The interpreter is free meanwhile.

    Parameters
    ----------
    scenario
        What to run.
    seed
        Seed to use instead of the scenario's.
    jobs
        Threads; by default one a processor.
    progress
        Called with the numbers of runs finished and in total.

    Returns
    -------
    Result
        The result; incomplete if it was interrupted with Ctrl-C.

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
    return Result(_core.run(chosen.checked, jobs=jobs, progress=progress))
