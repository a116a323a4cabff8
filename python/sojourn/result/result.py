"""The result of a scenario: tables, metrics, verdict, saving and loading."""

import importlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from sojourn import _core
from sojourn.arguments import ArgumentError, checked, replaceable
from sojourn.arguments.common import MaxBytes
from sojourn.deferred import Deferred
from sojourn.result import stationarity
from sojourn.result.catalogue import By
from sojourn.result.estimates import Estimates, check_arms, metrics_by
from sojourn.result.rows import KEYS, Records, records, shared
from sojourn.result.tables import ResultTables
from sojourn.result.validity import Evidence, Validity, assess, setups, sparse
from sojourn.scenario import Link, Scenario

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sojourn.result import latex, metrics
else:
    # Commands print what is computed without polars, whose import takes longer.
    pl = Deferred("polars")
    latex, metrics = Deferred("sojourn.result.latex"), Deferred("sojourn.result.metrics")

# Drawing needs results, not the other way round, and matplotlib is slow to import.
_FIGURES = Deferred("sojourn.plot.figures")
_REPORT = Deferred("sojourn.report.page")
_PACKET = Deferred("sojourn.plot.packet")
# Few users need it.
_WHY = Deferred("sojourn.result.why")

# Memory that the tables of a loaded result may need, unless the caller allows more.
MAX_BYTES = 2 << 30


