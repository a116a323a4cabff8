"""Validity of a result: checks for the common mistakes in measuring queues.

The most common mistake is to measure a queue that was not the bottleneck; the second, to run
once. Each finding states what was measured, with its number.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

from sojourn import markup
from sojourn.result import metrics
from sojourn.result.catalogue import By, of_scope
from sojourn.result.formatting import significant
from sojourn.result.metrics import KEYS
from sojourn.result.stationarity import Drift

# Observations expected beyond the percentile in all runs of an arm. Their number has a relative
# standard deviation of 1/sqrt(5) = 45 %; with fewer, the percentile is too uncertain.
BEYOND = 5
# The same per run. With fewer, the percentile of a run is interpolated towards its largest value, a
# bias that more runs do not remove.
BEYOND_PER_RUN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A percentile with too few observations."""

    name: str
    percent: int
    arms: list[str]
    least_per_run: str
    least: int

    @property
    def needed_per_run(self) -> int:
        """Number of observations that a run needs."""
        return needed(self.percent, BEYOND_PER_RUN)

    @property
    def needed(self) -> int:
        """Number of observations that all runs of an arm need."""
        return needed(self.percent, BEYOND)


def needed(percent: int, beyond: int) -> int:
    """Count the observations of which `beyond` are expected above a percentile.

    Examples
    --------
    >>> needed(95, 5), needed(99, 1)
    (100, 100)
    """
    return math.ceil(beyond * 100 / (100 - percent))


def sparse(
    flows: pl.DataFrame, pings: pl.DataFrame, transactions: pl.DataFrame, *, warmup_s: float
) -> list[Sparse]:
    """Find the percentiles that rest on few observations.

    Percentiles of sojourn times are over thousands of packets and are not checked.
    """
    ended = transactions.filter(
        (pl.col("started_s") >= warmup_s) & pl.col("duration_s").is_not_null()
    )
    transfers = flows.filter((pl.col("started_s") >= warmup_s) & pl.col("fct_s").is_not_null())
    replies = pings.filter((pl.col("t_s") >= warmup_s) & pl.col("rtt_ms").is_not_null())
    return [
        *_of_metrics("run", "ping_ms_p", replies.with_columns(group=pl.lit(""))),
        *_of_metrics("group", "fct_s_p", transfers),
        *_of_metrics("application", "duration_s_p", ended),
    ]


def _of_metrics(by: By, prefix: str, seen: pl.DataFrame) -> Iterator[Sparse]:
    """Check the shown percentiles of a quantity, given its observations."""
    counts = seen.group_by(*KEYS, "group", maintain_order=True).len()
    arms = counts.group_by("arm", "group", maintain_order=True).agg(
        per_run=pl.col("len").mean(), whole=pl.col("len").sum()
    )
    for metric in of_scope(by):
        if not (metric.shown and metric.column.startswith(prefix)):
            continue
        percent = int(metric.column.removeprefix(prefix))
        few = arms.filter(
            (pl.col("per_run") < needed(percent, BEYOND_PER_RUN))
            | (pl.col("whole") < needed(percent, BEYOND))
        )
        for (group,), rows in few.group_by("group", maintain_order=True):
            yield Sparse(
                name=f"{group}: {metric.label}" if group else metric.label,
                percent=percent,
                arms=rows["arm"].to_list(),
                # Rounded down: 99.97 observations are fewer than the 100 needed.
                least_per_run=f"{math.floor(10 * min(rows['per_run'].to_list())) / 10:g}",
                least=min(rows["whole"].to_list()),
            )


# A queue in which packets wait for a smaller share of the time has no effect.
BUSY_SHARE = 0.05
# In a shorter measurement, the start of the flows dominates the means.
SHORT_S = 10.0
# The share of experiments whose 95 % bootstrap interval contains the true mean, by the number of
# runs: measured in 4,000 simulated experiments per number, with normally distributed data.
COVERAGE_PERCENT = {3: 75, 5: 84, 8: 89, 10: 90, 20: 92, 30: 93}
# With fewer runs, bootstrap intervals are clearly too narrow.
FEW_RUNS = 8
# Above this share, percentiles over the remaining replies are too low.
PING_LOSS = 0.10
# If the end of the run cuts off more than this share of the transactions, the mean duration is too
# short; if more than the second share, it describes a minority of quick transactions.
CUT_OFF_SHARE = 0.10
MOST_CUT_OFF = 0.50
# The lowest mean opinion score on the scale.
WORST_MOS = 1.0
# The fact of a run that lasted as long as its program: it says what ended the run.
ENDED_BY = "ended_by"


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A limitation of the result.

    Parameters
    ----------
    severity
        An error invalidates conclusions, a warning weakens them, a note is information.
    text
        What was measured, with its number.
    """

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The findings on a result.

    Parameters
    ----------
    findings
        Errors first, then warnings, then notes.
    """

    findings: Sequence[Finding]

    @property
    def verdict(self) -> str:
        """``"invalid"`` with an error, ``"weak"`` with a warning, else ``"valid"``."""
        severities = {finding.severity for finding in self.findings}
        if Severity.ERROR in severities:
            return "invalid"
        return "weak" if Severity.WARNING in severities else "valid"

    def _repr_html_(self) -> str:
        """Return verdict and findings as HTML, for notebooks."""
        rows = [[finding.severity, finding.text] for finding in self.findings]
        table = markup.table(["severity", "finding"], rows) if rows else ""
        return markup.paragraph(self.verdict, strong="validity:") + table


