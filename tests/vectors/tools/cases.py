# SPDX-License-Identifier: MIT OR Apache-2.0
"""The arrival traces and the queues that they are sent through."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

MTU = 1514
# Slow, so that a second of dynamics takes few packets, yet a packet is shorter than a target.
RATE_MBIT = 4
MS = 1_000_000
NOT_ECT, ECT_1, ECT_0, CE = 0, 1, 2, 3
AF22 = 20 << 2


@dataclass(frozen=True)
class Packet:
    """One arrival; ``size`` counts the Ethernet header, ``tos`` ends in the ECN field."""

    t_ns: int
    flow: int
    size: int
    tos: int = NOT_ECT
    # What it is to a queue that reads transport headers, as in replay.c.
    kind: int = 0


@dataclass(frozen=True)
class Case:
    """A trace, the queue in ``tc`` syntax, and the rate of the link behind it."""

    name: str
    about: str
    tc: str
    packets: list[Packet] = field(repr=False)
    # None: the queue is the device's own and paces itself.
    rate_mbit: int | None = RATE_MBIT
    # How long after the last arrival the queue is surely empty.
    drain_ns: int = 5_000 * MS
    # More than one if the kernel draws random numbers.
    runs: int = 1
    # What makes the queue, if it takes several commands; `tc` then is Sojourn's text for the same.
    commands: tuple[str, ...] = ()
    # The first version of Linux that has the queue.
    since: tuple[int, int] = (6, 1)
    # The kernel module of the queue, if it is one of Sojourn's.
    module: str = ""
    # Whether the queue does something periodically from when it is made.
    periodic: bool = False


@dataclass(frozen=True)
class Phase:
    """``ms`` milliseconds of traffic at ``load`` times the rate of the link, or of silence."""

    ms: int
    load: float
    flows: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = (MTU,)
    burst: int = 1
    tos: tuple[int, ...] = (NOT_ECT,)


def traffic(seed: int, rate_mbit: int, phases: list[Phase]) -> list[Packet]:
    """Send bursts of 1 to ``burst`` packets, with gaps that vary by a half either way."""
    dice = random.Random(seed)
    packets = []
    begin = MS
    for phase in phases:
        t, end = float(begin), begin + phase.ms * MS
        while phase.load and t < end:
            sent = 0
            for _ in range(dice.randint(1, phase.burst)):
                size = dice.choice(phase.sizes)
                packets.append(
                    Packet(int(t), dice.choice(phase.flows), size, dice.choice(phase.tos))
                )
                sent += size
            t += sent * 8_000 / rate_mbit / phase.load * dice.uniform(0.5, 1.5)
        begin = end
    return packets


MIXED = (64, 100, 576, 814, 1000, MTU, MTU, MTU)

# Overload that lasts, ends, comes back soon and later, ebbs and drains.
WANDERING = [
    Phase(150, 0.6, burst=4),
    Phase(900, 1.4, burst=3),
    Phase(250, 0.3),
    Phase(500, 1.8, burst=6),
    Phase(400, 0.9, burst=4),
    Phase(600, 1.25, sizes=MIXED, burst=2),
    Phase(300, 0.2, sizes=MIXED),
    Phase(500, 1.1, burst=8),
]

SHORT = WANDERING[:4]

# Overload of a few per cent, which a probability below a tenth answers.
MILD = [
    Phase(500, 0.8, burst=4),
    Phase(1500, 1.05, burst=2),
    Phase(300, 0.4),
    Phase(1500, 1.08, burst=3),
    Phase(400, 0.9, burst=6),
]


def shorter(phases: list[Phase], factor: float) -> list[Phase]:
    """Give the same traffic less time."""
    return [replace(p, ms=int(factor * p.ms)) for p in phases]


def with_tos(phases: list[Phase], tos: tuple[int, ...]) -> list[Phase]:
    """Give the same traffic other ECN fields."""
    return [replace(p, tos=tos) for p in phases]


def mixture(seed: int, rate_mbit: int, flows: list[list[Phase]]) -> list[Packet]:
    """Merge independent flows in order of time."""
    each = (traffic(100 * seed + n, rate_mbit, phases) for n, phases in enumerate(flows))
    return sorted((p for packets in each for p in packets), key=lambda p: p.t_ns)


# Flows by number: each with its own load over time.
HEAVY_AND_SPARSE = [
    [
        Phase(300, 0.3, (0,), burst=4),
        Phase(1500, 0.7, (0,), burst=3),
        Phase(300, 0.1, (0,)),
        Phase(1000, 0.8, (0,), burst=8),
    ],
    [
        Phase(200, 0.2, (1,), MIXED),
        Phase(1000, 0.9, (1,), MIXED, burst=3),
        Phase(900, 0.3, (1,), MIXED),
        Phase(700, 0.9, (1,), MIXED, burst=5),
    ],
    [Phase(2800, 0.15, (2,), (576, 1000), burst=2)],
    [Phase(2800, 0.01, (3,), (98, 214))],
]

SPARSE = [
    [Phase(1000, load, (flow,), (98, 300, 576), burst=4)]
    for flow, load in enumerate((0.25, 0.2, 0.2, 0.1))
]

# The last three are away for longer than the 40 ms after which fq refills a credit, and never for
# 39 to 43 ms, where the ticks of the clock would decide.
COMING_AND_GOING = [
    *HEAVY_AND_SPARSE[:2],
    *(
        [Phase(gap, 0), Phase(9, 1.0, (flow,), (size,), burst=3)] * 15
        for flow, gap, size in ((2, 100, MTU), (3, 150, 814), (4, 180, 1200))
    ),
]

# The same, each flow with a code point of its own: bulk, best effort, video, voice.
DIFFSERV = [
    with_tos(flow, (dscp << 2,))
    for flow, dscp in zip(HEAVY_AND_SPARSE, (8, 0, 34, 46), strict=True)
]

# Twenty flows, together 1.2 times the rate of the link, and one that takes half of it at times.
CROWD = [
    *([Phase(2200, 0.06, (flow,), (576, MTU), burst=2)] for flow in range(1, 21)),
    [Phase(400, 0.2, (0,)), Phase(1100, 0.5, (0,), burst=3), Phase(700, 0.02, (0,))],
]

# The same flows with an ebb in which their probabilities can fall.
EBB = [
    *(
        [
            Phase(900, 0.065, (flow,), (576, MTU), burst=2),
            Phase(600, 0.015, (flow,), (576, MTU)),
            Phase(600, 0.06, (flow,), (576, MTU), burst=2),
        ]
        for flow in range(1, 21)
    ),
    [
        Phase(300, 0.2, (0,)),
        Phase(600, 0.7, (0,), burst=3),
        Phase(600, 0.02, (0,)),
        Phase(600, 0.3, (0,)),
    ],
]

# The same kinds of flows, each with a priority of its own: AF32, best effort, AF11 and EF.
BANDED = [
    with_tos(flow, (dscp << 2,))
    for flow, dscp in zip(HEAVY_AND_SPARSE, (28, 0, 10, 46), strict=True)
]

# ECT(1) that builds a queue, bulk that can and cannot be marked, and a sparse flow.
COUPLED = [
    [
        Phase(400, 0.2, (0,), tos=(ECT_1,)),
        Phase(900, 0.6, (0,), burst=4, tos=(ECT_1, ECT_1, CE)),
        Phase(500, 0.1, (0,), MIXED, burst=2, tos=(ECT_1,)),
        Phase(900, 0.45, (0,), MIXED, burst=3, tos=(ECT_1,)),
    ],
    [
        Phase(300, 0.5, (1,), tos=(ECT_0,)),
        Phase(1200, 0.5, (1,), burst=2, tos=(ECT_0, NOT_ECT)),
        Phase(300, 0.2, (1,), tos=(NOT_ECT,)),
        Phase(900, 0.5, (1,), MIXED, burst=6, tos=(ECT_0, NOT_ECT)),
    ],
    [Phase(2700, 0.15, (2,), (576, 1000), burst=2)],
]

# More of either kind than the link carries.
OVERLOAD = [
    [Phase(300, 0.3, (0,), tos=(ECT_1,)), Phase(1600, 1.0, (0,), burst=2, tos=(ECT_1,))],
    [
        Phase(300, 0.6, (1,), tos=(NOT_ECT,)),
        Phase(1600, 0.6, (1,), burst=3, tos=(ECT_0, NOT_ECT)),
    ],
]

# Nine seconds of few and of many drops: adaptive RED moves its probability up and down.
TIDES = [
    Phase(2500, 1.25, burst=3),
    Phase(1500, 0.7, burst=4),
    Phase(2500, 1.6, burst=3),
    Phase(2500, 1.03, burst=2),
]


def below(*commands: str) -> tuple[str, ...]:
    """Give the commands of tc that make a queue with classes below the class of the link."""
    return tuple(f"tc {words.replace(' add ', ' add dev r1 ', 1)}" for words in commands)


def prio(parameters: str, *leaves: str) -> tuple[str, ...]:
    """Give the commands that make prio with these leaves."""
    return below(
        f"qdisc add parent 1:1 handle 10: prio {parameters}".strip(),
        *(f"qdisc add parent 10:{n} handle {100 + n}: {leaf}" for n, leaf in enumerate(leaves, 1)),
    )


def drr(flows: int, quantum: int, leaf: str) -> tuple[str, ...]:
    """Give the commands that make drr with a class for each flow."""
    commands = ["qdisc add parent 1:1 handle 10: drr"]
    for flow in range(flows):
        name, match = f"10:{flow + 1}", f"match ip dport {2000 + flow} 0xffff"
        commands += [
            f"class add parent 10: classid {name} drr quantum {quantum}",
            f"qdisc add parent {name} handle {101 + flow}: {leaf}",
            f"filter add parent 10: protocol ip prio 1 u32 {match} flowid {name}",
        ]
    return below(*commands)


def pfifo_fast(limit: int) -> tuple[str, ...]:
    """Give the commands that make pfifo_fast, whose limit is that of its device."""
    return (
        f"ip link set dev r1 txqueuelen {limit}",
        *below("qdisc add parent 1:1 handle 10: pfifo_fast"),
    )


def cake_mq(parameters: str, instances: tuple[int, ...]) -> tuple[str, ...]:
    """Give the commands for a device with a transmit queue per instance, chosen by the flow."""
    queues = f"numtxqueues {max(instances) + 1} numrxqueues {max(instances) + 1}"
    near, far = "address 02:00:00:00:02:01", "address 02:00:00:00:02:02"
    return (
        "ip link del r1",
        f"ip link add r1 {near} {queues} type veth peer name s0 netns s {far} {queues}",
        "ip -n s link set s0 up",
        "ip addr add 10.0.2.1/24 dev r1",
        "ip link set r1 up",
        "ip route add 10.0.3.0/24 via 10.0.2.2",
        "ip neigh replace 10.0.2.2 lladdr 02:00:00:00:02:02 dev r1 nud permanent",
        f"tc qdisc add dev r1 root handle 10: cake_mq {parameters}",
        "tc qdisc add dev r1 clsact",
        *(
            f"tc filter add dev r1 egress protocol ip prio 1 u32 match ip dport {2000 + flow} "
            f"0xffff action skbedit queue_mapping {instance}"
            for flow, instance in enumerate(instances)
        ),
    )


# This number of runs gives the standard deviation within one part in seven.
RUNS = 24

CASES = [
    Case(
        "pfifo",
        "A tail-drop queue counted in packets, full several times.",
        "pfifo limit 40",
        traffic(1, RATE_MBIT, SHORT),
    ),
    Case(
        "bfifo",
        "A tail-drop queue counted in bytes: small packets fit where large ones do not.",
        "bfifo limit 40000",
        traffic(2, RATE_MBIT, [replace(p, sizes=MIXED) for p in SHORT]),
    ),
    Case(
        "pfifo_head_drop",
        "A queue that makes room at its head.",
        "pfifo_head_drop limit 40",
        traffic(3, RATE_MBIT, SHORT),
    ),
    Case(
        "codel",
        "CoDel at its defaults, in and out of the dropping state.",
        "codel",
        traffic(4, RATE_MBIT, WANDERING),
    ),
    Case(
        "codel_ecn",
        "CoDel that marks what it can and drops the rest.",
        "codel ecn",
        traffic(5, RATE_MBIT, with_tos(WANDERING, (NOT_ECT, ECT_0, ECT_0, ECT_1))),
    ),
    Case(
        "codel_limit",
        "CoDel with a short interval in a buffer that overflows.",
        "codel limit 50 target 3ms interval 30ms",
        traffic(6, RATE_MBIT, WANDERING),
    ),
    Case(
        "codel_slow",
        "CoDel at 1 Mbit/s, where a packet takes longer than the target.",
        "codel target 13ms interval 100ms",
        traffic(7, 1, [replace(p, ms=4 * p.ms) for p in WANDERING]),
        rate_mbit=1,
    ),
    Case(
        "codel_ticks",
        "CoDel whose interval is ten packets long: ticks and ties decide.",
        "codel target 6ms interval 30280us",
        traffic(40, RATE_MBIT, SHORT),
    ),
    Case(
        "codel_ce_threshold",
        "CoDel whose threshold for CE marks is below its target.",
        "codel ecn ce_threshold 2ms",
        traffic(8, RATE_MBIT, with_tos(WANDERING, (NOT_ECT, ECT_0, ECT_1))),
    ),
    Case(
        "fq_codel",
        "FQ-CoDel: two heavy flows, a medium one and a sparse one; none can be marked.",
        "fq_codel",
        mixture(9, RATE_MBIT, HEAVY_AND_SPARSE),
    ),
    Case(
        "fq_codel_ecn",
        "FQ-CoDel: the same kinds of flows, half of the packets can be marked.",
        "fq_codel",
        mixture(10, RATE_MBIT, [with_tos(flow, (NOT_ECT, ECT_0)) for flow in HEAVY_AND_SPARSE]),
    ),
    Case(
        "fq_codel_ce_selector",
        "FQ-CoDel that marks late packets with ECT(1) alone, as for L4S.",
        "fq_codel ce_threshold 2ms ce_threshold_selector 0x1/0x3",
        mixture(
            42,
            RATE_MBIT,
            [with_tos(flow, (NOT_ECT, ECT_0, ECT_1, ECT_1)) for flow in HEAVY_AND_SPARSE],
        ),
    ),
    Case(
        "fq_codel_ce_dscp",
        "FQ-CoDel that marks late packets of AF22 alone, whatever their ECN field.",
        "fq_codel ce_threshold 2ms ce_threshold_selector 0x50/0xfc",
        mixture(
            43,
            RATE_MBIT,
            [
                with_tos(flow, (ECT_0, AF22 | ECT_0, AF22 | ECT_1, AF22))
                for flow in HEAVY_AND_SPARSE
            ],
        ),
    ),
    Case(
        "fq_codel_limit",
        "FQ-CoDel in a buffer that overflows, and a quantum below the MTU.",
        "fq_codel limit 60 quantum 300",
        mixture(11, RATE_MBIT, HEAVY_AND_SPARSE),
    ),
    Case(
        "fq_codel_sparse",
        "FQ-CoDel with four sparse flows that often meet: few ever leave the new list.",
        "fq_codel",
        mixture(41, RATE_MBIT, SPARSE),
    ),
    Case(
        "sfq",
        "SFQ in a buffer that overflows.",
        "sfq limit 60",
        mixture(12, RATE_MBIT, HEAVY_AND_SPARSE),
    ),
    Case(
        "sfq_depth",
        "SFQ whose slots overflow and lose their oldest packet, and a small quantum.",
        "sfq limit 100 depth 30 headdrop quantum 1000",
        mixture(13, RATE_MBIT, HEAVY_AND_SPARSE),
    ),
    Case(
        "fq",
        "fq at its defaults: a flow loses what exceeds 100 packets.",
        "fq",
        mixture(14, RATE_MBIT, HEAVY_AND_SPARSE),
    ),
    Case(
        "fq_limit",
        "fq with small limits and quanta, and a threshold for marks.",
        "fq limit 60 flow_limit 40 quantum 1000 initial_quantum 9000 ce_threshold 20ms",
        mixture(15, RATE_MBIT, [with_tos(flow, (NOT_ECT, ECT_0)) for flow in COMING_AND_GOING]),
    ),
    Case(
        "cake_flowblind_ecn",
        "CAKE as one queue without a shaper: COBALT alone, which marks what it can.",
        "cake unlimited besteffort flowblind",
        traffic(17, RATE_MBIT, with_tos(WANDERING, (NOT_ECT, ECT_0, ECT_0, ECT_1))),
    ),
    Case(
        "cake_flows",
        "CAKE without a shaper: flows of one host, one tin.",
        "cake unlimited besteffort flows",
        mixture(18, RATE_MBIT, [with_tos(flow, (NOT_ECT, ECT_0)) for flow in HEAVY_AND_SPARSE]),
    ),
    Case(
        "cake_diffserv4",
        "CAKE without a shaper: four tins, among which it goes round by weight.",
        "cake unlimited diffserv4 flows",
        mixture(19, RATE_MBIT, DIFFSERV),
    ),
    Case(
        "cake_shaper",
        "CAKE's own shaper at 4 Mbit/s, four tins with shares of it.",
        "cake bandwidth 4mbit diffserv4 flows",
        mixture(20, RATE_MBIT, DIFFSERV),
        rate_mbit=None,
    ),
    Case(
        "cake_overhead",
        "CAKE's own shaper that counts ATM cells and an overhead.",
        "cake bandwidth 4mbit besteffort flowblind atm overhead 40",
        traffic(21, RATE_MBIT, [replace(p, sizes=(300, 1000, MTU)) for p in SHORT]),
        rate_mbit=None,
    ),
    Case(
        "prio",
        "prio at its defaults: three bands in strict order, each with a small FIFO.",
        "prio leaf pfifo limit 30",
        mixture(60, RATE_MBIT, BANDED),
        commands=prio("", *["pfifo limit 30"] * 3),
    ),
    Case(
        "prio_map",
        "prio with four bands, a map of its own, and other queues in the bands.",
        "prio bands 4 priomap 1 2 3 2 0 2 2 0 1 1 1 1 1 1 1 1 "
        "leaf pfifo limit 20 / codel / bfifo limit 20000 / pfifo_head_drop limit 15",
        mixture(61, RATE_MBIT, BANDED),
        commands=prio(
            "bands 4 priomap 1 2 3 2 0 2 2 0 1 1 1 1 1 1 1 1",
            "pfifo limit 20",
            "codel",
            "bfifo limit 20000",
            "pfifo_head_drop limit 15",
        ),
    ),
    Case(
        "pfifo_fast",
        "pfifo_fast on a device of 40 packets, whose places become free 16 at a time.",
        "pfifo_fast limit 40",
        mixture(62, RATE_MBIT, BANDED),
        commands=pfifo_fast(40),
    ),
    Case(
        "pfifo_fast_short",
        "pfifo_fast on a device of 20 packets, whose places become free one by one.",
        "pfifo_fast limit 20",
        mixture(63, RATE_MBIT, BANDED),
        commands=pfifo_fast(20),
    ),
    Case(
        "drr",
        "DRR with a class for each flow, a quantum of a packet, and FIFOs that overflow.",
        "drr quantum 1514 leaf pfifo limit 30",
        mixture(64, RATE_MBIT, HEAVY_AND_SPARSE),
        commands=drr(4, 1514, "pfifo limit 30"),
    ),
    Case(
        "drr_quantum",
        "DRR with a quantum below the size of most packets: deficits are carried over.",
        "drr quantum 400 leaf bfifo limit 20000",
        mixture(65, RATE_MBIT, HEAVY_AND_SPARSE),
        commands=drr(4, 400, "bfifo limit 20000"),
    ),
    Case(
        "drr_codel",
        "DRR with CoDel in each class, which drops when the size of the next packet is asked for.",
        "drr quantum 1000 leaf codel",
        mixture(66, RATE_MBIT, HEAVY_AND_SPARSE),
        commands=drr(4, 1000, "codel"),
    ),
    Case(
        "red",
        "RED at the thresholds of tc.",
        "red limit 60000 avpkt 1000 bandwidth 4mbit",
        traffic(30, RATE_MBIT, WANDERING),
        runs=RUNS,
    ),
    Case(
        "red_ecn",
        "RED that marks, but drops above the larger threshold.",
        "red limit 90000 min 6000 max 30000 avpkt 1000 burst 20 probability 0.1 ecn harddrop",
        traffic(31, RATE_MBIT, with_tos(WANDERING, (NOT_ECT, ECT_0, ECT_1))),
        runs=RUNS,
    ),
    Case(
        "red_idle",
        "RED between bursts: below htb its average does not decay while nothing waits.",
        "red limit 60000 min 5000 max 15000 avpkt 1000 burst 12 probability 0.1 bandwidth 4mbit",
        traffic(42, RATE_MBIT, [Phase(150, 1.3, burst=4), Phase(200, 0)] * 8),
        runs=RUNS,
    ),
    Case(
        "ared",
        "Adaptive RED at the thresholds of tc: its probability rises and falls.",
        "red limit 60000 avpkt 1000 bandwidth 4mbit adaptive",
        traffic(67, RATE_MBIT, TIDES),
        runs=RUNS,
    ),
    Case(
        "ared_ecn",
        "Adaptive RED that marks, but drops above the larger threshold.",
        "red limit 90000 min 8000 max 32000 avpkt 1000 burst 24 probability 0.05 "
        "bandwidth 4mbit ecn harddrop adaptive",
        traffic(68, RATE_MBIT, with_tos(TIDES, (NOT_ECT, ECT_0, ECT_1))),
        runs=RUNS,
    ),
    Case(
        "pie",
        "PIE at its defaults.",
        "pie",
        traffic(32, RATE_MBIT, WANDERING),
        runs=RUNS,
    ),
    Case(
        "pie_ecn",
        "PIE that marks while its probability is low.",
        "pie target 10ms tupdate 10ms ecn",
        traffic(33, RATE_MBIT, with_tos(MILD, (NOT_ECT, ECT_0, ECT_0, ECT_1))),
        runs=RUNS,
    ),
    Case(
        "pie_dq_rate",
        "PIE that estimates the delay from the rate of departures, small packets spared.",
        "pie limit 60 bytemode dq_rate_estimator",
        traffic(34, RATE_MBIT, [replace(p, sizes=MIXED) for p in shorter(WANDERING, 0.8)]),
        runs=RUNS,
    ),
    Case(
        "sfb",
        "SFB at the defaults of tc: 20 flows, and one that takes half of the link for a time.",
        "sfb",
        mixture(35, RATE_MBIT, CROWD),
        runs=RUNS,
    ),
    Case(
        "sfb_fast",
        "SFB whose probabilities move quickly, with marks and a penalty box.",
        "sfb increment 0.01 decrement 0.002 max 20 target 10 penalty_rate 20 penalty_burst 5",
        mixture(36, RATE_MBIT, [with_tos(flow, (NOT_ECT, ECT_0)) for flow in EBB]),
        runs=RUNS,
    ),
    Case(
        "choke",
        "CHOKe: an arrival that meets its own flow takes it along.",
        "choke limit 100 min 10 max 30 avpkt 1000 burst 20 probability 0.05 bandwidth 4mbit",
        mixture(37, RATE_MBIT, CROWD),
        runs=RUNS,
    ),
    Case(
        "fq_pie",
        "FQ-PIE: two heavy flows, a medium one and a sparse one.",
        "fq_pie target 10ms",
        mixture(38, RATE_MBIT, [shorter(flow, 0.7) for flow in HEAVY_AND_SPARSE]),
        runs=RUNS,
    ),
    Case(
        "dualpi2",
        "DualPI2 at its defaults: L4S, and classic flows that can or cannot be marked.",
        "dualpi2",
        mixture(70, RATE_MBIT, COUPLED),
        runs=RUNS,
        since=(6, 17),
    ),
    Case(
        "dualpi2_overload",
        "DualPI2 in overload: both queues drop.",
        "dualpi2",
        mixture(71, RATE_MBIT, OVERLOAD),
        runs=RUNS,
        since=(6, 17),
    ),
    Case(
        "dualpi2_enqueue",
        "DualPI2 that signals on arrival, with all ECT in L, where the step needs three packets.",
        "dualpi2 drop_enqueue any_ect min_qlen_step 3",
        mixture(72, RATE_MBIT, COUPLED),
        runs=RUNS,
        since=(6, 17),
    ),
    Case(
        "dualpi2_parameters",
        "DualPI2 with other gains, coupling, step and share, and no drops from L in overload.",
        "dualpi2 limit 60 target 5ms tupdate 8ms alpha 0.5 beta 5 coupling_factor 3 "
        "step_thresh 4ms classic_protection 25 overflow",
        mixture(73, RATE_MBIT, OVERLOAD),
        runs=RUNS,
        since=(6, 17),
    ),
    Case(
        "cake_mq",
        "CAKE with two instances, each for two flows, that share a rate while both are active.",
        "cake_mq queues 2 bandwidth 4mbit besteffort flows",
        mixture(80, RATE_MBIT, HEAVY_AND_SPARSE),
        rate_mbit=None,
        commands=cake_mq("bandwidth 4mbit besteffort flows", (0, 1, 1, 0)),
        since=(7, 0),
    ),
]
