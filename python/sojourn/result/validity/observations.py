"""Findings on what was measured: failed checks, losses, transactions, calls, few observations."""

from collections.abc import Iterator
from operator import itemgetter

from sojourn.result.formatting import significant
from sojourn.result.rows import (
    CONNECTIONS,
    Record,
    grouped,
    known,
    mean,
    transactions,
)
from sojourn.result.validity.evidence import Evidence, Setup
from sojourn.result.validity.finding import Finding, Severity, error, note, warning
from sojourn.result.validity.load import bits_per_s

# The name of facts with which a backend says what limits the result.
LIMIT = "limit"
CHANGED = "changed_during_run"
OF_GROUP = itemgetter("arm", "group")
# Above this share, percentiles over the remaining replies are too low.
PING_LOSS = 0.10
# If the end of the run cuts off more than this share of the transactions, the mean duration is too
# short; if more than the second share, it describes a minority of quick transactions.
CUT_OFF_SHARE = 0.10
MOST_CUT_OFF = 0.50
# The lowest mean opinion score on the scale.
WORST_MOS = 1.0
# A queue is stuck if it sends nothing for this time, and for this multiple of the time in which its
# link can send its backlog: overhead and framing may double the length of a packet.
STUCK_S = 1.0
STUCK_BACKLOGS = 2.0


def _checks(evidence: Evidence) -> Iterator[Finding]:
    """Find runs that did not pass a check of their backend."""
    for fact in evidence.facts:
        if fact["passed"]:
            continue
        if evidence.is_experiment:
            yield error(
                f"{fact['arm']}: replication {fact['replication']} failed the backend "
                f"check {fact['name']}: {fact['value']}."
            )
        else:
            # There is only one run.
            yield error(f"failed check {fact['name']}: {fact['value']}.")


def _limits(evidence: Evidence) -> Iterator[Finding]:
    """Find what a backend says of the limits of its runs."""
    limits = (f"{fact['value']}." for fact in evidence.facts if fact["name"] == LIMIT)
    yield from map(warning, dict.fromkeys(limits))


def _changed(evidence: Evidence) -> Iterator[Finding]:
    """Find live runs whose links the user changed."""
    for fact in evidence.facts:
        if fact["name"] == CHANGED:
            yield warning(
                f"the links were changed during the run: {fact['value']}. Totals cover the time "
                "before and after; the table link_changes has each change."
            )


def _unfinished(evidence: Evidence) -> Iterator[Finding]:
    """Find whether runs are missing."""
    if evidence.finished != evidence.total:
        yield warning(
            f"{evidence.finished} of {evidence.total} runs finished: arms may have different "
            "numbers of runs."
        )


def _stuck(evidence: Evidence) -> Iterator[Finding]:
    """Find queues that send nothing although packets wait."""
    stretches = sorted(evidence.link_series.stuck(), key=itemgetter(0, 1, 2))
    rates = {
        (link["arm"], link["replication"], link["link"]): bits_per_s(link)
        for link in evidence.links
    }
    longest: dict[tuple[str, str], tuple[float, int, float]] = {}
    for arm, replication, link, begin_s, intervals, backlog_bytes in stretches:
        setup, rate = evidence.arms[arm], rates.get((arm, replication, link))
        if rate is None or not _is_steady(setup, link):
            continue
        lasted_s = intervals * setup.sample_s
        needed_s = STUCK_BACKLOGS * 8 * backlog_bytes / rate
        if lasted_s > max(STUCK_S + needed_s, longest.get((arm, link), (0.0,))[0]):
            longest[arm, link] = lasted_s, replication, begin_s - setup.sample_s
    for (arm, link), (lasted_s, replication, begin_s) in longest.items():
        yield error(
            f"{arm}: the queue of link {link} sent nothing for {lasted_s:.3g} s although "
            f"packets waited (replication {replication}, from {begin_s:.4g} s)."
        )


def _is_steady(setup: Setup, name: str) -> bool:
    """Whether the rate of a link does not change during the run."""
    return not {"trace", "rate_trace", "medium", "changes"} & setup.links[name].keys()


def _connections(evidence: Evidence) -> Iterator[Finding]:
    """Find connections that were never established."""
    for arm, flows in grouped(_connections_of(evidence), itemgetter("arm")).items():
        lost = sum(flow["connected_s"] is None for flow in flows)
        if lost:
            yield warning(f"{arm}: {lost} of {len(flows)} connections were never established.")


def _connections_of(evidence: Evidence) -> Iterator[Record]:
    return (flow for flow in evidence.flows if flow["kind"] in CONNECTIONS)


def _aborted(evidence: Evidence) -> Iterator[Finding]:
    """Find connections on which an endpoint gave up."""
    for (arm, group), flows in grouped(_connections_of(evidence), OF_GROUP).items():
        lost = sum(bool(flow["aborted"]) for flow in flows)
        if lost:
            yield warning(
                f"{arm}: {lost} of {len(flows)} connections of {group} failed; completion times "
                "exclude them."
            )


