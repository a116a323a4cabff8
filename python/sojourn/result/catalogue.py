"""The catalogue of metrics: name, label, unit and definition of each.

Metrics of runs, groups, classes, applications and links are declared and computed by the core, in
`crates/lab/src/metrics`; here are those that only claims of studies use. The columns of a run
depend on the scenario, so their declarations have a placeholder for the direction or the link.
"""

import json
from dataclasses import dataclass, replace
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
    Metric(
        column="ack_rtt_{direction}_ms",
        label="RTT {direction}",
        unit="ms",
        digits=1,
        description="Mean of `ack_rtt_ms_mean` in `flows` over the TCP and QUIC flows of the "
        "direction. Each in-order acknowledgement after *W* of data that was sent only once gives "
        "a sample: the time since the newest of that data was sent.",
        scope="study",
    ),
    Metric(
        column="goodput_mbit_per_s",
        label="goodput",
        unit="Mbit/s",
        digits=2,
        description="Sum of `goodput_mbit_per_s` in `flows` over the TCP, QUIC and UDP flows. "
        "Finite transfers count with 8 · `delivered_bytes` / (*D* − *W*).",
        scope="study",
    ),
    Metric(
        column="jain",
        label="Jain",
        unit="",
        digits=3,
        description="Jain's index over the goodputs of all TCP, QUIC and UDP flows.",
        scope="study",
    ),
    Metric(
        column="sojourn_ms_mean",
        label="sojourn mean",
        unit="ms",
        digits=3,
        description="Mean sojourn time at the link with the longest mean sojourn time.",
        scope="study",
    ),
    Metric(
        column="sojourn_ms_max",
        label="sojourn max",
        unit="ms",
        digits=1,
        description="Longest sojourn time at the link with the longest mean sojourn time.",
        scope="study",
    ),
    Metric(
        column="ack_rtt_rise_ms_best",
        label="smallest RTT rise",
        unit="ms",
        digits=1,
        description="Over the TCP and QUIC flows, smallest difference between `ack_rtt_ms_max` and "
        "`base_rtt_ms` in `flows`.",
        scope="study",
    ),
    Metric(
        column="ack_rtt_rise_ms_worst",
        label="largest RTT rise",
        unit="ms",
        digits=1,
        description="Over the TCP and QUIC flows, largest difference between `ack_rtt_ms_max` and "
        "`base_rtt_ms` in `flows`.",
        scope="study",
    ),
)
_STUDY_GROUP = (
    Metric(
        column="goodput_mbit_per_s",
        label="goodput",
        unit="Mbit/s",
        digits=2,
        description="Sum over the flows of the group, as for runs.",
        scope="study_group",
    ),
    Metric(
        column="share_percent",
        label="share",
        unit="%",
        digits=1,
        description="Share of the group in the goodput of all TCP, QUIC and UDP flows.",
        scope="study_group",
    ),
)

METRICS = (
    *(metric for metric in _CORE if metric.scope == "run"),
    *_STUDY,
    *_STUDY_GROUP,
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
