"""The scenarios that test one queue, by section of RFC 7928; ``suite.toml`` describes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sojourn.rfc7928_suite.topology import (
    RATE_MBIT,
    RTT_MS,
    SAMPLE_MS,
    Form,
    QueueUnderTest,
    arms,
    bdp_packets,
    bulk,
    composed,
    dumbbell,
    flows,
    link,
    rate,
    seconds,
)
from sojourn.scenario import Arm, Scenario
from sojourn.suites.case import PROBE, Case, Phases
from sojourn.traffic import Dash, Ping, Traffic, Udp, Voip, Web

# Flows of a congestion level, per packet of the BDP and the buffer: RFC 7928 section 8.2.
MILD, MEDIUM, HEAVY = 0.036, 0.081, 0.114


def _steady(
    tested: QueueUnderTest, form: Form, traffic: Sequence[Traffic], name: str = "", **others: Any
) -> Case:
    """Build a case in which each block of traffic is a class."""
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s, **others)
    classes = {str(block.name): str(block.name) for block in traffic}
    return Case(name=name, scenario=scenario, classes=classes)


# Sections 4.4, 4.5 and 6.2: packet sizes, ECN and round-trip times.

# Payloads of packets of 500 B and 1500 B: 52 B of IP, TCP and timestamps.
SMALL_MSS, LARGE_MSS = 448, 1448
# Category II starts later, as in ns-3's suite.
LATER = "500ms"


def _sizes(tested: QueueUnderTest, form: Form) -> list[Case]:
    half = max(flows(MILD) // 2, 1)
    traffic = [
        bulk("small", count=half, mss=SMALL_MSS),
        bulk("large", count=half, mss=LARGE_MSS),
    ]
    return [replace(_steady(tested, form, traffic), categories=("small", "large"))]


def _rtts(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [_rtt_case(tested, form, rtt_ms, ()) for rtt_ms in form.rtts_ms]


def _rtt_case(tested: QueueUnderTest, form: Form, rtt_ms: float, more: tuple[Arm, ...]) -> Case:
    traffic = [
        bulk("I", rtt=f"{RTT_MS:g}ms"),
        bulk("II", rtt=f"{rtt_ms:g}ms", start=LATER),
    ]
    scenario = dumbbell(
        tested,
        form,
        traffic,
        measured_s=form.fairness_s,
        rtt_ms=max(rtt_ms, RTT_MS),
        sample_ms=10 * max(rtt_ms, RTT_MS),
        more=more,
    )
    return Case(
        name=f"RTT {rtt_ms:g} ms",
        scenario=scenario,
        classes={"I": "I", "II": "II"},
        categories=("I", "II"),
        against=(tested.name, more[0].name) if more else None,
        x=rtt_ms,
    )


def _ecn(tested: QueueUnderTest, form: Form) -> list[Case]:
    cases = []
    for rtt_ms in form.ecn_rtts_ms:
        packets = bdp_packets(rtt_ms=max(rtt_ms, RTT_MS))
        marked = Arm(
            name=f"{tested.name}, ECN on",
            set={
                "links.down.qdisc": tested.marking(packets),
                "traffic.I.ecn": True,
                "traffic.II.ecn": True,
            },
        )
        cases.append(_rtt_case(tested, form, rtt_ms, (marked,)))
    return cases


# Sections 5.1 to 5.4: transports.

# Size of the application-limited flow: 50 full segments.
SHORT_BYTES = 50 * 1448
OVERLOAD_MBIT, UDP_MBIT = 15.0, 8.0
# 1472 B of payload fill a packet of 1500 B.
PAYLOAD = "1472b"


def _same_window(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [_steady(tested, form, [bulk("reno", initial_window=3)])]


def _other_window(tested: QueueUnderTest, form: Form) -> list[Case]:
    cases = []
    for window in (3, 10):
        short = bulk(
            "short",
            initial_window=window,
            bytes=f"{SHORT_BYTES}b",
            # Within the measured time, when the long flow is in congestion avoidance.
            start=seconds(form.warmup_s + form.steady_s / 10),
            start_jitter=seconds(form.steady_s / 10),
        )
        traffic = [bulk("long", initial_window=3), short]
        cases.append(_steady(tested, form, traffic, f"IW {window}"))
    return cases


def _aggressive(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [
        replace(_steady(tested, form, [bulk("flow", cc=cc)], cc), classes={"flow": cc})
        for cc in ("cubic", "highspeed")
    ]


def _unresponsive(
    tested: QueueUnderTest, form: Form, *, mbit: float, responsive: bool
) -> list[Case]:
    udp = Udp(
        name="udp",
        direction="down",
        rate=rate(mbit),
        payload=PAYLOAD,
        start_jitter="1s",
        spread=0.1,
    )
    return [_steady(tested, form, [udp, bulk("reno")] if responsive else [udp])]


def _less_than_best_effort(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [_steady(tested, form, [bulk("reno"), bulk("ledbat", cc="ledbat target 5ms gain 10")])]


# Section 7.2 and 9.1: bursts and traffic mixes. RFC 7928 gives no sizes of applications.

CBR = Udp(name="cbr", direction="down", rate="1mbit", start_jitter="1s")
WEB = Web(
    name="web",
    direction="down",
    page="objects50",
    http="1.1",
    tls=False,
    initial_window=10,
    start_jitter="1s",
)
# Bursts of 250 kB, a segment per second.
BURSTY_VIDEO = Dash(
    name="video", direction="down", ladder=["2mbit"], segment="1s", start_jitter="1s"
)
VIDEO = Dash(name="video", direction="down", start_jitter="1s")


def _bursts(tested: QueueUnderTest, form: Form) -> list[Case]:
    mixes: dict[str, list[Traffic]] = {
        "case I": [WEB, CBR],
        "case II": [WEB, CBR, bulk("bulk")],
        "case III": [BURSTY_VIDEO, WEB, CBR],
        "case IV": [BURSTY_VIDEO, WEB, CBR, bulk("bulk")],
    }
    return [_steady(tested, form, traffic, name) for name, traffic in mixes.items()]


def _mix(tested: QueueUnderTest, form: Form) -> list[Case]:
    traffic: list[Traffic] = [
        Voip(name="voip down", direction="down", start_jitter="20ms"),
        Voip(name="voip up", direction="up", start_jitter="20ms"),
        replace(WEB, count=6),
        CBR,
        VIDEO,
        bulk("bulk", count=5),
    ]
    return [_steady(tested, form, traffic)]


# Sections 8.2.2 to 8.2.6: congestion levels and varying capacity.

# The capacities of RFC 7928 section 8.2.6, and the short phase.
HIGH_MBIT, LOW_MBIT = 100.0, 10.0
SHORT_PHASE_S = 0.1


def _level(tested: QueueUnderTest, form: Form, *, factor: float) -> list[Case]:
    return [_steady(tested, form, [bulk("bulk", count=flows(factor))])]


def _levels(tested: QueueUnderTest, form: Form) -> list[Case]:
    """Add flows in phases II and III: blocks of flows start and stop with the phases."""
    mild, medium, heavy = (flows(factor) for factor in (MILD, MEDIUM, HEAVY))
    traffic = [bulk("bulk", count=mild)]
    for cycle in range(form.cycles):
        begin = form.warmup_s + 3 * form.phase_s * cycle
        end = seconds(begin + 3 * form.phase_s)
        jitter = seconds(min(1.0, form.phase_s / 4))
        for phase, more in ((1, medium - mild), (2, heavy - medium)):
            start = seconds(begin + phase * form.phase_s)
            name = f"added in phase {'I' * (phase + 1)} of cycle {cycle + 1}"
            traffic.append(bulk(name, count=more, start=start, stop=end, start_jitter=jitter))
    scenario = dumbbell(
        tested,
        form,
        traffic,
        measured_s=3 * form.phase_s * form.cycles,
        sample_ms=min(SAMPLE_MS, form.phase_s * 1e3),
    )
    phases = Phases(names=("I mild", "II medium", "III heavy"), length_s=form.phase_s)
    classes = {str(block.name): "bulk" for block in traffic}
    return [Case(scenario=scenario, classes=classes, phases=phases)]


def _capacity(tested: QueueUnderTest, form: Form, *, short: bool) -> list[Case]:
    phase_s = SHORT_PHASE_S if short else form.phase_s
    measured_s = form.alternating_s if short else 2 * form.phase_s * form.cycles
    changes = [
        {
            "at": seconds(form.warmup_s + number * phase_s),
            "rate": rate(LOW_MBIT if number % 2 else HIGH_MBIT),
        }
        for number in range(1, round(measured_s / phase_s))
    ]
    scenario = dumbbell(
        tested,
        form,
        [bulk("bulk", count=2)],
        measured_s=measured_s,
        rates_mbit=(HIGH_MBIT, HIGH_MBIT),
        sample_ms=min(SAMPLE_MS, phase_s * 1e3),
        changes=changes,
    )
    phases = Phases(names=("I 100 Mbit/s", "II 10 Mbit/s"), length_s=phase_s)
    return [Case(scenario=scenario, classes={"bulk": "bulk"}, phases=phases)]


# Sections 9.2 and 10.2: both directions, two queues in series.

# The rate of the link behind router L, so that both queues are bottlenecks.
FIRST_MBIT = 5.0


def _both_ways(tested: QueueUnderTest, form: Form) -> list[Case]:
    cases = []
    for name, up_mbit, both in (
        ("symmetric, one AQM", RATE_MBIT, False),
        ("asymmetric, one AQM", RATE_MBIT / 5, False),
        ("asymmetric, two AQMs", RATE_MBIT / 5, True),
    ):
        traffic = [
            bulk("down", count=flows(MILD)),
            bulk("up", direction="up", count=flows(MILD, bdp_packets(up_mbit))),
        ]
        rates_mbit = (RATE_MBIT, up_mbit)
        cases.append(_steady(tested, form, traffic, name, rates_mbit=rates_mbit, both=both))
    return cases


def _two_queues(tested: QueueUnderTest, form: Form) -> list[Case]:
    buffers = {"L": bdp_packets(FIRST_MBIT), "M": bdp_packets()}
    changed, what = tested.other_parameters(buffers["L"])
    other = QueueUnderTest("pie" if tested.text.split()[0] == "codel" else "codel")
    firsts = {
        "same parameters": tested.spec(buffers["L"]),
        what: changed,
        f"{other.text} at router L": other.spec(buffers["L"]),
    }
    return [
        Case(
            name=name,
            scenario=_in_series(tested, form, buffers, first),
            classes={"A": "A", "B": "B"},
            bottleneck="M",
        )
        for name, first in firsts.items()
    ]


def _in_series(
    tested: QueueUnderTest, form: Form, buffers: Mapping[str, int], first: str
) -> Scenario:
    half = max(flows(MILD) // 2, 1)
    paths = {"A": ["L", "M"], "B": ["M"]}
    tail, queue = arms({f"links.{name}.qdisc": size for name, size in buffers.items()}, tested)
    queue = Arm(name=queue.name, set={**queue.set, "links.L.qdisc": first})
    traffic = [
        bulk(name, count=half, direction=None, path=path, reverse=["back"])
        for name, path in paths.items()
    ]
    return composed(
        tested,
        form,
        links={
            "L": link(FIRST_MBIT, buffers["L"]),
            "M": link(RATE_MBIT, buffers["M"]),
            "back": link(RATE_MBIT, buffers["M"]),
        },
        traffic=[*traffic, Ping(name=PROBE, path=paths["A"], reverse=["back"], interval="100ms")],
        arms=[tail, queue],
        measured_s=form.steady_s,
    )


SCENARIOS: Mapping[str, Callable[[QueueUnderTest, Form], list[Case]]] = {
    "4.4": _sizes,
    "4.5": _ecn,
    "5.1.1": _same_window,
    "5.1.2": _other_window,
    "5.2": _aggressive,
    "5.3.1": partial(_unresponsive, mbit=OVERLOAD_MBIT, responsive=False),
    "5.3.2": partial(_unresponsive, mbit=UDP_MBIT, responsive=True),
    "5.4": _less_than_best_effort,
    "6.2": _rtts,
    "7.2": _bursts,
    "8.2.2": partial(_level, factor=MILD),
    "8.2.3": partial(_level, factor=MEDIUM),
    "8.2.4": partial(_level, factor=HEAVY),
    "8.2.5": _levels,
    "8.2.6.1": partial(_capacity, short=False),
    "8.2.6.2": partial(_capacity, short=True),
    "9.1": _mix,
    "9.2": _both_ways,
    "10.2": _two_queues,
}
