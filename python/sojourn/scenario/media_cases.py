"""The basic test cases of RFC 8867 for congestion controls of real-time media."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from sojourn import _core
from sojourn.arguments import Argument, checked, common
from sojourn.queues import Bfifo, Queue
from sojourn.scenario import Arm, Change, Jitter, Link, Scenario
from sojourn.traffic import Exponential, Media, Request, Tcp, Traffic, Udp
from sojourn.traffic.applications import MediaControl, MediaEcn
from sojourn.traffic.block import Direction

# The forward path of the RFC is the link `down`.
FORWARD: Direction = "down"
BACKWARD: Direction = "up"
# RFC 8867, section 4.2: the reverse path has no restriction of capacity.
_UNRESTRICTED_MBIT = 100.0
# Of the queue with unrestricted capacity: a second of it.
_UNRESTRICTED_BYTES = 12_500_000
# RFC 8868, section 4.5.3: a normal deviation of 5 ms, without reordering.
_JITTER = Jitter(spread="5ms", distribution="normal")
# The delay of links, around which it varies; the rest of the delay is that of flows.
_LINK_DELAY_MS = 10.0
# RFC 8867, section 4.3: 20 kbit/s of audio at constant bit rate; 20 ms per packet as of RFC 3551.
_AUDIO: dict[str, Any] = {"rate": "20kbit", "payload": "50b"}
# RFC 8868, section 5.1: 30 to 50 kB, and idle times of 10 s on average.
_SHORT_TCP: dict[str, Any] = {"bytes": "40000b", "think": Exponential(mean="10s")}

# The sections of the test cases.
Case = Literal["5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8"]
# Capacity from a time on: (s, Mbit/s).
_Pattern = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    control: MediaControl
    ecn: MediaEcn

    def pair(
        self, number: int, *, direction: Direction = FORWARD, **timeline: Any
    ) -> list[Traffic]:
        """Compose a video and an audio flow with the same times."""
        audio = {key: timeline[key] for key in ("start", "stop", "rtt") if key in timeline}
        video: dict[str, Any] = {"control": self.control, "ecn": self.ecn} | timeline
        return [
            Media(name=f"video {number}", direction=direction, **video),
            Udp(name=f"audio {number}", direction=direction, **_AUDIO, **audio),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A test case: times in s, rates in Mbit/s."""

    title: str
    duration: int
    forward: _Pattern
    backward: _Pattern = ((0, _UNRESTRICTED_MBIT),)
    traffic: Callable[[_Settings], list[Traffic]]


def _single(settings: _Settings) -> list[Traffic]:
    return settings.pair(1, stop="99s")


def _multiple(settings: _Settings) -> list[Traffic]:
    return [*settings.pair(1, stop="124s"), *settings.pair(2, stop="124s")]


def _both_ways(settings: _Settings) -> list[Traffic]:
    return [
        *settings.pair(1, stop="99s"),
        *settings.pair(2, direction=BACKWARD, stop="99s"),
    ]


def _competing(settings: _Settings) -> list[Traffic]:
    starts = {1: "0s", 2: "20s", 3: "40s"}
    return [
        flow for n, start in starts.items() for flow in settings.pair(n, start=start, stop="119s")
    ]


def _round_trips(settings: _Settings) -> list[Traffic]:
    delays = (10, 25, 50, 100, 150)
    return [
        flow
        for n, delay in enumerate(delays)
        for flow in settings.pair(
            n + 1, start=f"{10 * n}s", stop="299s", rtt=f"{2 * delay - 2 * _LINK_DELAY_MS:g}ms"
        )
    ]


def _long_tcp(settings: _Settings) -> list[Traffic]:
    tcp = Tcp(name="tcp", direction=FORWARD, cc="reno", stop="119s")
    return [*settings.pair(1, start="5s", stop="119s"), tcp]


def _short_tcp(settings: _Settings) -> list[Traffic]:
    video = [flow for n in (1, 2) for flow in settings.pair(n, start="5s", stop="299s")]
    short: dict[str, Any] = {"direction": FORWARD, "cc": "reno", **_SHORT_TCP}
    return [
        *video,
        Request(name="short tcp on", count=2, **short),
        Request(name="short tcp off", count=8, start_jitter="10s", **short),
    ]


def _pause(settings: _Settings) -> list[Traffic]:
    times: dict[int, dict[str, Any]] = {1: {}, 2: {"pause": "40s", "resume": "60s"}, 3: {}}
    return [flow for n, pause in times.items() for flow in settings.pair(n, stop="119s", **pause)]


