"""The numbers of a result as tables and reports show them, computed once."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from sojourn.presentation.model import (
    Block,
    Column,
    Columns,
    Estimate,
    Named,
    Section,
    Table,
    Text,
    quiet,
)
from sojourn.result import Result, formatting
from sojourn.result.catalogue import By, Metric, shown
from sojourn.result.estimates import Estimates, metrics_of
from sojourn.result.rows import grouped

Row = Mapping[str, Any]
CHANGES = (
    "Means of paired differences, with 95 % bootstrap intervals; * marks those that exclude 0."
)
MEANS = "Means over runs, with 95 % bootstrap intervals."
_COUNTS = "Drops and marks are counts per run over the measured time."
_FLOWS = (
    "Goodput is the mean over the flows of the group; share is the group's share of all data in "
    "its direction."
)
_WEB = "For web, the duration is the page load time."
# Metrics of the first table.
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Estimates of the whole run or of one group, and the differences from the first arm."""

    name: str | None
    metrics: Sequence[Metric]
    estimates: Mapping[tuple[str, str], Row]
    differences: Mapping[tuple[str, str], Row] = field(default_factory=dict)

    def estimate(self, arm: str, metric: Metric) -> Estimate:
        """Return the mean of an arm."""
        return formatting.estimate(self.estimates.get((arm, metric.column)), metric)

    def change(self, arm: str, metric: Metric) -> Estimate:
        """Return the difference of an arm from the first one."""
        return formatting.change(self.differences.get((arm, metric.column)), metric)

    def label(self, metric: Metric) -> str:
        """Return the heading of a metric, prefixed with the name of the group if there is one."""
        return metric.heading if self.name is None else f"{self.name}: {metric.heading}"

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
    whole: Part
    groups: Sequence[Part] = ()
    classes: Sequence[Part] = ()
    applications: Sequence[Part] = ()
    # All arms of the scenario, if some have no finished run.
    every: Sequence[str] = ()
    # Whether a link changes its delay during the runs.
    delay_changes: bool = False

    @property
    def parts(self) -> Sequence[Part]:
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

    def name(self, arm: str) -> Named:
        """Return the name of an arm in the colour of its figures."""
        return Named(arm, (self.every or self.arms).index(arm))

    def main(self) -> Table:
        """Make a table of the metrics that matter most, with a row per arm."""
        ranked = self.ranked()[:MOST]
        columns = [Column(section.label(one), one.definition) for section, one in ranked]
        rows: list[list[Text]] = [
            [self.name(arm), *(section.estimate(arm, one) for section, one in ranked)]
            for arm in self.arms
        ]
        return Table(["arm", *columns], rows, f"{self.title}: {self.measured}")

    def means(self, sections: Sequence[Part], what: str = "", *, title: str = "") -> Table:
        """Make a table with a row per arm or, if they are called `what`, per section and arm."""
        rows: list[list[Text]] = [
            [
                *([str(section.name)] if what else []),
                self.name(arm),
                f"{runs}",
                *(section.estimate(arm, metric) for metric in sections[0].metrics),
            ]
            for section in sections
            for arm in self.arms
            if (runs := section.runs(arm))
        ]
        return _table(sections, [what, "arm", "n"], rows, title)

    def changes(self, sections: Sequence[Part], what: str = "", *, title: str = "") -> Table:
        """Make a table of the differences from the first arm, as :meth:`means` does."""
        rows: list[list[Text]] = [
            [
                *([str(section.name)] if what else []),
                self.name(arm),
                f"{pairs}",
                *(section.change(arm, metric) for metric in sections[0].metrics),
            ]
            for section in sections
            for arm in self.others
            if (pairs := section.pairs(arm))
        ]
        of = f"{title}: " if title else ""
        titled = f"{of}difference from {self.baseline}, paired by replication"
        return _table(sections, [what, "arm", "n"], rows, titled)

    @property
    def measured(self) -> str:
        """What a number of a table is, such as ``"means of 10 runs ± half the 95 % interval"``."""
        runs = {self.whole.runs(arm) for arm in self.arms}
        if runs == {1}:
            return "1 run"
        counted = " to ".join(dict.fromkeys(f"{of(runs)}" for of in (min, max)))
        return f"means of {counted} runs ± half the 95 % interval"

    def ranked(self) -> list[tuple[Part, Metric]]:
        """Order the metrics by their role, then by what they differ between arms.

        Metrics that do not differ between arms are left out if others do, and so are the values of
        a group that are those of the whole run.
        """
        found = []
        seen = set()
        applications = {id(section) for section in self.applications}
        for section in self.parts:
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