def assess(
    flows: pl.DataFrame,
    links: pl.DataFrame,
    *,
    finished: int,
    total: int,
    replications: int,
    measured_s: float,
    per_application: pl.DataFrame | None = None,
    applications: pl.DataFrame | None = None,
    facts: Sequence[Mapping[str, Any]] = (),
    concerns: Sequence[tuple[str, str]] = (),
    drifts: Sequence[Drift] = (),
    sparse: Sequence[Sparse] = (),
) -> Validity:
    """Check a result for limitations.

    A run that lasted as long as its program (``sojourn live``) is no experiment: its user wants to
    know what the program did behind the link, and need neither repeat it nor fill the link. It has
    no findings on the design of experiments.
    """
    is_experiment = not any(fact["name"] == ENDED_BY for fact in facts)
    of_scenario = [Finding(severity=Severity(severity), text=text) for severity, text in concerns]
    design = []
    if is_experiment:
        design = [
            *_replications(replications),
            *_short(measured_s),
            *_bottlenecks(links, _active(flows), measured_s),
        ]
    findings = [
        *(_rejected(facts) if is_experiment else _failed(facts)),
        *_unfinished(finished, total),
        *design,
        *_connections(flows),
        *_aborted(flows),
        *_losses(flows),
        *_without_transactions(per_application),
        *_incomplete_transactions(per_application),
        *_worst_calls(applications),
        *_unstable_rpm(applications),
        *_identical_arms(flows, links),
        # The notes state how models were compared with real implementations.
        *(one for one in of_scenario if is_experiment or one.severity is not Severity.NOTE),
        *(_drifts(drifts) if is_experiment else ()),
        *_sparse(sparse),
    ]
    order = list(Severity)
    findings.sort(key=lambda finding: order.index(finding.severity))
    return Validity(findings=findings)