_CASES: dict[Case, _Case] = {
    "5.1": _Case(
        title="variable available capacity with a single flow",
        duration=100,
        forward=((0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)),
        traffic=_single,
    ),
    "5.2": _Case(
        title="variable available capacity with multiple flows",
        duration=125,
        forward=((0, 4.0), (25, 2.0), (50, 3.5), (75, 1.0), (100, 2.0)),
        traffic=_multiple,
    ),
    "5.3": _Case(
        title="congested feedback link with bi-directional media flows",
        duration=100,
        forward=((0, 2.0), (20, 1.0), (40, 0.5), (60, 2.0)),
        backward=((0, 2.0), (35, 0.8), (70, 2.0)),
        traffic=_both_ways,
    ),
    "5.4": _Case(
        title="competing media flows with the same congestion control",
        duration=120,
        forward=((0, 3.5),),
        traffic=_competing,
    ),
    "5.5": _Case(
        title="round-trip time fairness",
        duration=300,
        forward=((0, 4.0),),
        traffic=_round_trips,
    ),
    "5.6": _Case(
        title="media flow competing with a long TCP flow",
        duration=120,
        forward=((0, 2.0),),
        traffic=_long_tcp,
    ),
    "5.7": _Case(
        title="media flow competing with short TCP flows",
        duration=300,
        forward=((0, 2.0),),
        traffic=_short_tcp,
    ),
    "5.8": _Case(
        title="media pause and resume",
        duration=120,
        forward=((0, 3.5),),
        traffic=_pause,
    ),
}

_DELAY = Argument(help="One-way propagation delay, at least 10 ms.", kind="time")
_BUFFER = Argument(
    help="Size of the tail-drop queue, as the time that a full one takes.", kind="time"
)


@checked
def rfc8867(
    case: Case,
    *,
    control: MediaControl = "scream",
    ecn: MediaEcn = "off",
    queues: Mapping[str, Queue] | None = None,
    delay: Annotated[str, _DELAY] = "50ms",
    buffer: Annotated[str, _BUFFER] = "300ms",
    replications: common.OwnReplications = 10,
    seed: common.OwnSeed = 1,
) -> Scenario:
    """Compose a basic test case of RFC 8867 for congestion controls of real-time media.

    The links ``down`` and ``up`` are the forward and the backward path. Video has the group names
    ``video 1``, ``video 2`` …, audio ``audio 1`` …; competing flows are ``tcp``, ``short tcp on``
    and ``short tcp off``.

    Parameters
    ----------
    case
        Section of the test case: ``"5.1"`` to ``"5.8"``.
    control, ecn
        Congestion control and ECN mode of all video flows, as of :class:`Media`.
    queues
        The queue of each arm, by name, on both links; by default tail drop, as of section 4.2.
    delay
        One-way propagation delay, with its unit, at least 10 ms; case 5.5 has its own delays.
    buffer
        Size of the tail-drop queue, as the time that a full one takes, with its unit. It changes
        with the capacity.
    replications, seed
        Runs per arm, and the seed of their random numbers.

    Returns
    -------
    Scenario
        The scenario. Section 4.2 names a jitter of at most 30 ms: the jitter of each link is
        normally distributed with a standard deviation of 5 ms (RFC 8868, section 4.5.3),
        truncated at 20 ms instead of 15 ms, and packets stay in order.

    Raises
    ------
    ScenarioError
        The case is unknown or a value is not valid.

    Examples
    --------
    >>> [group.name for group in rfc8867("5.6").traffic]
    ['video 1', 'audio 1', 'tcp']
    """
    chosen = _CASES[case]
    own_rtt_ms = 2 * (_core.parse_time_s(delay) * 1e3 - _LINK_DELAY_MS)
    buffer_s = None if queues else _core.parse_time_s(buffer)
    first = next(iter(queues.values())) if queues else None
    arms = [
        Arm(name=name, set={f"links.{link}.qdisc": queue for link in (FORWARD, BACKWARD)})
        for name, queue in (queues or {}).items()
    ]
    return Scenario(
        name=f"RFC 8867 {case}: {chosen.title}",
        links={
            FORWARD: _link(chosen.forward, first, buffer_s),
            BACKWARD: _link(chosen.backward, first, buffer_s),
        },
        traffic=chosen.traffic(_Settings(control=control, ecn=ecn)),
        arms=arms,
        rtt=f"{own_rtt_ms:g}ms",
        duration=f"{chosen.duration}s",
        warmup="0s",
        replications=replications,
        seed=seed,
    )


def _link(pattern: _Pattern, queue: Queue | None, buffer_s: float | None) -> Link:
    """Compose a link whose capacity changes, with a queue or one that takes this time if full."""

    def values(mbit: float) -> dict[str, Any]:
        rate = {"rate": f"{mbit:g}mbit"}
        if buffer_s is None:
            return rate
        if mbit == _UNRESTRICTED_MBIT:
            return rate | {"qdisc": Bfifo(limit=f"{_UNRESTRICTED_BYTES}b")}
        return rate | {"qdisc": Bfifo(limit=f"{round(mbit * 1e6 / 8 * buffer_s)}b")}

    (_, initial), *later = pattern
    changes = [Change(at=f"{at:g}s", **values(mbit)) for at, mbit in later]
    return Link(
        **{"qdisc": queue, **values(initial)},
        delay=f"{_LINK_DELAY_MS:g}ms",
        jitter=_JITTER,
        changes=changes or None,
    )
