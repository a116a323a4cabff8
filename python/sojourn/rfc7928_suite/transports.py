"""Sections 5.1 to 5.4 of RFC 7928: transports."""

from functools import partial

from sojourn.rfc7928_suite import rfc_text
from sojourn.rfc7928_suite.definitions import Definition, Direction
from sojourn.rfc7928_suite.topology import Case, Form, QueueUnderTest, bulk, dumbbell, rate, seconds
from sojourn.traffic import Traffic, Udp

# Size of the application-limited flow: 50 full segments.
SHORT_BYTES = 50 * 1448
OVERLOAD_MBIT = 15.0
UDP_MBIT = 8.0
# 1472 B of payload fill a packet of 1500 B.
PAYLOAD = "1472b"

LESS_DELAY = 'queueing_ms["{queue}"] < queueing_ms["{tail}"]'
NS3 = "1 Mbit/s; one-way delays 48 + 1 + 1 ms; segments of 698 B; buffer of 45 packets; 300 s"
OURS = (
    "10 Mbit/s in both directions; RTT 100 ms; packets of 1500 B; buffer 83 packets (the BDP); "
    "queue under test from senders to receivers only"
)


def _same_window(tested: QueueUnderTest, form: Form) -> list[Case]:
    traffic = [bulk("reno", initial_window=3)]
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    return [Case(scenario=scenario, classes={"reno": "reno"})]


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
        scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
        classes = {"long": "long", "short": "short"}
        cases.append(Case(name=f"IW {window}", scenario=scenario, classes=classes))
    return cases


def _aggressive(tested: QueueUnderTest, form: Form) -> list[Case]:
    return [
        Case(
            name=cc,
            scenario=dumbbell(tested, form, [bulk("flow", cc=cc)], measured_s=form.steady_s),
            classes={"flow": cc},
        )
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
    traffic: list[Traffic] = [udp, bulk("reno")] if responsive else [udp]
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    return [Case(scenario=scenario, classes={str(one.name): str(one.name) for one in traffic})]


def _less_than_best_effort(tested: QueueUnderTest, form: Form) -> list[Case]:
    traffic = [bulk("reno"), bulk("ledbat", cc="ledbat target 5ms gain 10")]
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    return [Case(scenario=scenario, classes={"reno": "reno", "ledbat": "ledbat"})]


DEFINITIONS = (
    Definition(
        number="5.1.1",
        title="TCP-friendly sender, same initial window",
        weight="scenario must be considered",
        quotation=rfc_text.SAME_WINDOW,
        rfc="1 long-lived NewReno flow with an initial window of 3",
        suite=NS3,
        ours=OURS,
        build=_same_window,
        directions=(Direction(quotation=rfc_text.AIM, expectation=LESS_DELAY),),
    ),
    Definition(
        number="5.1.2",
        title="TCP-friendly sender, different initial windows",
        weight="scenario must be considered",
        quotation=rfc_text.OTHER_WINDOW,
        rfc="1 long-lived NewReno flow; in its steady state, a NewReno flow of more than 10 and "
        "fewer than 100 packets with an initial window of 3 or 10",
        suite="100 packets, which the RFC excludes; initial window 10; start at 0.5 s, before the "
        "steady state",
        ours=f"50 packets; both initial windows; start after the warm-up; {OURS}",
        build=_other_window,
    ),
    Definition(
        number="5.2",
        title="Aggressive transport sender",
        weight="scenario must be considered",
        quotation=rfc_text.AGGRESSIVE,
        rfc="1 long-lived CUBIC flow; others may be considered",
        suite="BIC by default; YeAH, HighSpeed, Illinois, Scalable and H-TCP",
        ours=f"CUBIC, and HighSpeed TCP as another; {OURS}",
        build=_aggressive,
        directions=(Direction(quotation=rfc_text.SEEK, expectation=LESS_DELAY),),
    ),
    Definition(
        number="5.3.1",
        title="Unresponsive sender above the capacity",
        weight="scenario must be considered",
        quotation=rfc_text.OVERLOAD,
        rfc="1 UDP flow above the bottleneck rate",
        suite="10 Mbit/s on a bottleneck of 1 Mbit/s",
        ours=f"15 Mbit/s of payload, gaps within 10 % of the mean; {OURS}",
        build=partial(_unresponsive, mbit=OVERLOAD_MBIT, responsive=False),
        directions=(Direction(quotation=rfc_text.SEEK, expectation=LESS_DELAY),),
    ),
    Definition(
        number="5.3.2",
        title="Unresponsive and responsive senders",
        weight="scenario must be considered",
        quotation=rfc_text.MIXED,
        rfc="1 UDP flow of more than half and at most all of the capacity; 1 NewReno flow",
        suite="0.8 Mbit/s on a bottleneck of 1 Mbit/s",
        ours=f"8 Mbit/s of payload, gaps within 10 % of the mean; {OURS}",
        build=partial(_unresponsive, mbit=UDP_MBIT, responsive=True),
        directions=(Direction(quotation=rfc_text.SEEK, expectation=LESS_DELAY),),
    ),
    Definition(
        number="5.4",
        title="Less-than-best-effort sender",
        weight="scenario may be considered",
        quotation=rfc_text.LEDBAT,
        rfc="1 NewReno flow and 1 LEDBAT flow with a target of 5 ms and a gain of 10",
        suite="the same transports on the setup of 5.1.1",
        ours=OURS,
        build=_less_than_best_effort,
        directions=(
            Direction(
                quotation=rfc_text.LESS_THAN_BEST_EFFORT,
                expectation='ledbat.goodput_mbit_per_s["{queue}"] < '
                'reno.goodput_mbit_per_s["{queue}"]',
            ),
        ),
    ),
)
