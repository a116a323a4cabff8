"""Check stationarity: compare the first half of the measured time with the second.

If goodput or latency differs between the halves by more than chance explains, the load had not
settled when the measurement began, and the means depend on the length of the run.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

from sojourn import _core
from sojourn.result.rows import (
    CONNECTIONS,
    CONSTANT_RATE,
    Record,
    Records,
    grouped,
    mean,
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
    links: Records,
    table: Callable[[str], _core.Table],
    *,
    warmup_s: float,
    duration_s: float,
) -> list[Drift]:
    """Find the quantities that differ between the halves of the measured time.

    `table` returns a table of the result by name.

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
    starts, goodput = _load(table("flows"), table("flow_series"), halves)
    steady = {arm for arm, spans in starts.items() if _is_steady(spans, halves)}
    waiting = steady - foreign
    rtt = {
        (arm, replication): _quantities(means)
        for arm, replication, means in table("pings").part_means("rtt_ms", **halves.parts)
    }
    with_pings = {arm for arm, _ in rtt}
    busy = {
        place
        for place, of in grouped(links, itemgetter("arm", "link")).items()
        if place[0] not in with_pings and (mean(row["busy_share"] for row in of) or 0) >= BUSY_SHARE
    }
    sojourn = _sojourn(table("link_series"), busy, halves) if busy else {}
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

    @property
    def parts(self) -> dict[str, Any]:
        """The parts, as arguments of a table."""
        return {**self._asdict(), "parts": 2 * PARTS}


# What the quantities of each run are of, in order, and their means, by arm and replication.
Quantities = dict[tuple[str, int], list[tuple[str, Parts]]]


class Span(NamedTuple):
    """When a flow of a run sent, and the length of the intervals of its series."""

    replication: int
    start_s: float
    end_s: float
    interval_s: float


def _load(
    flows: _core.Table, flow_series: _core.Table, halves: Halves
) -> tuple[dict[str, list[Span]], Quantities]:
    """Return the spans of the flows that send without end, by arm, and the goodput of directions.

    The load is the endless connections, and the flows that send data at a rate of their own.
    """
    spans: dict[str, list[Span]] = {}
    goodput: Quantities = {}
    for arm, replication, of_flows, means in flow_series.load_means(flows, **halves.parts):
        if of_flows:
            spans.setdefault(arm, []).extend(Span(replication, *of) for of in of_flows)
        goodput[arm, replication] = _quantities(means)
    return spans, goodput


def _quantities(means: Iterable[tuple[str, list[float | None]]]) -> list[tuple[str, Parts]]:
    """Return the known means of each quantity by part."""
    return [
        (of, {part: mean for part, mean in enumerate(parts) if mean is not None})
        for of, parts in means
    ]


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


def _sojourn(
    link_series: _core.Table, busy: Container[tuple[str, str]], halves: Halves
) -> Quantities:
    """Return the sojourn times of the links for which packets wait, in arms without pings."""
    found = link_series.part_means(
        "sojourn_ms_mean", of="link", weight="sent_packets", **halves.parts
    )
    return {
        (arm, replication): [one for one in _quantities(means) if (arm, one[0]) in busy]
        for arm, replication, means in found
    }


def _tests(
    means: Quantities, arms: Container[str], name: str, unit: str, *, middle_s: float
) -> Iterator[tuple[Drift, float]]:
    """Compare the halves of each quantity of some arms, with the p value of their difference."""
    found = [
        ((arm, of), parts)
        for (arm, _), run in sorted(means.items(), key=itemgetter(0))
        if arm in arms
        for of, parts in run
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
