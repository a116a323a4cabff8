"""Verdicts on the claims of a published work, with the uncertainty of both sides.

A claim is *reproduced* if all its conditions hold, *reproduced in direction* if all hold at least
in their weaker form, *undecided* if more runs could change its verdict, *not reproduced* otherwise,
*not checkable* if it cannot be measured, *definitional* if it is true by construction,
*calibration* if it served to find what the work does not state, and *not run* if a value it needs
was not measured.

A condition compares an interval in which Student's t has the mean, the ratio of two means or their
difference with 95 %, or that of the sign test for medians. Runs with the same seeds are paired.

=========================  ===========================  ==========================================
condition                  holds if                     holds in its weaker form if
=========================  ===========================  ==========================================
``equals`` a value         the interval meets the       it lies within :data:`CLOSE` of the value,
                           value with its tolerance     or within :data:`FAR` if the arms have the
                                                        published order
``equals`` a ratio         the same                     the same, on the published side of 1
``at_least``, ``at_most``  the interval is on this      it lies within :data:`CLOSE` of the value
                           side
``above``, ``below``       the difference has this
                           sign in the whole interval
``differs``                the interval of the
                           difference excludes 0
=========================  ===========================  ==========================================

A ratio of 0 to 0 is 1, since the two are equal; of another number to 0 it is infinite.

A condition is undecided if its interval contains the number that separates two verdicts, or if it
meets a value but is more than :data:`CLOSE` of it wide on a side, or rests on fewer runs than the
work. A single run has no interval. A value from one published run is compared with the interval in
which one more run would fall. On a side, it may be :data:`STEPS` times the tolerance wide, which is
the reading error, and at most :data:`FAR`: for a time, whose origin is arbitrary, or an index near
1, a part of the value alone would allow too much. Differences below :data:`TIE` are none.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from math import comb
from statistics import median, variance
from typing import Self

from sojourn.result import student
from sojourn.studies.claims import CALIBRATION, INTERVALS, Claim, Line, Subject

REPRODUCED = "reproduced"
IN_DIRECTION = "reproduced in direction"
UNDECIDED = "undecided"
NOT_REPRODUCED = "not reproduced"
NOT_CHECKABLE = "not checkable"
DEFINITIONAL = "definitional"
NOT_RUN = "not run"
# Verdicts of claims that were judged by measurements.
JUDGED = (REPRODUCED, IN_DIRECTION, UNDECIDED, NOT_REPRODUCED)
VERDICTS = (*JUDGED, NOT_CHECKABLE, DEFINITIONAL, CALIBRATION, NOT_RUN)
# Means that differ by less than this share of the larger one count as equal.
TIE = 0.001
# Distances from a published value, in parts of it, that count as close and as far.
CLOSE, FAR = 0.10, 0.25
# Half the width of an interval for one published run, in reading errors, at most.
STEPS = 10
# More runs than this are not proposed.
_MOST_RUNS = 10_000
# Probability that the interval of a median does not contain it, at most.
_OUTSIDE = 0.05
# Student's t at 95 % is never below that of a normal distribution.
_NORMAL = 1.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean or the median of a metric over runs."""

    n: int
    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...] = ()
    is_median: bool = False

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Average the values of runs."""
        n, kept = len(values), tuple(values)
        if n > 1:
            mean, low, high = student.mean_and_interval(values)
            return cls(n, mean, low, high, kept)
        return cls(n, values[0] if values else None, None, None, kept)

    @classmethod
    def of_median(cls, values: Sequence[float]) -> Self:
        """Compute the median over runs, with the interval between two of the values.

        The interval contains the median of the distribution with at least 95 % (David and Nagaraja,
        Order Statistics, section 7.1); six runs are the fewest that have one.

        Examples
        --------
        >>> one = Estimate.of_median([float(value) for value in range(1, 11)])
        >>> one.mean, one.low, one.high
        (5.5, 2.0, 9.0)
        >>> Estimate.of_median([1.0, 2.0, 4.0]).low is None
        True
        """
        if not values:
            return cls(0, None, None, None, is_median=True)
        n, ordered = len(values), sorted(values)
        # Runs below the interval: the most for which both tails together have at most 5 %.
        tails = (2 * sum(comb(n, k) for k in range(below + 1)) / 2**n for below in range(n))
        below = sum(tail <= _OUTSIDE for tail in tails)
        low, high = (ordered[below - 1], ordered[n - below]) if below else (None, None)
        return cls(n, median(values), low, high, tuple(values), is_median=True)


Measured = Mapping[Subject, Estimate]
NOTHING = Estimate(0, None, None, None)


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition of a claim and what was measured.

    `runs` is about the number of runs that would decide it; None if it is decided, or if no
    number of runs would.
    """

    line: Line
    estimate: Estimate
    reference: Estimate | None
    verdict: str
    runs: int | None = None

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