def _losses(evidence: Evidence) -> Iterator[Finding]:
    """Find arms in which many pings had no reply."""
    pings = (flow for flow in evidence.flows if flow["kind"] == "ping")
    for arm, of in grouped(pings, itemgetter("arm")).items():
        lost = mean(flow["ping_loss"] for flow in of)
        if lost is not None and lost > PING_LOSS:
            yield warning(
                f"{arm}: {100 * lost:.0f} % of pings had no reply; ping times exclude them."
            )


def _without_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Find applications without a transaction that began after the warm-up."""
    none = (row for row in evidence.per_application if row["transactions"] == 0)
    for (arm, group), runs in grouped(none, OF_GROUP).items():
        yield warning(
            f"{arm}: no transaction of {group} began after the warm-up (number "
            f"of runs: {len(runs)}). Use a shorter warm-up or a longer run."
        )


def _incomplete_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Find applications with many transactions that the end of the run cut off."""
    some = (row for row in evidence.per_application if (row["transactions"] or 0) > 0)
    of_group = itemgetter("arm", "group", "kind")
    for (arm, group, kind), of in grouped(some, of_group).items():
        begun, cut_off = sum(row["transactions"] for row in of), sum(row["cut_off"] for row in of)
        if cut_off <= CUT_OFF_SHARE * begun:
            continue
        effect = "durations cover only the shorter ones" if cut_off < begun else "no durations"
        yield Finding(
            severity=Severity.WARNING if cut_off > MOST_CUT_OFF * begun else Severity.NOTE,
            text=f"{arm}: {group}: {cut_off:.0f} of {begun} {transactions(kind)} were still in "
            f"progress at the end of the run: {effect}. Use a longer run.",
        )


def _worst_calls(evidence: Evidence) -> Iterator[Finding]:
    """Find calls with the lowest MOS; those of one arm among several are worse than all others."""
    calls = [row for row in evidence.applications if row["kind"] == "voip"]
    worst: dict[str, dict[str, int]] = {}
    for (arm, group), of in grouped(calls, OF_GROUP).items():
        if count := sum(mos <= WORST_MOS for mos in known(row["mos"] for row in of)):
            worst.setdefault(group, {})[arm] = count
    for group, arms in worst.items():
        of_group = [row["arm"] for row in calls if row["group"] == group]
        is_ranked = len(arms) == 1 < len(set(of_group))
        effect = "differences from it are lower bounds" if is_ranked else "the MOS cannot rank them"
        for arm, count in arms.items():
            yield Finding(
                severity=Severity.NOTE if is_ranked else Severity.WARNING,
                text=f"{arm}: {group}: {count} of {of_group.count(arm)} calls have the lowest "
                f"possible MOS, {WORST_MOS:g}; {effect}.",
            )


def _unstable_rpm(evidence: Evidence) -> Iterator[Finding]:
    """Find responsiveness tests without a stable result, as the draft defines it."""
    tests = (row for row in evidence.applications if row["kind"] == "responsiveness")
    for (arm, group), of in grouped(tests, OF_GROUP).items():
        without = sum(row["rpm"] is None for row in of)
        unsettled = sum(row["rpm_confidence"] not in {None, "high"} for row in of)
        of_them = f"of {len(of)} tests of {group}"
        if without:
            yield warning(
                f"{arm}: {without} {of_them} had too few probes for a result. Use a longer run."
            )
        if unsettled:
            yield note(
                f"{arm}: {unsettled} {of_them} did not reach stability: their RPM is that of the "
                "last four seconds of the run (see rpm_confidence)."
            )


def _of_scenario(evidence: Evidence) -> Iterator[Finding]:
    """Return the limitations that follow from the scenario alone."""
    for severity, text in evidence.concerns:
        finding = Finding(severity=Severity(severity), text=text)
        # The notes state how models were compared with real implementations.
        if evidence.is_experiment or finding.severity is not Severity.NOTE:
            yield finding


def _drifts(evidence: Evidence) -> Iterator[Finding]:
    """Find quantities that differ between the halves of the measured time."""
    if not evidence.is_experiment:
        return
    for drift in evidence.drifts:
        yield warning(
            f"{drift.arm}: {drift.quantity} is not stationary: "
            f"{significant(drift.first)} {drift.unit} in the first, "
            f"{significant(drift.second)} {drift.unit} in the second half. Use "
            f"warmup={drift.middle_s:g}s duration={drift.middle_s + evidence.measured_s:g}s."
        )


def _sparse(evidence: Evidence) -> Iterator[Finding]:
    """Find percentiles with too few observations."""
    for few in evidence.sparse:
        yield note(
            f"{', '.join(few.arms)}: {few.name} has too few observations: {few.least_per_run} per "
            f"run and {few.least} in all; it needs {few.needed_per_run} and {few.needed}."
        )


CHECKS = (
    _checks,
    _limits,
    _changed,
    _unfinished,
    _stuck,
    _connections,
    _aborted,
    _losses,
    _without_transactions,
    _incomplete_transactions,
    _worst_calls,
    _unstable_rpm,
    _of_scenario,
    _drifts,
    _sparse,
)
