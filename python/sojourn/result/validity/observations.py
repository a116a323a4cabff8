"""Findings on what was measured: failed checks, losses, transactions, calls, few observations."""

from collections.abc import Iterator

import polars as pl

from sojourn.result import metrics
from sojourn.result.formatting import significant
from sojourn.result.metrics import KEYS
from sojourn.result.validity.evidence import Evidence, Setup
from sojourn.result.validity.finding import Finding, Severity, error, note, warning

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


def _unfinished(evidence: Evidence) -> Iterator[Finding]:
    """Find whether runs are missing."""
    if evidence.finished != evidence.total:
        yield warning(
            f"{evidence.finished} of {evidence.total} runs finished: arms may have different "
            "numbers of runs."
        )


def _stuck(evidence: Evidence) -> Iterator[Finding]:
    """Find queues that send nothing although packets wait."""
    keys = [*KEYS, "link"]
    series = evidence.link_series.lazy().select(*keys, "t_s", "sent_packets", "backlog_bytes")
    waits = (pl.col("sent_packets") == 0) & (pl.col("backlog_bytes") > 0)
    stretches = (
        series.with_columns(waits=waits, stretch=(~waits).cum_sum().over(keys))
        .filter("waits")
        .group_by(*keys, "stretch")
        .agg(
            begin=pl.col("t_s").min(),
            intervals=pl.len(),
            backlog_bytes=pl.col("backlog_bytes").max(),
        )
        .collect()
    )
    rates = evidence.links.select(
        *keys, rate=pl.min_horizontal("rate_mbit_per_s", "capacity_mbit_per_s") * 1e6
    )
    found: dict[tuple[str, str], dict[str, float]] = {}
    rows = stretches.join(rates, on=keys).sort(*keys, "stretch")
    for row in rows.iter_rows(named=True):
        setup = evidence.arms[row["arm"]]
        lasted_s = row["intervals"] * setup.sample_s
        needed_s = STUCK_BACKLOGS * 8 * row["backlog_bytes"] / row["rate"]
        if not _is_steady(setup, row["link"]) or lasted_s <= STUCK_S + needed_s:
            continue
        longest = found.setdefault((row["arm"], row["link"]), {"lasted_s": 0.0})
        if lasted_s > longest["lasted_s"]:
            longest |= {**row, "lasted_s": lasted_s, "begin": row["begin"] - setup.sample_s}
    for (arm, link), of in found.items():
        yield error(
            f"{arm}: the queue of link {link} sent nothing for {of['lasted_s']:.3g} s although "
            f"packets waited (replication {of['replication']}, from {of['begin']:.4g} s)."
        )


def _is_steady(setup: Setup, name: str) -> bool:
    """Whether the rate of a link does not change during the run."""
    return not {"trace", "rate_trace", "medium", "changes"} & setup.links[name].keys()


def _connections(evidence: Evidence) -> Iterator[Finding]:
    """Find connections that were never established."""
    for row in (
        evidence.flows.filter(metrics.HAS_CONNECTION)
        .group_by("arm", maintain_order=True)
        .agg(lost=pl.col("connected_s").null_count(), flows=pl.len())
        .filter(pl.col("lost") > 0)
        .iter_rows(named=True)
    ):
        yield warning(
            f"{row['arm']}: {row['lost']} of {row['flows']} connections were never established."
        )


def _aborted(evidence: Evidence) -> Iterator[Finding]:
    """Find connections on which an endpoint gave up."""
    for row in (
        evidence.flows.filter(metrics.HAS_CONNECTION)
        .group_by("arm", "group", maintain_order=True)
        .agg(lost=pl.col("aborted").fill_null(value=False).sum(), flows=pl.len())
        .filter(pl.col("lost") > 0)
        .iter_rows(named=True)
    ):
        yield warning(
            f"{row['arm']}: {row['lost']} of {row['flows']} connections of {row['group']} "
            "failed; completion times exclude them."
        )