def substituted(
    claims: Sequence[Claim], arms: Mapping[str, str], scenarios: Mapping[str, str] | None = None
) -> list[Claim]:
    """Replace the arms and the scenarios that claims name by others."""
    places = scenarios or {}

    def other(subject: Subject | None) -> Subject | None:
        if subject is None:
            return None
        arm, place = subject.arm, subject.scenario
        return replace(subject, arm=arms.get(arm, arm), scenario=places.get(place, place))

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
    full = {one.verdict for one in lines if not one.line.weaker}
    weaker = {one.verdict for one in lines if one.line.weaker}
    if NOT_RUN in full | weaker:
        verdict = NOT_RUN
    elif claim.is_calibration:
        verdict = CALIBRATION
    elif weaker and full != {REPRODUCED}:
        # More runs may show that the claim itself holds, unless one condition is known to fail.
        alone = {
            _judged(replace(line, weaker=True), measured, families).verdict
            for line in claim.lines
            if not line.weaker
        }
        open_still = set() if NOT_REPRODUCED in alone else {UNDECIDED}
        verdict = _worst({IN_DIRECTION, *weaker, *open_still})
    else:
        verdict = _worst(full)
    return Verdict(claim, verdict, lines)


def _worst(verdicts: Iterable[str]) -> str:
    """Return the verdict on a claim, all of whose conditions must hold."""
    return max(verdicts, key=JUDGED.index)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A number and its 95 % interval."""

    runs: int
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate, *, of_one_run: bool) -> Self:
        """Take the interval of the mean, or that of one more run."""
        mean = estimate.mean or 0.0
        if estimate.low is None or estimate.high is None:
            return cls(estimate.n, mean, -math.inf, math.inf)
        wider = math.sqrt(estimate.n + 1) if of_one_run else 1.0
        low, high = (mean + wider * (end - mean) for end in (estimate.low, estimate.high))
        return cls(estimate.n, mean, low, high)

    def within(self, low: float, high: float) -> bool | None:
        """Whether the number is in a range; None if it is unknown."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.high < low or self.low > high else None

    def runs_to_tell(self, limits: Iterable[float]) -> int | None:
        """Estimate the number of runs with which the interval contains none of the limits."""
        inside = [abs(self.mean - limit) for limit in limits if self.low <= limit <= self.high]
        return self.runs_for(min(inside)) if inside else None

    def runs_for(self, half: float) -> int | None:
        """Estimate the number of runs with which the interval is this wide on each side."""
        now = max(self.high - self.mean, self.mean - self.low)
        if half <= 0.0 or not math.isfinite(now):
            return None
        spread = now * math.sqrt(self.runs) / student.quantile(self.runs - 1)
        runs = max(math.ceil((_NORMAL * spread / half) ** 2), self.runs + 1)
        while runs <= _MOST_RUNS and student.quantile(runs - 1) * spread > half * math.sqrt(runs):
            runs += 1
        return runs if runs <= _MOST_RUNS else None


def _judged(line: Line, measured: Measured, families: "_Families") -> Judged:
    # Lines without a subject belong to claims that are not judged.
    assert line.subject is not None  # noqa: S101 - narrows the type
    own = measured.get(line.subject, NOTHING)
    other = None if line.reference is None else measured.get(line.reference, NOTHING)
    if own.mean is None or (other is not None and other.mean is None):
        return Judged(line, own, other, NOT_RUN)
    if line.relation in INTERVALS:
        return Judged(line, own, other, *_beside(line, own, other or NOTHING))
    compared = (
        _Compared.of(own, of_one_run=line.runs == 1)
        if other is None
        else _quotient(own, other, paired=_share_seeds(line))
    )
    if line.relation == "equals":
        order = None if other else families.ordered(line, measured)
        return Judged(line, own, other, *_equals(line, compared, order=order))
    return Judged(line, own, other, *_bounded(line, compared))


