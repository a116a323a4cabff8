"""The quantities that figures show, by name: pings, goodput, sojourn times, backlogs, metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.plot import curves
from sojourn.result import Result
from sojourn.result.catalogue import METRICS
from sojourn.result.metrics import DROPS
from sojourn.result.rows import KEYS

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


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a panel of a figure can show."""

    name: str
    label: str
    unit: str
    meaning: str
    counted: str
    # The samples: a value per arm, replication and, unless it is one per run, time; the frame of a
    # quantity of flows also has their names.
    frame: Callable[[], pl.DataFrame]
    _: KW_ONLY
    logarithmic: bool = False
    over_time: bool = True
    of_flows: bool = False
    link: str | None = None
    group: str | None = None
    # The part of the traffic that a panel shows if others have a panel of their own.
    part: str = ""
    # Whether the distribution is that of packets at the link instead of that of the samples.
    of_packets: bool = False
    # The parameter of the queue that the values are compared with.
    parameter: str | None = None

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    @property
    def is_crowded(self) -> bool:
        """Whether each arm has several lines."""
        return self.of_flows and self.frame()["flow"].n_unique() > 1

    def series(self, result: Result, replication: int | None) -> Sequence[curves.Curve]:
        """Return the mean over the runs of each arm with its band, or the samples of one run."""
        samples = curves.of_replication(self.frame(), replication)
        if replication is not None or samples["replication"].n_unique() == 1:
            return curves.of_run(result, samples)
        return curves.over_time(result, samples)

    def measured(self, result: Result, replication: int | None) -> pl.DataFrame:
        """Return the samples from the end of the warm-up on."""
        samples = curves.of_replication(self.frame(), replication)
        return curves.measured(result, samples) if self.over_time else samples.drop_nulls("value")

    def cdf(self, result: Result, replication: int | None) -> Sequence[curves.Curve]:
        """Return the distribution of each arm."""
        if self.of_packets and self.link is not None:
            return curves.sojourn_cdfs(result, self.link, replication)
        return curves.cdfs(result, self.measured(result, replication))

    def samples(self, result: Result, replication: int | None) -> Mapping[str, Samples]:
        """Return the samples of each arm."""
        if self.of_packets and self.link is not None:
            counts = curves.sojourn_counts(result, self.link, replication)
            counts = counts.rename({"high_ms": "value"})
        else:
            counts = self.measured(result, replication).with_columns(count=1).sort("value")
        return {
            arm: Samples(
                values=of_arm["value"].to_numpy(),
                counts=of_arm["count"].cast(pl.Float64).to_numpy(),
            )
            for (arm,), of_arm in counts.partition_by("arm", as_dict=True).items()
        }

    def per_run(self, result: Result, replication: int | None) -> Mapping[str, Sequence[float]]:
        """Return the mean of each run after the warm-up, by arm."""
        runs = self.measured(result, replication).group_by(KEYS, maintain_order=True)
        means = runs.agg(pl.col("value").mean())
        return {
            arm: of_arm["value"].to_list()
            for (arm,), of_arm in means.partition_by("arm", as_dict=True).items()
        }

    def parameters(self, result: Result) -> Mapping[str, float]:
        """Return the value of the parameter of the queue of each arm that has one in this unit."""
        if self.parameter is None:
            return {}
        queues = result.links.filter(link=self.link).unique("arm", maintain_order=True)
        # Imported runs have no queue.
        queues = queues.drop_nulls("qdisc")
        found = {}
        for arm, queue, mbit in queues.select("arm", "qdisc", "rate_mbit_per_s").iter_rows():
            bits = None if mbit is None else round(mbit * 1e6)
            text = dict(_core.qdisc_parameters(queue, bits)).get(self.parameter, "")
            # A limit in bytes, or a target in packets, is no value of this axis.
            if self.unit == "ms" and text.endswith("s"):
                found[arm] = 1e3 * _core.parse_time_s(text)
            elif self.unit == "packets" and text.isdecimal():
                found[arm] = float(text)
        return found


