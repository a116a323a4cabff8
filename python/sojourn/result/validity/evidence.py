"""What findings are based on: the tables of a result, and the configuration of each arm."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from sojourn import _core
from sojourn.result.rows import (
    CONNECTIONS,
    KEYS,
    WITH_TRANSACTIONS,
    WITHOUT_DATA,
    Record,
    Records,
    Run,
    grouped,
    known,
    mean,
    rows,
)
from sojourn.result.stationarity import Drift
from sojourn.result.validity.percentiles import Sparse
from sojourn.scenario import Scenario
from sojourn.scenario.paths import overridden

Block = Mapping[str, Any]

# Keys of applications that end by themselves.
ROUNDS = ("rounds", "visits")
OPPOSITE = {"up": "down", "down": "up"}
# The fact of a run that lasted as long as its program: it says what ended the run.
ENDED_BY = "ended_by"


@dataclass(frozen=True, slots=True)
class Setup:
    """The configuration of an arm, in the canonical form of scenario files."""

    document: Mapping[str, Any]

    @property
    def links(self) -> Mapping[str, Mapping[str, Any]]:
        """The links that have a queue."""
        links = self.document["links"].items()
        return {name: link for name, link in links if isinstance(link, Mapping)}

    @property
    def blocks(self) -> Mapping[str, Block]:
        """The traffic blocks by name, which is the group of their flows."""
        return {block["name"]: block for block in self.document["traffic"]}

    @property
    def sample_s(self) -> float:
        """Length of one interval of the series."""
        return _core.parse_time_s(self.document["sample"])

    def forward(self, block: Block) -> list[str]:
        """List the links on the way of the data."""
        return self._with_queue(block["path"] if "path" in block else [block["direction"]])

    def both_ways(self, block: Block) -> list[str]:
        """List the links on the way of the data and on the way back."""
        back = block.get("return", []) if "path" in block else [OPPOSITE[block["direction"]]]
        return [*self.forward(block), *self._with_queue(back)]

    def _with_queue(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.links]

    def values(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the value of each key, that of a link or a block in one piece."""
        for key, value in self.document.items():
            if key == "links":
                for name, link in value.items():
                    of_link = link if isinstance(link, Mapping) else {"rate": link}
                    yield from ((f"links.{name}.{key}", _text(one)) for key, one in of_link.items())
            elif key == "traffic":
                for block in value:
                    name = block["name"]
                    yield from ((f"traffic.{name}.{key}", _text(one)) for key, one in block.items())
            else:
                yield key, _text(value)


def _text(value: object) -> str:
    """Write a value of a scenario."""
    return value if isinstance(value, str) else json.dumps(value)


def setups(scenario: Scenario) -> dict[str, Setup]:
    """Return the configuration of each arm."""
    plain = scenario.replace(arms=())
    changes = {arm.name: arm.set for arm in scenario.arms} or {scenario.checked.arms[0]: {}}
    return {
        name: Setup(json.loads(overridden(plain, change).checked.to_json()))  # type: ignore[arg-type]
        for name, change in changes.items()
    }


class Span(NamedTuple):
    """When something in a run offered load."""

    run: Run
    kind: str
    started_s: float
    end_s: float