def _equals(line: Line, compared: _Compared, *, order: bool | None) -> tuple[str, int | None]:
    """Judge a value; `order` says whether the arms have the published order, if that is known."""
    value, tolerance = line.value or 0.0, line.tolerance or 0.0
    if compared.within(value - tolerance, value + tolerance) is not False:
        allowed = max(CLOSE * abs(value), tolerance)
        if line.runs == 1:
            allowed = min(STEPS * tolerance, FAR * abs(value))
        half = max(compared.high - compared.mean, compared.mean - compared.low)
        if compared.runs < (line.runs or 1):
            return UNDECIDED, line.runs
        if half <= allowed:
            return REPRODUCED, None
        return UNDECIDED, compared.runs_for(allowed) if line.runs != 1 else None
    if line.weaker:
        # A weaker form has none of its own.
        return NOT_REPRODUCED, None
    if line.reference is not None:
        order = _side(line) is not None
    answers = {
        _in_direction(line, compared, FAR if kept else CLOSE)
        for kept in ((True, False) if order is None else (order,))
    }
    if len(answers) == 1 and None not in answers:
        return (IN_DIRECTION if answers.pop() else NOT_REPRODUCED), None
    limits = [value + sign * part * abs(value) for sign in (-1, 1) for part in (CLOSE, FAR)]
    return UNDECIDED, compared.runs_to_tell([*limits, *[1.0] * (line.reference is not None)])


def _in_direction(line: Line, compared: _Compared, part: float) -> bool | None:
    """Whether a number is within a part of the value; a ratio also on its side of 1."""
    value = line.value or 0.0
    low, high = value - part * abs(value), value + part * abs(value)
    if line.reference is not None and (side := _side(line)) is not None:
        low, high = (max(low, 1.0), high) if side > 0 else (low, min(high, 1.0))
    return compared.within(low, high)


def _side(line: Line) -> int | None:
    """Return on which side of 1 a published ratio is: 1 above, -1 below, None if unknown."""
    value, tolerance = line.value or 0.0, line.tolerance or 0.0
    if value - tolerance > 1.0:
        return 1
    return -1 if value + tolerance < 1.0 else None


def _bounded(line: Line, compared: _Compared) -> tuple[str, int | None]:
    """Judge a least or a greatest value."""
    value = line.value or 0.0
    ends = [value + sign * abs(value) for sign in (-TIE, TIE, -CLOSE, CLOSE)]
    below, above, far_below, far_above = ends
    is_least = line.relation == "at_least"
    holds = compared.within(*((below, math.inf) if is_least else (-math.inf, above)))
    if line.weaker:
        # A weaker form has none of its own.
        far_below, far_above = below, above
    elif line.reference is not None:
        # A ratio must be on its side of 1.
        far_below = max(far_below, min(below, 1.0 - TIE))
        far_above = min(far_above, max(above, 1.0 + TIE))
    near = compared.within(*((far_below, math.inf) if is_least else (-math.inf, far_above)))
    if holds:
        return REPRODUCED, None
    if holds is False and near is not None:
        return (IN_DIRECTION if near else NOT_REPRODUCED), None
    limits = (below, far_below) if is_least else (above, far_above)
    return UNDECIDED, compared.runs_to_tell(limits)


def _beside(line: Line, own: Estimate, other: Estimate) -> tuple[str, int | None]:
    """Judge a difference between two estimates."""
    compared = _difference(own, other, paired=_share_seeds(line))
    none = TIE * max(abs(own.mean or 0.0), abs(other.mean or 0.0))
    if compared.within(-none, none):
        return NOT_REPRODUCED, None
    if compared.low <= 0.0 <= compared.high or abs(compared.mean) <= none:
        return UNDECIDED, compared.runs_to_tell([0.0])
    is_above = compared.mean > 0.0
    holds = line.relation == "differs" or is_above == (line.relation == "above")
    return (REPRODUCED if holds else NOT_REPRODUCED), None


def _difference(own: Estimate, other: Estimate, *, paired: bool) -> _Compared:
    """Subtract two means, or two medians."""
    runs, mean = min(own.n, other.n), (own.mean or 0.0) - (other.mean or 0.0)
    have_values = bool(own.values and other.values)
    if have_values and not own.is_median and not other.is_median:
        half = _half(own.values, other.values, paired=paired)
        return _Compared(runs, mean, mean - half, mean + half)
    ends = [own.low, own.high, other.low, other.high]
    if None in ends:
        return _Compared(runs, mean, -math.inf, math.inf)
    if paired and have_values and own.is_median and other.is_median and own.n == other.n:
        # The interval of the sign test. It may leave out the difference of the medians.
        between = Estimate.of_median(_differences(own.values, other.values))
        low, high = between.low or 0.0, between.high or 0.0
        return _Compared(runs, mean, min(low, mean), max(high, mean))
    low, high, other_low, other_high = (end or 0.0 for end in ends)
    return _Compared(runs, mean, low - other_high, high - other_low)


