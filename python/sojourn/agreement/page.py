"""The HTML page of simulated runs and those of another place: agreement, series, distributions.

Figures show the runs of one arm in both places as two arms of one result.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.agreement import wording
from sojourn.agreement.comparison import INFORMATIONAL, TOLERANCES, failed_checks
from sojourn.plot import reported
from sojourn.presentation import html as writer
from sojourn.presentation.model import (
    Block,
    Document,
    Legend,
    Note,
    Paragraph,
    Section,
    facts,
    quiet,
    text_table,
)
from sojourn.report import page
from sojourn.result import Result
from sojourn.scenario import Scenario

SIMULATED = "simulated"


def place_of(measured: Result) -> str:
    """Return the name of the place of a result."""
    return str(measured.provenance.get("backend", {}).get("name", "live"))


class Overlay(Result):
    """One arm of two results, as the arms ``simulated`` and the name of the other place.

    It cannot be saved, and has no differences between arms, because the runs are not paired.
    """

    def __init__(self, simulated: Result, measured: Result, arm: str) -> None:
        self._both = {SIMULATED: simulated, place_of(measured): measured}
        self._arm = arm

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the simulated result."""
        return self._both[SIMULATED].provenance

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of the simulated result."""
        return self._both[SIMULATED].manifest_sha256

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario."""
        return self._both[SIMULATED].scenario

    @property
    def arms(self) -> list[str]:
        """The two results."""
        return list(self._both)

    def _frame(self, name: str) -> pl.DataFrame:
        frames = []
        for of, result in self._both.items():
            frame: pl.DataFrame = getattr(result, name)
            frames.append(frame.filter(pl.col("arm") == self._arm).with_columns(arm=pl.lit(of)))
        return pl.concat(frames, how="diagonal_relaxed").rechunk()


_SERIES_NOTE = (
    "Lines are means over short intervals and over replications, from the start of the run. The "
    "places share no random numbers, so losses occur at different times."
)


def html(simulated: Result, measured: Result, compared: pl.DataFrame) -> str:
    """Write the page."""
    checked, place = simulated.scenario.checked, place_of(measured)
    overlays = [Overlay(simulated, measured, arm) for arm in simulated.arms]
    runs = (
        f"Runs of {checked.duration_s:g} s, measured from {checked.warmup_s:g} s; simulated: "
        f"{simulated.finished}, {place}: {measured.finished}."
    )
    drawn = [
        part
        for overlay, arm in zip(overlays, simulated.arms, strict=True)
        for part in _figures(overlay, f"{arm}: " if len(overlays) > 1 else "")
    ]
    document = Document(
        title=f"{checked.name}: simulated and {place}",
        head=[Paragraph(runs, quiet=True)],
        content=[
            Section("Agreement", [*_invalid(measured), *_agreement(compared, place)]),
            page.validity(simulated.validity, "simulated runs"),
            page.validity(measured.validity, f"{place} runs"),
            Legend(overlays[0].arms),
            *drawn,
            Section(f"Backend of the {place} runs", _machine(measured)),
            page.provenance(simulated),
        ],
        names=overlays[0].arms,
        meta={"sojourn-scenario": simulated.scenario.hash},
    )
    return writer.page(document)


def write(text: str, path: str | Path) -> None:
    """Write the page to a file."""
    page.save(text, path)


def _invalid(measured: Result) -> list[Block]:
    """Name the arms with a run that failed a check."""
    arms = ", ".join(dict.fromkeys(check.arm for check in failed_checks(measured)))
    said = (
        f"The failed checks are listed below. Do not draw conclusions from the marked rows: {arms}."
    )
    title = f"{place_of(measured).capitalize()} runs failed their checks"
    return [Note(title, [Paragraph(said)], "invalid")] if arms else []


def _agreement(compared: pl.DataFrame, place: str) -> list[Block]:
    tolerances = [[one.quantity, str(one), one.reason] for one in TOLERANCES]
    tables: list[Block] = list(wording.tables(compared, place))
    if len(tables) > 1:
        tables = [Section(table.title, [table]) for table in wording.tables(compared, place)]
    folded: list[Block] = [
        text_table(["quantity", "tolerance", "reason"], tolerances),
        *quiet(f"Percentages are relative to the simulated mean. {INFORMATIONAL}"),
    ]
    return [
        Paragraph(f"{wording.answer(compared)}."),
        *tables,
        *quiet(f"{wording.note(compared, place)}."),
        Section("Tolerances", folded, folded=True),
    ]


def _figures(overlay: Overlay, of: str) -> list[Section]:
    """Draw the figures of one arm."""
    series = [*reported.over_time(overlay), *reported.round_trips(overlay)]
    return [
        page.figures(f"{of}Over time", series, tuple(overlay.arms), _SERIES_NOTE),
        page.figures(f"{of}Distributions", reported.cdfs(overlay), tuple(overlay.arms)),
    ]


def _machine(measured: Result) -> list[Block]:
    """Write the kernel and build of the runs, and the checks of each run."""
    backend = measured.provenance.get("backend", {})
    checks = [
        [
            fact["arm"],
            f"{fact['replication']}",
            fact["name"],
            fact["value"],
            _PASSED[fact["passed"]],
        ]
        for fact in measured.provenance.get("validity", ())
    ]
    items = [(key, str(backend[key])) for key in ("kernel", "version", "commit") if key in backend]
    if not checks and not items:
        return []
    columns = ["arm", "replication", "check", "value", "passed"]
    return [facts(items), Section("Checks of each run", [text_table(columns, checks)], folded=True)]


_PASSED = {True: "yes", False: "no"}