class Busy(NamedTuple):
    """The shares of the time in which packets waited for a link of an arm, and were sent."""

    arm: str
    link: str
    busy_share: float | None
    utilisation: float | None
    # The 95th percentile of the wait below the queue, in a transmit ring.
    ring_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The tables of a result, and how its runs were configured."""

    arms: Mapping[str, Setup]
    flows: Records
    links: Records
    flow_series: _core.Table
    link_series: _core.Table
    transactions: Records
    finished: int
    total: int
    replications: int
    warmup_s: float
    duration_s: float
    per_application: Records
    applications: Records
    facts: Sequence[Mapping[str, Any]]
    concerns: Sequence[tuple[str, str]]
    drifts: Sequence[Drift]
    sparse: Sequence[Sparse]

    @property
    def measured_s(self) -> float:
        """Length of the measured time."""
        return self.duration_s - self.warmup_s

    @cached_property
    def is_experiment(self) -> bool:
        """Whether the runs last as their scenario says, not as long as a program."""
        return not any(fact["name"] == ENDED_BY for fact in self.facts)

    @cached_property
    def load(self) -> Records:
        """The flows that carry data."""
        return [flow for flow in self.flows if flow["kind"] not in WITHOUT_DATA]

    @cached_property
    def spans(self) -> Sequence[Span]:
        """When each flow of the load started and ended."""
        blocks = {
            (arm, name): block
            for arm, setup in self.arms.items()
            for name, block in setup.blocks.items()
        }
        stops = {
            place: _core.parse_time_s(block["stop"])
            for place, block in blocks.items()
            if "stop" in block
        }
        last = self._last({place for place, block in blocks.items() if block.keys() & set(ROUNDS)})
        found = []
        for flow in self.load:
            arm, replication, started_s = flow["arm"], flow["replication"], flow["started_s"]
            if started_s is None:
                continue
            ends = [self.duration_s]
            if flow["kind"] in CONNECTIONS and flow["fct_s"] is not None:
                ends.append(started_s + flow["fct_s"])
            group, own = (arm, flow["group"]), (arm, replication, flow["flow"])
            ends += known([stops.get(group), last.get(own)])
            found.append(Span((arm, replication), flow["kind"], started_s, min(ends)))
        return found

    def _last(self, ending: Container[tuple[str, str]]) -> dict[tuple[str, int, str], float]:
        """Return when each flow of applications that end by themselves received its last data."""
        last: dict[tuple[str, int, str], float] = {}
        if not ending:
            return last
        names = ("flow", "group", "t_s", "goodput_mbit_per_s")
        for arm, replication, flow, group, t_s, goodput in rows(self.flow_series, *KEYS, *names):
            if goodput is not None and goodput > 0 and (arm, group) in ending:
                place = (arm, replication, flow)
                last[place] = max(t_s, last.get(place, t_s))
        return last

    def covered(self, spans: Iterable[Span]) -> dict[Run, float | None]:
        """Return for each run how much of the measured time some spans cover; None without any."""
        of_runs = grouped(sorted(spans, key=attrgetter("started_s")), attrgetter("run"))
        runs = dict.fromkeys((flow["arm"], flow["replication"]) for flow in self.flows)
        covered: dict[Run, float | None] = {}
        for run in runs:
            if run not in of_runs:
                covered[run] = None
                continue
            sum_s, until = 0.0, self.warmup_s
            for span in of_runs[run]:
                sum_s += max(0.0, span.end_s - max(span.started_s, until))
                until = max(until, span.end_s)
            covered[run] = sum_s
        return covered

    @cached_property
    def active(self) -> dict[Run, float | None]:
        """For how much of the measured time of each run load is offered.

        Applications offer load during their transactions, and other flows from their start to their
        end. None for a run without load.
        """
        others = [span for span in self.spans if span.kind not in WITH_TRANSACTIONS]
        transactions = [
            Span(
                (one["arm"], one["replication"]),
                "",
                one["started_s"],
                self.duration_s if one["completed_s"] is None else one["completed_s"],
            )
            for one in self.transactions
        ]
        return self.covered([*others, *transactions])

    @cached_property
    def busy(self) -> Sequence[Busy]:
        """The mean of `busy_share` and `utilisation` of each link of each arm.

        `busy_share` counts the time with load only: idle time before and after does not dilute it.
        """
        return [
            Busy(
                arm,
                link,
                mean(self._busy_share(row) for row in of_link),
                mean(row["utilisation"] for row in of_link),
                mean(row["driver_ms_p95"] for row in of_link)
                if "tx_ring" in self.arms[arm].links.get(link, {})
                else None,
            )
            for (arm, link), of_link in grouped(self.links, itemgetter("arm", "link")).items()
        ]

    def _busy_share(self, link: Record) -> float | None:
        """Return the share of the time with load in which packets waited for a link of a run."""
        active_s = self.active.get((link["arm"], link["replication"]))
        if link["busy_share"] is None or active_s is None:
            return None if link["busy_share"] is None else min(1.0, float(link["busy_share"]))
        busy_s = link["busy_share"] * self.measured_s
        # Without load in the measured time, no packet waited.
        return min(1.0, busy_s / active_s) if active_s else float(busy_s > 0)
