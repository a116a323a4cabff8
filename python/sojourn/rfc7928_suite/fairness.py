"""Sections 4.4, 4.5 and 6.2 of RFC 7928: packet sizes, ECN and round-trip times."""

from sojourn.rfc7928_suite import rfc_text
from sojourn.rfc7928_suite.definitions import Definition, Direction
from sojourn.rfc7928_suite.topology import (
    RTT_MS,
    Case,
    Form,
    QueueUnderTest,
    bdp_packets,
    bulk,
    dumbbell,
    flows,
)
from sojourn.rfc7928_suite.transports import OURS
from sojourn.scenario import Arm
from sojourn.traffic import Tcp

MILD = 0.036
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
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    classes = {"small": "small", "large": "large"}
    return [Case(scenario=scenario, classes=classes, categories=("small", "large"))]


def _pair(rtt_ms: float) -> list[Tcp]:
    return [
        bulk("I", rtt=f"{RTT_MS:g}ms"),
        bulk("II", rtt=f"{rtt_ms:g}ms", start=LATER),
    ]


def _rtts(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [_rtt_case(tested, form, rtt_ms, ()) for rtt_ms in form.rtts_ms]


def _rtt_case(tested: QueueUnderTest, form: Form, rtt_ms: float, more: tuple[Arm, ...]) -> Case:
    scenario = dumbbell(
        tested,
        form,
        _pair(rtt_ms),
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
        against=(tested.text, more[0].name) if more else None,
        x=rtt_ms,
    )


def _ecn(tested: QueueUnderTest, form: Form) -> list[Case]:
    cases = []
    for rtt_ms in form.ecn_rtts_ms:
        packets = bdp_packets(rtt_ms=max(rtt_ms, RTT_MS))
        marked = Arm(
            name=f"{tested.text}, ECN on",
            set={
                "links.down.qdisc": tested.marking(packets),
                "traffic.I.ecn": True,
                "traffic.II.ecn": True,
            },
        )
        cases.append(_rtt_case(tested, form, rtt_ms, (marked,)))
    return cases


DEFINITIONS = (
    Definition(
        number="4.4",
        title="Packet sizes and congestion notification",
        quotation=rfc_text.SIZES,
        rfc="the flows of 8.2.2, half of them with packets of 500 B, half with 1500 B; reported as "
        "in 6.3, where small packets are category I and large ones category II",
        suite="not in the suite",
        ours=f"3 + 3 flows; {OURS}",
        build=_sizes,
        directions=(
            Direction(
                quotation=rfc_text.SIZES,
                expectation='large.loss_percent["{queue}"] <= small.loss_percent["{queue}"]',
            ),
        ),
    ),
    Definition(
        number="4.5",
        title="Interaction with ECN",
        weight="must be discussed if supported",
        quotation=rfc_text.ECN,
        rfc="the tests of 6.2 with ECN at the senders",
        suite="not in the suite",
        ours=f"the queue with its option ecn, if it has one; buffer as in 6.2; {OURS}",
        build=_ecn,
        directions=(
            Direction(
                quotation=rfc_text.MARKING,
                expectation='retransmit_percent["{marked}"] < retransmit_percent["{without}"]',
                signal="marks",
            ),
            Direction(
                quotation=rfc_text.MARKING,
                expectation='goodput_mbit_per_s["{marked}"] > goodput_mbit_per_s["{without}"]',
                signal="marks",
            ),
        ),
    ),
    Definition(
        number="6.2",
        title="RTT fairness",
        weight="scenario must be considered",
        quotation=rfc_text.RTTS,
        rfc="2 long-lived NewReno flows: category I with an RTT of 100 ms, category II with 5 to "
        "560 ms",
        suite="RTTs of category II: 5, 8, 10, 16, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400 and "
        "500 ms; category II starts 0.5 s later; 600 s",
        ours="quick form: 5, 20, 50, 100, 200 and 560 ms; full form: those of the suite and "
        f"560 ms; buffer: the BDP with the larger of the two RTTs; {OURS}",
        build=_rtts,
    ),
)
