"""Labels of the axes of figures: name and unit of a metric, of a series, of the axis of a sweep."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn.result.catalogue import METRICS
from sojourn.studies import series
from sojourn.studies.quantities import MEDIAN

# What a distribution counts, and its values.
CDFS: Mapping[str, str] = {
    "ping_ms": "pings",
    "fct_s": "transfers",
    "duration_s": "transactions",
}
_SERIES: Mapping[str, tuple[str, str]] = {
    "ping_ms": ("ping", "ms"),
    "ping_avg_ms": ("mean ping", "ms"),
    "goodput_mbit_per_s": ("goodput", "Mbit/s"),
    "srtt_ms": ("smoothed RTT", "ms"),
    "cwnd_packets": ("congestion window", "packets"),
    "fct_s": ("flow completion time", "s"),
    "duration_s": ("duration", "s"),
}
_OF_LINKS: Sequence[tuple[str, str, str]] = (
    (r"sojourn_(.+)_ms", r"sojourn time \1", "ms"),
    (r"backlog_(.+)_packets", r"backlog \1", "packets"),
    (r"throughput_(.+)_mbit_per_s", r"throughput \1", "Mbit/s"),
)
_STATISTICS: Mapping[str, str] = {"peak": "peak", "peak_s": "time of the peak"}
_VALUE = re.compile(r"([\d.]+) *([a-zA-Z%]*)")
# Units of one quantity, with their factors.
_UNITS: Sequence[Mapping[str, float]] = (
    {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9},
    {"b": 1.0, "kb": 1024.0, "mb": 1024.0**2},
)
_WRITTEN: Mapping[str, str] = {
    "bit": "bit/s",
    "kbit": "kbit/s",
    "mbit": "Mbit/s",
    "gbit": "Gbit/s",
    "b": "B",
    "kb": "KiB",
    "mb": "MiB",
}
_NAMES: Mapping[str, str] = {"rtt": "RTT"}


def of_metric(metric: str) -> str:
    """Return name and unit of a metric or of a series.

    Examples
    --------
    >>> of_metric("goodput_down_mbit_per_s"), of_metric("sojourn_up_ms_max")
    ('goodput down [Mbit/s]', 'sojourn up max [ms]')
    >>> of_metric("median_induced_latency_ms")
    'median induced latency [ms]'
    >>> of_metric("ping_ms_p95[5,30]"), of_metric("ping_ms_peak_s[0,25]")
    ('ping p95, 5 to 30 s [ms]', 'ping time of the peak, 0 to 25 s [s]')
    """
    if metric.startswith(MEDIAN):
        return f"median {of_metric(metric.removeprefix(MEDIAN))}"
    if (window := series.parse(metric)) is not None:
        name, unit = _named(window.series)
        statistic = _STATISTICS.get(window.statistic, window.statistic)
        span = f"{window.begin_s:g} to {window.end_s:g} s"
        unit = "s" if window.statistic == "peak_s" else unit
        return _with_unit(f"{name} {statistic}, {span}", unit)
    for declared in METRICS:
        if (found := declared.named(metric)) is not None:
            return found.heading
    return of_series(metric)


def of_series(name: str) -> str:
    """Return name and unit of a series.

    Examples
    --------
    >>> of_series("backlog_down_packets"), of_series("srtt_ms")
    ('backlog down [packets]', 'smoothed RTT [ms]')
    """
    return _with_unit(*_named(name))


def _named(name: str) -> tuple[str, str]:
    if name in _SERIES:
        return _SERIES[name]
    for pattern, label, unit in _OF_LINKS:
        if match := re.fullmatch(pattern, name):
            return match.expand(label), unit
    return name, ""


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The values of the axis of a sweep as numbers."""

    label: str
    values: Sequence[float]
    names: Sequence[str]


def places(axis: str, values: Sequence[Any]) -> Places:
    """Read the values of the axis of a sweep.

    Examples
    --------
    >>> found = places("rtt", ["500us", "12ms", "1s"])
    >>> found.label, found.values
    ('RTT [ms]', [0.5, 12.0, 1000.0])
    >>> places("links.up.qdisc", ["codel", "pie"]).names
    ['codel', 'pie']
    """
    last = axis.rpartition(".")[2]
    name = _NAMES.get(last, last.replace("_", " "))
    read = [_VALUE.fullmatch(str(value)) for value in values]
    found = [(float(match[1]), match[2]) for match in read if match is not None]
    units = {unit for _, unit in found}
    family = next((one for one in _UNITS if units <= one.keys()), None)
    if len(found) < len(values) or (len(units) > 1 and family is None):
        names = [str(value) for value in values]
        return Places(label=name, values=[float(at) for at in range(len(names))], names=names)
    # The middle one, of which the numbers have the fewest digits.
    unit = sorted(found, key=lambda one: _size(one, family))[len(found) // 2][1]
    factor = 1.0 if family is None else family[unit]
    numbers = [float(f"{_size(one, family) / factor:.9g}") for one in found]
    return Places(label=_with_unit(name, _WRITTEN.get(unit, unit)), values=numbers, names=[])


def _size(value: tuple[float, str], family: Mapping[str, float] | None) -> float:
    number, unit = value
    return number if family is None else number * family[unit]