class Result(ResultTables):
    """The results of all runs of a scenario, as polars frames.

    Created by :func:`sojourn.run` and :meth:`load`. Frames are tidy: one row per observation; the
    first columns are ``arm`` (str) and ``replication`` (from 0). A value that was not measured is
    null, never 0. ``help(Result.flows)`` lists the columns of a frame.

    Parameters
    ----------
    outcome
        The outcome that the core returned.
    invocation
        The execution that stored its runs, if they were stored.
    """

    def __init__(self, outcome: _core.Outcome, invocation: _core.Invocation | None = None) -> None:
        self._outcome = outcome
        self._invocation = invocation
        self._manifest_sha256 = outcome.loaded_digest

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Version, commit, scenario, scenario hash and seed: the data to reproduce the result."""
        manifest: dict[str, Any] = json.loads(self._outcome.manifest)
        return manifest

    @property
    def manifest_sha256(self) -> str | None:
        """Digest of the manifest of a saved or loaded result; None if it was not saved."""
        return self._manifest_sha256

    @property
    def build(self) -> str:
        """Version and commit of Sojourn that produced the result."""
        made_by = self.provenance["sojourn"]
        commit = made_by["commit"] or "unknown commit"
        return f"{made_by['version']} ({commit[:12]}{'-dirty' if made_by['dirty'] else ''})"

    @property
    def origin(self) -> str:
        """Provenance in one line: scenario, number of runs, seed, scenario hash, build."""
        checked = self.scenario.checked
        return (
            f"{checked.name}; {self.finished} of {self.total} runs, seed {self.scenario.seed}, "
            f"scenario {checked.hash[:12]}, Sojourn {self.build}"
        )

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

    @checked
    def table(self, by: By = "run") -> "pl.DataFrame":
        """Return every metric of every run (``docs/metrics.md``).

        Parameters
        ----------
        by
            What a row is about: ``"run"``, or a group of one: ``"group"`` for groups of flows,
            ``"class"`` for the classes of queues, ``"application"`` for groups of applications,
            ``"link"`` for links.

        Returns
        -------
        polars.DataFrame
            One row per run, or per run and group: ``arm``, ``replication``, ``group`` unless by
            run, and the metrics. The group of a class is the name of its link and its own, such as
            ``"down: L"``; queues without classes have no rows. The group of a link is its name.

        Raises
        ------
        ResultError
            `by` is none of these.
        """
        if by not in self._metrics:
            self._metrics[by] = self._measured(by)
        return self._metrics[by]

    @cached_property
    def estimates(self) -> Estimates:
        """The rows of the summaries and differences, as plain values."""
        return Estimates(self._outcome)

    @cached_property
    def _metrics(self) -> "dict[By, pl.DataFrame]":
        """The tables of metrics that were computed."""
        return {}

    def _measured(self, by: By) -> "pl.DataFrame":
        """Compute a table of metrics."""
        return pl.DataFrame(self._outcome.metrics(by))

    @cached_property
    def validity(self) -> Validity:
        """Limitations of the result, such as idle links, single runs, or arms that are equal."""
        return assess(self._evidence())

    def _evidence(self) -> Evidence:
        """Return what the checks of validity are based on."""
        checked = self.scenario.checked
        table = self._outcome.table
        flows, links, pings = shared(table("flows")), shared(table("links")), table("pings")
        times = ("started_s", "completed_s", "duration_s")
        transactions = records(table("transactions"), *KEYS, "group", *times)
        return Evidence(
            arms=setups(self.scenario),
            flows=flows,
            links=links,
            flow_series=table("flow_series"),
            link_series=table("link_series"),
            transactions=transactions,
            finished=self.finished,
            total=self.total,
            replications=checked.replications,
            warmup_s=checked.warmup_s,
            duration_s=checked.duration_s,
            per_application=records(self._outcome.metrics("application")),
            applications=records(table("applications")),
            facts=self.provenance.get("validity", ()),
            concerns=checked.concerns,
            drifts=self._drifts(flows, links),
            sparse=sparse(
                flows,
                pings.replies(checked.warmup_s),
                transactions,
                warmup_s=checked.warmup_s,
            ),
        )

    def _drifts(self, flows: Records, links: Records) -> list[stationarity.Drift]:
        """Compare the halves of the measured time, unless a link changes during the run."""
        configured = [link for link in self.scenario.links.values() if isinstance(link, Link)]
        varies = ("changes", "trace", "rate_trace", "delay_trace", "loss_trace")
        if any(getattr(link, key) for link in configured for key in varies):
            return []
        checked = self.scenario.checked
        return stationarity.drifts(
            flows,
            links,
            self._outcome.table,
            warmup_s=checked.warmup_s,
            duration_s=checked.duration_s,
        )

    @checked
    def summary(self, by: By = "run") -> "pl.DataFrame":
        """Average every metric over the runs of each arm.

        Parameters
        ----------
        by
            As for :meth:`table`.

        Returns
        -------
        polars.DataFrame
            One row per arm and metric: ``arm``, ``group`` unless by run, ``metric``, ``unit``,
            ``n``, ``mean``, and ``low`` and ``high``: the 95 % bootstrap interval, null for fewer
            than two runs. Metrics that do not apply to a group are omitted. By application, for
            ``web``, ``duration_s_mean`` is the page load time.

        Raises
        ------
        ResultError
            `by` is unknown.
        """
        table = self.table(by)
        return metrics.summary(table, metrics_by(by, table.columns))

    @checked
    def difference(self, baseline: str, other: str, by: By = "run") -> "pl.DataFrame":
        """Average the paired difference `other` - `baseline` of every metric.

        Parameters
        ----------
        baseline, other
            Names of arms.
        by
            As for :meth:`table`.

        Returns
        -------
        polars.DataFrame
            One row per metric: ``group`` unless by run, ``metric``, ``unit``, ``n`` (pairs),
            ``mean``, ``low``, ``high`` and ``significant``: whether the interval excludes 0.
            Metrics of a group without a pair of runs are omitted.

        Raises
        ------
        ResultError
            An arm is unknown or has no finished run, or `by` is unknown.
        """
        table = self.table(by)
        check_arms(self.table()["arm"], "baseline", baseline)
        check_arms(self.table()["arm"], "other", other)
        return metrics.difference(table, metrics_by(by, table.columns), baseline, other)

    @checked
    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write the result to a directory: ``manifest.json`` and one Parquet file per table.

        The directory contains the whole result or, if saving fails, what it contained before.

        Parameters
        ----------
        directory
            The directory, created if needed; a symbolic link is followed.
        force
            Whether to replace another result in the directory, including its reports and figures.
            A complete result is never replaced by an incomplete one.

        Raises
        ------
        ResultError
            The directory cannot be written, or contains other files or another result.
        """
        with replaceable():
            self._manifest_sha256 = self._outcome.save(str(directory), force)
        if self._invocation is not None and self.complete:
            self._invocation.discard()

    def save_claimed(self, claim: _core.Claim) -> None:
        """Write the result to a reserved directory.

        Parameters
        ----------
        claim
            The reservation.

        Raises
        ------
        ResultError
            The directory cannot be written, or an incomplete result would replace a complete one.
        """
        self._manifest_sha256 = self._outcome.save_to(claim)

    @classmethod
    @checked
    def load(cls, directory: str | Path, *, max_bytes: MaxBytes = MAX_BYTES) -> Self:
        """Read a result that :meth:`save` wrote.

        Untrusted results are safe to load: only the manifest and the tables are opened, and none of
        their content is executed.

        Parameters
        ----------
        directory
            The directory.
        max_bytes
            Maximum memory for the tables.

        Returns
        -------
        Result
            The result.

        Raises
        ------
        ResultError
            The directory contains no result, a damaged one, or one that is larger than
            `max_bytes`; the message names the file.
        """
        return cls(_core.Outcome.load(str(directory), max_bytes))

    def _frame(self, name: str) -> "pl.DataFrame":
        # Rechunk: polars expressions fail on string columns whose first chunk is empty.
        return pl.DataFrame(self._outcome.table(name)).rechunk()

    @checked
    def to_pandas(self, table: str = "run") -> Any:
        """Return a table as a pandas data frame, without pyarrow, which polars would need.

        Parameters
        ----------
        table
            Name of a frame, such as ``"flows"`` or ``"pings"``, or what the rows of a table of
            metrics are about, as for :meth:`table`.

        Returns
        -------
        pandas.DataFrame
            The frame; null values are None in text columns and NaN in numeric columns.

        Raises
        ------
        ResultError
            There is no such frame, or pandas is not installed.
        """
        names = self._outcome.table_names
        scopes: tuple[By, ...] = get_args(By)
        if table not in (*names, *scopes):
            known = ", ".join([*names, *scopes])
            rule = "unknown table; expected one of {known}"
            raise ArgumentError("table", table, rule, known=known)
        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError:
            message = "to_pandas requires pandas; install it with: pip install pandas"
            raise _core.ResultError(message) from None
        frame = getattr(self, table) if table in names else self.table(cast("By", table))
        return pandas.DataFrame({column.name: column.to_numpy() for column in frame})

    @checked
    def to_latex(
        self,
        metric: str | Sequence[str] | None = None,
        *,
        arms: Sequence[str] | None = None,
        group: str | None = None,
        baseline: str | None = None,
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        r"""Write a LaTeX table of means with their intervals: one row per arm.

        The document needs the package booktabs. Decimal points are aligned.

        Parameters
        ----------
        metric
            One or several metrics of :meth:`table`, by run, or with `group` by group, class or
            application; by default the main ones.
        arms
            Names of the arms; by default all with a finished run.
        group
            Show the metrics of this group of traffic, class or group of applications.
        baseline
            Show the paired differences of the other arms from this arm instead of means.
        caption
            Caption in LaTeX; with it or with `label`, the result is a ``table`` environment.
        label
            Label for references, such as ``"tab:delay"``.

        Returns
        -------
        str
            LaTeX, with the provenance in a comment.

        Raises
        ------
        ResultError
            An arm, a group or a metric is unknown.

        Examples
        --------
        >>> import sojourn as sj
        >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
        >>> ping = sj.Ping(direction="up", interval="100ms")
        >>> result = sj.run(sj.Scenario(links=links, traffic=[ping], rtt="50ms", duration="4s"))
        >>> print(result.to_latex("ping_ms_p95").partition(r"\midrule")[2])
        <BLANKLINE>
        default & 1 & $50.8$ &  \\
        \bottomrule
        \end{tabular}
        <BLANKLINE>
        """
        return latex.of_metrics(
            self.table(),
            self.summary,
            self.difference,
            metric,
            origin=[
                self.origin,
                *(f"{one.severity}: {one.text}" for one in self.validity.findings if one.weakens),
            ],
            arms=arms,
            group=group,
            baseline=baseline,
            caption=caption,
            label=label,
        )

    @checked
    def plot(
        self,
        *metrics: str,
        kind: Literal["series", "ecdf", "box", "violin", "bars", "ellipse"] | None = None,
        arms: Sequence[str] | None = None,
        group: str | None = None,
        replication: int | None = None,
        path: str | Path | None = None,
        ax: "Axes | None" = None,
        size: tuple[float, float] | None = None,
    ) -> "Figure":
        """Draw quantities over time, or as distributions or means, one panel per quantity.

        Parameters
        ----------
        metrics
            Names of quantities: ``"ping"``, ``"goodput"``, ``"rate"``, ``"sojourn"``,
            ``"backlog"`` and ``"dropped"``, for one direction or link as in ``"backlog_up"``; of
            each connection ``"cwnd"``, ``"ssthresh"``, ``"in_flight"`` and ``"rtt"``; of queues, if
            the scenario sampled their state, statistics as in ``"up.prob"``; or metrics of
            :meth:`table`, by run, or with `group` by group or application. By default the main
            quantities over time of the links at which packets wait.
        kind
            ``"series"`` over time; ``"ecdf"``, ``"box"`` (quartiles, whiskers at the 5th and 95th
            percentile) or ``"violin"`` (density, a dot at the median) after the warm-up; ``"bars"``
            (mean over the runs, with its 95 % interval); or ``"ellipse"``, goodput against induced
            latency. Fewer than 6 values are dots. By default a series, or bars of metrics.
        arms
            Names of the arms to draw; by default all.
        group
            Draw only the flows of this group.
        replication
            Draw the samples of this replication, counted from 0. By default series are means over
            short intervals and over the replications, with a band from the 5th to the 95th
            percentile of the runs; series with quantities of connections show the first
            replication, because a mean of congestion windows hides what they do.
        path
            Also write the figure to this file: SVG, PDF, PNG or PGF, with its provenance.
        ax
            Axes to draw on, for a single panel; by default a new figure.
        size
            Width and height of a new figure in inches.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. The warm-up is grey; dotted lines show the limit of queues beside their
            backlog, and their target beside sojourn times, if these come near it.

        Raises
        ------
        ResultError
            An argument is not valid; the message says what is accepted.

        Examples
        --------
        >>> import sojourn as sj
        >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
        >>> tcp = sj.Tcp(direction="up")
        >>> result = sj.run(sj.Scenario(links=links, traffic=[tcp], rtt="50ms", duration="4s"))
        >>> figure = result.plot("cwnd", "backlog_up", size=(5, 4))
        >>> print(*(axes.get_ylabel() for axes in figure.axes), sep=", ")
        congestion window
        [packets], backlog up [packets]
        """
        figure = _FIGURES.plot(
            self,
            metrics,
            kind=kind,
            arms=arms,
            group=group,
            replication=replication,
            ax=ax,
            size=size,
        )
        if path is not None:
            _FIGURES.save(figure, path, self)
        return cast("Figure", figure)

    @checked
    def why(
        self,
        *,
        at: str | None = None,
        drop: int | None = None,
        slowest: bool = False,
        flow: int | str | None = None,
        link: str | None = None,
        arm: str | None = None,
        replication: int = 0,
        path: str | Path | None = None,
    ) -> dict[str, Any]:
        """Explain one packet: what it met at a queue, what happened to it, how its sender reacted.

        The run is repeated with its packets captured; its records must be those of the result.

        Parameters
        ----------
        at
            A time such as ``"12.4s"``: explain the packet that was dropped or marked nearest to it,
            if this was within 100 ms, or else the one that waited longest of those in a queue then.
        drop
            Explain this drop, mark or loss, counted from 0: this row of ``events`` if the scenario
            keeps them.
        slowest
            Explain the packet that waited longest of those sent after the warm-up, as without `at`
            and `drop`.
        flow
            Number of a flow, its row in ``flows`` from 0, or its name: consider only its packets.
        link
            Consider only packets at this link.
        arm
            Name of the arm; by default the first.
        replication
            Number of the replication, from 0.
        path
            Also draw the backlog of the link and the window of the sender around this time, and
            write the figure to this file, as for :meth:`plot`.

        Returns
        -------
        dict
            The facts by name; as a text, the explanation. Null values were not recorded.

        Raises
        ------
        ResultError
            The run cannot be repeated: it is live, of another build, or differs.
        ScenarioError
            There is no such packet; the message says what is accepted.

        Examples
        --------
        >>> import sojourn as sj
        >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
        >>> tcp = sj.Tcp(direction="up")
        >>> result = sj.run(sj.Scenario(links=links, traffic=[tcp], rtt="50ms", duration="4s"))
        >>> print(result.why(drop=0))  # doctest: +NORMALIZE_WHITESPACE
        codel at up dropped packet 48 of tcp up (flow 0) at 0.2204 s by its AQM, after waiting 58.7
        ms
          queue    codel limit 1000 target 5ms interval 100ms, 2 Mbit/s
          sent     0.1617 s: segment, 1514 B; window 19, 19 in flight
          arrived  0.1617 s: 9 packets (13.6 kB) of 1 flow waited in the queue
          decision 58.7 ms > target 5 ms for 103 ms, count 1; next drop in 100 ms
                   17 other packets (25.7 kB) of 1 flow waited
          resent   0.2889 s
          sender   0.2890 s to 0.3630 s: window 38 → 33 packets (cubic), 68.6 ms later; round trip
                   76.2 ms
        """
        choice = _WHY.Choice(at=at, drop=drop, slowest=slowest, flow=flow, link=link)
        facts = _WHY.explain(self, choice, arm=arm, replication=replication)
        if path is not None:
            _FIGURES.save(_PACKET.draw(facts.again, facts, facts.answer), path, self)
        return cast("dict[str, Any]", facts)

    def _repr_html_(self) -> str:
        """Return the verdict and every summary as HTML, for notebooks."""
        return str(_REPORT.fragment(self))

    def __repr__(self) -> str:
        """Return the name of the scenario and the number of finished runs."""
        checked = self.scenario.checked
        return f'<Result of "{checked.name}": {self.finished} of {self.total} runs>'
