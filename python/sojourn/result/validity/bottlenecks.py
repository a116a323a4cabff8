"""Findings on bottlenecks: whether packets wait, and whether they wait where the arms differ.

The most common mistake in measuring queues is to measure one that was not the bottleneck.
"""

from collections.abc import Iterator
from operator import itemgetter

import polars as pl

from sojourn.result.metrics import HAS_CONSTANT_RATE
from sojourn.result.validity.evidence import Evidence
from sojourn.result.validity.finding import Finding, error, note, warning

# A queue in which packets wait for a smaller share of the time has no effect on means.
BUSY_SHARE = 0.05
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
    busiest = evidence.busy.group_by("arm", maintain_order=True).agg(pl.col("busy_share").max())
    idle = busiest.filter(pl.col("busy_share") < BUSY_SHARE)["arm"].to_list()
    if not idle:
        yield from _idle_links(evidence)
    elif changed_queues(evidence):
        yield from (_without_bottleneck(evidence, arm) for arm in idle)
    else:
        yield _limits(evidence, idle)


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
    of_arm = evidence.links.filter(pl.col("arm") == arm)
    return int(of_arm.select(pl.sum_horizontal("^(drops|marks)_.*$").sum()).item())


def _shares(evidence: Evidence, arm: str) -> str:
    """Write for each link of an arm for which share of the time with load packets waited."""
    rows = evidence.busy.filter(pl.col("arm") == arm).iter_rows(named=True)
    shares = (f"{100 * row['busy_share']:.1f} % of the time for {row['link']}" for row in rows)
    return ", ".join(shares)


def _limits(evidence: Evidence, idle: list[str]) -> Finding:
    """Say what limited the flows of arms without a bottleneck."""
    busy = evidence.busy.filter(pl.col("arm").is_in(idle)).select(pl.col("busy_share").max())
    return note(
        f"{', '.join(idle)}: no link was a bottleneck: packets waited for at most "
        f"{100 * busy.item():.1f} % of the time. {_limited_by(evidence, idle)}"
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
    flows = evidence.load.filter(pl.col("arm") == arm)
    for (group,), of_group in flows.group_by("group", maintain_order=True):
        groups.setdefault(_limit(of_group), []).append(f"{group}")
    limits = (f"{', '.join(names)}: {limit}" for limit, names in groups.items())
    return ", ".join(limits) or "no load"


def _limit(flows: pl.DataFrame) -> str:
    """Name what limited the flows of a group, longest first."""
    if flows.select(HAS_CONSTANT_RATE.all()).item():
        return "its own rate"
    shares = flows.select(pl.col(column).mean() for column in LIMITS).row(0, named=True)
    known = {LIMITS[column]: share for column, share in shares.items() if share is not None}
    named = sorted(known.items(), key=itemgetter(1), reverse=True)
    parts = [f"{limit} {100 * share:.0f} %" for limit, share in named if share >= LEAST_SHARE]
    return " and ".join(parts) or "unknown"


def _idle_links(evidence: Evidence) -> Iterator[Finding]:
    """Find links whose queue had no effect in any arm."""
    for row in (
        evidence.busy.group_by("link", maintain_order=True)
        .agg(pl.col("busy_share", "utilisation").max())
        .filter(pl.col("busy_share") < BUSY_SHARE)
        .iter_rows(named=True)
    ):
        yield note(
            f"packets hardly waited at {row['link']} (at most {100 * row['utilisation']:.0f} % of "
            "its rate used): its queue had no effect."
        )


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
    busy = evidence.busy.filter(pl.col("busy_share") >= BUSY_SHARE)
    flows = evidence.load.join(
        busy, left_on=["arm", "bottleneck"], right_on=["arm", "link"], how="semi"
    )
    found = flows["bottleneck"].unique(maintain_order=True).to_list()
    if not changed or not found or set(found) & set(changed):
        return
    waits = evidence.links.group_by("link").agg(pl.col("sojourn_ms_mean").mean())
    mean_ms = {name: wait or 0.0 for name, wait in waits.iter_rows()}

    def waited(names: list[str]) -> str:
        return ", ".join(f"{name} ({mean_ms[name]:.3g} ms)" for name in names)

    yield warning(
        f"the arms differ in the queue of {waited(changed)}, but the bottleneck of every flow is "
        f"another link, {waited(found)} (mean sojourn times in parentheses)."
    )


CHECKS = (_idle, _elsewhere)
