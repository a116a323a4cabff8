"""The scenarios of RFC 9743, by section; ``rfc9743.toml`` describes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.control_suite.topology import (
    FLOW,
    RATE_MBIT,
    RTT_MS,
    Builders,
    ControlCase,
    ControlUnderTest,
    Form,
    Path,
    bulk,
    composed,
    dumbbell,
    rate,
    seconds,
)
from sojourn.result.formatting import counted
from sojourn.scenario import Link
from sojourn.suites.case import PROBE
from sojourn.traffic import Dash, Incast, Ping, Tcp, Traffic, Udp, Voip

RIVAL, VICTIM = "rival", "victim"
SHORT_BYTES = "100kb"


def _alone(
    tested: ControlUnderTest,
    form: Form,
    name: str,
    path: Path,
    *,
    count: int = 1,
    over_time: bool = False,
    others: Mapping[str, Any] | None = None,
    **scenario: Any,
) -> ControlCase:
    """Build a case in which all connections have the control of the arm."""
    traffic = [bulk(FLOW, count=count, **(others or {}))]
    return ControlCase(
        name=name,
        scenario=dumbbell(tested, form, path, traffic, varied=[FLOW], **scenario),
        classes={FLOW: FLOW},
        over_time=over_time,
    )


def _among(
    tested: ControlUnderTest,
    form: Form,
    name: str,
    path: Path,
    traffic: Sequence[Traffic],
    *,
    varied: Sequence[str] = (RIVAL,),
    over_time: bool = False,
    **scenario: Any,
) -> ControlCase:
    """Build a case in which some traffic has the control of the arm, and other traffic has not."""
    return ControlCase(
        name=name,
        scenario=dumbbell(tested, form, path, traffic, varied=varied, **scenario),
        classes={str(block.name): str(block.name) for block in traffic},
        over_time=over_time,
    )


# Section 5.1: the control alone.

# Rates at which a packet takes 1.2 s, and far below one packet per measured time.
STARVED_MBIT, DEAD = 0.01, "100bit"
DEEP_BDP = (4.0, 8.0)
SHALLOW_BDP = (0.25, 0.5, 1.5)


def _collapse(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    starved = Path(rate_mbit=STARVED_MBIT, rtt_ms=100.0, packets=10)
    crowd = Path(rate_mbit=2.0, rtt_ms=100.0)
    dies = [{"at": seconds(form.warmup_s * 0.5), "rate": DEAD}]
    return [
        _alone(tested, form, "10 flows at 10 kbit/s", starved, count=10, measured_s=60.0),
        _alone(tested, form, "100 flows at 2 Mbit/s", crowd, count=100),
        _alone(
            tested,
            form,
            "the path dies",
            Path(wire={"changes": dies}),
            measured_s=60.0,
        ),
    ]


def _bufferbloat(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [
        _alone(
            tested,
            form,
            f"buffer {size:g} BDP, {counted(count, 'flow')}",
            Path(buffer_bdp=size),
            count=count,
        )
        for size in DEEP_BDP
        for count in (1, 4)
    ]


def _loss(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    shallow = [
        _alone(tested, form, f"buffer {size:g} BDP, 4 flows", Path(buffer_bdp=size), count=4)
        for size in SHALLOW_BDP
    ]
    lossy = Path(wire={"loss": "20%"})
    return [*shallow, _alone(tested, form, "20 % random loss", lossy)]


def _fairness(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    equal = [
        _alone(tested, form, f"4 flows, buffer {size:g} BDP", Path(buffer_bdp=size), count=4)
        for size in (0.5, 1.0, 4.0)
    ]
    late = [bulk(FLOW), bulk("late", start=seconds(form.warmup_s))]
    return [
        *equal,
        _among(
            tested,
            form,
            "a late second flow",
            Path(),
            late,
            varied=[FLOW, "late"],
            warmup_s=form.warmup_s + 10.0,
        ),
        _alone(
            tested,
            form,
            "RTT 20 and 80 ms",
            Path(),
            count=2,
            others={"rtt": ["20ms", "80ms"]},
        ),
    ]


def _short(name: str, form: Form, **others: Any) -> Tcp:
    """Build short transfers: 30 % of the base rate on average."""
    count = round(0.3 * RATE_MBIT * 1e6 * form.measured_s / (100 * 1024 * 8))
    return Tcp(
        name=name,
        direction="down",
        count=count,
        bytes=SHORT_BYTES,
        start=seconds(form.warmup_s),
        start_jitter=seconds(0.9 * form.measured_s),
        **others,
    )


def _short_flows(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [
        _among(
            tested,
            form,
            f"buffer {size:g} BDP",
            Path(buffer_bdp=size),
            [bulk("long"), _short("short", form)],
            varied=["long", "short"],
        )
        for size in (1.0, 4.0)
    ]


# Section 5.2: with other controls.


def _no_feedback(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    dies = [{"at": seconds(form.warmup_s * 0.5), "rate": DEAD}]
    path = Path(back={"changes": dies})
    return [_alone(tested, form, "no acknowledgement returns", path, measured_s=60.0)]


def _existing(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    cases = []
    for victim in tested.standards:
        for size, count in ((0.5, 1), (1.0, 1), (4.0, 1), (1.0, 4)):
            traffic = [bulk(RIVAL, count=count), bulk(VICTIM, count=count, cc=victim)]
            name = f"against {count} {victim}, buffer {size:g} BDP"
            cases.append(_among(tested, form, name, Path(buffer_bdp=size), traffic))
    return cases


def _real_time(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    calls = [
        Voip(name="call", direction="down", start_jitter="20ms"),
        Voip(name="back", direction="up", start_jitter="20ms"),
    ]
    video = Dash(name="video", direction="down", start_jitter="1s")
    return [
        _among(tested, form, "call", Path(), [bulk(RIVAL, count=2), *calls]),
        _among(tested, form, "video", Path(), [bulk(RIVAL, count=2), video]),
    ]


def _short_and_long(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    cases = []
    for victim in tested.standards:
        short = [bulk(RIVAL), _short(VICTIM, form, cc=victim)]
        long = [_short(RIVAL, form), bulk(VICTIM, cc=victim)]
        cases += [
            _among(tested, form, f"short {victim} flows beside a long flow", Path(), short),
            _among(tested, form, f"long {victim} flow beside short flows", Path(), long),
        ]
    return cases


# Section 6: general use.


def _tail_drop(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    grid = [
        _alone(
            tested,
            form,
            f"{mbit:g} Mbit/s, RTT {rtt_ms:g} ms, buffer {size:g} BDP",
            Path(rate_mbit=mbit, rtt_ms=rtt_ms, buffer_bdp=size),
            count=2,
        )
        for mbit, rtt_ms, size in (
            (2.0, 10.0, 4.0),
            (2.0, 100.0, 1.0),
            (RATE_MBIT, RTT_MS, 0.25),
            (RATE_MBIT, RTT_MS, 4.0),
            (50.0, 10.0, 1.0),
            (50.0, 100.0, 1.0),
        )
    ]
    return [*grid, _parking_lot(tested, form)]


def _parking_lot(tested: ControlUnderTest, form: Form) -> ControlCase:
    path = Path()
    links = {
        name: Link(rate=rate(path.rate_mbit), qdisc=f"pfifo limit {path.buffer}")
        for name in ("first", "second")
    }
    links["back"] = Link(rate=rate(path.rate_mbit), qdisc="pfifo limit 10000")
    paths = {"long": ["first", "second"], "cross1": ["first"], "cross2": ["second"]}
    traffic: list[Traffic] = [
        bulk(name, direction=None, path=crossed, reverse=["back"])
        for name, crossed in paths.items()
    ]
    probe = Ping(name=PROBE, path=paths["long"], reverse=["back"], interval="100ms")
    return ControlCase(
        name="two bottlenecks",
        scenario=composed(tested, form, links, [*traffic, probe], varied=list(paths)),
        classes={name: name for name in paths},
        bottleneck="second",
    )


def _wired(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    path = Path(rate_mbit=50.0, rtt_ms=20.0)
    return [
        _alone(tested, form, "50 Mbit/s", path),
        _alone(tested, form, "50 Mbit/s, paced", path, others={"pacing": True}),
    ]


# A radio link whose rate changes twice per second; the sequence is ours.
RADIO_MBIT = (20, 14, 7, 10, 4, 2, 5, 12, 18, 9, 15, 6)
RADIO_S = 0.5


def _wireless(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    steps = round((form.warmup_s + form.measured_s) / RADIO_S)
    changes = [
        {"at": seconds(at * RADIO_S), "rate": rate(RADIO_MBIT[at % len(RADIO_MBIT)])}
        for at in range(1, steps)
    ]
    bursts = {"model": "gilbert-elliott", "to_bad": "0.1%", "to_good": "20%"}
    wifi = {"type": "wifi", "name": "air", "driver": "12ms"}
    return [
        _alone(tested, form, "1 % random loss", Path(wire={"loss": "1%"})),
        _alone(tested, form, "bursts of loss", Path(wire={"loss": bursts})),
        _alone(
            tested,
            form,
            "varying rate",
            Path(buffer_bdp=4.0, wire={"changes": changes, "jitter": "5ms"}),
            over_time=True,
        ),
        _alone(
            tested,
            form,
            "WiFi",
            Path(
                rate_mbit=65.0,
                packets=500,
                wire={"medium": wifi},
                back={"medium": wifi},
            ),
            count=2,
        ),
    ]


# Section 7: special cases.

QUEUES = ("codel", "fq_codel", "pie", "dualpi2")


def _aqm(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    cases = []
    for queue in QUEUES:
        path = Path(queue=queue if queue == "dualpi2" else f"{queue} limit 1000 ecn")
        plain = Path(queue=queue if queue == "dualpi2" else f"{queue} limit 1000 noecn")
        if queue in {"codel", "pie"}:
            cases.append(_alone(tested, form, f"{queue} without ECN", plain, count=2))
        marked = {"ecn": True}
        cases.append(_alone(tested, form, f"{queue} with ECN", path, count=2, others=marked))
        traffic = [bulk(RIVAL, **marked), bulk(VICTIM, cc=tested.standards[0], **marked)]
        name = f"{queue} with ECN, beside {tested.standards[0]}"
        cases.append(_among(tested, form, name, path, traffic))
    return cases


def _varying_delay(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    # The delay of the wire adds to the base RTT.
    total = form.warmup_s + form.measured_s
    period = min(5.0, total / 4)
    changes = [
        {"at": seconds(at * period), "delay": "40ms" if at % 2 else "0ms"}
        for at in range(1, int(total / period))
    ]
    jitter = {"spread": "10ms", "distribution": "normal"}
    return [
        _alone(
            tested,
            form,
            "RTT 40 and 80 ms in turn",
            Path(buffer_bdp=2.0, wire={"changes": changes}),
            over_time=True,
        ),
        _alone(
            tested,
            form,
            "jitter of 10 ms",
            Path(buffer_bdp=2.0, wire={"delay": "20ms", "jitter": jitter}),
        ),
    ]


def _things(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    path = Path(rate_mbit=0.05, rtt_ms=500.0, packets=10)
    return [
        _alone(
            tested,
            form,
            "50 kbit/s, RTT 500 ms",
            path,
            others={"mss": 524},
            warmup_s=60.0,
            measured_s=240.0,
        )
    ]


def _high_delay(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    path = Path(rtt_ms=600.0)
    return [
        _alone(
            tested,
            form,
            f"RTT 600 ms, {loss}",
            Path(rtt_ms=path.rtt_ms, wire=wire),
            measured_s=2 * form.measured_s,
        )
        for loss, wire in (("no loss", {}), ("0.01 % loss", {"loss": "0.01%"}))
    ]


def _misbehaving(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    flood = Udp(
        name="flood", direction="down", rate=rate(RATE_MBIT / 2), payload="1472b", spread=0.1
    )
    return [_among(tested, form, "unresponsive sender", Path(), [bulk(RIVAL), flood])]


def _reordering(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    free = {"spread": "10ms", "order": "free"}
    path = Path(wire={"delay": "20ms", "jitter": free})
    return [_alone(tested, form, "packets overtake by up to 20 ms", path)]


def _transient(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    third = form.measured_s / 3
    burst = Udp(
        name="burst",
        direction="down",
        rate=rate(0.8 * RATE_MBIT),
        payload="1472b",
        start=seconds(form.warmup_s + third),
        stop=seconds(form.warmup_s + 1.5 * third),
    )
    traffic: list[Traffic] = [bulk(RIVAL, count=2), burst]
    return [_among(tested, form, "a burst of 80 %", Path(), traffic, over_time=True)]


def _sudden(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    third = form.measured_s / 3
    at = [seconds(form.warmup_s + part * third) for part in (1.0, 1.5)]
    slower = [{"at": at[0], "rate": "2mbit"}, {"at": at[1], "rate": rate(RATE_MBIT)}]
    longer = [{"at": at[0], "delay": "80ms"}, {"at": at[1], "delay": "0ms"}]
    both = [
        {"at": at[0], "rate": "5mbit", "delay": "80ms"},
        {"at": at[1], "rate": rate(RATE_MBIT), "delay": "0ms"},
    ]
    return [
        _alone(tested, form, name, Path(wire={"changes": changes}), count=2, over_time=True)
        for name, changes in (
            ("a tenth of the rate for a while", slower),
            ("80 ms more delay for a while", longer),
            ("another path for a while", both),
        )
    ]


def _data_centre(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    incast = Incast(
        name="incast",
        direction="down",
        servers=16,
        bytes="32kb",
        think="20ms",
    )
    path = Path(rate_mbit=1000.0, rtt_ms=0.1, packets=128)
    scenario = dumbbell(
        tested, form, path, [incast], varied=["incast"], warmup_s=0.5, measured_s=2.0
    )
    return [
        ControlCase(
            name="16 servers, 1 Gbit/s, RTT 0.1 ms",
            scenario=scenario,
            classes={"incast": "incast"},
        )
    ]


SCENARIOS: Builders = {
    "5.1.1": _collapse,
    "5.1.2": _bufferbloat,
    "5.1.3": _loss,
    "5.1.4": _fairness,
    "5.1.5": _short_flows,
    "5.2": _no_feedback,
    "5.2.1": _existing,
    "5.2.2": _real_time,
    "5.2.3": _short_and_long,
    "6.1": _tail_drop,
    "6.3": _wired,
    "6.4": _wireless,
    "7.1": _aqm,
    "7.2": _varying_delay,
    "7.3": _things,
    "7.4": _high_delay,
    "7.5": _misbehaving,
    "7.6": _reordering,
    "7.7": _transient,
    "7.7.1": _sudden,
    "7.9": _data_centre,
}
