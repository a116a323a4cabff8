"""Means of metrics over the runs of an arm, and paired differences between arms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.result.catalogue import By, Metric, shown
from sojourn.result.naming import described
from sojourn.result.rows import KEYS, Columns, columns, grouped, known

LEVEL = 0.95
Interval = tuple[float | None, float | None, float | None]
Row = dict[str, Any]


def metrics_of(names: Iterable[str]) -> list[Metric]:
    """Describe the columns of a table of metrics of runs, in its order."""
    return described(name for name in names if name not in KEYS)


def metrics_by(by: By, names: Iterable[str]) -> Sequence[Metric]:
    """List the metrics of a table that summaries show, in order."""
    return metrics_of(names) if by == "run" else shown(by)


def summary(table: Columns, metrics: Sequence[Metric]) -> list[Row]:
    """Average metrics over the runs of each arm, or of each group of each arm.

    Metrics that do not apply to a group are omitted; those of whole runs are null instead.
    """
    keys = ["arm", "group"] if "group" in table else ["arm"]
    every = list(zip(*(table[key] for key in keys), strict=True))
    found: list[tuple[Row, Metric, list[float]]] = []
    for names, runs in grouped(range(len(every)), every.__getitem__).items():
        for metric in metrics:
            column = table[metric.column]
            values = known(column[run] for run in runs)
            if values or "group" not in table:
                found.append((dict(zip(keys, names, strict=True)), metric, values))
    return _rows(found)


def difference(table: Columns, metrics: Sequence[Metric], baseline: str, other: str) -> list[Row]:
    """Average the difference `other` - `baseline` of whole runs, or of each group.

    Replication `k` of both arms has the same seed, so that each pair differs only by the change
    between the arms. Metrics of a group without a pair of runs are omitted.
    """
    arms, replications = table["arm"], table["replication"]
    of_group: Sequence[str | None] = table.get("group", [None] * len(arms))
    found: list[tuple[Row, Metric, list[float]]] = []
    for group, runs in grouped(range(len(arms)), of_group.__getitem__).items():
        pairs_of = {replications[run]: run for run in runs if arms[run] == other}
        pairs = [
            (run, pairs_of[replications[run]])
            for run in runs
            if arms[run] == baseline and replications[run] in pairs_of
        ]
        for metric in metrics:
            column = table[metric.column]
            both = [(column[one], column[two]) for one, two in pairs]
            both = [(one, two) for one, two in both if one is not None and two is not None]
            if both or group is None:
                named = {} if group is None else {"group": group}
                found.append((named, metric, [two - one for one, two in both]))
    rows = _rows(found)
    for row in rows:
        low, high = row["low"], row["high"]
        row["significant"] = None if low is None or high is None else low > 0 or high < 0
    return rows


def _rows(found: Sequence[tuple[Row, Metric, Sequence[float]]]) -> list[Row]:
    """Average the values of each row, which begins with what it is of."""
    of_each = intervals([values for _, _, values in found])
    return [
        {
            **named,
            "metric": metric.column,
            "unit": metric.unit,
            "n": len(values),
            "mean": None if mean is None else float(mean),
            "low": low,
            "high": high,
        }
        for (named, metric, values), (mean, low, high) in zip(found, of_each, strict=True)
    ]


@dataclass(frozen=True)
class Estimates:
    """The metrics of the runs of an outcome, and what is estimated from them."""

    outcome: _core.Outcome

    @cached_property
    def _tables(self) -> dict[By, Columns]:
        """The tables of metrics that were computed."""
        return {}

    def table(self, by: By = "run") -> Columns:
        """Return every metric of every run, as :meth:`sojourn.Result.table` does."""
        if by not in self._tables:
            self._tables[by] = columns(self.outcome.metrics(by))
        return self._tables[by]

    @property
    def arms(self) -> list[str]:
        """The arms with a finished run."""
        return list(dict.fromkeys(self.table()["arm"]))

    def summary(self, by: By = "run") -> list[Row]:
        """List the rows of :meth:`sojourn.Result.summary`."""
        table = self.table(by)
        return summary(table, metrics_by(by, table))

    def difference(self, baseline: str, other: str, by: By = "run") -> list[Row]:
        """List the rows of :meth:`sojourn.Result.difference`."""
        table = self.table(by)
        return difference(table, metrics_by(by, table), baseline, other)


def check_arms(runs: Iterable[str], argument: str, *names: str) -> None:
    """Check that the arms that an argument names are among those of the finished runs."""
    arms = dict.fromkeys(runs)
    for name in names:
        if name not in arms:
            rule = "no finished run of this arm; expected one of {known}"
            raise ArgumentError(argument, name, rule, known=", ".join(arms))


def mean_and_interval(values: Sequence[float]) -> Interval:
    """Compute the mean and its interval: no mean without values, no interval for one value."""
    (found,) = intervals([values])
    return found


def intervals(samples: Sequence[Sequence[float]]) -> list[Interval]:
    """Compute :func:`mean_and_interval` of each sample; together, they take less time."""
    several = [values for values in samples if len(values) > 1]
    computed = iter(_core.bootstrap_means(several, level=LEVEL))
    return [
        next(computed) if len(values) > 1 else (values[0] if values else None, None, None)
        for values in samples
    ]