def _rejected(facts: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Find runs that did not pass a check of their backend."""
    return [
        Finding(
            severity=Severity.ERROR,
            text=f"{fact['arm']}: replication {fact['replication']} failed the backend "
            f"check {fact['name']}: {fact['value']}.",
        )
        for fact in facts
        if not fact["passed"]
    ]


def _failed(facts: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Find checks that the only run of a program did not pass."""
    return [
        Finding(severity=Severity.ERROR, text=f"failed check {fact['name']}: {fact['value']}.")
        for fact in facts
        if not fact["passed"]
    ]


def _unfinished(finished: int, total: int) -> list[Finding]:
    """Find whether runs are missing."""
    if finished == total:
        return []
    text = f"{finished} of {total} runs finished: arms may have different numbers of runs."
    return [Finding(severity=Severity.WARNING, text=text)]


def _replications(replications: int) -> list[Finding]:
    """Find whether there are too few runs for intervals."""
    if replications == 1:
        text = "n = 1: one run per arm gives no interval; differences may be due to chance."
        return [Finding(severity=Severity.WARNING, text=text)]
    if replications < FEW_RUNS:
        text = (
            f"n = {replications}: with fewer than {FEW_RUNS} runs, bootstrap intervals are too "
            f"narrow: a 95 % interval contains the true mean in {COVERAGE_PERCENT[5]} % of "
            f"experiments at n = 5, in {COVERAGE_PERCENT[3]} % at n = 3."
        )
        return [Finding(severity=Severity.NOTE, text=text)]
    return []


def _short(measured_s: float) -> list[Finding]:
    """Find whether the measured time is too short."""
    if measured_s >= SHORT_S:
        return []
    text = f"only {measured_s:g} s of each run is measured: flow startup dominates the means."
    return [Finding(severity=Severity.WARNING, text=text)]


def _active(flows: pl.DataFrame) -> pl.DataFrame:
    """Return how long the load of each run lasted, in seconds: transfers end before the run.

    Null for a run with other traffic than transfers that completed.
    """
    end = pl.col("started_s") + pl.col("fct_s")
    transfer = metrics.HAS_CONNECTION & pl.col("bytes").is_not_null()
    return (
        flows.filter(metrics.CARRIES_DATA)
        .group_by("arm", "replication")
        .agg(
            active_s=pl.when((transfer & end.is_not_null()).all()).then(
                end.max() - pl.col("started_s").min()
            )
        )
    )


def _bottlenecks(links: pl.DataFrame, active: pl.DataFrame, measured_s: float) -> list[Finding]:
    findings = []
    lasted = pl.col("active_s").fill_null(measured_s).clip(upper_bound=measured_s)
    shares = links.join(active, on=["arm", "replication"], how="left", maintain_order="left")
    means = (
        shares.with_columns(
            busy_share=(pl.col("busy_share") * measured_s / lasted).clip(upper_bound=1.0)
        )
        .group_by("arm", "link", maintain_order=True)
        .agg(pl.col("busy_share", "utilisation").mean())
    )
    for arm in means["arm"].unique(maintain_order=True):
        of_arm = means.filter(pl.col("arm") == arm)
        if of_arm["busy_share"].max() < BUSY_SHARE:  # type: ignore[operator]
            seen = "; ".join(
                f"link {row['link']}: {100 * row['busy_share']:.1f} % of the time, utilisation "
                f"{100 * row['utilisation']:.0f} %"
                for row in of_arm.iter_rows(named=True)
            )
            text = (
                f"{arm}: no link was a bottleneck. Share of the time with packets waiting for the "
                f"link or for the shaper of its queue: {seen}."
            )
            findings.append(Finding(severity=Severity.ERROR, text=text))
    return findings or _idle_links(means)


def _idle_links(means: pl.DataFrame) -> list[Finding]:
    """Find links whose queue had no effect in any arm."""
    idle = (
        means.group_by("link", maintain_order=True)
        .agg(pl.col("busy_share", "utilisation").max())
        .filter(pl.col("busy_share") < BUSY_SHARE)
    )
    return [
        Finding(
            severity=Severity.NOTE,
            text=f"link {row['link']} was not a bottleneck in any arm: packets waited for it or "
            f"for the shaper of its queue for at most {100 * row['busy_share']:.1f} % of the time, "
            f"and the utilisation was at most {100 * row['utilisation']:.0f} %; its queue had no "
            "effect.",
        )
        for row in idle.iter_rows(named=True)
    ]


def _connections(flows: pl.DataFrame) -> list[Finding]:
    tcp = flows.filter(metrics.HAS_CONNECTION)
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['lost']} of {row['flows']} connections were never "
            "established.",
        )
        for row in tcp.group_by("arm", maintain_order=True)
        .agg(lost=pl.col("connected_s").null_count(), flows=pl.len())
        .filter(pl.col("lost") > 0)
        .iter_rows(named=True)
    ]


def _aborted(flows: pl.DataFrame) -> list[Finding]:
    given_up = pl.col("aborted").fill_null(value=False)
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['lost']} of {row['flows']} connections of {row['group']} "
            "failed; completion times exclude them.",
        )
        for row in flows.filter(metrics.HAS_CONNECTION)
        .group_by("arm", "group", maintain_order=True)
        .agg(lost=given_up.sum(), flows=pl.len())
        .filter(pl.col("lost") > 0)
        .iter_rows(named=True)
    ]


def _losses(flows: pl.DataFrame) -> list[Finding]:
    pings = flows.filter(pl.col("kind") == "ping")
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {100 * row['ping_loss']:.0f} % of pings had no reply "
            "within the run; ping times exclude them.",
        )
        for row in pings.group_by("arm", maintain_order=True)
        .agg(pl.col("ping_loss").mean())
        .filter(pl.col("ping_loss") > PING_LOSS)
        .iter_rows(named=True)
    ]


def _without_transactions(per_application: pl.DataFrame | None) -> list[Finding]:
    """Find applications without a transaction that began after the warm-up."""
    if per_application is None or per_application.is_empty():
        return []
    none = per_application.filter(pl.col("transactions") == 0)
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: no transaction of {row['group']} began after the warm-up (number "
            f"of runs: {row['runs']}). Transactions in progress at the end of the warm-up are "
            f"excluded ({row['before']:g}). Use a shorter warm-up or a longer run.",
        )
        for row in none.group_by("arm", "group", maintain_order=True)
        .agg(runs=pl.len(), before=pl.col("begun_before").sum())
        .iter_rows(named=True)
    ]


