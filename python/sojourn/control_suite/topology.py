"""Common parts of all scenarios: rates, buffers, forms, the control under test and its arms."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.result import Result
from sojourn.scenario import Arm, Link, Scenario
from sojourn.suites.case import PROBE, Case
from sojourn.traffic import Ping, Tcp, Traffic

# Ours, where RFC 9743 states no number: it asks for a representative range.
RATE_MBIT = 20.0
RTT_MS = 40.0
PACKET_BYTES = 1500
SAMPLE_MS = 100.0
# The controls that RFC 9743 names as standards: RFC 5681 and RFC 9438.
STANDARDS = ("cubic", "reno")
# The traffic whose control is that of the arm.
FLOW = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Durations and numbers of runs; without a name if there is only one form."""

    name: str
    replications: int
    warmup_s: float
    measured_s: float


QUICK = Form(name="quick", replications=4, warmup_s=10.0, measured_s=30.0)
FULL = Form(name="full", replications=10, warmup_s=30.0, measured_s=150.0)

# Of the test cases of BBR's draft and of Accurate ECN.
CASES = Form(name="", replications=5, warmup_s=0.0, measured_s=20.0)

Measure = Callable[[Result, "ControlCase"], pl.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCase(Case):
    """A case of a control: what else is measured per run."""

    measures: Measure | None = None
    # Whether the figures show this case over time.
    over_time: bool = False


@dataclass(frozen=True, slots=True)
class ControlUnderTest:
    """The control under test, and the standard controls that it is compared with."""

    text: str
    standards: tuple[str, ...] = STANDARDS
    ecn: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the controls."""
        object.__setattr__(self, "text", " ".join(self.text.split()))
        object.__setattr__(self, "ecn", _catalogued(self.text)["ecn"])
        for standard in self.standards:
            _catalogued(standard)
        if len(set(self.standards)) < len(self.standards):
            raise ArgumentError("against", ", ".join(self.standards), "expected each control once")

    @property
    def name(self) -> str:
        """The control, as arms are named."""
        return self.text

    @property
    def arms(self) -> tuple[str, ...]:
        """The control under test and those standard controls that differ from it."""
        return (self.name, *(one for one in self.standards if one != self.name))

    @property
    def needs_signals(self) -> bool:
        """Whether it relies on explicit signals of the path, so that it sets up ECN by itself."""
        return self.ecn != "optional"


Build = Callable[[ControlUnderTest, Form], list[ControlCase]]
# The cases of each number of a document.
Builders = Mapping[str, Build]


def _catalogued(text: str) -> dict[str, Any]:
    _core.parse_cc(text)
    name = text.split(maxsplit=1)[0]
    found: dict[str, Any] = next(
        entry for entry in json.loads(_core.cc_catalogue()) if entry["name"] == name
    )
    return found


def bdp_packets(rate_mbit: float = RATE_MBIT, rtt_ms: float = RTT_MS) -> int:
    """Compute the bandwidth-delay product in full packets, at least 2.

    Examples
    --------
    >>> bdp_packets(), bdp_packets(0.05, 500.0)
    (67, 2)
    """
    return max(round(rate_mbit * rtt_ms * 1e3 / 8 / PACKET_BYTES), 2)


def seconds(value: float) -> str:
    """Write a time with its unit."""
    return f"{value * 1e6:.0f}us"


def rate(mbit: float) -> str:
    """Write a rate with its unit."""
    return f"{mbit * 1e6:.0f}bit"


def bulk(name: str, *, count: int = 1, **others: Any) -> Tcp:
    """Build endless connections that start within the first second."""
    options: dict[str, Any] = {"direction": "down", "start_jitter": "1s", **others}
    return Tcp(name=name, count=count, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One bottleneck: rate, base RTT, buffer in bandwidth-delay products, queue and wire."""

    rate_mbit: float = RATE_MBIT
    rtt_ms: float = RTT_MS
    buffer_bdp: float = 1.0
    # The buffer in packets, instead of in bandwidth-delay products.
    packets: int | None = None
    queue: str | None = None
    wire: Mapping[str, Any] = field(default_factory=dict)
    back: Mapping[str, Any] = field(default_factory=dict)

    @property
    def buffer(self) -> int:
        """The buffer in packets."""
        if self.packets is not None:
            return self.packets
        return max(round(self.buffer_bdp * bdp_packets(self.rate_mbit, self.rtt_ms)), 2)

    def links(self) -> dict[str, Link]:
        """Build the bottleneck and a way back that never fills."""
        down = {"qdisc": self.queue or f"pfifo limit {self.buffer}", **self.wire}
        up = {"rate": rate(self.rate_mbit), "qdisc": "pfifo limit 10000", **self.back}
        if "trace" not in down:
            down = {"rate": rate(self.rate_mbit), **down}
        return {"down": Link(**down), "up": Link(**up)}


# Links that never fill, and the way of a flow through them and the bottleneck.
_FAST: Mapping[str, Any] = {"rate": "10gbit", "qdisc": "pfifo limit 100000"}
ROUTE: Mapping[str, Any] = {"path": ["first", "down"], "reverse": ["back"]}


def single(
    tested: ControlUnderTest,
    form: Form,
    name: str,
    bottleneck: Link,
    measures: Measure,
    *,
    flow: Traffic | None = None,
    options: Mapping[str, Any] | None = None,
    first: Mapping[str, Any] | None = None,
    back: Mapping[str, Any] | None = None,
    sample_ms: float = 20.0,
    **scenario: Any,
) -> ControlCase:
    """Build a case of one flow, by default an endless connection with these options.

    A link of 10 Gbit/s before the bottleneck counts what is sent, or changes it.
    """
    links = {"first": Link(**_FAST, **(first or {})), "down": bottleneck}
    links["back"] = Link(**_FAST, **(back or {}))
    if flow is None:
        flow = bulk(FLOW, direction=None, start_jitter="200ms", **ROUTE, **(options or {}))
    built = composed(tested, form, links, [flow], varied=[FLOW], sample_ms=sample_ms, **scenario)
    return ControlCase(
        name=name,
        scenario=built.replace(name=f"{name}, {tested.name}"),
        classes={FLOW: FLOW},
        measures=measures,
    )


def dumbbell(
    tested: ControlUnderTest,
    form: Form,
    path: Path,
    traffic: Sequence[Traffic],
    *,
    varied: Sequence[str],
    **others: Any,
) -> Scenario:
    """Build a scenario in which the traffic named by `varied` has the control of the arm."""
    probe = Ping(name=PROBE, direction="down", interval="100ms")
    return composed(
        tested, form, path.links(), [*traffic, probe], varied=varied, rtt_ms=path.rtt_ms, **others
    )


def composed(
    tested: ControlUnderTest,
    form: Form,
    links: Mapping[str, Link],
    traffic: Sequence[Traffic],
    *,
    varied: Sequence[str],
    rtt_ms: float = RTT_MS,
    measured_s: float | None = None,
    warmup_s: float | None = None,
    sample_ms: float = SAMPLE_MS,
) -> Scenario:
    """Compose a scenario: an arm for each control, with the durations of the form."""
    warmup_s = form.warmup_s if warmup_s is None else warmup_s
    measured_s = form.measured_s if measured_s is None else measured_s
    return Scenario(
        name=f"congestion control {tested.name}",
        links=links,
        traffic=traffic,
        arms=[
            Arm(name=name, set={f"traffic.{group}.cc": name for group in varied})
            for name in tested.arms
        ],
        rtt=f"{rtt_ms:g}ms",
        duration=seconds(warmup_s + measured_s),
        warmup=seconds(warmup_s),
        replications=form.replications,
        sample=f"{sample_ms:g}ms",
        keep_events=True,
    )
