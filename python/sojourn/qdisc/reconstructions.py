"""Queues of which not everything was published, as typed objects.

Each says what had to be supplied; its page in ``docs/qdiscs`` lists it.
"""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Afcd(Queue):
    """CoDel with a target for each flow that falls with its share of the arrivals.

    In part a reconstruction: the paper gives no sampling rate, no sizes of its tables and no
    values for its equation (5). ``docs/qdiscs/afcd.md`` lists what was supplied.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    target
        Acceptable delay of a flow at its fair share, with its unit, before `target_scale`.
    target_scale
        What `target` is multiplied with.
    exponent
        Power of fair share over share that a flow's target follows.
    interval
        A little more than the longest common RTT, with its unit.
    persist
        Time that a flow stays above its target before it is signalled, with its unit.
    protect
        Never signal a flow below its fair share.
    shadow
        Arrivals that are remembered.
    table
        Bins that flows are hashed to.
    sample
        One arrival in so many is remembered.
    average
        Steer the fair share by the backlog: equation (5).
    alpha
        Gain on the backlog a period ago.
    beta
        Gain on the backlog.
    qtarget
        Packets that the fair share is steered to.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "afcd"

    limit: int | None = None
    target: str | None = None
    target_scale: float | None = None
    exponent: int | None = None
    interval: str | None = None
    persist: str | None = None
    protect: bool | None = None
    shadow: int | None = None
    table: int | None = None
    sample: int | None = None
    average: bool | None = None
    alpha: float | None = None
    beta: float | None = None
    qtarget: int | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AfcdKernel2012(Afcd):
    """AFCD as its first author's kernel module of 2012, which is another law than the paper's.

    Slow flows are never signalled, fast ones have a target of 50 µs or less. The parameters are
    those of :class:`Afcd`; `target_scale`, `exponent`, `persist` and `protect` have other
    defaults. How the sampling follows the rate of the link is a reconstruction.
    """

    kind: ClassVar[str] = "afcd_kernel2012"


@dataclass(frozen=True, slots=True, kw_only=True)
class Afd(Queue):
    """Approximate Fair Dropping: each flow loses what it sends beyond its fair share.

    In part a reconstruction: the sources give no target backlog, no size of the shadow buffer
    and no sampling rate. ``docs/qdiscs/afd.md`` lists what was supplied.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    shadow
        Arrivals that are remembered.
    table
        Bins that flows are hashed to.
    sample
        One arrival in so many is remembered.
    random
        Draw what is sampled and what it replaces.
    accumulate
        Let the fair share move on from what it was.
    tupdate
        Time between two moves of the fair share, with its unit.
    alpha
        Gain on the backlog a period ago.
    beta
        Gain on the backlog.
    qtarget
        Packets that the backlog is steered to.
    tolerance
        Fair shares that a flow may have before it is dropped.
    gain
        What the probability of a drop is multiplied with.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "afd"

    limit: int | None = None
    shadow: int | None = None
    table: int | None = None
    sample: int | None = None
    random: bool | None = None
    accumulate: bool | None = None
    tupdate: str | None = None
    alpha: float | None = None
    beta: float | None = None
    qtarget: int | None = None
    tolerance: float | None = None
    gain: float | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AfqKernel2012(Afd):
    """AFQ, the kernel module of 2012 that AFCD was compared with.

    It drops a thousandth as often as :class:`Afd` and remembers no fair share. The parameters
    are those of :class:`Afd`; `table`, `random`, `accumulate`, `tolerance` and `gain` have other
    defaults. Signed arithmetic and sampling by the rate of the link are a reconstruction.
    """

    kind: ClassVar[str] = "afq_kernel2012"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floq(Queue):
    """Spares connections that are being set up, drops others by class and its share.

    A reconstruction: only the idea of FLOQ was published; classifier, threshold, formula and
    every constant are ours. ``docs/qdiscs/floq.md`` tells them apart.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    threshold
        Part of the limit above which arrivals are signalled.
    gamma
        Power of the ramp from threshold to limit.
    probability
        Probability of a signal when the buffer is full, before weight and share.
    setup_weight
        Weight of packets of a set-up; 0 spares them.
    responsive_weight
        Weight of other responsive traffic.
    unresponsive_weight
        Weight of unresponsive traffic.
    exponent
        Power of the class's share of the traffic.
    gain
        Weight of 1514 bytes in the average of the shares.
    setup_packets
        Packets with data that belong to a set-up.
    setup_time
        Longest set-up, from the last SYN, with its unit.
    connections
        Connections that are remembered, rounded up to fours.
    expiry
        Idle time after which a connection is forgotten, with its unit.
    resume
        Idle time after which a connection has a set-up again, with its unit.
    quic
        Count QUIC as responsive, with a set-up.
    pushout
        A set-up packet takes the place of the youngest other when the buffer is full.
    ecn
        Mark packets of responsive traffic that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "floq"

    limit: int | None = None
    threshold: float | None = None
    gamma: int | None = None
    probability: float | None = None
    setup_weight: float | None = None
    responsive_weight: float | None = None
    unresponsive_weight: float | None = None
    exponent: int | None = None
    gain: float | None = None
    setup_packets: int | None = None
    setup_time: str | None = None
    connections: int | None = None
    expiry: str | None = None
    resume: str | None = None
    quic: bool | None = None
    pushout: bool | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FloqShare(Floq):
    """FLOQ (a reconstruction) under the name of its preset: the same as :class:`Floq`."""

    kind: ClassVar[str] = "floq_share"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloqFixed(Floq):
    """FLOQ (a reconstruction) that drops unresponsive traffic five times as often as other.

    The parameters are those of :class:`Floq`; `exponent` is 0 and `responsive_weight` 0.2.
    """

    kind: ClassVar[str] = "floq_fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloqProtect(Floq):
    """FLOQ (a reconstruction) that treats all packets but those of a set-up alike.

    The parameters are those of :class:`Floq`; `exponent` is 0.
    """

    kind: ClassVar[str] = "floq_protect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predict(Queue):
    """Marks in time for slow start to end at a full link: a reconstruction.

    Its authors published its structure, not its constants and rules; those are reconstructed.
    It is made for TCP with ``on_ce="end-slow-start"``.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    bandwidth
        Rate of the link, with its unit; by default the link's.
    slot
        Length of a time slot, with its unit.
    rtt_min
        Shortest candidate for the round-trip time, with its unit.
    rtt_max
        Longest candidate, with its unit.
    per_octave
        Candidates to each doubling.
    rounds
        Round trips of growth that are looked at.
    growth_min
        Least growth in a round trip.
    growth_max
        Largest growth in a round trip.
    consistency
        Ratio of the largest growth to the smallest.
    significance
        Standard deviations that the growth is away from chance.
    persistence
        Round trips that a growth lasts before it counts.
    hold
        Round trips that a candidate that fitted stays active.
    dominance
        Ratio of the longest active candidate to the chosen one.
    full
        Predicted load of a signal; 1 is a full link without a queue.
    mark
        Stretched round trips for which departures are marked.
    stretch
        Add what waited to the round trips looked back.
    compact
        Keep a sum a slot instead of a history a candidate: the same numbers.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    nodrop
        Let pass what cannot be marked.
    fallback
        Govern by CoDel while no growth is followed.
    target
        CoDel's acceptable standing delay, with its unit.
    interval
        CoDel's interval, with its unit.
    """

    kind: ClassVar[str] = "predict"

    limit: int | None = None
    bandwidth: str | None = None
    slot: str | None = None
    rtt_min: str | None = None
    rtt_max: str | None = None
    per_octave: int | None = None
    rounds: int | None = None
    growth_min: float | None = None
    growth_max: float | None = None
    consistency: float | None = None
    significance: float | None = None
    persistence: float | None = None
    hold: float | None = None
    dominance: float | None = None
    full: float | None = None
    mark: float | None = None
    stretch: bool | None = None
    compact: bool | None = None
    ecn: bool | None = None
    nodrop: bool | None = None
    fallback: bool | None = None
    target: str | None = None
    interval: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hred(Queue):
    """Harsh RED, which reacts within the round trip that it is tuned for.

    A reconstruction: weight, thresholds and probability were not in what could be read.

    Parameters
    ----------
    rtt
        Round trip it is tuned for, with its unit.
    bandwidth
        Rate of the link, with its unit.
    limit
        Packets that the queue holds.
    q_weight
        Weight of a sample in the average.
    min
        Average queue where signals begin, in round trips of the link.
    max
        Average queue where the probability is at its highest, likewise.
    probability
        Probability of a signal at ``max``.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "hred"

    rtt: str | None = None
    bandwidth: str | None = None
    limit: int | None = None
    q_weight: float | None = None
    min: float | None = None
    max: float | None = None
    probability: float | None = None
    ecn: bool | None = None