def _quotient(own: Estimate, other: Estimate, *, paired: bool) -> _Compared:
    """Divide two means.

    The interval is that of ``own - ratio * other``, in parts of `other` (the delta method).
    """
    if not other.mean:
        return _over_zero(own, other, paired=paired)
    ratio = (own.mean or 0.0) / other.mean
    between = _difference(own, _scaled(other, ratio), paired=paired)
    low, high = (ratio + end / abs(other.mean) for end in (between.low, between.high))
    return _Compared(between.runs, ratio, low, high)


def _over_zero(own: Estimate, other: Estimate, *, paired: bool) -> _Compared:
    """Divide by a mean of 0: 0 of 0 are equal, a ratio of 1, and other numbers infinitely more."""
    between = _difference(own, other, paired=paired)
    ratio = math.copysign(math.inf, between.mean) if between.mean else 1.0
    is_zero = between.low == between.high == 0.0
    is_other = not between.low <= 0.0 <= between.high and other.low == other.high
    if is_zero or is_other:
        return _Compared(between.runs, ratio, ratio, ratio)
    return _Compared(between.runs, ratio, -math.inf, math.inf)


def _scaled(estimate: Estimate, by: float) -> Estimate:
    ends = [None if end is None else end * by for end in (estimate.low, estimate.high)]
    low, high = ends if by >= 0.0 else reversed(ends)
    values = tuple(by * value for value in estimate.values)
    mean = (estimate.mean or 0.0) * by
    return replace(estimate, mean=mean, low=low, high=high, values=values)


def _differences(one: Sequence[float], two: Sequence[float]) -> list[float]:
    return list(starmap(float.__sub__, zip(one, two, strict=True)))


def _half(one: Sequence[float], two: Sequence[float], *, paired: bool) -> float:
    """Compute half the width of the 95 % interval of a difference of means.

    Without pairs it is Welch's, with the degrees of freedom rounded down.
    """
    if min(len(one), len(two)) == 1:
        return math.inf
    if paired and len(one) == len(two):
        mean, low, _ = student.mean_and_interval(_differences(one, two))
        return mean - low
    parts = [variance(values) / len(values) for values in (one, two)]
    if not sum(parts):
        return 0.0
    squares = (part**2 / (len(values) - 1) for part, values in zip(parts, (one, two), strict=True))
    degrees = int(sum(parts) ** 2 / sum(squares))
    return student.quantile(degrees) * math.sqrt(sum(parts))


def _share_seeds(line: Line) -> bool:
    """Whether the runs of both sides of a condition have the same seeds."""
    one, two = line.subject, line.reference
    return one is not None and two is not None and one.scenario == two.scenario


def _ratio(own: Estimate, other: Estimate) -> float | None:
    """Divide two means, as :func:`_quotient` does; None if the ratio is infinite or unknown."""
    if own.mean is None or other.mean is None:
        return None
    if not other.mean:
        return None if own.mean else 1.0
    return own.mean / other.mean


class _Families:
    """The published values of one metric in one scenario, to compare the order of arms."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._published: dict[tuple[str, str | None, str], dict[str, tuple[float, float]]] = {}
        for line in (line for claim in claims for line in claim.lines):
            if line.relation != "equals" or line.reference or line.subject is None or line.weaker:
                continue
            family = self._published.setdefault(_family(line.subject), {})
            family[line.subject.arm] = (line.value or 0.0, line.tolerance or 0.0)

    def ordered(self, line: Line, measured: Measured) -> bool | None:
        """Whether an arm is on the published side of all arms with distinguishable values.

        None if intervals cannot tell. An arm without such others has no order to keep.
        """
        subject = line.subject
        if subject is None or line.weaker:
            return False
        family = self._published[_family(subject)]
        value, tolerance = family[subject.arm]
        found = {
            _has_sign(measured[subject], measured.get(replace(subject, arm=arm), NOTHING), sign)
            for arm, (other, width) in family.items()
            for sign in [1.0 if other > value else -1.0]
            if abs(other - value) > tolerance + width
        }
        if False in found or not found:
            return False
        return None if None in found else True


def _has_sign(one: Estimate, two: Estimate, sign: float) -> bool | None:
    """Whether the difference of two arms of a scenario has this sign; None if unknown."""
    if one.mean is None or two.mean is None:
        return None
    between = _difference(two, one, paired=True)
    return None if between.low <= 0.0 <= between.high else between.mean * sign > 0.0


def _family(subject: Subject) -> tuple[str, str | None, str]:
    return (subject.scenario, subject.group, subject.metric)