def _table(
    sections: Sequence[Part], lead: Sequence[str], rows: Sequence[Sequence[Text]], title: str
) -> Table:
    names = [name for name in lead if name]
    columns: Columns = [*names, *(heading(metric) for metric in sections[0].metrics)]
    return Table(columns, rows, title, words=len(names) - 1, lead=len(names) - 1)


def heading(metric: Metric) -> Column:
    """Return the heading of a column of a metric."""
    return Column(metric.heading, metric.definition)


def view(result: Result) -> ResultView:
    """Compute every number that tables and reports show."""
    found = result.estimates
    arms = found.arms
    whole = Part(
        name=None,
        metrics=metrics_of(found.table()),
        estimates=_by_metric(found.summary()),
        differences={
            (arm, row["metric"]): row for arm in arms[1:] for row in found.difference(arms[0], arm)
        },
    )
    groups = _sections(found, arms, "group")
    present = {column for group in groups for _, column in group.estimates}
    return ResultView(
        title=result.scenario.checked.name,
        arms=arms,
        every=result.arms,
        whole=whole,
        groups=[_with(section, present) for section in groups],
        classes=[one for one in _sections(found, arms, "class") if _had_packets(one)],
        applications=[
            _with(section, {column for _, column in section.estimates})
            for section in _sections(found, arms, "application")
        ],
        delay_changes=_delay_changes(result),
    )


def _delay_changes(result: Result) -> bool:
    scenario = json.loads(result.scenario.checked.to_json())
    arms = (arm["set"] for arm in scenario.get("arms", ()))
    return any(map(_changes_delay, (scenario["links"], *arms)))


def _changes_delay(settings: Mapping[str, Any]) -> bool:
    """Whether keys of links, or the paths that an arm sets, change a delay during a run."""
    return any(
        key.endswith("delay_trace")
        or (key.endswith("changes") and any("delay" in change for change in value))
        or (isinstance(value, dict) and _changes_delay(value))
        for key, value in settings.items()
    )


def details(shown: ResultView, *, changes: bool = True) -> list[Section]:
    """Make sections of all means of a result, and of the differences from its first arm."""

    def tables(of: Sequence[Part], what: str, title: str) -> list[Block]:
        means = shown.means(of, what, title=f"{shown.title}{title and ': '}{title}")
        different = shown.changes(of, what, title=title)
        if not (changes and different.rows):
            return [means]
        return [means, Section(f"Difference from {shown.baseline}", [different, *quiet(CHANGES)])]

    found = [
        Section(
            title, [*tables(of, what, "" if of == [shown.whole] else title.lower()), *quiet(note)]
        )
        for title, what, of, note in (
            ("Summary", "", [shown.whole], f"{MEANS} {_COUNTS}"),
            ("Traffic groups", "group", shown.groups, f"{_FLOWS} {MEANS}"),
            ("Classes of queues", "class", shown.classes, f"Only queues with classes. {MEANS}"),
        )
        if of
    ]
    parts = [Section(name := str(one.name), tables([one], "", name)) for one in shown.applications]
    if parts:
        found.append(Section("Applications", [*parts, *quiet(f"{_WEB} {MEANS}")]))
    return [replace(section, folded=changes) for section in found]


def _had_packets(section: Part) -> bool:
    """Whether a packet entered the class in any run."""
    counted = {"sent_mbit_per_s", "drops", "marks"}
    return any(row["mean"] > 0 for (_, name), row in section.estimates.items() if name in counted)


def _with(section: Part, columns: Container[str]) -> Part:
    """Leave out the metrics that are not in `columns`."""
    return replace(
        section, metrics=[metric for metric in section.metrics if metric.column in columns]
    )


def _sections(found: Estimates, arms: Sequence[str], by: By) -> list[Part]:
    """Return one section per group."""
    differences = {
        arm: grouped(found.difference(arms[0], arm, by), itemgetter("group")) for arm in arms[1:]
    }
    return [
        Part(
            name=group,
            metrics=shown(by),
            estimates=_by_metric(rows),
            differences={
                (arm, row["metric"]): row
                for arm, compared in differences.items()
                for row in compared.get(group, ())
            },
        )
        for group, rows in grouped(found.summary(by), itemgetter("group")).items()
    ]


def _by_metric(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    return {(row["arm"], row["metric"]): row for row in rows}


def _most(rows: Mapping[tuple[str, str], Row], arm: str, metrics: Sequence[Metric]) -> int:
    found = (rows.get((arm, metric.column)) for metric in metrics)
    return max((row["n"] for row in found if row is not None), default=0)
