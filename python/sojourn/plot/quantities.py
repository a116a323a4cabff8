"""The quantities that figures show, by name: pings, goodput, sojourn times, backlogs, metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sojourn.arguments import ArgumentError
from sojourn.plot import curves
from sojourn.result import Result
from sojourn.result.catalogue import METRICS

# Longest name of a group in a label.
_NAME = 60

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Ascending values, each with the number of times that it was measured."""

    values: Numbers
    counts: Numbers

    def quantile(self, share: float) -> float:
        """Return the smallest value that at least this share of the samples does not exceed."""
        sums = self.counts.cumsum()
        at = int(np.searchsorted(sums, share * sums[-1]))
        return float(self.values[min(at, self.values.size - 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a panel of a figure can show."""

    name: str
    label: str
    counted: str
    logarithmic: bool
    series: Callable[[], Sequence[curves.Curve]] | None
    cdf: Callable[[], Sequence[curves.Curve]]
    samples: Callable[[], Mapping[str, Samples]]


def chosen(
    result: Result, metric: str | Sequence[str] | None, group: str | None, default: Sequence[str]
) -> list[Quantity]:
    """List the quantities to draw."""
    if group is not None:
        _check_group(result, group)
    known = _quantities(result, group)
    if metric is None:
        idle = set(curves.link_names(result)) - set(curves.waiting_links(result))
        hidden = {f"{name}_{link}" for name in ("sojourn", "backlog") for link in idle}
        named = [found for name in default for found in _named(known, name)]
        return [_of_group(one, group) for one in named if one.name not in hidden]
    found = []
    for name in [metric] if isinstance(metric, str) else metric:
        matches = _named(known, name) or _metric(result, name, group)
        if not matches:
            raise _unknown(result, name, group, known)
        found += matches
    return [_of_group(quantity, group) for quantity in found]


def _of_group(quantity: Quantity, group: str | None) -> Quantity:
    """Name the group of flows in the label of a quantity, cut where it would fill the panel."""
    if group is None:
        return quantity
    name = group if len(group) <= _NAME else f"{group[: _NAME - 1]}…"
    return replace(quantity, label=f"{name}: {quantity.label}")


def _check_group(result: Result, group: str) -> None:
    groups = result.flows["group"].unique(maintain_order=True).to_list()
    if group not in groups:
        rule = "unknown group; expected one of {groups}"
        raise ArgumentError("group", group, rule, groups=", ".join(groups))


def _named(known: Sequence[Quantity], name: str) -> list[Quantity]:
    """Return the quantities of a name, or of a name without its direction or link."""
    return [one for one in known if name in {one.name, one.name.partition("_")[0]}]


def _unknown(
    result: Result, name: str, group: str | None, known: Sequence[Quantity]
) -> ArgumentError:
    names = ", ".join(one.name for one in known)
    by = "run" if group is None else "group"
    rule = f'unknown metric; expected one of {{names}}, or a column of table("{by}")'
    if group is not None and _named(_quantities(result, None), name):
        rule = "not measured per group; expected one of {names}"
    return ArgumentError("metric", name, rule, names=names)


def _quantities(result: Result, group: str | None) -> list[Quantity]:
    """List all quantities over time of a result, or of a group in it."""
    found = []
    pings = curves.ping_times(result, group)
    if not pings.is_empty():
        found.append(_ping(result, pings, group))
    found += [
        _goodput(result, side, group)
        for side in curves.directions(result)
        if group is None or not curves.flows_of(result, side, group).is_empty()
    ]
    if group is None:
        for link in curves.link_names(result):
            found += [_sojourn(result, link), _backlog(result, link)]
    return found


def _ping(result: Result, pings: pl.DataFrame, group: str | None) -> Quantity:
    return Quantity(
        name="ping",
        label="ping [ms]",
        counted="pings",
        logarithmic=True,
        series=lambda: curves.ping_curves(result, group),
        cdf=lambda: curves.ping_cdfs(result, group),
        samples=lambda: _each_once(curves.measured(result, pings)),
    )


def _goodput(result: Result, side: str, group: str | None) -> Quantity:
    def rates() -> pl.DataFrame:
        return curves.measured(result, curves.goodput(result, side, group))

    return Quantity(
        name=f"goodput_{side}",
        label=f"goodput {side} [Mbit/s]",
        counted="sample intervals",
        logarithmic=False,
        series=lambda: curves.goodput_curves(result, side, group),
        cdf=lambda: curves.cdfs(result, rates()),
        samples=lambda: _each_once(rates()),
    )


def _sojourn(result: Result, link: str) -> Quantity:
    def samples() -> dict[str, Samples]:
        counts = curves.sojourn_counts(result, link)
        return {
            arm: Samples(
                values=of_arm["high_ms"].clip(lower_bound=curves.SMALLEST_MS).to_numpy(),
                counts=of_arm["count"].cast(pl.Float64).to_numpy(),
            )
            for (arm,), of_arm in counts.partition_by("arm", as_dict=True).items()
        }

    return Quantity(
        name=f"sojourn_{link}",
        label=f"sojourn time {link} [ms]",
        counted="packets",
        logarithmic=True,
        series=lambda: curves.sojourn_curves(result, link),
        cdf=lambda: curves.sojourn_cdfs(result, link),
        samples=samples,
    )


def _backlog(result: Result, link: str) -> Quantity:
    def waiting() -> pl.DataFrame:
        return curves.measured(result, curves.backlog(result, link))

    return Quantity(
        name=f"backlog_{link}",
        label=f"backlog {link} [packets]",
        counted="samples",
        logarithmic=False,
        series=lambda: curves.backlog_curves(result, link),
        cdf=lambda: curves.cdfs(result, waiting()),
        samples=lambda: _each_once(waiting()),
    )


def _metric(result: Result, name: str, group: str | None) -> list[Quantity]:
    """Return the metric of this name: one number per run, or per run and group."""
    frames = (
        [result.table()]
        if group is None
        else [
            frame.filter(pl.col("group") == group)
            for frame in (result.table("group"), result.table("application"))
        ]
    )
    frame = next((frame for frame in frames if name in frame.columns), None)
    if frame is None or not frame.schema[name].is_numeric() or name == "replication":
        return []
    values = frame.select("arm", value=pl.col(name).cast(pl.Float64)).drop_nulls()
    scopes = {"run"} if group is None else {"group", "application"}
    declared = (metric.named(name) for metric in METRICS if metric.scope in scopes)
    label = next((metric.heading for metric in declared if metric is not None), name)
    return [
        Quantity(
            name=name,
            label=label,
            counted="runs",
            logarithmic=False,
            series=None,
            cdf=lambda: curves.cdfs(result, values),
            samples=lambda: _each_once(values),
        )
    ]


def _each_once(samples: pl.DataFrame) -> dict[str, Samples]:
    return {
        arm: Samples(
            values=(values := of_arm["value"].sort().to_numpy()), counts=np.ones(values.size)
        )
        for (arm,), of_arm in samples.partition_by("arm", as_dict=True).items()
    }
