"""Queues that steer a probability by the delay, and those of ns-2."""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Pie(Queue):
    """Proportional Integral controller Enhanced (RFC 8033).

    Parameters
    ----------
    limit
        Packets that the queue holds.
    target
        Delay to control to, with its unit.
    tupdate
        Time between updates of the drop probability, with its unit.
    alpha
        Weight of the deviation from the target, in 1/16 Hz as ``tc`` has it.
    beta
        Weight of the change of the delay, in 1/16 Hz as ``tc`` has it.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    bytemode
        Scale the drop probability with the size of the packet.
    dq_rate_estimator
        Take the delay from backlog and departure rate, not from time stamps.
    derandomise
        Space the drops evenly (RFC 8033 §5.4).
    cap
        Let the probability rise by at most 2 % an update (RFC 8033 §5.5).
    profile
        Whose behaviour where implementations differ; see ``sojourn qdiscs pie``.
    """

    kind: ClassVar[str] = "pie"

    profile: str | None = None
    limit: int | None = None
    target: str | None = None
    tupdate: str | None = None
    alpha: int | None = None
    beta: int | None = None
    ecn: bool | None = None
    bytemode: bool | None = None
    dq_rate_estimator: bool | None = None
    derandomise: bool | None = None
    cap: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FqPie(Queue):
    """A queue per flow, sparse flows first, PIE in each, as in Linux.

    Parameters
    ----------
    limit
        Packets that all queues hold.
    flows
        Queues that flows are hashed to.
    target
        Delay to hold each queue at, with its unit.
    tupdate
        Time between updates of the drop probabilities, with its unit.
    alpha
        Weight of the deviation from the target, in 1/16 Hz as ``tc`` has it.
    beta
        Weight of the change of the delay, in 1/16 Hz as ``tc`` has it.
    quantum
        Bytes that a queue sends in its turn.
    memory_limit
        Bytes above which arrivals are counted.
    ecn_prob
        Highest probability in per cent at which packets are marked.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    bytemode
        Scale the drop probability with the size of the packet.
    dq_rate_estimator
        Take the delay from backlog and departure rate, not from time stamps.
    """

    kind: ClassVar[str] = "fq_pie"

    limit: int | None = None
    flows: int | None = None
    target: str | None = None
    tupdate: str | None = None
    alpha: int | None = None
    beta: int | None = None
    quantum: int | str | None = None
    memory_limit: int | str | None = None
    ecn_prob: int | None = None
    ecn: bool | None = None
    bytemode: bool | None = None
    dq_rate_estimator: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DualPi2(Queue):
    """Two coupled queues: ECT(1) and CE packets wait little, the others around a target.

    Parameters
    ----------
    limit
        Packets that both queues hold.
    memlimit
        Bytes that both queues hold.
    target
        Delay to hold the Classic queue at, with its unit.
    max_rtt
        Longest round trip to be stable at, with its unit; profile ``rfc``.
    tupdate
        Time between updates of the probability, with its unit.
    alpha
        Gain on the error, in 1/s.
    beta
        Gain on the trend, in 1/s.
    coupling_factor
        How many times the base probability L4S is marked with.
    step_thresh
        Sojourn from which L4S is marked whatever the probability, with its unit.
    range
        Over what width that marking becomes certain, with its unit; profile ``rfc``.
    th_len
        Packets of L4S below or at which that marking is off; profile ``rfc``.
    classic_protection
        Per cent of the link for Classic while both queues hold packets.
    tshift
        Serve by age, Classic made younger by this, not in turn; profile ``rfc``.
    drop_on_overload
        Drop from L4S when marks no longer suffice, instead of overflowing.
    profile
        ``"rfc"`` or ``"linux"``: whose law; see ``sojourn qdiscs dualpi2``.
    """

    kind: ClassVar[str] = "dualpi2"

    profile: str | None = None
    limit: int | None = None
    memlimit: int | str | None = None
    target: str | None = None
    max_rtt: str | None = None
    tupdate: str | None = None
    alpha: float | None = None
    beta: float | None = None
    coupling_factor: int | None = None
    step_thresh: str | None = None
    range: str | None = None
    th_len: int | None = None
    classic_protection: float | None = None
    tshift: str | None = None
    drop_on_overload: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SfqCodel(Queue):
    """Bins that take turns packet by packet, CoDel of 2013 in each, as in ns-2.

    Parameters
    ----------
    limit
        Packets that all bins hold.
    flows
        Bins that flows are hashed to.
    target
        Acceptable standing delay of each bin, with its unit.
    interval
        A little more than the longest common RTT, with its unit.
    quantum
        Bytes that a bin sends in its turn; one packet if not given.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "sfq_codel"

    limit: int | None = None
    flows: int | None = None
    target: str | None = None
    interval: str | None = None
    quantum: int | str | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ns2Red(Queue):
    """RED as ns-2 has it: any weight, gentle, idle time as samples.

    Parameters
    ----------
    limit
        Average packets that the queue holds.
    min
        Average queue in packets below which nothing is signalled.
    max
        Average queue in packets at which the probability is at its highest.
    q_weight
        Weight of a sample in the average.
    probability
        Probability of a signal at ``max``.
    mean_pktsize
        Size of an average packet in bytes.
    bandwidth
        Rate of the link, with its unit.
    targetdelay
        Delay that ``min`` and ``max`` aim at if they are not given, with its unit.
    bytes
        Measure the queue in bytes, drop large packets more often.
    wait
        After a signal wait until the next is due on average.
    gentle
        Above ``max`` let the probability rise slowly to 1.
    nonlinear
        Let the probability rise as a square (NLRED).
    adaptive
        Let the probability follow the load.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "red_ns2"

    limit: int | None = None
    min: float | None = None
    max: float | None = None
    q_weight: float | None = None
    probability: float | None = None
    mean_pktsize: int | str | None = None
    bandwidth: str | None = None
    targetdelay: str | None = None
    bytes: bool | None = None
    wait: bool | None = None
    gentle: bool | None = None
    nonlinear: bool | None = None
    adaptive: bool | None = None
    ecn: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nlred(Ns2Red):
    """Nonlinear RED: :class:`Ns2Red` with a probability that grows with the square."""

    kind: ClassVar[str] = "nlred"
