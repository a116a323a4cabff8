"""Expectations of the command line and of scenario files."""

from collections.abc import Sequence

from sojourn.cli.tables import print_note, print_table
from sojourn.expectations.expectation import (
    Expectation,
    capacities,
    expectation,
    expectations,
    groups,
    is_capacity,
)
from sojourn.expectations.judging import (
    Judgement,
    Measured,
    check,
    check_arms,
    check_groups,
    check_links,
    check_metrics,
    difference,
    judge,
)
from sojourn.result import Result
from sojourn.result.naming import queued_links
from sojourn.result.student import LEVEL
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables
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
    return found


def check_names(
    found: Sequence[Expectation], scenario: Scenario, planned: PreparedSweep | None = None
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


def of_sweep(result: SweepResult, planned: PreparedSweep) -> list[Measured]:
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


def show(judgements: Sequence[Judgement], *, title: str = "expectations") -> None:
    """Print judgements as a table."""
    if not judgements:
        return
    has_places = any(one.place for one in judgements)
    head = ["verdict", "expectation", *(["point"] if has_places else []), "arm"]
    words = len(head)
    rows = [
        [
            one.verdict,
            one.expectation.title,
            *([one.place] if has_places else []),
            one.arm,
            "–" if one.measured is None else f"{one.measured:.4g}",
            "–" if one.required is None else f"{one.expectation.sides[1]} {one.required:.4g}",
            difference(one) or "–",
            f"{one.runs}",
            one.reason,
        ]
        for one in judgements
    ]
    titled = [*head, "measured", "required", "difference", "n", "reason"]
    if not any(one.reason for one in judgements):
        titled, rows = titled[:-1], [row[:-1] for row in rows]
    print_table(titled, rows, title=f"{title}: {summary(judgements)}", words=words)
    if note := by_chance(judgements):
        print_note(note)


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
