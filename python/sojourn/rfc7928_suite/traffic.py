"""Sections 7.2, 9.1, 9.2 and 10.2 of RFC 7928: bursts, traffic mixes, both directions, two AQMs."""

from collections.abc import Sequence
from dataclasses import replace

from sojourn.rfc7928_suite import rfc_text
from sojourn.rfc7928_suite.definitions import Definition
from sojourn.rfc7928_suite.fairness import MILD
from sojourn.rfc7928_suite.topology import (
    PROBE,
    RATE_MBIT,
    RTT_MS,
    SAMPLE_MS,
    Case,
    Form,
    QueueUnderTest,
    arms,
    bdp_packets,
    bulk,
    dumbbell,
    flows,
    link,
    seconds,
)
from sojourn.rfc7928_suite.transports import OURS
from sojourn.scenario import Arm, Scenario
from sojourn.traffic import Dash, Ping, Traffic, Udp, Voip, Web

# Ours: RFC 7928 gives no sizes of applications.
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
# The rate of the link behind router L, so that both queues are bottlenecks.
FIRST_MBIT = 5.0


def _bursts(tested: QueueUnderTest, form: Form) -> list[Case]:
    tcp = bulk("bulk")
    mixes: dict[str, list[Traffic]] = {
        "case I": [WEB, CBR],
        "case II": [WEB, CBR, tcp],
        "case III": [BURSTY_VIDEO, WEB, CBR],
        "case IV": [BURSTY_VIDEO, WEB, CBR, tcp],
    }
    return [
        Case(
            name=name,
            scenario=dumbbell(tested, form, traffic, measured_s=form.steady_s),
            classes=_by_name(traffic),
        )
        for name, traffic in mixes.items()
    ]


def _by_name(traffic: Sequence[Traffic]) -> dict[str, str]:
    return {str(block.name): str(block.name) for block in traffic}


def _mix(tested: QueueUnderTest, form: Form) -> list[Case]:
    traffic: list[Traffic] = [
        Voip(name="voip down", direction="down", start_jitter="20ms"),
        Voip(name="voip up", direction="up", start_jitter="20ms"),
        replace(WEB, count=6),
        CBR,
        VIDEO,
        bulk("bulk", count=5),
    ]
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    return [Case(scenario=scenario, classes=_by_name(traffic))]


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
        scenario = dumbbell(
            tested,
            form,
            traffic,
            measured_s=form.steady_s,
            rates_mbit=(RATE_MBIT, up_mbit),
            both=both,
        )
        cases.append(Case(name=name, scenario=scenario, classes=_by_name(traffic)))
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


def _in_series(tested: QueueUnderTest, form: Form, buffers: dict[str, int], first: str) -> Scenario:
    half = max(flows(MILD) // 2, 1)
    paths = {"A": ["L", "M"], "B": ["M"]}
    tail, queue = arms({f"links.{name}.qdisc": size for name, size in buffers.items()}, tested)
    queue = Arm(name=queue.name, set={**queue.set, "links.L.qdisc": first})
    traffic = [
        bulk(name, count=half, direction=None, path=path, reverse=["back"])
        for name, path in paths.items()
    ]
    probe = Ping(name=PROBE, path=paths["A"], reverse=["back"], interval="100ms")
    return Scenario(
        name=f"RFC 7928, {tested.text}",
        links={
            "L": link(FIRST_MBIT, buffers["L"]),
            "M": link(RATE_MBIT, buffers["M"]),
            "back": link(RATE_MBIT, buffers["M"]),
        },
        traffic=[*traffic, probe],
        arms=[tail, queue],
        rtt=f"{RTT_MS:g}ms",
        duration=seconds(form.warmup_s + form.steady_s),
        warmup=seconds(form.warmup_s),
        replications=form.replications,
        sample=f"{SAMPLE_MS:g}ms",
        keep_events=True,
    )


DEFINITIONS = (
    Definition(
        number="7.2",
        title="Burst absorption",
        weight="scenario must be considered",
        quotation=rfc_text.BURSTS,
        rfc="cases I to IV of figure 2: web with an initial window of 10 and CBR, with bulk TCP, "
        "with video, with both; pages of at least 50 objects of at least 1 kB over 6 connections",
        suite="not in the suite",
        ours="page objects50 (50 objects, 512,000 B), page after page, without TLS; CBR 1 Mbit/s; "
        f"video: segments of 1 s at 2 Mbit/s over TCP; 1 NewReno flow; {OURS}",
        build=_bursts,
    ),
    Definition(
        number="9.1",
        title="Traffic mix",
        weight="scenario is recommended",
        quotation=rfc_text.MIX,
        rfc="1 bidirectional call, 6 page downloads as in 7.2, 1 CBR, 1 adaptive video, 5 bulk TCP",
        suite="not in the suite",
        ours="G.711 calls; 6 users who load page after page; CBR 1 Mbit/s; DASH with 0.3 to 4.8 "
        f"Mbit/s; NewReno; {OURS}",
        build=_mix,
    ),
    Definition(
        number="9.2",
        title="Bidirectional traffic",
        weight="scenario may be considered",
        quotation=rfc_text.BIDIRECTIONAL,
        rfc="the traffic of 8.2.2 in both directions; symmetric and asymmetric links, the latter "
        "with the AQM in one direction and optionally in both (3.1)",
        suite="not in the suite",
        ours=f"10 Mbit/s, and 10/2 Mbit/s; {flows(MILD)} flows per direction of 10 Mbit/s, "
        f"{flows(MILD, bdp_packets(RATE_MBIT / 5))} at 2 Mbit/s; RTT 100 ms; buffers: the BDP of "
        "each direction",
        build=_both_ways,
    ),
    Definition(
        number="10.2",
        title="Two AQMs in series",
        weight="scenario may be considered",
        quotation=rfc_text.SEVERAL,
        rfc="senders A through routers L and M, senders B through M; mild congestion, the flows "
        "shared equally; same scheme, same scheme with other parameters, two schemes",
        suite="not in the suite",
        ours="5 Mbit/s after L and 10 Mbit/s after M, so that both are bottlenecks; 3 + 3 NewReno "
        "flows; other parameters: target or limit doubled at L; other scheme at L: CoDel, or PIE "
        "if CoDel is tested; RTT 100 ms; buffers: the BDP of each link",
        build=_two_queues,
    ),
)
