"""The numbers of a result as tables and reports show them, computed once."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from sojourn.result import Result, formatting
from sojourn.result.catalogue import By, Metric, shown
from sojourn.result.metrics import metrics_of

Row = Mapping[str, Any]
# Metrics of the first table.
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Estimates of the whole run or of one group, and the differences from the first arm."""

    name: str | None
    metrics: Sequence[Metric]
    estimates: Mapping[tuple[str, str], Row]
    differences: Mapping[tuple[str, str], Row]

    def estimate(self, arm: str, metric: Metric) -> str:
        """Write a mean with half the width of its interval; ``"–"`` if it was not measured."""
        row = self.estimates.get((arm, metric.column))
        return (
            "–"
            if row is None
            else formatting.estimate(row["mean"], row["low"], row["high"], metric)
        )

    def label(self, metric: Metric) -> str:
        """Return the heading of a metric, prefixed with the name of the group if there is one."""
        return metric.heading if self.name is None else f"{self.name}: {metric.heading}"

    def estimates_of(self, arm: str) -> list[str]:
        """Write the means of an arm."""
        return [self.estimate(arm, metric) for metric in self.metrics]

    def row(self, arms: Sequence[str], metric: Metric) -> list[str]:
        """Write the means of a metric in some arms."""
        return [self.estimate(arm, metric) for arm in arms]

    def changes_of(self, arm: str) -> list[str]:
        """Write the differences of an arm from the first one."""
        rows = [(self.differences.get((arm, metric.column)), metric) for metric in self.metrics]
        return ["–" if row is None else formatting.change(row, metric) for row, metric in rows]

    def effect(self, metric: Metric, others: Sequence[str]) -> float | None:
        """Compute the largest relative difference of an arm from the first one.

        The difference is divided by the larger of the two means. Only differences whose interval
        excludes 0 count, or all of them if there is one run per arm; None if there are none.
        """
        effects = [
            abs(row["mean"]) / larger
            for arm in others
            if (row := self.differences.get((arm, metric.column))) is not None
            and (row["significant"] if row["significant"] is not None else row["mean"])
            and (larger := self._larger(row["mean"], arm, metric)) > 0
        ]
        return max(effects, default=None)

    def _larger(self, difference: float, arm: str, metric: Metric) -> float:
        """Return the larger absolute mean of the two arms."""
        row = self.estimates.get((arm, metric.column))
        mean: float = 0.0 if row is None else row["mean"]
        return max(abs(mean), abs(mean - difference))

    def runs(self, arm: str) -> int:
        """Count the runs of an arm that have any of the metrics."""
        return _most(self.estimates, arm, self.metrics)

    def pairs(self, arm: str) -> int:
        """Count the pairs of runs of an arm and the first one that have any of the metrics."""
        return _most(self.differences, arm, self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """The content of the tables and reports of a result."""

    title: str
    arms: Sequence[str]
    whole: Section
    groups: Sequence[Section]
    classes: Sequence[Section]
    applications: Sequence[Section]

    @property
    def sections(self) -> Sequence[Section]:
        """The whole run, the groups, the classes and the applications."""
        return (self.whole, *self.groups, *self.classes, *self.applications)

    @property
    def baseline(self) -> str:
        """The arm from which differences are taken."""
        return self.arms[0]

    @property
    def others(self) -> Sequence[str]:
        """The arms that are compared with the first one."""
        return self.arms[1:]

    @property
    def measured(self) -> str:
        """What a number of a table is, such as ``"means of 10 runs ± half the 95 % interval"``."""
        runs = {self.whole.runs(arm) for arm in self.arms}
        if runs == {1}:
            return "1 run"
        counted = " to ".join(dict.fromkeys(f"{of(runs)}" for of in (min, max)))
        return f"means of {counted} runs ± half the 95 % interval"

    def ranked(self) -> list[tuple[Section, Metric]]:
        """Order the metrics by their role, then by what they differ between arms.

        Metrics that do not differ between arms are left out if others do, and so are the values of
        a group that are those of the whole run.
        """
        found = []
        seen = set()
        applications = {id(section) for section in self.applications}
        for section in self.sections:
            for metric in section.metrics:
                rows = (section.estimates.get((arm, metric.column)) for arm in self.arms)
                means = tuple(row and row["mean"] for row in rows)
                if (metric.unit, means) in seen or not any(means):
                    continue
                seen.add((metric.unit, means))
                effect = section.effect(metric, self.others)
                place = (metric.rank, id(section) not in applications, -(effect or 0.0))
                found.append((effect is not None, place, section, metric))
        differs = any(differs for differs, *_ in found)
        kept = [entry for entry in found if entry[0] or not differs]
        return [(section, metric) for *_, section, metric in sorted(kept, key=itemgetter(1))]


def view(result: Result) -> ResultView:
    """Compute every number that tables and reports show."""
    runs = result.table()
    arms = runs["arm"].unique(maintain_order=True).to_list()
    whole = Section(
        name=None,
        metrics=metrics_of(runs),
        estimates=_by_metric(result.summary().iter_rows(named=True)),
        differences={
            (arm, row["metric"]): row
            for arm in arms[1:]
            for row in result.difference(arms[0], arm).iter_rows(named=True)
        },
    )
    groups = _sections(result, arms, "group")
    present = {column for group in groups for _, column in group.estimates}
    return ResultView(
        title=result.scenario.checked.name,
        arms=arms,
        whole=whole,
        groups=[_with(section, present) for section in groups],
        classes=[one for one in _sections(result, arms, "class") if _had_packets(one)],
        applications=[
            _with(section, {column for _, column in section.estimates})
            for section in _sections(result, arms, "application")
        ],
    )


def _had_packets(section: Section) -> bool:
    """Whether a packet entered the class in any run."""
    counted = {"sent_mbit_per_s", "drops", "marks"}
    return any(row["mean"] > 0 for (_, name), row in section.estimates.items() if name in counted)


def _with(section: Section, columns: Container[str]) -> Section:
    """Leave out the metrics that are not in `columns`."""
    return replace(
        section, metrics=[metric for metric in section.metrics if metric.column in columns]
    )


def _sections(result: Result, arms: Sequence[str], by: By) -> list[Section]:
    """Return one section per group."""
    summary = result.summary(by)
    differences = {arm: result.difference(arms[0], arm, by) for arm in arms[1:]}
    return [
        Section(
            name=group,
            metrics=shown(by),
            estimates=_by_metric(summary.filter(group=group).iter_rows(named=True)),
            differences={
                (arm, row["metric"]): row
                for arm, compared in differences.items()
                for row in compared.filter(group=group).iter_rows(named=True)
            },
        )
        for group in summary["group"].unique(maintain_order=True)
    ]


def _by_metric(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    return {(row["arm"], row["metric"]): row for row in rows}


def _most(rows: Mapping[tuple[str, str], Row], arm: str, metrics: Sequence[Metric]) -> int:
    found = (rows.get((arm, metric.column)) for metric in metrics)
    return max((row["n"] for row in found if row is not None), default=0)
