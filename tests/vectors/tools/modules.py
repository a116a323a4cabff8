# SPDX-License-Identifier: MIT OR Apache-2.0
"""The arrival traces and queues for the kernel modules of Sojourn (``kernel/``)."""

from __future__ import annotations

from dataclasses import replace

from cases import (
    CE,
    COMING_AND_GOING,
    CROWD,
    ECT_0,
    ECT_1,
    HEAVY_AND_SPARSE,
    MIXED,
    MS,
    MTU,
    NOT_ECT,
    RATE_MBIT,
    WANDERING,
    Case,
    Packet,
    Phase,
    mixture,
    traffic,
    with_tos,
)

UDP, QUIC_LONG, TCP_SYN, TCP_ACK, TCP_FIN = range(5)
SYN_BYTES = 74
ACK_BYTES = 66
# Fast enough that a window of slow start lasts for a round trip.
PREDICT_MBIT = 20


def opening(first: int, count: int, gap_ms: int, data: int) -> list[Packet]:
    """Open TCP connections one by one: SYN, ACK, ``data`` segments 2 ms apart, FIN."""
    packets = []
    for n in range(count):
        begin = (10 + n * gap_ms) * MS
        flow = first + n
        packets += [
            Packet(begin, flow, SYN_BYTES, kind=TCP_SYN),
            Packet(begin + 40 * MS, flow, ACK_BYTES, kind=TCP_ACK),
        ]
        packets += [
            Packet(begin + (40 + 2 * k) * MS + 7_000, flow, MTU, ECT_0, TCP_ACK)
            for k in range(data)
        ]
        packets.append(Packet(begin + (60 + 2 * data) * MS, flow, ACK_BYTES, kind=TCP_FIN))
    return packets


def quic(first: int, count: int, gap_ms: int, data: int) -> list[Packet]:
    """Open QUIC connections: three long headers, then ``data`` short ones 3 ms apart."""
    packets = []
    for n in range(count):
        begin = (25 + n * gap_ms) * MS
        flow = first + n
        packets += [Packet(begin + k * 5 * MS, flow, 1242, kind=QUIC_LONG) for k in range(3)]
        packets += [Packet(begin + (50 + 3 * k) * MS, flow, 1242) for k in range(data)]
    return packets


def of_kind(packets: list[Packet], kind: int) -> list[Packet]:
    """Give the same packets another transport."""
    return [replace(p, kind=kind) for p in packets]


def merged(*flows: list[Packet]) -> list[Packet]:
    """Merge packets in order of time."""
    return sorted((p for packets in flows for p in packets), key=lambda p: p.t_ns)


# Downloads, UDP, connections that open, QUIC: together 1.5 times the rate of the link at times.
SERVICES = merged(
    of_kind(
        traffic(60, RATE_MBIT, [Phase(3000, 0.6, (1, 2), burst=3, tos=(ECT_0, NOT_ECT))]), TCP_ACK
    ),
    traffic(
        61,
        RATE_MBIT,
        [Phase(1000, 0.3, (3,), MIXED), Phase(1000, 0.9, (3,), burst=4), Phase(1000, 0.2, (3,))],
    ),
    opening(100, 24, 120, 14),
    quic(200, 12, 230, 20),
)

# A connection in its setup, and one that comes back after a pause of 900 ms.
PAUSES = merged(
    SERVICES,
    *(
        [
            Packet(begin * MS + k * MS, 300, MTU, ECT_0, TCP_SYN if begin + k == 1 else TCP_ACK)
            for k in range(12)
        ]
        for begin in (1, 950, 1900, 2900)
    ),
)


