"""Verdicts on the claims of a published work.

A claim is *reproduced* if all its conditions hold, *reproduced in direction* if all hold at least
in their weaker form, *not reproduced* otherwise, *not checkable* if it cannot be measured,
*definitional* if it is true by construction, and *not run* if a value it needs was not measured.

=========================  ===========================  ==========================================
condition                  holds if                     holds in its weaker form if
=========================  ===========================  ==========================================
``above``, ``below``       the difference is            each run is on this side of the run of the
                           significant (t test, 5 %)    other arm with the same seed
``differs``                the difference is
                           significant
``equals`` a value         the mean is within the       the arm is on the published side of each
                           tolerance                    arm whose value differs by more than the
                                                        tolerances
``equals`` a ratio         the same                     the ratio is on the same side of 1, if the
                                                        tolerance does not include 1
``at_least``, ``at_most``  the mean, or the ratio, is
=========================  ===========================  ==========================================

Differences below :data:`TIE` are none. With a single run, a condition holds at most in its weaker
form.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Self

from sojourn.result import student
from sojourn.studies.claims import INTERVALS, Claim, Line, Subject

REPRODUCED = "reproduced"
IN_DIRECTION = "reproduced in direction"
NOT_REPRODUCED = "not reproduced"
NOT_CHECKABLE = "not checkable"
DEFINITIONAL = "definitional"
NOT_RUN = "not run"
VERDICTS = (REPRODUCED, IN_DIRECTION, NOT_REPRODUCED, NOT_CHECKABLE, DEFINITIONAL, NOT_RUN)
# Verdicts of claims that were judged by measurements.
JUDGED = (REPRODUCED, IN_DIRECTION, NOT_REPRODUCED)
# Means that differ by less than this share of the larger one count as equal.
TIE = 0.001
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a metric over runs."""

    n: int
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Average the values of runs."""
        n, kept = len(values), tuple(values)
        if n > 1:
            mean, low, high = student.mean_and_interval(values)
            return cls(n, mean, low, high, kept)
        return cls(n, values[0] if values else None, None, None, kept)


Measured = Mapping[Subject, Estimate]
NOTHING = Estimate(0, None, None, None)


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition of a claim and what was measured."""

    line: Line
    estimate: Estimate
    reference: Estimate | None
    verdict: str

    @property
    def compared(self) -> float | None:
        """The number that is compared with the value: the mean, or its ratio to the reference."""
        if self.line.reference is None:
            return self.estimate.mean
        return _ratio(self.estimate, self.reference or NOTHING)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim, with its judged conditions."""

    claim: Claim
    verdict: str
    lines: Sequence[Judged]


def judged(claims: Sequence[Claim], measured: Measured) -> list[Verdict]:
    """Judge claims."""
    families = _Families(claims)
    return [_verdict(claim, measured, families) for claim in claims]


def substituted(claims: Sequence[Claim], arms: Mapping[str, str]) -> list[Claim]:
    """Replace the arms that claims name by others."""

    def other(subject: Subject | None) -> Subject | None:
        if subject is None:
            return None
        return replace(subject, arm=arms.get(subject.arm, subject.arm))

    return [
        replace(
            claim,
            lines=[
                replace(line, subject=other(line.subject), reference=other(line.reference))
                for line in claim.lines
            ],
        )
        for claim in claims
    ]


def totals(verdicts: Iterable[str]) -> dict[str, int]:
    """Count verdicts, in the order of :data:`VERDICTS`.

    Examples
    --------
    >>> totals(["not reproduced", "reproduced"])["reproduced"]
    1
    """
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def _verdict(claim: Claim, measured: Measured, families: "_Families") -> Verdict:
    if claim.uncounted is not None:
        return Verdict(claim, claim.uncounted, [])
    lines = [_judged(line, measured, families) for line in claim.lines]
    full = [one.verdict for one in lines if not one.line.weaker]
    weaker = [one.verdict for one in lines if one.line.weaker]
    if NOT_RUN in full or NOT_RUN in weaker:
        verdict = NOT_RUN
    elif all(one == REPRODUCED for one in full):
        verdict = REPRODUCED
    elif weaker:
        verdict = NOT_REPRODUCED if NOT_REPRODUCED in weaker else IN_DIRECTION
    else:
        verdict = NOT_REPRODUCED if NOT_REPRODUCED in full else IN_DIRECTION
    return Verdict(claim, verdict, lines)


def _judged(line: Line, measured: Measured, families: "_Families") -> Judged:
    # Lines without a subject belong to claims that are not judged.
    assert line.subject is not None  # noqa: S101 - narrows the type
    own = measured.get(line.subject, NOTHING)
    other = None if line.reference is None else measured.get(line.reference, NOTHING)
    if own.mean is None or (other is not None and other.mean is None):
        return Judged(line, own, other, NOT_RUN)
    if line.relation in INTERVALS:
        return Judged(line, own, other, _beside(line, own, other or NOTHING))
    value = line.value or 0.0
    compared = own.mean if other is None else _ratio(own, other)
    if compared is None:
        holds, near = False, False
    elif line.relation == "equals":
        holds = abs(compared - value) <= (line.tolerance or 0.0)
        near = _same_side(compared, line) if other else families.ranked(line, measured)
    else:
        holds = compared >= value if line.relation == "at_least" else compared <= value
        near = False
    if min(one.n for one in (own, other) if one is not None) == 1:
        holds, near = False, holds or near
    return Judged(line, own, other, _worded(holds=holds, near=near))


def _beside(line: Line, own: Estimate, other: Estimate) -> str:
    """Judge a difference between two estimates."""
    if line.relation == "differs":
        either = {_beside(replace(line, relation=one), own, other) for one in ("above", "below")}
        return _worded(holds=REPRODUCED in either, near=False)
    upper, lower = (own, other) if line.relation == "above" else (other, own)
    if not _exceeds(upper.mean, lower.mean):
        return NOT_REPRODUCED
    single = min(own.n, other.n) == 1
    if not (own.values and other.values):
        between = None not in (upper.low, lower.high)
        holds = between and _exceeds(upper.low, lower.high)
        return _worded(holds=holds, near=single or not between)
    if own.n == other.n and _share_seeds(line):
        pairs = list(zip(upper.values, lower.values, strict=True))
        near = all(_exceeds(*pair) for pair in pairs)
        p = 1.0 if single else student.p_value([one - two for one, two in pairs])
    else:
        near = _exceeds(min(upper.values), max(lower.values))
        p = 1.0 if single else _welch(upper.values, lower.values)
    return _worded(holds=p < SIGNIFICANT, near=near)


def _share_seeds(line: Line) -> bool:
    """Whether the runs of both sides of a condition have the same seeds."""
    one, two = line.subject, line.reference
    return one is not None and two is not None and one.scenario == two.scenario


def _exceeds(one: float | None, two: float | None) -> bool:
    """Whether a value exceeds another by more than a tie."""
    return one is not None and two is not None and one - two > TIE * max(abs(one), abs(two))


def _welch(one: Sequence[float], two: Sequence[float]) -> float:
    """Compute the two-sided p value of Welch's t test, with the degrees of freedom rounded down."""
    parts = [variance(values) / len(values) for values in (one, two)]
    difference = fmean(one) - fmean(two)
    if not sum(parts):
        return 0.0 if difference else 1.0
    squares = (part**2 / (len(values) - 1) for part, values in zip(parts, (one, two), strict=True))
    degrees = int(sum(parts) ** 2 / sum(squares))
    return student.two_sided(difference / sum(parts) ** 0.5, degrees)


