"""Common parts of all scenarios of the suite: rates, buffers, forms, the queue under test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sojourn import _core
from sojourn.queues import qdisc
from sojourn.queues.queue_file import catalogued
from sojourn.scenario import Arm, Link, Scenario
from sojourn.suites.case import PROBE
from sojourn.traffic import Ping, Tcp, Traffic

# Name of the baseline arm of RFC 7928 section 1.2: drop-tail with a BDP-sized buffer.
DROP_TAIL = "droptail"
# Ours: RFC 7928 states no rate, except in section 8.2.6.
RATE_MBIT = 10.0
# The RTT of category I in RFC 7928 section 6.2.
RTT_MS = 100.0
# Size of a full packet: IP, TCP and payload.
PACKET_BYTES = 1500
# The same with the Ethernet header: limits in bytes include it.
FRAME_BYTES = 1514
# RFC 7928 section 2.7: goodput is measured every K * minRTT, with K = 10.
SAMPLE_MS = 10 * RTT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Durations and numbers of runs of the scenarios."""

    name: str
    replications: int
    warmup_s: float
    steady_s: float
    fairness_s: float
    phase_s: float
    cycles: int
    alternating_s: float
    rtts_ms: tuple[int, ...]
    ecn_rtts_ms: tuple[int, ...]


# The RTTs of ns-3's suite, and the end of the range of RFC 7928 section 6.2.
_RTTS_MS = (5, 8, 10, 16, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500, 560)
QUICK = Form(
    name="quick",
    replications=5,
    warmup_s=5.0,
    steady_s=25.0,
    fairness_s=35.0,
    phase_s=20.0,
    cycles=1,
    alternating_s=10.0,
    rtts_ms=(5, 20, 50, 100, 200, 560),
    ecn_rtts_ms=(20, 100, 200),
)
# Total durations of ns-3's suite: 300 s, and 600 s for RTT fairness.
FULL = Form(
    name="full",
    replications=10,
    warmup_s=20.0,
    steady_s=280.0,
    fairness_s=580.0,
    phase_s=20.0,
    cycles=5,
    alternating_s=60.0,
    rtts_ms=_RTTS_MS,
    ecn_rtts_ms=_RTTS_MS,
)


@dataclass(frozen=True, slots=True)
class QueueUnderTest:
    """The queue under test."""

    text: str
    # As reports write it; by default the text.
    name: str = ""
    units: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the queue."""
        object.__setattr__(self, "text", " ".join(self.text.split()))
        object.__setattr__(self, "name", self.name or self.text)
        qdisc(self.text)
        entry = catalogued(self.text)
        units = {item["key"]: item["unit"] for item in entry["parameters"]}
        object.__setattr__(self, "units", units)

    def spec(self, packets: int) -> str:
        """Write the queue with a buffer of `packets`, unless it sets its limit or has no limit."""
        return self._with("limit", limit_value(self.units.get("limit"), packets))

    def marking(self, packets: int) -> str:
        """Write the queue as in :meth:`spec`, with ECN if it has such a parameter."""
        text = self.spec(packets)
        words = text.split()
        has_flag = self.units.get("ecn") == "flag" and not {"ecn", "noecn"} & set(words)
        return f"{text} ecn" if has_flag else text

    def other_parameters(self, packets: int) -> tuple[str, str]:
        """Write the queue with another target, or else another limit; describe the change."""
        text = self.spec(packets)
        words = qdisc(text).spec.split()
        if self.units.get("target") == "time" and "target" in words:
            target = words[words.index("target") + 1]
            doubled = f"{2 * _core.parse_time_s(target) * 1e6:.0f}us"
            return _replaced(text, "target", doubled), "target doubled at router L"
        value = limit_value(self.units.get("limit"), 2 * packets)
        if value is not None:
            return _replaced(text, "limit", value), "limit doubled at router L"
        return text, "neither target nor limit to change: identical parameters"

    def _with(self, key: str, value: str | None) -> str:
        if value is None or key in self.text.split():
            return self.text
        return f"{self.text} {key} {value}"


def limit_value(unit: str | None, packets: int) -> str | None:
    """Write a number of packets in the unit of a limit; None if there is no limit."""
    if unit is None:
        return None
    return f"{packets * FRAME_BYTES}b" if unit == "size" else f"{packets}"


def _replaced(text: str, key: str, value: str) -> str:
    words = text.split()
    if key in words:
        words[words.index(key) + 1] = value
        return " ".join(words)
    return f"{text} {key} {value}"


def bdp_packets(rate_mbit: float = RATE_MBIT, rtt_ms: float = RTT_MS) -> int:
    """Compute the bandwidth-delay product in full packets.

    Examples
    --------
    >>> bdp_packets(), bdp_packets(100.0)
    (83, 833)
    """
    return max(round(rate_mbit * rtt_ms * 1e3 / 8 / PACKET_BYTES), 2)


def flows(factor: float, packets: int | None = None) -> int:
    """Count the flows of a congestion level: RFC 7928 sections 8.2.1 to 8.2.4.

    Examples
    --------
    >>> [flows(factor) for factor in (0.036, 0.081, 0.114)]
    [6, 13, 19]
    """
    return max(round(factor * 2 * (bdp_packets() if packets is None else packets)), 1)


def seconds(value: float) -> str:
    """Write a time with its unit."""
    return f"{value * 1e3:.0f}ms"


def rate(mbit: float) -> str:
    """Write a rate with its unit."""
    return f"{mbit * 1e3:.0f}kbit"


def link(mbit: float, packets: int, **others: Any) -> Link:
    """Build a link with a drop-tail queue."""
    return Link(rate=rate(mbit), qdisc=f"pfifo limit {packets}", **others)


def bulk(name: str, *, count: int = 1, cc: str = "reno", **others: Any) -> Tcp:
    """Build long-lived flows that start within the first second, as in ns-3's suite."""
    options: dict[str, Any] = {"direction": "down", "start_jitter": "1s", **others}
    return Tcp(name=name, count=count, cc=cc, **options)


