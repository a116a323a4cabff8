"""The catalogue of metrics: name, label, unit and definition of each.

Metrics of runs, groups, classes, applications and links are declared and computed by the core, in
`crates/lab/src/metrics`; `study_metrics.toml` declares those that only claims of studies use. The
columns of a run depend on the scenario, so their declarations have a placeholder for the direction
or the link.
"""

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from sojourn import _core

# What a row of a table of metrics is about.
By = Literal["run", "group", "class", "application", "link"]
Scope = By | Literal["study", "study_group"]
Role = Literal["headline", "compared", "detail", "minor"]
# The most important first.
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of a run, or of a part of one, such as a group of flows."""

    column: str
    label: str
    unit: str
    digits: int
    scope: Scope = "run"
    description: str = ""
    shown: bool = True
    role: Role = "detail"

    @property
    def rank(self) -> int:
        """Place of the role in the order of importance, from 0."""
        return ROLES.index(self.role)

    @property
    def heading(self) -> str:
        """Label and unit, for the heading of a column."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    @property
    def definition(self) -> str:
        """The description without Markdown and without the symbols of the document."""
        text = self.description.replace("*W*", "the end of the warm-up")
        return text.replace("*D*", "the duration of the run").replace("*", "").replace("`", "")

    def named(self, column: str) -> "Metric | None":
        """Return the metric of `column`, if this declaration describes it."""
        if column == self.column:
            return self
        before, brace, rest = self.column.partition("{")
        placeholder, _, after = rest.partition("}")
        fits = len(column) > len(before) + len(after)
        if not (brace and fits and column.startswith(before) and column.endswith(after)):
            return None
        name = column[len(before) : len(column) - len(after)]
        return replace(self, column=column, label=self.label.replace(f"{{{placeholder}}}", name))


def of_link(name: str, link: str, separator: str = "_") -> str:
    """Put the name of a link after the first word of the name or the label of a metric of links.

    Examples
    --------
    >>> of_link("sojourn_ms_max", "down"), of_link("utilisation", "down")
    ('sojourn_down_ms_max', 'utilisation_down')
    """
    first, _, rest = name.partition(separator)
    return separator.join(part for part in (first, link, rest) if part)


def _of_studies(scope: Scope) -> list[Metric]:
    """Read the metrics that only claims of studies use."""
    text = Path(__file__).with_name("study_metrics.toml").read_text(encoding="utf-8")
    return [Metric(scope=scope, **row) for row in tomllib.loads(text)[scope]]


_CORE = tuple(Metric(**row) for row in json.loads(_core.metric_catalogue()))
_STUDY = (
    *(
        replace(
            metric,
            column=of_link(metric.column, "{link}"),
            label=of_link(metric.label, "{link}", " "),
            scope="study",
            role="detail",
        )
        for metric in _CORE
        if metric.scope == "link"
    ),
    *_of_studies("study"),
)

METRICS = (
    *(metric for metric in _CORE if metric.scope == "run"),
    *_STUDY,
    *_of_studies("study_group"),
    *(metric for metric in _CORE if metric.scope != "run"),
)


def of_scope(scope: Scope) -> tuple[Metric, ...]:
    """List the metrics of one scope, in the order of their columns."""
    return tuple(metric for metric in METRICS if metric.scope == scope)


def shown(scope: Scope) -> tuple[Metric, ...]:
    """List the metrics of one scope that tables show."""
    return tuple(metric for metric in of_scope(scope) if metric.shown)


def declared(scope: Scope, column: str) -> Metric:
    """Return the declaration of a metric.

    Examples
    --------
    >>> declared("group", "loss_percent").heading
    'loss [%]'
    """
    return next(metric for metric in of_scope(scope) if metric.column == column)
