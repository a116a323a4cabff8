"""Findings on bottlenecks: whether packets wait, and whether they wait where the arms differ.

The most common mistake in measuring queues is to measure one that was not the bottleneck.
"""

from collections.abc import Iterator

import polars as pl

from sojourn import _core
from sojourn.result.metrics import HAS_CONNECTION, HAS_CONSTANT_RATE
from sojourn.result.validity.evidence import Block, Evidence, Setup
from sojourn.result.validity.finding import Finding, error, note, warning

# A queue in which packets wait for a smaller share of the time has no effect on means.
BUSY_SHARE = 0.05
# A flow that reaches this share of the rate that its window permits is limited by the window.
OF_WINDOW = 0.8

WAITED = (
    "Share of the time with load with packets waiting for the link or for the shaper of its queue"
)


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
        yield from _limits(evidence, idle)


def _without_bottleneck(evidence: Evidence, arm: str) -> Finding:
    """Judge an arm without a bottleneck, where queues are compared."""
    signals = _signals(evidence, arm)
    if not signals:
        return error(f"{arm}: no link was a bottleneck. {WAITED}: {_shares(evidence, arm)}.")
    # A short burst: too short for means, but not for the completion times of short transfers.
    return warning(
        f"{arm}: packets waited only briefly. {WAITED}: {_shares(evidence, arm)}. In this time, "
        f"queues dropped or marked {signals} packets: maxima and completion times depend on the "
        "queue, means hardly do."
    )


def _signals(evidence: Evidence, arm: str) -> int:
    """Count the drops and marks of the queues of an arm, in all runs."""
    of_arm = evidence.links.filter(pl.col("arm") == arm)
    return int(of_arm.select(pl.sum_horizontal("^(drops|marks)_.*$").sum()).item())


def _shares(evidence: Evidence, arm: str) -> str:
    """Write for each link of an arm how long packets waited for it."""
    rows = evidence.busy.filter(pl.col("arm") == arm).iter_rows(named=True)
    return "; ".join(
        f"link {row['link']}: {100 * row['busy_share']:.1f} % of the time, utilisation "
        f"{100 * row['utilisation']:.0f} %"
        for row in rows
    )


def _limits(evidence: Evidence, idle: list[str]) -> Iterator[Finding]:
    """Say what limited the flows of arms without a bottleneck, as far as it is known."""
    of_limits: dict[str, list[str]] = {}
    for arm in idle:
        of_limits.setdefault(_limited_by(evidence, arm), []).append(arm)
    for limits, arms in of_limits.items():
        busy = evidence.busy.filter(pl.col("arm").is_in(arms)).select(pl.col("busy_share").max())
        yield note(
            f"{', '.join(arms)}: no link was a bottleneck: packets waited for a link for at most "
            f"{100 * busy.item():.1f} % of the time with load. "
            + (f"Limits of the flows: {limits}." if limits else "There was no load.")
        )


def _limited_by(evidence: Evidence, arm: str) -> str:
    """Write what limited the groups of flows of an arm."""
    setup = evidence.arms[arm]
    groups: dict[str, list[str]] = {}
    flows = evidence.load.filter(pl.col("arm") == arm)
    for (group,), of_group in flows.group_by("group", maintain_order=True):
        limit = _limit(setup, setup.blocks[f"{group}"], of_group, signals=_signals(evidence, arm))
        groups.setdefault(limit, []).append(f"{group}")
    return "; ".join(f"{', '.join(names)}: {limit}" for limit, names in groups.items())


def _limit(setup: Setup, block: Block, flows: pl.DataFrame, *, signals: int) -> str:
    """Name what limited the flows of a group."""
    if flows.select(HAS_CONSTANT_RATE.all()).item():
        return "its own rate"
    if _is_window_limited(block, flows):
        return "flow control (max_data or max_stream_data)"
    links = (setup.links[name] for name in setup.forward(block))
    if any("loss" in link for link in links) and flows["retransmits"].sum():
        return "loss on the wire"
    if not flows.select(HAS_CONNECTION.all()).item():
        return "the application"
    if flows["bytes"].null_count() < flows.height:
        return "the size of the transfers"
    return "signals of a queue" if signals else "the congestion window, or unknown"


def _is_window_limited(block: Block, flows: pl.DataFrame) -> bool:
    """Whether connections send what the windows of flow control permit."""
    windows = [block[key] for key in ("max_data", "max_stream_data") if key in block]
    if not windows:
        return False
    least = min(_core.parse_size_bytes(window) for window in windows)
    permitted = 8 * least / (1e3 * pl.col("base_rtt_ms"))
    reached = (pl.col("goodput_mbit_per_s") > OF_WINDOW * permitted).mean()
    return (flows.select(reached).item() or 0.0) > 1 / 2


def _idle_links(evidence: Evidence) -> Iterator[Finding]:
    """Find links whose queue had no effect in any arm."""
    for row in (
        evidence.busy.group_by("link", maintain_order=True)
        .agg(pl.col("busy_share", "utilisation").max())
        .filter(pl.col("busy_share") < BUSY_SHARE)
        .iter_rows(named=True)
    ):
        yield note(
            f"link {row['link']} was not a bottleneck in any arm: packets waited for it or "
            f"for the shaper of its queue for at most {100 * row['busy_share']:.1f} % of the time, "
            f"and the utilisation was at most {100 * row['utilisation']:.0f} %; its queue had no "
            "effect."
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
        f"another link, {waited(found)} (mean sojourn times in parentheses): the queue that is "
        "compared hardly matters."
    )


CHECKS = (_idle, _elsewhere)