def dumbbell(
    tested: QueueUnderTest,
    form: Form,
    traffic: Sequence[Traffic],
    *,
    measured_s: float,
    rates_mbit: tuple[float, float] = (RATE_MBIT, RATE_MBIT),
    rtt_ms: float = RTT_MS,
    both: bool = False,
    sample_ms: float = SAMPLE_MS,
    changes: Sequence[Mapping[str, str]] | None = None,
    more: Sequence[Arm] = (),
) -> Scenario:
    """Build the topology of figure 1: routers L and R, and a queue under test at L."""
    buffers = {
        side: bdp_packets(mbit, rtt_ms)
        for side, mbit in zip(("down", "up"), rates_mbit, strict=True)
    }
    sides = ("down", "up") if both else ("down",)
    return composed(
        tested,
        form,
        links={
            "down": link(rates_mbit[0], buffers["down"], changes=changes),
            "up": link(rates_mbit[1], buffers["up"]),
        },
        traffic=[*traffic, Ping(name=PROBE, direction="down", interval=seconds(0.1))],
        arms=[
            *arms({f"links.{side}.qdisc": buffers[side] for side in sides}, tested),
            *more,
        ],
        measured_s=measured_s,
        sample_ms=sample_ms,
    )


def composed(
    tested: QueueUnderTest,
    form: Form,
    *,
    links: Mapping[str, Link],
    traffic: Sequence[Traffic],
    arms: Sequence[Arm],
    measured_s: float,
    sample_ms: float = SAMPLE_MS,
) -> Scenario:
    """Compose a scenario with the durations and the number of runs of a form."""
    return Scenario(
        name=f"RFC 7928, {tested.name}",
        links=links,
        traffic=traffic,
        arms=arms,
        rtt=f"{RTT_MS:g}ms",
        duration=seconds(form.warmup_s + measured_s),
        warmup=seconds(form.warmup_s),
        replications=form.replications,
        sample=f"{sample_ms:g}ms",
        keep_events=True,
    )


def arms(buffers: Mapping[str, int], tested: QueueUnderTest) -> list[Arm]:
    """Build the two arms: drop-tail and the queue under test, with the same buffers."""
    tail = {path: f"pfifo limit {packets}" for path, packets in buffers.items()}
    queue = {path: tested.spec(packets) for path, packets in buffers.items()}
    return [Arm(name=DROP_TAIL, set=tail), Arm(name=tested.name, set=queue)]