def slow_start(seed: int, rtt_ms: int, tos: tuple[int, ...], rounds: int = 9) -> list[Packet]:
    """Send windows that double in each round trip of ``rtt_ms``, from four flows."""
    packets = []
    for n in range(rounds):
        window = 4 << n
        begin, end = 20 + n * rtt_ms, 20 + (n + 1) * rtt_ms
        # Paced over the round trip, but at most at 150 Mbit/s.
        gap = max((end - begin) * MS // window, MTU * 80)
        packets += [
            Packet(begin * MS + k * gap, (k + seed) % 4, MTU, tos[k % len(tos)])
            for k in range(window)
        ]
    return sorted(packets, key=lambda p: p.t_ns)


def steady(begin_ms: int, packets: int, mbit: int, tos: int = NOT_ECT) -> list[Packet]:
    """Send full packets of one flow at a constant rate."""
    gap = MTU * 8_000 // mbit
    return [Packet(begin_ms * MS + k * gap, 9, MTU, tos) for k in range(packets)]


MODULES = [
    Case(
        "cocoa",
        "Limits that begin at 20 packets: four flows, two of which come and go.",
        "cocoa flow_limit 20",
        mixture(50, RATE_MBIT, HEAVY_AND_SPARSE),
        module="sch_cocoa",
    ),
    Case(
        "cocoa_one",
        "One flow whose limit grows after pauses and shrinks while its queue stands.",
        "cocoa flow_limit 12 guard_interval 0.5 max_monitoring_interval 300ms",
        traffic(51, RATE_MBIT, [*WANDERING, *WANDERING]),
        module="sch_cocoa",
    ),
    Case(
        "cocoa_collisions",
        "Twenty-one flows in four queues, with a small quantum and a limit of all packets.",
        "cocoa limit 60 flow_limit 10 orphan_mask 3 quantum 600 initial_quantum 900 "
        "max_increase 1.5 refill_delay 10ms",
        mixture(52, RATE_MBIT, CROWD),
        module="sch_cocoa",
    ),
    Case(
        "cocoa_idle",
        "Flows that are away for longer than the refill delay.",
        "cocoa flow_limit 15",
        mixture(53, RATE_MBIT, COMING_AND_GOING),
        module="sch_cocoa",
    ),
    Case(
        "afcd",
        "Targets of the paper: two heavy flows, a medium one and a sparse one.",
        "afcd sample 5 shadow 50 table 64",
        mixture(54, RATE_MBIT, HEAVY_AND_SPARSE),
        module="sch_afcd",
    ),
    Case(
        "afcd_ecn",
        "The same kinds of flows; most packets can be marked.",
        "afcd sample 3 shadow 40 table 16 interval 50ms ecn",
        mixture(
            55, RATE_MBIT, [with_tos(f, (NOT_ECT, ECT_0, ECT_1, CE)) for f in HEAVY_AND_SPARSE]
        ),
        module="sch_afcd",
    ),
    Case(
        "afcd_kernel2012",
        "The parameters of the module of 2012 in a crowd of flows.",
        "afcd limit 80 target_scale 0.01 exponent 4 persist 10ms protect sample 4 shadow 100 "
        "table 100",
        mixture(56, RATE_MBIT, CROWD),
        module="sch_afcd",
    ),
    Case(
        "afcd_average",
        "The fair share follows the backlog (equation 5).",
        "afcd limit 60 sample 4 shadow 100 table 100 average qtarget 8 interval 40ms",
        mixture(57, RATE_MBIT, CROWD),
        module="sch_afcd",
        periodic=True,
    ),
    Case(
        "afq",
        "Random drops of fast flows, a hundred times as often as in the module of 2012.",
        "afq limit 60 gain 0.1 sample 3 shadow 60 ecn",
        mixture(58, RATE_MBIT, [with_tos(f, (NOT_ECT, ECT_0)) for f in CROWD]),
        module="sch_afcd",
    ),
    Case(
        "floq",
        "Downloads, UDP and connections that open, with the default weights.",
        "floq limit 40",
        SERVICES,
        module="sch_floq",
    ),
    Case(
        "floq_ecn",
        "The same traffic; marks, short setups, other weights.",
        "floq limit 40 ecn responsive_weight 0.2 exponent 0 setup_packets 3 gamma 2 "
        "setup_weight 0.1 gain 0.01",
        SERVICES,
        module="sch_floq",
    ),
    Case(
        "floq_pushout",
        "A full buffer in which setup packets replace others, and connections that resume.",
        "floq limit 25 pushout resume 500ms connections 16 threshold 0.9 probability 0.3",
        PAUSES,
        module="sch_floq",
    ),
    Case(
        "predict",
        "Windows that double in each round trip of 100 ms; all packets can be marked.",
        f"predict bandwidth {PREDICT_MBIT}mbit",
        slow_start(0, 100, (ECT_0,)),
        rate_mbit=PREDICT_MBIT,
        module="sch_predict",
    ),
    Case(
        "predict_drop",
        "Windows that double in each round trip of 60 ms; some packets are dropped instead.",
        f"predict bandwidth {PREDICT_MBIT}mbit limit 300 slot 2ms per_octave 4 rounds 3 mark 0.5",
        merged(slow_start(1, 60, (NOT_ECT, ECT_0)), steady(0, 300, 2)),
        rate_mbit=PREDICT_MBIT,
        module="sch_predict",
    ),
    Case(
        "predict_fallback",
        "CoDel takes over when nothing grows; a pause longer than the history between.",
        f"predict bandwidth {PREDICT_MBIT}mbit fallback ecn mark_arrival rtt_max 200ms",
        merged(
            slow_start(2, 40, (ECT_0, NOT_ECT), 7),
            steady(400, 2500, 22, ECT_0),
            [replace(p, t_ns=p.t_ns + 4_000 * MS) for p in slow_start(3, 80, (ECT_0,), 8)],
        ),
        rate_mbit=PREDICT_MBIT,
        module="sch_predict",
    ),
]
