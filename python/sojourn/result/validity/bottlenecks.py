"""Findings on bottlenecks: whether packets wait, and whether they wait where the arms differ.

The most common mistake in measuring queues is to measure one that was not the bottleneck.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter

from sojourn import _core
from sojourn.result import formatting
from sojourn.result.rows import CONSTANT_RATE, Record, Records, grouped, known, mean
from sojourn.result.validity.evidence import Busy, Evidence
from sojourn.result.validity.finding import Finding, error, note, warning

# A queue in which packets wait for a smaller share of the time has no effect on means.
BUSY_SHARE = 0.05
# Shorter waits in a transmit ring, below the queue, hardly matter.
RING_MS = 10.0
# What limits connections, by the column of `flows` with its share of the time.
LIMITS = {
    "limited_by_loss": "loss recovery",
    "limited_by_application": "the application",
    "limited_by_receive_window": "the receive window or flow control",
    "limited_by_pacing": "pacing",
    "limited_by_link": "a link",
    "limited_by_cwnd": "the congestion window",
}
# The least share of the time that is written as 1 %.
LEAST_SHARE = 0.005


ARM, LINK = attrgetter("arm"), attrgetter("link")


def changed_queues(evidence: Evidence) -> list[str]:
    """List the links whose queue differs between the arms, in the order of the first arm."""
    first, *others = evidence.arms.values()
    return [
        name
        for name, link in first.links.items()
        if any(other.links.get(name, {}).get("qdisc") != link["qdisc"] for other in others)
    ]


def _idle(evidence: Evidence) -> Iterator[Finding]:
    """Find arms without a bottleneck, else links whose queue had no effect in any arm."""
    idle = [arm for arm, of in grouped(evidence.busy, ARM).items() if _is_idle(of)]
    if not idle:
        yield from _idle_links(evidence)
    elif changed_queues(evidence):
        yield from (_without_bottleneck(evidence, arm) for arm in idle)
    else:
        yield _limits(evidence, idle)


def _is_idle(links: Sequence[Busy]) -> bool:
    """Whether packets hardly waited for any of some links."""
    return any(of.busy_share is not None for of in links) and not any(map(_waits, links))


def _waits(of: Busy) -> bool:
    """Whether packets waited for a link, in its queue or in the ring below."""
    return (of.busy_share or 0.0) >= BUSY_SHARE or (of.ring_ms or 0.0) >= RING_MS


def waiting(evidence: Evidence) -> list[Busy]:
    """List the links of arms for which packets waited."""
    return [of for of in evidence.busy if _waits(of)]


def counted(link: Record, *prefixes: str) -> int:
    """Add up the columns with some prefixes, such as all drops of a link in a run."""
    return sum(value or 0 for name, value in link.items() if name.startswith(prefixes))


def _without_bottleneck(evidence: Evidence, arm: str) -> Finding:
    """Judge an arm without a bottleneck, where queues are compared."""
    signals = _signals(evidence, arm)
    if not signals:
        return error(
            f"{arm}: no link was a bottleneck: packets waited {_shares(evidence, arm)}. "
            f"{_limited_by(evidence, [arm])}"
        )
    # A short burst: too short for means, but not for the completion times of short transfers.
    return warning(
        f"{arm}: packets waited only briefly, {_shares(evidence, arm)}, and queues dropped or "
        f"marked {signals}: maxima and completion times depend on the queue, means hardly do."
    )


def _signals(evidence: Evidence, arm: str) -> int:
    """Count the drops and marks of the queues of an arm, in all runs."""
    return sum(counted(link, "drops_", "marks_") for link in evidence.links if link["arm"] == arm)


def _shares(evidence: Evidence, arm: str) -> str:
    """Write for each link of an arm for which share of the time with load packets waited."""
    return ", ".join(
        f"{100 * of.busy_share:.1f} % of the time for {of.link}"
        for of in evidence.busy
        if of.arm == arm and of.busy_share is not None
    )


def _limits(evidence: Evidence, idle: list[str]) -> Finding:
    """Say what limited the flows of arms without a bottleneck."""
    busy = max(known(of.busy_share for of in evidence.busy if of.arm in idle))
    return note(
        f"{', '.join(idle)}: no link was a bottleneck: packets waited for at most "
        f"{100 * busy:.1f} % of the time. {_limited_by(evidence, idle)}"
    )


def _limited_by(evidence: Evidence, arms: list[str]) -> str:
    """Write what limited the groups of flows of arms, with its shares of the time."""
    of_limits: dict[str, list[str]] = {}
    for arm in arms:
        of_limits.setdefault(_limits_of(evidence, arm), []).append(arm)
    if len(of_limits) == 1:
        return f"Limits of the flows: {next(iter(of_limits))}."
    limits = (f"{', '.join(names)}: {limits}" for limits, names in of_limits.items())
    return f"Limits of the flows of {'; of '.join(limits)}."


def _limits_of(evidence: Evidence, arm: str) -> str:
    """Write what limited the groups of flows of an arm."""
    groups: dict[str, list[str]] = {}
    flows = (flow for flow in evidence.load if flow["arm"] == arm)
    for group, of_group in grouped(flows, itemgetter("group")).items():
        groups.setdefault(_limit(of_group), []).append(group)
    limits = (f"{', '.join(names)}: {limit}" for limit, names in groups.items())
    return ", ".join(limits) or "no load"


def _limit(flows: Records) -> str:
    """Name what limited the flows of a group, longest first."""
    if all(flow["kind"] in CONSTANT_RATE for flow in flows):
        return "its own rate"
    shares = {limit: mean(flow[column] for flow in flows) for column, limit in LIMITS.items()}
    measured = [(limit, share) for limit, share in shares.items() if share is not None]
    named = sorted(measured, key=itemgetter(1), reverse=True)
    parts = [f"{limit} {100 * share:.0f} %" for limit, share in named if share >= LEAST_SHARE]
    return " and ".join(parts) or "unknown"


def _idle_links(evidence: Evidence) -> Iterator[Finding]:
    """Find links whose queue had no effect in any arm."""
    for link, of in grouped(evidence.busy, LINK).items():
        if _is_idle(of):
            used = max(known(one.utilisation for one in of))
            yield note(
                f"packets hardly waited at {link} (at most {100 * used:.0f} % of "
                f"{_rate(evidence, link)} used): its queue had no effect."
            )


def _rate(evidence: Evidence, name: str) -> str:
    """Write the rate of a link, which is not that of a shaper in its queue."""
    links = [setup.links[name] for setup in evidence.arms.values() if name in setup.links]
    rates = {None if "changes" in link else link.get("rate") for link in links}
    (text, *others) = rates
    if text is None or others:
        return "its rate"
    return formatting.rate(_core.parse_rate_bits_per_s(text))


def _elsewhere(evidence: Evidence) -> Iterator[Finding]:
    """Find comparisons of queues at links that are not the bottleneck of any flow."""
    carrying = {
        name
        for setup in evidence.arms.values()
        for block in setup.blocks.values()
        for name in setup.forward(block)
    }
    # Where only acknowledgements cross, the bottleneck of the data cannot be.
    changed = [name for name in changed_queues(evidence) if name in carrying]
    busy = {(of.arm, of.link) for of in waiting(evidence)}
    found = list(
        dict.fromkeys(
            flow["bottleneck"]
            for flow in evidence.load
            if (flow["arm"], flow["bottleneck"]) in busy
        )
    )
    if not changed or not found or set(found) & set(changed):
        return
    mean_ms = {
        name: mean(row["sojourn_ms_mean"] for row in of) or 0.0
        for name, of in grouped(evidence.links, itemgetter("link")).items()
    }

    def waited(names: list[str]) -> str:
        return ", ".join(f"{name} ({mean_ms[name]:.3g} ms)" for name in names)

    yield warning(
        f"the arms differ in the queue of {waited(changed)}, but the bottleneck of every flow is "
        f"another link, {waited(found)} (mean sojourn times in parentheses)."
    )


CHECKS = (_idle, _elsewhere)