def chosen(
    result: Result, metrics: Sequence[str], group: str | None, default: Sequence[str]
) -> list[Quantity]:
    """List the quantities to draw: those of these names, or else of the default names."""
    if group is not None:
        _check_group(result, group)
    known = over_time(result, group)
    if not metrics:
        idle = set(curves.link_names(result)) - set(curves.waiting_links(result))
        hidden = {f"{name}_{link}" for name in ("sojourn", "backlog") for link in idle}
        named = [found for name in default for found in _named(known, name)]
        return [_of_group(one, group) for one in named if one.name not in hidden]
    found = []
    for name in metrics:
        matches = _named(known, name) or [one for one in per_run(result, group) if one.name == name]
        if not matches:
            raise _unknown(result, name, group)
        found += matches
    return [_of_group(quantity, group) for quantity in found]


def listed(result: Result, group: str | None = None) -> list[Quantity]:
    """List the quantities of a result, each name once: those over time, then those of runs."""
    found = [*over_time(result, group), *per_run(result, group)]
    return list({one.name: one for one in reversed(found)}.values())[::-1]


def _of_group(quantity: Quantity, group: str | None) -> Quantity:
    """Name the group of flows in the label of a quantity, cut where it would fill the panel."""
    if group is None:
        return quantity
    name = group if len(group) <= _NAME else f"{group[: _NAME - 1]}…"
    return replace(quantity, label=f"{name}: {quantity.label}", group=group)


def _check_group(result: Result, group: str) -> None:
    groups = result.flows["group"].unique(maintain_order=True).to_list()
    if group not in groups:
        rule = "unknown group; expected one of {groups}"
        raise ArgumentError("group", group, rule, groups=", ".join(groups))


def _named(known: Sequence[Quantity], name: str) -> list[Quantity]:
    """Return the quantities of a name, or else of a name without its direction or link."""
    exact = [one for one in known if one.name == name]
    return exact or [one for one in known if one.name.partition("_")[0] == name]


def _unknown(result: Result, name: str, group: str | None) -> ArgumentError:
    known = [one.name for one in listed(result, group)]
    near = [one for one in known if "." in name and one.startswith(f"{name.partition('.')[0]}.")]
    # A queue has many statistics.
    names = ", ".join(near or [one for one in known if "." not in one])
    rule = "unknown metric; expected one of {names}"
    if group is not None and _named(over_time(result, None), name):
        rule = "not measured per group; expected one of {names}"
    return ArgumentError("metric", name, rule, names=names)


def over_time(result: Result, group: str | None = None) -> list[Quantity]:
    """List all quantities over time of a result, or of a group in it."""
    found = []
    pings = curves.ping_times(result, group)
    if not pings.is_empty():
        what = ("ping", "ping", "ms", "round-trip time of pings", "pings")
        found.append(Quantity(*what, pings.clone, logarithmic=True))
    found += [
        Quantity(
            f"goodput_{side}",
            f"goodput {side}",
            "Mbit/s",
            f"data delivered {side} to applications",
            "sample intervals",
            partial(curves.goodput, result, side, group),
        )
        for side in curves.directions(result)
        if group is None or not curves.flows_of(result, side, group).is_empty()
    ]
    found += _of_connections(result, group)
    if group is None:
        for link in curves.link_names(result):
            found += _of_link(result, link)
        found += _of_queues(result)
    return found


_INTERVAL_S = pl.col("t_s") - pl.col("t_s").shift(1, fill_value=0.0).over(KEYS)
_RATE, _SOJOURN = pl.col("sent_bytes") * 8e-6 / _INTERVAL_S, pl.col("sojourn_ms_mean")
_DROPPED = DROPS.cum_sum().over(KEYS)
# What is measured at a link: name, label, unit, meaning, what is counted, and how it is computed.
_LINKS = (
    ("sojourn", "sojourn time", "ms", "time in the queue of", "packets", _SOJOURN),
    ("backlog", "backlog", "packets", "packets waiting at", "samples", pl.col("backlog_packets")),
    ("dropped", "dropped", "packets", "packets dropped so far at", "samples", _DROPPED),
    ("rate", "rate", "Mbit/s", "rate of sent packets at", "sample intervals", _RATE),
)
_PARAMETERS = {"sojourn": "target", "backlog": "limit"}


