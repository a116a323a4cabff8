"""Names of metrics as users write them."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sojourn import _core
from sojourn.errors import invalid, invalid_value
from sojourn.result.catalogue import METRICS, Metric

# Ends of names of metrics that are units; users may leave them out.
_UNITS = ("_mbit_per_s", "_ms", "_percent", "_s")
# Names of links in most scenarios.
_SIDES = ("up", "down")
# Directions in names of metrics; "total" is that of traffic with a path.
_DIRECTIONS = (*_SIDES, "total")
# A link without a queue.
_UNLIMITED = "unlimited"
_EXAMPLES = ("ping_ms_p99", "goodput_down", "drops")
# Names that are less similar are not suggested.
_NEAR = 0.75


def metric_column(name: str, columns: Sequence[str], place: str = "") -> str:
    """Return the column of a metric; errors begin with `place`.

    Examples
    --------
    >>> metric_column("goodput_up", ["drops", "goodput_up_mbit_per_s"])
    'goodput_up_mbit_per_s'
    """
    for column in (name, *(f"{name}{unit}" for unit in _UNITS)):
        if column in columns:
            return column
    instead = suggestion(name, columns) or f"expected one of {', '.join(columns)}"
    raise _unknown(name, instead, place)


def suggestion(name: str, columns: Sequence[str]) -> str | None:
    """Write which of `columns` may be meant; None if none has a similar name.

    Examples
    --------
    >>> suggestion("pingms_p99", ["drops", "ping_ms_p99"])
    'did you mean "ping_ms_p99"?'
    """
    by_name = {short: column for column in columns for short in (_without_unit(column), column)}
    near = difflib.get_close_matches(name, by_name, n=1, cutoff=_NEAR)
    return f'did you mean "{by_name[near[0]]}"?' if near else None


def instead_of(name: str, links: Sequence[str] | None = None) -> str:
    """Write which metric of runs may be meant, or which there are.

    Examples
    --------
    >>> instead_of("goodptu_up")
    'did you mean "goodput_up_mbit_per_s"?'
    """
    columns = list(_columns(_SIDES if links is None else links))
    return suggestion(name, columns) or f"expected one such as {', '.join(_EXAMPLES)}"


def _columns(links: Sequence[str]) -> Iterator[str]:
    """List the columns of runs of scenarios with these links."""
    for column in (metric.column for metric in METRICS if metric.scope == "run"):
        if "{link}" in column:
            yield from (column.replace("{link}", link) for link in links)
        elif "{direction}" in column:
            yield from (column.replace("{direction}", side) for side in _DIRECTIONS)
        else:
            yield column


def _without_unit(column: str) -> str:
    for unit in _UNITS:
        if column.endswith(unit):
            return column.removesuffix(unit)
    return column


def links_of(scenario: _core.Scenario) -> list[str]:
    """List the names of the links of a scenario."""
    return list(json.loads(scenario.to_json())["links"])


def queued_links(
    scenario: _core.Scenario, changes: Iterable[Mapping[str, object]] = ({},)
) -> list[str]:
    """List the links of a scenario that have a queue in some arm, so that runs have its metrics."""
    document = json.loads(scenario.to_json())
    arms = [arm["set"] for arm in document.get("arms", [])] or [{}]
    queued = {
        name: any(arm.get(f"links.{name}", link) != _UNLIMITED for arm in arms)
        for name, link in document["links"].items()
    }
    found = dict.fromkeys(queued, False)
    for change in changes:
        for name, without in queued.items():
            path = f"links.{name}"
            found[name] |= change[path] != _UNLIMITED if path in change else without
    return [name for name, is_queued in found.items() if is_queued]


def is_possible(name: str, links: Sequence[str] | None = None) -> bool:
    """Whether a metric of runs may have this name.

    Examples
    --------
    >>> is_possible("goodput_down"), is_possible("goodpt_down")
    (True, False)
    >>> is_possible("sojourn_lan_ms_p95"), is_possible("sojourn_lan_ms_p95", ["up", "down"])
    (True, False)
    """
    named = (name, *(f"{name}{unit}" for unit in _UNITS))
    if links is not None:
        return not set(named).isdisjoint(_columns(links))
    of_runs = [metric for metric in METRICS if metric.scope == "run"]
    return any(metric.named(column) is not None for column in named for metric in of_runs)


def unit(name: str) -> str:
    """Return the unit of a metric of runs, or of ``GROUP.METRIC``.

    Examples
    --------
    >>> unit("goodput_down"), unit("web.fct_s_p95")
    ('Mbit/s', 's')
    """
    _, dot, metric = name.rpartition(".")
    for column in (metric, *(f"{metric}{end}" for end in _UNITS)):
        for declared in METRICS:
            if (declared.scope in {"run", "study"}) is not bool(dot) and declared.named(column):
                return declared.unit
    raise _unknown(name, instead_of(name), "")


def check_possible(name: str, links: Sequence[str] | None = None, *, place: str = "") -> None:
    """Check before the first run that a metric of runs may have this name."""
    if not is_possible(name, links):
        raise _unknown(name, instead_of(name, links), place)


def _unknown(name: str, instead: str, place: str) -> _core.ScenarioError:
    error = invalid_value("metric", name, instead)
    return invalid(place, f"{error}") if place else error


def described(columns: Iterable[str]) -> list[Metric]:
    """Return the metrics of columns of runs, including those used in comparisons with studies.

    Examples
    --------
    >>> [metric.heading for metric in described(["goodput_up_mbit_per_s", "drops"])]
    ['goodput up [Mbit/s]', 'drops']
    """
    return [_described(column) for column in columns]


def _described(column: str) -> Metric:
    for declared in METRICS:
        if declared.scope in {"run", "study"} and (metric := declared.named(column)) is not None:
            return metric
    message = f'unknown metric "{column}"; {instead_of(column)}'
    raise _core.ResultError(message)
