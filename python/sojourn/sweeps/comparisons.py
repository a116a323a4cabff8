"""Many comparisons at once: intervals and verdicts that account for their number.

At a confidence level of 95 %, on average one of twenty differences that are really zero appears to
exist. Two methods correct for this:

* To find the best of many points, the intervals are those of Bonferroni for the differences of all
  pairs: the best point of the sample is chosen from the same runs, so it may be any point. With a
  probability of at least 95 %, all intervals are correct. A point may be the best unless another
  one is better in a one-sided test (Edwards and Hsu, "Multiple Comparisons with the Best
  Treatment", Journal of the American Statistical Association 78, 1983).
* In tables of differences, those that differ from 0 are selected so that at most 5 % of them are
  expected to be wrong (Benjamini and Hochberg, "Controlling the False Discovery Rate", Journal of
  the Royal Statistical Society B 57, 1995). The intervals have the level 1 - 0.05 R / m if R of m
  differences are selected (Benjamini and Yekutieli, "False Discovery Rate-Adjusted Multiple
  Confidence Intervals for Selected Parameters", Journal of the American Statistical Association
  100, 2005): an interval excludes 0 if and only if its difference is selected.

All intervals and tests use Student's t distribution for the mean of paired differences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.deferred import Deferred
from sojourn.result import student

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
else:
    # Needed only where points are ranked.
    np = Deferred("numpy")

# The probability of any error, or the expected share of wrong differences among those selected.
ERRORS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of paired differences."""

    mean: float | None
    low: float | None = None
    high: float | None = None
    significant: bool | None = None


def selected(samples: Sequence[Sequence[float]]) -> list[Difference]:
    """Select the differences that are not 0, and adjust their intervals.

    Examples
    --------
    >>> clear, unclear = selected([[1.0, 1.1, 0.9], [1.0, -1.2, 0.1]])
    >>> clear.significant, unclear.significant
    (True, False)
    """
    tested = {n: values for n, values in enumerate(samples) if len(values) > 1}
    p_values = {n: student.p_value(values) for n, values in tested.items()}
    ordered = sorted(p_values.values())
    below = [rank for rank, p in enumerate(ordered, start=1) if p <= ERRORS * rank / len(ordered)]
    count = max(below, default=0)
    level = 1.0 - ERRORS * max(count, 1) / max(len(ordered), 1)
    found = []
    for n, values in enumerate(samples):
        if n not in tested:
            found.append(Difference(mean=values[0] if values else None))
            continue
        mean, low, high = student.mean_and_interval(values, level)
        is_selected = count > 0 and p_values[n] <= ordered[count - 1]
        found.append(Difference(mean=mean, low=low, high=high, significant=is_selected))
    return found


def against_first(rows: "Numbers", place: int) -> Difference:
    """Estimate the difference of a row from the first one, simultaneously with those of all pairs.

    The first row may be chosen by its mean, because the intervals cover the differences of all
    pairs.
    """
    differences = rows[place] - rows[0]
    values = differences[~np.isnan(differences)].tolist()
    if len(values) <= 1:
        return Difference(mean=values[0] if values else None)
    level = 1.0 - ERRORS / max(math.comb(len(rows), 2), 1)
    mean, low, high = student.mean_and_interval(values, level)
    return Difference(mean=mean, low=low, high=high, significant=low > 0.0 or high < 0.0)


def may_be_best(rows: "Numbers", place: int, *, largest: bool) -> bool | None:
    """Whether no other row is better, in one-sided tests that account for their number.

    With a probability of at least 95 %, the best row is one of those that may be the best.
    """
    worse = (rows - rows[place]) * (1.0 if largest else -1.0)
    counts = (~np.isnan(worse)).sum(axis=1)
    others = np.flatnonzero((counts > 1) & (np.arange(len(rows)) != place))
    if not len(others):
        return None
    means = np.nanmean(worse[others], axis=1)
    spreads = np.nanstd(worse[others], axis=1, ddof=1)
    level = 1.0 - 2.0 * ERRORS / (len(rows) - 1)
    limits = {count: student.quantile(count - 1, level) for count in set(counts[others].tolist())}
    bounds = [limits[count] / math.sqrt(count) for count in counts[others].tolist()]
    return not bool(np.any((means > 0.0) & (means > np.array(bounds) * spreads)))