def _losses(evidence: Evidence) -> Iterator[Finding]:
    """Find arms in which many pings had no reply."""
    for row in (
        evidence.flows.filter(pl.col("kind") == "ping")
        .group_by("arm", maintain_order=True)
        .agg(pl.col("ping_loss").mean())
        .filter(pl.col("ping_loss") > PING_LOSS)
        .iter_rows(named=True)
    ):
        yield warning(
            f"{row['arm']}: {100 * row['ping_loss']:.0f} % of pings had no reply; ping times "
            "exclude them."
        )


def _without_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Find applications without a transaction that began after the warm-up."""
    if evidence.per_application.is_empty():
        return
    for row in (
        evidence.per_application.filter(pl.col("transactions") == 0)
        .group_by("arm", "group", maintain_order=True)
        .agg(runs=pl.len())
        .iter_rows(named=True)
    ):
        yield warning(
            f"{row['arm']}: no transaction of {row['group']} began after the warm-up (number "
            f"of runs: {row['runs']}). Use a shorter warm-up or a longer run."
        )


def _incomplete_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Find applications with many transactions that the end of the run cut off."""
    if evidence.per_application.is_empty():
        return
    begun, cut_off = pl.col("transactions"), pl.col("cut_off")
    for row in (
        evidence.per_application.filter(begun > 0)
        .group_by("arm", "group", "kind", maintain_order=True)
        .agg(begun=begun.sum(), cut_off=cut_off.sum())
        .filter(pl.col("cut_off") > CUT_OFF_SHARE * pl.col("begun"))
        .iter_rows(named=True)
    ):
        most = row["cut_off"] > MOST_CUT_OFF * row["begun"]
        effect = (
            "durations cover only the shorter ones"
            if row["cut_off"] < row["begun"]
            else "no durations"
        )
        yield Finding(
            severity=Severity.WARNING if most else Severity.NOTE,
            text=f"{row['arm']}: {row['group']}: {row['cut_off']:.0f} of {row['begun']} "
            f"{metrics.transactions(row['kind'])} were still in progress at the end of the run: "
            f"{effect}. Use a longer run.",
        )


def _worst_calls(evidence: Evidence) -> Iterator[Finding]:
    """Find calls with the lowest MOS; those of one arm among several are worse than all others."""
    if evidence.applications.is_empty():
        return
    calls = evidence.applications.filter(pl.col("kind") == "voip")
    arms = dict(calls.group_by("group").agg(pl.col("arm").n_unique()).iter_rows())
    for (group,), rows in (
        calls.group_by("arm", "group", maintain_order=True)
        .agg(voices=pl.len(), worst=(pl.col("mos") <= WORST_MOS).sum())
        .filter(pl.col("worst") > 0)
        .group_by("group", maintain_order=True)
    ):
        is_ranked = rows.height == 1 < arms[group]
        effect = "differences from it are lower bounds" if is_ranked else "the MOS cannot rank them"
        for row in rows.iter_rows(named=True):
            yield Finding(
                severity=Severity.NOTE if is_ranked else Severity.WARNING,
                text=f"{row['arm']}: {group}: {row['worst']} of {row['voices']} calls have the "
                f"lowest possible MOS, {WORST_MOS:g}; {effect}.",
            )


def _unstable_rpm(evidence: Evidence) -> Iterator[Finding]:
    """Find responsiveness tests without a stable result, as the draft defines it."""
    if evidence.applications.is_empty():
        return
    for row in (
        evidence.applications.filter(pl.col("kind") == "responsiveness")
        .group_by("arm", "group", maintain_order=True)
        .agg(
            tests=pl.len(),
            without=pl.col("rpm").is_null().sum(),
            unsettled=(pl.col("rpm_confidence") != "high").sum(),
        )
        .iter_rows(named=True)
    ):
        of_them = f"of {row['tests']} tests of {row['group']}"
        if row["without"]:
            yield warning(
                f"{row['arm']}: {row['without']} {of_them} had too few probes for a result. "
                "Use a longer run."
            )
        if row["unsettled"]:
            yield note(
                f"{row['arm']}: {row['unsettled']} {of_them} did not reach stability: their RPM "
                "is that of the last four seconds of the run (see rpm_confidence)."
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
