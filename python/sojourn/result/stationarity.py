"""Check stationarity: compare the first half of the measured time with the second.

If goodput or latency differs between the halves by more than chance explains, the load had not
settled when the measurement began, and the means depend on the length of the run.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

from sojourn import _core
from sojourn.result.rows import (
    CONNECTIONS,
    CONSTANT_RATE,
    MEASURED_AS_FLOW,
    Record,
    Records,
    by_run,
    grouped,
    mean,
    stretches,
)
from sojourn.result.student import p_value

# Probability of at least one false alarm in a stationary result, divided among its tests.
FALSE_ALARM = 0.01
# Smaller differences do not cause a warning, even if they are significant.
LEAST_SHARE = 0.10
# Flows that start within this time of the first one start together.
TOGETHER_S = 2.0
# With fewer runs, the test takes parts of the measured time instead of runs.
LEAST_RUNS = 3
# Parts of each half.
PARTS = 5
# Of a shorter measured time, parts are too short to be tested.
LEAST_PAIRS = 4
# A link is a source of latency if packets wait for it for this share of the time.
BUSY_SHARE = 0.05


# The mean of a quantity in each part of the measured time of a run.
Parts = dict[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A quantity that changes during the measured time."""

    arm: str
    quantity: str
    unit: str
    first: float
    second: float
    middle_s: float
    runs: int


def drifts(
    flows: Records,
    flow_series: _core.Table,
    links: Records,
    link_series: _core.Table,
    pings: _core.Table,
    *,
    warmup_s: float,
    duration_s: float,
) -> list[Drift]:
    """Find the quantities that differ between the halves of the measured time.

    Goodput of each direction; and the RTT of pings or, without pings, the sojourn times of the
    links for which packets wait. The difference between the halves is taken in each run, and a
    t test decides whether its mean is 0. Of fewer than ``LEAST_RUNS`` runs, the mean of the runs
    is cut into parts instead: each part of the first half is compared with that of the second.

    The load is the endless connections and the UDP flows. An arm is tested only if it has a load
    that lasts for the whole measured time, and none that starts or ends within it: then the change
    is part of the experiment. Latency is compared only where nothing but such load, calls and
    pings is sent: other traffic begins and ends by itself.
    """
    foreign = {
        flow["arm"] for flow in flows if not (_is_endless(flow) or flow["kind"] in CONSTANT_RATE)
    }
    halves = Halves(warmup_s, duration_s)
    starts, goodput = _load(flows, flow_series, halves)
    steady = {arm for arm, spans in starts.items() if _is_steady(spans, halves)}
    waiting = steady - foreign
    rtt, with_pings = _of_series(pings, ("rtt_ms",), halves, _ping)
    busy = {
        place
        for place, of in grouped(links, itemgetter("arm", "link")).items()
        if place[0] not in with_pings and (mean(row["busy_share"] for row in of) or 0) >= BUSY_SHARE
    }
    names = ("link", "sojourn_ms_mean", "sent_packets")
    sojourn = _of_series(link_series, names, halves, partial(_sojourn, busy))[0] if busy else {}
    tests = [
        test
        for name, unit, parts, arms in (
            ("goodput {}", "Mbit/s", goodput, steady),
            ("ping RTT{}", "ms", rtt, waiting),
            ("sojourn time of link {}", "ms", sojourn, waiting),
        )
        for test in _tests(parts, arms, name, unit, middle_s=(warmup_s + duration_s) / 2)
    ]
    of_arms = {arm: at for at, arm in enumerate(dict.fromkeys(flow["arm"] for flow in flows))}
    found = [drift for drift, p in tests if _is_large(drift) and p < FALSE_ALARM / len(tests)]
    return sorted(found, key=lambda drift: of_arms[drift.arm])


def _is_endless(flow: Record) -> bool:
    return flow["kind"] in CONNECTIONS and flow["bytes"] is None


def _is_large(drift: Drift) -> bool:
    return abs(drift.second - drift.first) > LEAST_SHARE * (drift.first + drift.second) / 2


class Halves(NamedTuple):
    """The measured time, of which each half has `PARTS` parts."""

    warmup_s: float
    duration_s: float

    def part(self, t_s: float) -> int | None:
        """Return the part that an interval that ends at a time belongs to; None if it has none."""
        if not self.warmup_s < t_s <= self.duration_s:
            return None
        length = (self.duration_s - self.warmup_s) / (2 * PARTS)
        return math.ceil((t_s - self.warmup_s) / length) - 1


