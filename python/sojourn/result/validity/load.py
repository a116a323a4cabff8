"""Findings on the load: when it is offered, and in which phase its packets meet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd
from operator import itemgetter

from sojourn import _core
from sojourn.result.rows import Record, grouped, known, mean
from sojourn.result.validity.evidence import Block, Evidence, Setup
from sojourn.result.validity.finding import Finding, warning

# Means over the measured time describe the load if it is offered for at least this share of it.
LOAD_SHARE = 0.8

# Intervals with a ratio of integers up to this meet in few phases.
SMALL_INTEGER = 10
# Phases matter if what is sent at once takes this time and this share of the interval to transmit.
LEAST_BURST_S = 1e-3
LEAST_BURST_SHARE = 0.1
# ITU-T G.711: 20 ms per packet, with RTP, UDP, IP and Ethernet headers.
CALL_INTERVAL_S = Fraction(20, 1000)
CALL_BYTES = 214
# Ethernet, IPv4 and UDP headers.
HEADER_BYTES = 42


def _ends_early(evidence: Evidence) -> Iterator[Finding]:
    """Find arms whose load covers only a part of the measured time."""
    of_arms = grouped(evidence.covered(evidence.spans).items(), lambda item: item[0][0])
    means = {arm: mean(covered_s for _, covered_s in runs) for arm, runs in of_arms.items()}
    least_s = LOAD_SHARE * evidence.measured_s
    short = {arm: of for arm, of in means.items() if of is not None and of < least_s}
    if short:
        times = " to ".join(dict.fromkeys(f"{of(short.values()):.3g}" for of in (min, max)))
        yield warning(
            f"{', '.join(short)}: load is offered for only {times} s of the "
            f"{evidence.measured_s:g} s that are measured: means include the time without load. "
            "Shorten the run."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A traffic block that sends at constant intervals."""

    name: str
    is_ping: bool
    interval_s: Fraction
    # What all flows of the block send in an interval.
    burst_bits: int
    count: int
    # Whether its phase is the same in all runs.
    is_fixed: bool
    links: Sequence[str]


def _sources(setup: Setup) -> Iterator[Source]:
    """Yield the traffic blocks that send at constant intervals and not at random phases."""
    for name, block in setup.blocks.items():
        timing = _timing(block)
        # A source without a phase starts at a random one; pings are then spread at random.
        if timing is None or "phase" not in block:
            continue
        interval_s, packet_bytes = timing
        is_ping = not _core.traffic_types()[block["type"]]["carries_data"]
        jitter = Fraction(_core.parse_time_s(block["start_jitter"]))
        yield Source(
            name=name,
            is_ping=is_ping,
            interval_s=interval_s,
            burst_bits=8 * packet_bytes * block["count"],
            count=block["count"],
            is_fixed=jitter < interval_s,
            links=setup.both_ways(block) if is_ping else setup.forward(block),
        )


def _timing(block: Block) -> tuple[Fraction, int] | None:
    """Return the interval and the length of the packets of a block; None if it has neither."""
    if not _core.traffic_types()[block["type"]]["constant_rate"]:
        return None
    if "interval" in block:
        if block["interval"] == "back-to-back":
            return None
        return Fraction(_core.parse_time_s(block["interval"])).limit_denominator(10**9), 0
    if "rate" not in block:
        return CALL_INTERVAL_S, CALL_BYTES
    if block.get("spacing") == "poisson" or block["spread"]:
        return None
    payload = _core.parse_size_bytes(block["payload"])
    return 8 * payload / Fraction(
        _core.parse_rate_bits_per_s(block["rate"])
    ), payload + HEADER_BYTES


def _in_phase(evidence: Evidence) -> Iterator[Finding]:
    """Find periodic sources whose packets meet in the same phase for the whole run."""
    arms: dict[str, list[str]] = {}
    for arm, setup in evidence.arms.items():
        rates = _rates(evidence, arm)
        for one, other in combinations_with_replacement(_sources(setup), 2):
            if one is other and one.count == 1:
                continue
            load, rest = (other, one) if one.is_ping else (one, other)
            shared = [name for name in load.links if name in rest.links and name in rates]
            if load.is_ping or not _is_locked(load, rest, evidence.duration_s):
                continue
            link = next((link for link in shared if _matters(load, rest, rates[link])), None)
            if link is not None:
                arms.setdefault(_met(load, rest, link), []).append(arm)
    for text, names in arms.items():
        yield warning(text if len(names) == len(evidence.arms) else f"{', '.join(names)}: {text}")


def _rates(evidence: Evidence, arm: str) -> Mapping[str, float]:
    """Return the bit rate of each link of an arm."""
    links = [link for link in evidence.links if link["arm"] == arm]
    means = {
        name: mean(bits_per_s(link) for link in of_link)
        for name, of_link in grouped(links, itemgetter("link")).items()
    }
    return {name: rate for name, rate in means.items() if rate is not None}


def bits_per_s(link: Record) -> float | None:
    """Return the rate of a link in a run, or that of the shaper of its queue if it is slower."""
    rates = known([link["rate_mbit_per_s"], link["capacity_mbit_per_s"]])
    return 1e6 * min(rates) if rates else None


def _is_locked(load: Source, rest: Source, duration_s: float) -> bool:
    """Whether two sources meet in few phases, which hardly drift within a run.

    A ping meets the load in the same phases for a whole run, whatever the phase at its start is.
    Other sources have the same phase in all runs only if both are fixed.
    """
    if not (rest.is_ping or (load.is_fixed and rest.is_fixed)):
        return False
    shorter = min(load.interval_s, rest.interval_s)
    for of_load in range(1, SMALL_INTEGER + 1):
        of_rest = round(of_load * load.interval_s / rest.interval_s)
        if not 1 <= of_rest <= SMALL_INTEGER or gcd(of_load, of_rest) > 1:
            continue
        period = of_load * load.interval_s
        drift = abs(period - of_rest * rest.interval_s) * Fraction(duration_s) / period
        if drift < shorter / 2:
            return True
    return False


def _matters(load: Source, rest: Source, rate: float) -> bool:
    """Whether the phase matters: packets that meet wait long, or exceed the link."""
    bursts = {load.name: load, rest.name: rest}.values()
    offered = sum(one.burst_bits / one.interval_s for one in bursts)
    burst_s = sum(one.burst_bits for one in bursts) / rate
    shorter = min(one.interval_s for one in bursts if not one.is_ping)
    waits = burst_s >= LEAST_BURST_S and burst_s >= LEAST_BURST_SHARE * shorter
    # A ping needs no place of its own in a full queue.
    return waits or (offered > rate and not rest.is_ping)


def _met(load: Source, rest: Source, link: str) -> str:
    """Describe two sources in phase."""
    if load is rest:
        senders = f"the {load.count} flows of {load.name} send every {_ms(load)} and start together"
    else:
        senders = (
            f"{load.name} and {rest.name} send at commensurable intervals ({_ms(load)} and "
            f"{_ms(rest)})"
        )
    return (
        f"{senders}: their packets meet at link {link} in the same phase for the whole run, so "
        "the results are those of this phase. Let phases vary: "
        + ("use another interval of the ping." if rest.is_ping else "use start_jitter or spread.")
    )


def _ms(source: Source) -> str:
    """Write the interval of a source."""
    return f"{float(1000 * source.interval_s):.4g} ms"


CHECKS = (_ends_early, _in_phase)
