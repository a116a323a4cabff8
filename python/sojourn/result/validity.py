"""Whether a result can bear a conclusion.

The commonest mistake in measuring queues is to measure one that was not the bottleneck; the
second, to run once. Each finding says what was seen, with its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from sojourn.result.metrics import CONNECTIONS

# A queue that holds more than one packet for less of the time than this decides nothing.
BUSY_SHARE = 0.05
# Below this, a mean over the run still shows how it began.
SHORT_S = 10.0
# With fewer runs, bootstrap intervals are clearly too narrow: of normal data, 4,000 experiments a
# size, they held the mean 75 % of the time at n = 3, 84 % at 5, 89 % at 8, 90 % at 10.
FEW_RUNS = 8
# Above this, percentiles of the replies that came are too good.
PING_LOSS = 0.10
# Below this most of what users waited for was cut short, and durations are of the quick few.
COMPLETED_PERCENT = 50.0
# The least mean opinion score: how much worse a call was, it does not tell.
WORST_MOS = 1.0
# What a transaction of each kind of application is.
TRANSACTIONS = {"web": "pages", "request": "responses", "incast": "rounds", "dash": "segments"}


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that limits what the result says.

    Parameters
    ----------
    severity
        Whether it forbids a conclusion, weakens it, or should be known.
    text
        What was seen, with its number.
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


def assess(
    flows: pl.DataFrame,
    links: pl.DataFrame,
    *,
    finished: int,
    total: int,
    replications: int,
    measured_s: float,
    waited: pl.DataFrame | None = None,
    applications: pl.DataFrame | None = None,
) -> Validity:
    """Look for what limits a result.

    Parameters
    ----------
    flows, links
        Tables of an outcome.
    finished, total
        Runs that finished, and that the scenario asks for.
    replications
        Runs of each arm that the scenario asks for.
    measured_s
        Simulated seconds that totals cover.
    waited
        What :func:`sojourn.waiting.per_application` returns.
    applications
        The table of an outcome.

    Returns
    -------
    Validity
        The findings.
    """
    findings = [
        *_completeness(finished, total, replications, measured_s),
        *_bottlenecks(links),
        *_connections(flows),
        *_aborted(flows),
        *_losses(flows),
        *_unwaited(waited),
        *_unfinished(waited),
        *_unheard(applications),
        *_unsettled(applications),
        *_twins(flows, links),
    ]
    order = list(Severity)
    findings.sort(key=lambda finding: order.index(finding.severity))
    return Validity(findings=findings)


def _completeness(finished: int, total: int, replications: int, measured_s: float) -> list[Finding]:
    findings = []
    if finished < total:
        text = f"{finished} of {total} runs finished: arms may have unequal numbers of runs."
        findings.append(Finding(severity=Severity.WARNING, text=text))
    if replications == 1:
        text = "n = 1: one run an arm gives no interval; differences may be chance."
        findings.append(Finding(severity=Severity.WARNING, text=text))
    elif replications < FEW_RUNS:
        text = (
            f"n = {replications}: bootstrap intervals over so few runs are too narrow "
            "(docs/metrics.md says by how much)."
        )
        findings.append(Finding(severity=Severity.NOTE, text=text))
    if measured_s < SHORT_S:
        text = f"only {measured_s:g} s are measured: means still show how the flows began."
        findings.append(Finding(severity=Severity.WARNING, text=text))
    return findings


def _bottlenecks(links: pl.DataFrame) -> list[Finding]:
    findings = []
    means = links.group_by("arm", "link", maintain_order=True).agg(
        pl.col("busy_share", "utilisation").mean()
    )
    for arm in means["arm"].unique(maintain_order=True):
        of_arm = means.filter(pl.col("arm") == arm)
        if of_arm["busy_share"].max() < BUSY_SHARE:  # type: ignore[operator]
            seen = "; ".join(
                f"{row['link']}: {100 * row['busy_share']:.1f} % of the time, "
                f"link {100 * row['utilisation']:.0f} % used"
                for row in of_arm.iter_rows(named=True)
            )
            text = f"{arm}: no queue was the bottleneck (more than one packet waited on {seen})."
            findings.append(Finding(severity=Severity.ERROR, text=text))
    return findings or _idle_links(means)


def _idle_links(means: pl.DataFrame) -> list[Finding]:
    """Name the links whose queue decided nothing in any arm."""
    idle = (
        means.group_by("link", maintain_order=True)
        .agg(pl.col("busy_share", "utilisation").max())
        .filter(pl.col("busy_share") < BUSY_SHARE)
    )
    return [
        Finding(
            severity=Severity.NOTE,
            text=f"link {row['link']} was not a bottleneck in any arm: more than one packet waited "
            f"for at most {100 * row['busy_share']:.1f} % of the time, and at most "
            f"{100 * row['utilisation']:.0f} % of the rate was used; its queue decided nothing.",
        )
        for row in idle.iter_rows(named=True)
    ]


def _connections(flows: pl.DataFrame) -> list[Finding]:
    tcp = flows.filter(pl.col("kind").is_in(CONNECTIONS))
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['lost']} of {row['flows']} connections never opened.",
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
            "were given up; times to complete are of the others.",
        )
        for row in flows.filter(pl.col("kind").is_in(CONNECTIONS))
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
            "within the run; delays describe those that had one.",
        )
        for row in pings.group_by("arm", maintain_order=True)
        .agg(pl.col("ping_loss").mean())
        .filter(pl.col("ping_loss") > PING_LOSS)
        .iter_rows(named=True)
    ]


def _unwaited(waited: pl.DataFrame | None) -> list[Finding]:
    """Name the applications nothing of which counts, though somebody waited."""
    if waited is None or waited.is_empty():
        return []
    none = waited.filter(pl.col("transactions") == 0)
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: in {row['runs']} of its runs no transaction of {row['group']} "
            f"began after the warm-up; {row['before']:g} from before were under way then, which "
            "do not count: shorten the warm-up or run for longer.",
        )
        for row in none.group_by("arm", "group", maintain_order=True)
        .agg(runs=pl.len(), before=pl.col("begun_before").sum())
        .iter_rows(named=True)
    ]


def _unfinished(waited: pl.DataFrame | None) -> list[Finding]:
    """Name the applications most of whose transactions were not completed."""
    if waited is None or waited.is_empty():
        return []
    begun, percent = pl.col("transactions"), pl.col("completed_percent")
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['group']}: {row['percent']:.0f} % of {row['begun']} "
            f"{TRANSACTIONS.get(row['kind'], 'transactions')} were completed within the run; "
            + ("means are of those alone." if row["percent"] else "there is no duration."),
        )
        for row in waited.filter(begun > 0)
        .group_by("arm", "group", "kind", maintain_order=True)
        .agg(begun=begun.sum(), percent=(begun * percent).sum() / begun.sum())
        .filter(pl.col("percent") < COMPLETED_PERCENT)
        .iter_rows(named=True)
    ]


def _unheard(applications: pl.DataFrame | None) -> list[Finding]:
    """Name the voices that were as bad as the scale goes."""
    if applications is None or applications.is_empty():
        return []
    return [
        Finding(
            severity=Severity.WARNING,
            text=f"{row['arm']}: {row['group']}: {row['worst']} of {row['voices']} calls have a "
            f"MOS of {WORST_MOS:g}, the least there is: how much worse they were it does not tell.",
        )
        for row in applications.filter(pl.col("kind") == "voip")
        .group_by("arm", "group", maintain_order=True)
        .agg(voices=pl.len(), worst=(pl.col("mos") <= WORST_MOS).sum())
        .filter(pl.col("worst") > 0)
        .iter_rows(named=True)
    ]


def _unsettled(applications: pl.DataFrame | None) -> list[Finding]:
    """Name the tests of responsiveness whose result is not what the draft calls one."""
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
                f"{row['arm']}: {row['without']} {of_them} had too few probes for a result: run "
                "for longer."
            )
            findings.append(Finding(severity=Severity.WARNING, text=text))
        if row["unsettled"]:
            text = (
                f"{row['arm']}: {row['unsettled']} {of_them} did not settle: their RPM is that of "
                "the last four seconds of the run (rpm_confidence)."
            )
            findings.append(Finding(severity=Severity.NOTE, text=text))
    return findings


def _twins(flows: pl.DataFrame, links: pl.DataFrame) -> list[Finding]:
    """Name the arms that did the same: what differs between them never mattered."""
    seen: dict[str, list[pl.DataFrame]] = {}
    findings = []
    for arm in flows["arm"].unique(maintain_order=True):
        own = [table.filter(pl.col("arm") == arm).drop("arm") for table in (flows, links)]
        twin = next((name for name, tables in seen.items() if _equal(own, tables)), None)
        if twin is None:
            seen[arm] = own
            continue
        text = (
            f"{arm} and {twin} did exactly the same in every run: what is set differently in them "
            "never came into play."
        )
        findings.append(Finding(severity=Severity.WARNING, text=text))
    return findings


def _equal(these: Sequence[pl.DataFrame], those: Sequence[pl.DataFrame]) -> bool:
    return all(this.equals(that) for this, that in zip(these, those, strict=True))