def _incomplete_transactions(per_application: pl.DataFrame | None) -> list[Finding]:
    """Find applications with many transactions that the end of the run cut off."""
    if per_application is None or per_application.is_empty():
        return []
    begun, cut_off = pl.col("transactions"), pl.col("cut_off")
    return [
        Finding(
            severity=Severity.WARNING
            if row["cut_off"] > MOST_CUT_OFF * row["begun"]
            else Severity.NOTE,
            text=f"{row['arm']}: {row['group']}: {row['cut_off']:.0f} of {row['begun']} "
            f"{metrics.transactions(row['kind'])} were still in progress at the end of the "
            "run, "
            + (
                "so that durations cover only the shorter ones. Use a longer run."
                if row["cut_off"] < row["begun"]
                else "so that there are no durations. Use a longer run."
            ),
        )
        for row in per_application.filter(begun > 0)
        .group_by("arm", "group", "kind", maintain_order=True)
        .agg(begun=begun.sum(), cut_off=cut_off.sum())
        .filter(pl.col("cut_off") > CUT_OFF_SHARE * pl.col("begun"))
        .iter_rows(named=True)
    ]


def _drifts(drifts: Sequence[Drift]) -> list[Finding]:
    """Find quantities that differ between the halves of the measured time."""
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{drift.arm}: {drift.quantity} is not stationary: "
            f"{significant(drift.first)} {drift.unit} in the first half of the measured time, "
            f"{significant(drift.second)} {drift.unit} in the second (n = {drift.runs}). "
            f"Use a longer run with a warm-up of at least {drift.middle_s:g} s.",
        )
        for drift in drifts
    ]


def _sparse(sparse: Sequence[Sparse]) -> list[Finding]:
    """Find percentiles with too few observations."""
    return [
        Finding(
            severity=Severity.NOTE,
            text=f"{few.name} has too few observations in {', '.join(few.arms)}: "
            f"{few.least_per_run} per run and {few.least} in all runs; the {few.percent}th "
            f"percentile needs {few.needed_per_run} and {few.needed}.",
        )
        for few in sparse
    ]


def _worst_calls(applications: pl.DataFrame | None) -> list[Finding]:
    """Find calls with the lowest MOS."""
    if applications is None or applications.is_empty():
        return []
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['group']}: {row['worst']} of {row['voices']} calls have the "
            f"lowest possible MOS, {WORST_MOS:g}; the MOS cannot rank them.",
        )
        for row in applications.filter(pl.col("kind") == "voip")
        .group_by("arm", "group", maintain_order=True)
        .agg(voices=pl.len(), worst=(pl.col("mos") <= WORST_MOS).sum())
        .filter(pl.col("worst") > 0)
        .iter_rows(named=True)
    ]


def _unstable_rpm(applications: pl.DataFrame | None) -> list[Finding]:
    """Find responsiveness tests without a stable result, as the draft defines it."""
    if applications is None or applications.is_empty():
        return []
    tests = applications.filter(pl.col("kind") == "responsiveness").group_by(
        "arm", "group", maintain_order=True
    )
    counted = tests.agg(
        tests=pl.len(),
        without=pl.col("rpm").is_null().sum(),
        unsettled=(pl.col("rpm_confidence") != "high").sum(),
    )
    findings = []
    for row in counted.iter_rows(named=True):
        of_them = f"of {row['tests']} tests of {row['group']}"
        if row["without"]:
            text = (
                f"{row['arm']}: {row['without']} {of_them} had too few probes for a result. "
                "Use a longer run."
            )
            findings.append(Finding(severity=Severity.WARNING, text=text))
        if row["unsettled"]:
            text = (
                f"{row['arm']}: {row['unsettled']} {of_them} did not reach stability: their RPM "
                "is that of the last four seconds of the run (see rpm_confidence)."
            )
            findings.append(Finding(severity=Severity.NOTE, text=text))
    return findings


def _identical_arms(flows: pl.DataFrame, links: pl.DataFrame) -> list[Finding]:
    """Find arms with identical results: the settings that differ had no effect."""
    seen: dict[str, list[pl.DataFrame]] = {}
    findings = []
    for arm in flows["arm"].unique(maintain_order=True):
        own = [table.filter(pl.col("arm") == arm).drop("arm") for table in (flows, links)]
        twin = next((name for name, tables in seen.items() if _equal(own, tables)), None)
        if twin is None:
            seen[arm] = own
            continue
        text = (
            f"{arm} and {twin} have identical results in every run: the settings that differ had "
            "no effect."
        )
        findings.append(Finding(severity=Severity.WARNING, text=text))
    return findings


def _equal(these: Sequence[pl.DataFrame], those: Sequence[pl.DataFrame]) -> bool:
    return all(this.equals(that) for this, that in zip(these, those, strict=True))