class Means:
    """Weighted means of a quantity, such as the goodput of a direction, in each part of a run."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[int, tuple[float, float]]] = {}

    def add(self, of: str, part: int | None, value: float, weight: float) -> None:
        """Add a value."""
        if part is not None:
            parts = self._sums.setdefault(of, {})
            total, weights = parts.get(part, (0.0, 0.0))
            parts[part] = total + value * weight, weights + weight

    def all(self) -> Iterator[tuple[str, Parts]]:
        """Yield what the quantities are of, in order, and their means."""
        for of, parts in sorted(self._sums.items()):
            yield of, {part: sums[0] / sums[1] for part, sums in sorted(parts.items()) if sums[1]}


# The means of each run, by arm and replication.
Quantities = dict[tuple[str, int], Means]


class Span(NamedTuple):
    """When a flow of a run sent, and the length of the intervals of its series."""

    replication: int
    start_s: float
    end_s: float
    interval_s: float


def _load(
    flows: Records, flow_series: _core.Table, halves: Halves
) -> tuple[dict[str, list[Span]], Quantities]:
    """Return the spans of the flows that send without end, by arm, and the goodput of directions.

    The series of a flow begins with the interval in which it starts; all are of equal length.
    """
    directions = {
        (flow["arm"], flow["replication"], flow["flow"]): flow["direction"] or "total"
        for flow in flows
        if _is_endless(flow) or (flow["kind"] in CONSTANT_RATE and flow["kind"] in MEASURED_AS_FLOW)
    }
    spans: dict[str, list[Span]] = {}
    goodput: Quantities = {}
    for run, columns in by_run(flow_series, "flow", "t_s", "goodput_mbit_per_s"):
        arm, replication = run
        goodput[run] = means = Means()
        sums: dict[str, dict[float, float]] = {}
        lengths: dict[str, dict[float, float]] = {}
        for flow, places in _by_flow(columns[0]).items():
            if (direction := directions.get((*run, flow))) is None:
                continue
            times, rates = (_taken(column, places) for column in columns[1:])
            steps = [after - before for before, after in pairwise(times)]
            interval_s = min(steps, default=times[0])
            span = Span(replication, times[0] - interval_s, times[-1], interval_s)
            spans.setdefault(arm, []).append(span)
            sum_of, length_of = sums.setdefault(direction, {}), lengths.setdefault(direction, {})
            for t_s, rate, step in zip(times, rates, [interval_s, *steps], strict=True):
                sum_of[t_s] = sum_of.get(t_s, 0.0) + (rate or 0.0)
                if step < length_of.get(t_s, math.inf):
                    length_of[t_s] = step
        for direction, sum_of in sums.items():
            for t_s, rate in sum_of.items():
                means.add(direction, halves.part(t_s), rate, lengths[direction][t_s])
    return spans, goodput


def _by_flow(flows: Iterable[str]) -> dict[str, list[slice]]:
    """Return where the rows of each flow are."""
    places: dict[str, list[slice]] = {}
    for flow, place in stretches(flows):
        places.setdefault(flow, []).append(place)
    return places


def _taken(column: Sequence[Any], places: Iterable[slice]) -> list[Any]:
    return list(chain.from_iterable(column[place] for place in places))


def _is_steady(spans: Iterable[Span], halves: Halves) -> bool:
    """Whether the load of an arm neither starts nor ends within the measured time."""
    for run in grouped(spans, itemgetter(0)).values():
        together_s = max(halves.warmup_s, min(span.start_s for span in run) + TOGETHER_S)
        for span in run:
            late = together_s < span.start_s < halves.duration_s
            early = halves.warmup_s < span.end_s < halves.duration_s - span.interval_s
            if late or early:
                return False
    return True


def _of_series(
    table: _core.Table,
    names: Iterable[str],
    halves: Halves,
    sample: Callable[..., tuple[str, float, float] | None],
) -> tuple[Quantities, set[str]]:
    """Average a quantity of each run; return also the arms in the table.

    `sample` returns what the quantity of a row is of, its value and its weight; None without one.
    """
    found: Quantities = {}
    for run, columns in by_run(table, "t_s", *names):
        found[run] = means = Means()
        for t_s, *values in zip(*columns, strict=True):
            if (of := sample(run[0], *values)) is not None:
                name, value, weight = of
                means.add(name, halves.part(t_s), value, weight)
    return found, {arm for arm, _ in found}


def _ping(_arm: str, rtt_ms: float | None) -> tuple[str, float, float] | None:
    return None if rtt_ms is None else ("", rtt_ms, 1.0)


def _sojourn(
    busy: Container[tuple[str, str]], arm: str, link: str, sojourn_ms: float | None, sent: int
) -> tuple[str, float, float] | None:
    """Return the sojourn time of a link for which packets wait, in arms without pings."""
    return None if sojourn_ms is None or (arm, link) not in busy else (link, sojourn_ms, sent)


def _tests(
    means: Quantities, arms: Container[str], name: str, unit: str, *, middle_s: float
) -> Iterator[tuple[Drift, float]]:
    """Compare the halves of each quantity of some arms, with the p value of their difference."""
    found = [
        ((arm, of), parts)
        for (arm, _), run in sorted(means.items(), key=itemgetter(0))
        if arm in arms
        for of, parts in run.all()
    ]
    for (arm, of), of_runs in grouped(found, itemgetter(0)).items():
        rows = [parts for _, parts in of_runs]
        # Parts without a sample are left out on both sides.
        pairs = [(n, n + PARTS) for n in range(PARTS)]
        pairs = [pair for pair in pairs if all(pair[0] in row and pair[1] in row for row in rows)]
        if len(pairs) < LEAST_PAIRS:
            continue
        per_run = [[(row[before], row[after]) for before, after in pairs] for row in rows]
        changes = [[after - before for before, after in run] for run in per_run]
        halves = [tuple(map(fmean, zip(*run, strict=True))) for run in per_run]
        over_runs = [fmean(run) for run in changes]
        over_parts = [fmean(of_part) for of_part in zip(*changes, strict=True)]
        drift = Drift(
            arm=arm,
            quantity=name.format(of),
            unit=unit,
            first=fmean(first for first, _ in halves),
            second=fmean(second for _, second in halves),
            middle_s=middle_s,
            runs=len(rows),
        )
        yield drift, p_value(over_runs if len(rows) >= LEAST_RUNS else over_parts)