def _ratio(own: Estimate, other: Estimate) -> float | None:
    if own.mean is None or not other.mean:
        return None
    return own.mean / other.mean


def _same_side(ratio: float, line: Line) -> bool:
    value, tolerance = line.value or 0.0, line.tolerance or 0.0
    if value > 1.0:
        return value - tolerance > 1.0 and _exceeds(ratio, 1.0)
    return value + tolerance < 1.0 and _exceeds(1.0, ratio)


def _worded(*, holds: bool, near: bool) -> str:
    return REPRODUCED if holds else IN_DIRECTION if near else NOT_REPRODUCED


class _Families:
    """The published values of one metric in one scenario, to compare ranks of arms."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._published: dict[tuple[str, str | None, str], dict[str, tuple[float, float]]] = {}
        for line in (line for claim in claims for line in claim.lines):
            if line.relation != "equals" or line.reference or line.subject is None or line.weaker:
                continue
            family = self._published.setdefault(_family(line.subject), {})
            family[line.subject.arm] = (line.value or 0.0, line.tolerance or 0.0)

    def ranked(self, line: Line, measured: Measured) -> bool:
        """Whether an arm is on the published side of all arms with distinguishable values.

        An arm that was not measured may be on either side.
        """
        subject = line.subject
        if subject is None or line.weaker:
            return False
        family = self._published[_family(subject)]
        value, tolerance = family[subject.arm]
        mean = measured[subject].mean
        pairs = 0
        for arm, (other, width) in family.items():
            found = measured.get(replace(subject, arm=arm), NOTHING).mean
            if abs(other - value) <= tolerance + width:
                continue
            pairs += 1
            if not (_exceeds(found, mean) if other > value else _exceeds(mean, found)):
                return False
        return pairs > 0


def _family(subject: Subject) -> tuple[str, str | None, str]:
    return (subject.scenario, subject.group, subject.metric)