def _of_link(result: Result, link: str) -> list[Quantity]:
    return [
        Quantity(
            f"{name}_{link}",
            f"{label} {link}",
            unit,
            f"{meaning} {link}",
            counted,
            partial(curves.at_link, link, value, result),
            logarithmic=unit == "ms",
            link=link,
            of_packets=name == "sojourn",
            parameter=_PARAMETERS.get(name),
        )
        for name, label, unit, meaning, counted, value in _LINKS
    ]


# Statistics of queues that are times in µs, as in ``tc``; names that end in ``_us`` are too.
_MICROSECONDS = frozenset(
    [
        "delay",
        "delay_c",
        "delay_l",
        "ldelay",
        "drop_next",
        "min_target",
        "max_target",
        "signal_rtt",
        "active_rtt",
    ]
)


def _of_queues(result: Result) -> list[Quantity]:
    """List the statistics of queues that the scenario had sampled, such as ``up.prob``."""
    found = []
    columns = ("link", "part", "part_number", "name")
    known = result.queue_series.select(columns).unique(maintain_order=True)
    for link, part, number, name in known.iter_rows():
        word = name if part is None else f"{part}[{number}].{name}"
        statistic = dict(zip(columns, (link, part, number, name), strict=True))
        unit = "µs" if name in _MICROSECONDS or name.endswith("_us") else ""
        what = (f"{link}.{word}", f"{word} {link}", unit, f"{word} of the queue of {link}")
        found.append(Quantity(*what, "samples", partial(curves.state, result, statistic)))
    return found


# Name, column, label, unit and meaning of what connections measure.
_CONNECTIONS = (
    ("cwnd", "cwnd_packets", "congestion window", "packets", "congestion window"),
    ("ssthresh", "ssthresh_packets", "slow-start threshold", "packets", "slow-start threshold"),
    ("in_flight", "in_flight_packets", "in flight", "packets", "unacknowledged packets"),
    ("rwnd", "receive_window_bytes", "receive window", "B", "receive window"),
    ("rtt", "srtt_ms", "smoothed RTT", "ms", "smoothed round-trip time"),
)


def _of_connections(result: Result, group: str | None) -> list[Quantity]:
    """List what connections measure, for each group of traffic that has connections."""
    series = result.flow_series.drop_nulls("cwnd_packets")
    groups = series["group"].unique(maintain_order=True).to_list()
    # Results of earlier versions, and imported ones, lack columns.
    measured = {
        column: set(series.drop_nulls(column)["group"]) if column in series.columns else set()
        for _, column, *_ in _CONNECTIONS
    }
    return [
        Quantity(
            name,
            label,
            unit,
            f"{meaning} of each flow",
            "samples",
            partial(curves.of_flows, result, column, of),
            logarithmic=unit == "ms",
            of_flows=True,
            part=of if group is None and len(groups) > 1 else "",
        )
        for name, column, label, unit, meaning in _CONNECTIONS
        for of in groups
        if group in {None, of} and of in measured[column]
    ]


def per_run(result: Result, group: str | None = None) -> list[Quantity]:
    """List the metrics of runs: one number per run, or per run and group."""
    frames = (
        [result.table()]
        if group is None
        else [
            frame.filter(pl.col("group") == group)
            for frame in (result.table("group"), result.table("application"))
        ]
    )
    scopes = {"run"} if group is None else {"group", "application"}
    found = {}
    for frame in frames:
        for name, kind in frame.schema.items():
            if not kind.is_numeric() or name == "replication" or name in found:
                continue
            declared = (metric.named(name) for metric in METRICS if metric.scope in scopes)
            metric = next((one for one in declared if one is not None), None)
            values = frame.select(*KEYS, value=pl.col(name).cast(pl.Float64)).drop_nulls("value")
            what = (
                (name, "", "") if metric is None else (metric.label, metric.unit, metric.definition)
            )
            found[name] = Quantity(name, *what, "runs", values.clone, over_time=False)
    return list(found.values())
