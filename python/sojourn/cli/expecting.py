"""Expectations of the command line and of scenario files."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.cli.process import say
from sojourn.expectations.expectation import (
    Expectation,
    capacities,
    expectation,
    expectations,
    groups,
    is_capacity,
)
from sojourn.expectations.judging import (
    VERDICTS,
    Judgement,
    Measured,
    Suite,
    check,
    check_arms,
    check_groups,
    check_links,
    check_metrics,
    difference,
    judge,
    junit,
)
from sojourn.presentation.terminal import print_note
from sojourn.result import Result, derived_files
from sojourn.result.naming import queued_links
from sojourn.result.student import LEVEL
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables

if TYPE_CHECKING:
    # Slow to import, and most commands have no sweep.
    from sojourn.sweeps import SweepResult
    from sojourn.sweeps.run import PreparedSweep

FAILED = 1


def all_expectations(
    texts: Sequence[str] | None,
    tables: Tables | None = None,
    *,
    groups: bool = True,
) -> list[Expectation]:
    """Read the expectations of a scenario file and those of the command line."""
    own = [] if tables is None else expectations(tables.get("expect", []), tables)
    found = [
        *own,
        *(expectation(text, place="--expect") for text in texts or ()),
    ]
    check(found, groups=groups)
    # One in the file and on the command line is judged once.
    unique: dict[tuple[str, tuple[str, ...] | None], Expectation] = {}
    for one in found:
        unique.setdefault((one.text, one.arms), one)
    return list(unique.values())


def check_names(
    found: Sequence[Expectation], scenario: Scenario, planned: "PreparedSweep | None" = None
) -> None:
    """Check the names of metrics, arms and links before the first run."""
    links = queued_links(scenario.checked) if planned is None else planned.queued_links
    check_metrics(found, links)
    if planned is None:
        check_groups(found, groups(scenario))
    check_arms(found, scenario.checked.arms)
    if not any(is_capacity(name) for one in found for name in one.expression.references):
        return
    # The rate of a link may be a number at some points, and a trace at others.
    for change in [{}] if planned is None else planned.changes:
        check_links(found, capacities(scenario, change))


def of_result(result: Result) -> Measured:
    """Return what the expectations on a result are judged by."""
    return Measured(
        runs=result.table(),
        capacities=capacities(result.scenario),
        groups=lambda: [result.table(by) for by in ("group", "application", "class")],
    )


def of_sweep(result: "SweepResult", planned: "PreparedSweep") -> list[Measured]:
    """Return what the expectations on each point of a sweep are judged by."""
    paths = result.parameters
    runs = result.runs.drop(paths)
    by_point = {point: frame for (point,), frame in runs.group_by("point", maintain_order=True)}
    return [
        Measured(
            runs=by_point[number],
            capacities=capacities(planned.scenario, point.changes),
            place=point.label,
        )
        for number, point in enumerate(planned.points)
        if number in by_point
    ]


def judged(found: Sequence[Expectation], measured: Sequence[Measured]) -> list[Judgement]:
    """Judge expectations by each of the measurements."""
    return [one for part in measured for one in judge(found, part)] if found else []


def show(
    judgements: Sequence[Judgement], *, title: str = "expectations", everything: bool = False
) -> None:
    """Count the verdicts and print those that did not pass, or all; failures come first."""
    if not judgements:
        return
    titled = f"{title}: {summary(judgements)}"
    order = ("fail", "undecided", "pass") if everything else ("fail", "undecided")
    print(titled)
    for verdict in order:
        for one in judgements:
            if one.verdict == verdict:
                print_note(_line(one))
    if note := by_chance(judgements):
        print_note(note)


def _line(one: Judgement) -> str:
    """Write a judgement on one line."""
    text = (
        f"{one.verdict}: {one.expectation.title} ({', '.join(filter(None, [one.place, one.arm]))})"
    )
    if one.measured is not None and one.required is not None:
        required = f"{one.expectation.sides[1]} {one.required:.4g}"
        text += f": measured {one.measured:.4g}, required {required}, difference {difference(one)}"
    return f"{text}, n = {one.runs}" + (f": {one.reason}" if one.reason else "")


def claimed(junit_file: Path | None) -> AbstractContextManager[Path | None]:
    """Check that verdicts can be written to a file."""
    if junit_file is not None and junit_file.exists() and not junit_file.is_file():
        message = f"cannot write {junit_file}: not a regular file; expected a name such as out.xml"
        raise _core.ResultError(message)
    return derived_files.claimed(junit_file, VERDICTS)


def write(junit_file: Path | None, suites: Mapping[str, Suite]) -> None:
    """Write verdicts as JUnit XML, if they are wanted."""
    if junit_file is not None:
        derived_files.write(junit_file, junit(suites), None)
        say(f"wrote verdicts to {junit_file}")


def by_chance(judgements: Sequence[Judgement]) -> str:
    """Write how many verdicts may be wrong by chance; empty if less than one.

    A one-sided verdict by a 95 % interval is wrong with a probability of at most 2.5 %.
    """
    decided = sum(one.verdict != "undecided" for one in judgements)
    expected = (1 - LEVEL) / 2 * decided
    if expected < 1:
        return ""
    return (
        f"of {decided} verdicts by {LEVEL:.0%} intervals, up to {expected:.0f} are expected to be "
        "wrong by chance"
    )


def summary(judgements: Sequence[Judgement]) -> str:
    """Count the verdicts: ``3 passed, 1 failed, 0 undecided``."""
    counts = {
        word: sum(one.verdict == verdict for one in judgements)
        for verdict, word in (("pass", "passed"), ("fail", "failed"), ("undecided", "undecided"))
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items())
