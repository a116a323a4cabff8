"""The result of a sweep: metrics per run and per point."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl

from sojourn.arguments import ArgumentError, checked, in_argument
from sojourn.arguments.common import MaxBytes
from sojourn.result import metrics
from sojourn.result.estimates import check_arms, intervals
from sojourn.result.naming import described, metric_column
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value
from sojourn.storage import saved
from sojourn.sweeps import estimates, figures, storage
from sojourn.sweeps.scales import scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("point", "arm", "replication")
# What rows of tables are about.
By = Literal["run", "point"]


class SweepResult:
    """The metrics of all runs of a sweep.

    Created by :func:`sojourn.sweep` and :meth:`load`.

    Parameters
    ----------
    manifest
        Description of the sweep: scenario, parameters and version.
    runs
        The frame :attr:`runs`.
    points
        The frame :attr:`points`; by default, it is computed.
    manifest_sha256
        Digest of the manifest in a directory; None if the sweep was not saved.
    """

    def __init__(
        self,
        manifest: dict[str, Any],
        runs: pl.DataFrame,
        points: pl.DataFrame | None = None,
        manifest_sha256: str | None = None,
    ) -> None:
        self.manifest = manifest
        self.manifest_sha256 = manifest_sha256
        self._runs = runs
        if points is not None:
            self.__dict__["points"] = points

    def __repr__(self) -> str:
        """Return the size of the sweep on one line."""
        count = self.manifest["points"]
        return f"SweepResult(points={count}, runs={self.runs.height}, paths={self.parameters})"

    def _repr_html_(self) -> str:
        """Return the points as HTML, for notebooks."""
        return str(self.points._repr_html_())

    @property
    def origin(self) -> str:
        """Provenance in one line: scenario, number of points and runs, seed, hash, build."""
        made_by = self.manifest["sojourn"]
        return (
            f"{self.scenario.checked.name}; {self.manifest['points']} points, {self.runs.height} "
            f"runs, seed {self.scenario.seed}, scenario {self.manifest['scenario_sha256'][:12]}, "
            f"Sojourn {made_by['version']} ({(made_by['commit'] or 'unknown commit')[:12]})"
        )

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run: ``point``, the parameters, ``arm``, ``replication`` and the metrics."""
        return self._runs

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row per point and arm: the parameters, ``n``, and per metric its mean and interval.

        ``<metric>_low`` and ``<metric>_high`` are the 95 % interval, of the
        bootstrap or with `until` of Student's t distribution, null for fewer than
        two runs.
        """
        return estimates.by_point(self.runs, self.parameters, self.metrics, self._estimate)

    @checked
    def table(self, by: By = "run") -> pl.DataFrame:
        """Return every metric of every run, or its mean at every point.

        Parameters
        ----------
        by
            What a row is about: ``"run"``, or ``"point"`` for an arm at a point.

        Returns
        -------
        polars.DataFrame
            The frame :attr:`runs`, or :attr:`points`.

        Raises
        ------
        ResultError
            `by` is neither.
        """
        return self.points if by == "point" else self.runs

    @checked
    def summary(self, by: By = "point") -> pl.DataFrame:
        """Average every metric over the runs of each arm, at each point or at all.

        Parameters
        ----------
        by
            ``"point"``, or ``"run"`` for all runs of an arm, whose interval contains the spread
            between points.

        Returns
        -------
        polars.DataFrame
            One row per point, arm and metric, or per arm and metric: ``point`` and the parameters
            if by point, ``arm``, ``metric``, ``unit``, ``n``, ``mean``, and ``low`` and ``high``:
            the 95 % interval, null for fewer than two runs.

        Raises
        ------
        ResultError
            `by` is unknown.
        """
        known = described(self.metrics)
        if by == "point":
            return estimates.long(self.points, self.runs, self.parameters, known)
        return metrics.summary(self.runs, known)

    @checked
    def difference(self, baseline: str, other: str, by: By = "point") -> pl.DataFrame:
        """Average the paired difference `other` - `baseline` of every metric.

        Runs of two arms at the same point with the same seed are a pair. Each interval stands
        alone: of many differences that are zero, one of twenty seems to be significant.

        Parameters
        ----------
        baseline, other
            Names of arms.
        by
            As for :meth:`summary`.

        Returns
        -------
        polars.DataFrame
            One row per point and metric, or per metric: ``point`` and the parameters if by point,
            ``metric``, ``unit``, ``n`` (pairs), ``mean``, ``low``, ``high`` and ``significant``:
            whether the interval excludes 0. Metrics of a point without a pair are omitted.

        Raises
        ------
        ResultError
            An arm is unknown or has no finished run, or `by` is unknown.
        """
        check_arms(self.runs["arm"], "baseline", baseline)
        check_arms(self.runs["arm"], "other", other)
        return estimates.paired(
            self.runs,
            self.parameters if by == "point" else None,
            described(self.metrics),
            baseline,
            other,
        )

    @checked
    def first_points(self, count: int, names: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of :attr:`points` with some metrics, without computing the others.

        Parameters
        ----------
        count
            The number of rows, one per point and arm.
        names
            The columns of the metrics.
        """
        if "points" in self.__dict__:
            return self.points.head(count)
        cells = self.runs.select(estimates.KEYS).unique(maintain_order=True).head(count)
        runs = self.runs.join(cells, on=estimates.KEYS, how="semi", maintain_order="left")
        return estimates.by_point(runs, self.parameters, names, self._estimate)

    @property
    def parameters(self) -> list[str]:
        """The paths of the parameters."""
        return list(self.manifest["paths"])

    @property
    def metrics(self) -> list[str]:
        """The columns of the metrics."""
        known = {*KEYS, *self.parameters}
        return [name for name in self.runs.columns if name not in known]

    @cached_property
    def arms(self) -> list[str]:
        """The names of the arms, in the order of the scenario."""
        return self.runs["arm"].unique(maintain_order=True).to_list()

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario without the changes of the points."""
        return Scenario.from_json(saved.scenario_text(self.manifest))

    @property
    def interval(self) -> str:
        """The method of the intervals of single points, for notes."""
        return "bootstrap interval" if self.manifest["until"] is None else "Student's t interval"

    @property
    def _estimate(self) -> estimates.Estimate:
        """The estimate of single points: with `until`, that which decided to stop."""
        stopped = self.manifest["until"] is not None
        return estimates.student_intervals if stopped else intervals

    @property
    def complete(self) -> bool:
        """Whether all runs have finished."""
        return bool(self.manifest["complete"])

    @checked
    def pivot(
        self,
        metric: str,
        *,
        rows: str | None = None,
        columns: str | None = None,
        arm: str | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> pl.DataFrame:
        """Arrange the means of a metric by two parameters.

        Parameters
        ----------
        metric
            A metric, such as ``"ping_ms_p99"`` or ``"goodput_down"``.
        rows, columns
            Paths of parameters; by default the first two. ``"arm"`` stands for the arms.
        arm
            Name of an arm; required if there are several, unless they are rows or columns.
        fixed
            Values of the other parameters.

        Returns
        -------
        polars.DataFrame
            The values of `rows`, then one column per value of `columns`.

        Raises
        ------
        ResultError
            A parameter or an arm is unknown, or a combination has several points.
        """
        column = self.column(metric)
        first, second = self._two(rows, columns, "rows", "columns")
        table = self._selected(first, second, arm=arm, fixed=fixed)
        order = {path: estimates.in_order(table[path]) for path in (first, second)}
        twice = table.group_by(first, second).len().filter(pl.col("len") > 1)
        if not twice.is_empty():
            others = ", ".join(self._others(first, second)) or "none"
            rule = "several points have the same {same}; expected a value of the others: {others}"
            raise ArgumentError("fixed", rule=rule, same=f"{first} and {second}", others=others)
        wide = table.pivot(on=second, index=first, values=column, maintain_order=True)
        places = pl.Series([order[first].index(value) for value in wide[first]], dtype=pl.Int64)
        wide = wide[places.arg_sort()]
        return wide.select(first, *(f"{value}" for value in order[second]))

    @checked
    def best(
        self, metric: str, *, largest: bool = False, arm: str | None = None, count: int = 5
    ) -> pl.DataFrame:
        """Rank the points by the mean of a metric.

        All points have the same seeds, so their runs are compared as pairs. The intervals of
        the differences are those of Bonferroni for all pairs of the ranked points and arms: with a
        probability of at least 95 %, all of them are correct. With the same probability, the best
        point is among those with ``may_be_best``, of which there may be more than `count`
        (Edwards and Hsu, 1983). Both assume that differences are normally distributed.

        Parameters
        ----------
        metric
            A metric.
        largest
            Whether a larger value is better; by default, a smaller one is.
        arm
            Name of an arm; by default, all arms are ranked.
        count
            How many points to return.

        Returns
        -------
        polars.DataFrame
            The best points, the best first: ``point``, the parameters, ``arm``, ``n``, the metric
            with its own 95 % interval, ``difference``, ``difference_low`` and ``difference_high``:
            the mean difference from the first one over pairs of runs with the same seed, and
            ``may_be_best``. They are null for fewer than two pairs.

        Raises
        ------
        ResultError
            The metric or the arm is unknown.
        """
        points, runs = (
            table if arm is None else self._of_arm(table, arm) for table in (self.points, self.runs)
        )
        column = self.column(metric)
        ends = (column, f"{column}_low", f"{column}_high")
        points = points.select("point", *self.parameters, "arm", "n", *ends)
        return estimates.ranked(points, runs, column, largest=largest, count=count)

    @checked
    def heatmap(
        self,
        metric: str,
        *,
        x: str | None = None,
        y: str | None = None,
        arm: str | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> "Figure":
        """Draw the means of a metric over two parameters.

        Parameters
        ----------
        metric
            A metric.
        x, y
            Paths of the parameters; by default the first two.
        arm, fixed
            As for :meth:`pivot`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        first, second = self._two(x, y, "x", "y")
        table = self.pivot(metric, rows=second, columns=first, arm=arm, fixed=fixed)
        columns = self._selected(first, second, arm=arm, fixed=fixed)
        across, up = (scale(path, columns[path]) for path in (first, second))
        return figures.heatmap(table, self.column(metric), x=across, y=up).drawn()

    @checked
    def lines(
        self,
        metric: str,
        *,
        x: str | None = None,
        arm: str | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> "Figure":
        """Draw the means of a metric over one parameter, with their intervals.

        Parameters
        ----------
        metric
            A metric.
        x
            Path of the parameter; by default the first. There is a line per arm and combination of
            the other parameters.
        arm
            Name of an arm; by default all.
        fixed
            Values of other parameters.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        path = self._one(x)
        table = self._selected(path, "arm", arm=arm, fixed=fixed)
        over = scale(path, table[path])
        by = self._varying(table, path)
        return figures.lines(table, self.column(metric), over, by).drawn()

    @checked
    def box(
        self,
        metric: str,
        *,
        x: str | None = None,
        arm: str | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> "Figure":
        """Draw the distribution of a metric over runs, for each value of one parameter.

        Parameters
        ----------
        metric
            A metric.
        x
            Path of the parameter; by default the first. Runs that differ in other parameters are in
            the same box.
        arm
            Name of an arm; by default, arms stand side by side.
        fixed
            Values of other parameters.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        path = self._one(x)
        runs = self._filtered(self.runs, arm=arm, fixed=fixed)
        return figures.box(runs, self.column(metric), scale(path, runs[path])).drawn()

    @checked
    def column(self, metric: str) -> str:
        """Return the column of a metric, whose unit may be left out.

        Parameters
        ----------
        metric
            The metric, such as ``"goodput_down"``.

        Returns
        -------
        str
            The column, such as ``"goodput_down_mbit_per_s"``.

        Raises
        ------
        ResultError
            There is no such metric.
        """
        with in_argument("metric", metric):
            return metric_column(metric, self.metrics)

    @checked
    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write the sweep to a directory: ``sweep.json``, ``runs.parquet``, ``points.parquet``.

        Parameters
        ----------
        directory
            The directory, created if needed.
        force
            Whether another sweep in the directory may be replaced.

        Raises
        ------
        ResultError
            The directory cannot be written, or contains other files or another sweep.
        """
        self.manifest_sha256 = storage.save(
            directory, self.manifest, self.runs, self.points, force=force
        )

    @classmethod
    @checked
    def load(cls, directory: str | Path, *, max_bytes: MaxBytes = saved.MAX_BYTES) -> Self:
        """Read a sweep that :meth:`save` wrote.

        Parameters
        ----------
        directory
            The directory.
        max_bytes
            Maximum memory of the tables in bytes.

        Returns
        -------
        SweepResult
            The sweep.

        Raises
        ------
        ResultError
            The directory contains no sweep, or a damaged one, or its tables take more memory.
        """
        return cls(*storage.load(directory, max_bytes=max_bytes))

    def _one(self, path: str | None) -> str:
        chosen = self.parameters[0] if path is None else path
        estimates.check_parameter("x", chosen, self.parameters)
        return chosen

    def _two(self, one: str | None, other: str | None, *names: str) -> tuple[str, str]:
        """Return two different parameters, those of the arguments with these names."""
        free = [path for path in [*self.parameters, "arm"] if path not in {one, other}]
        first = free.pop(0) if one is None else one
        second = free.pop(0) if other is None and free else other
        if second is None or first == second:
            rule = "the sweep has no second parameter; expected one that differs from {first_name}"
            raise ArgumentError(names[1], first_name=names[0], rule=rule)
        for argument, path in zip(names, (first, second), strict=True):
            estimates.check_parameter(argument, path, [*self.parameters, "arm"])
        return first, second

    def _others(self, *shown: str) -> list[str]:
        paths = [path for path in self.parameters if path not in shown]
        return [*paths, *(["arm"] if len(self.arms) > 1 and "arm" not in shown else [])]

    def _selected(
        self, *shown: str, arm: str | None, fixed: Mapping[str, Value] | None
    ) -> pl.DataFrame:
        table = self._filtered(self.points, arm=arm, fixed=fixed)
        if arm is None and "arm" not in shown and len(self.arms) > 1:
            rule = "the sweep has several arms; expected one of {names}"
            raise ArgumentError("arm", rule=rule, names=", ".join(self.arms))
        return table

    def _filtered(
        self, table: pl.DataFrame, *, arm: str | None, fixed: Mapping[str, Value] | None
    ) -> pl.DataFrame:
        if arm is not None:
            table = self._of_arm(table, arm)
        for path, value in (fixed or {}).items():
            estimates.check_parameter("fixed", path, self.parameters)
            values = table[path].unique(maintain_order=True).to_list()
            if value not in values:
                rule = "no point with {value_given}; expected one of {values}"
                raise ArgumentError("fixed", rule=rule, key=path, value_given=value, values=values)
            table = table.filter(pl.col(path) == value)
        return table

    def _of_arm(self, table: pl.DataFrame, arm: str) -> pl.DataFrame:
        if arm not in self.arms:
            rule = "unknown arm; expected one of {names}"
            raise ArgumentError("arm", arm, rule, names=", ".join(self.arms))
        return table.filter(pl.col("arm") == arm)

    def _varying(self, table: pl.DataFrame, x: str) -> Sequence[str]:
        """List the columns other than `x` that distinguish lines."""
        return [
            path for path in [*self.parameters, "arm"] if path != x and table[path].n_unique() > 1
        ]
