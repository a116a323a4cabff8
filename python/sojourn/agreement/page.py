"""The HTML page that shows simulated and live runs: agreement, time series, distributions.

Figures show the simulated and the live runs of one arm as two arms of one result.
"""

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.agreement import wording
from sojourn.agreement.comparison import INFORMATIONAL, TOLERANCES, FailedCheck, failed_checks
from sojourn.markup import data_table as table
from sojourn.plot import reported
from sojourn.report.page import head, legend, provenance, section, style, validity
from sojourn.result import Result, derived_files
from sojourn.scenario import Scenario

NAMES = ("simulated", "live")


class Overlay(Result):
    """One arm of two results, as the arms ``simulated`` and ``live``.

    It cannot be saved, and has no differences between arms, because the runs are not paired.
    """

    def __init__(self, simulated: Result, live: Result, arm: str) -> None:
        self._both = dict(zip(NAMES, (simulated, live), strict=True))
        self._arm = arm

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the simulated result."""
        return self._both[NAMES[0]].provenance

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of the simulated result."""
        return self._both[NAMES[0]].manifest_sha256

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario."""
        return self._both[NAMES[0]].scenario

    @property
    def arms(self) -> list[str]:
        """The two results."""
        return list(NAMES)

    def _frame(self, name: str) -> pl.DataFrame:
        frames = []
        for of, result in self._both.items():
            frame: pl.DataFrame = getattr(result, name)
            frames.append(frame.filter(pl.col("arm") == self._arm).with_columns(arm=pl.lit(of)))
        return pl.concat(frames, how="diagonal_relaxed").rechunk()


_SERIES_NOTE = (
    "Lines are means over short intervals and over replications, from the start of the run. Live "
    "and simulated runs share no random numbers, so losses occur at different times."
)


def html(simulated: Result, live: Result, compared: pl.DataFrame) -> str:
    """Write the page."""
    checked = simulated.scenario.checked
    name = escape(checked.name)
    overlays = [Overlay(simulated, live, arm) for arm in simulated.arms]
    about = f'<meta name="sojourn-scenario" content="{simulated.scenario.hash}">\n'
    return f"""{head(f"{name}: simulated and live", style(overlays[0]), about)}<body>
<header>
<h1>{name}: simulated and live</h1>
<p class="note">Runs of {checked.duration_s:g} s, measured from {checked.warmup_s:g} s; simulated: \
{simulated.finished}, live: {live.finished}.</p>
</header>
<section><h2>Agreement</h2>
{_invalid(failed_checks(live))}
{_agreement(compared)}
</section>
{validity(simulated, "simulated runs")}
{validity(live, "live runs")}
{legend(overlays[0])}
{"".join(_figures(one, arm) for one, arm in zip(overlays, simulated.arms, strict=True))}
{_machine(live)}
{provenance(simulated)}
</body>
</html>
"""


def write(page: str, path: str | Path) -> None:
    """Write the page to a file."""
    derived_files.check_report(Path(path))
    derived_files.write(path, page.encode(), None)


def _invalid(checks: Sequence[FailedCheck]) -> str:
    """Name the arms with a live run that failed a check."""
    if not checks:
        return ""
    arms = escape(", ".join(dict.fromkeys(check.arm for check in checks)))
    return (
        '<div class="validity invalid" role="alert"><p>Live runs failed their checks, which are '
        f"listed below. Do not draw conclusions from the marked rows: {arms}.</p></div>"
    )


def _agreement(compared: pl.DataFrame) -> str:
    arms = compared["arm"].unique(maintain_order=True).to_list()
    parts = []
    for arm in arms:
        of_arm = compared.filter(pl.col("arm") == arm)
        rows = [wording.cells(row)[1:] for row in of_arm.iter_rows(named=True)]
        title = f"<h3>{escape(arm)}</h3>" if len(arms) > 1 else ""
        parts.append(title + table(wording.HEAD[1:], rows))
    tolerances = [(one.quantity, str(one), one.reason) for one in TOLERANCES]
    return (
        f"<p>{escape(wording.answer(compared))}.</p>{''.join(parts)}"
        f'<p class="note">{escape(wording.note(compared))}.</p>'
        "<details><summary>Tolerances</summary>"
        f"{table(('quantity', 'tolerance', 'reason'), tolerances)}"
        '<p class="note">Percentages are relative to the simulated mean. '
        f"{escape(INFORMATIONAL)}</p>"
        "</details>"
    )


def _figures(overlay: Overlay, arm: str) -> str:
    """Draw the figures of one arm."""
    named = "" if len(overlay.scenario.checked.arms) == 1 else f"{escape(arm)}: "
    series = [*reported.over_time(overlay), *reported.round_trips(overlay)]
    return section(f"{named}Over time", series, NAMES, _SERIES_NOTE) + section(
        f"{named}Distributions", reported.cdfs(overlay), NAMES
    )


def _machine(live: Result) -> str:
    """Write the kernel and build of the live runs, and the checks of each run."""
    backend = live.provenance.get("backend", {})
    facts = [
        (fact["arm"], str(fact["replication"]), fact["name"], fact["value"], _passed(fact))
        for fact in live.provenance.get("validity", ())
    ]
    items = [(key, str(backend[key])) for key in ("kernel", "version", "commit") if key in backend]
    if not facts and not items:
        return ""
    return (
        f"<section><h2>Live backend</h2>{table(('item', 'value'), items)}"
        "<details><summary>Checks of each run</summary>"
        f"{table(('arm', 'replication', 'check', 'value', 'passed'), facts)}</details></section>"
    )


def _passed(fact: dict[str, object]) -> str:
    return "yes" if fact["passed"] else "no"
