"""Student's t distribution: p values and intervals for means of few runs."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev

LEVEL = 0.95


def p_value(values: Sequence[float]) -> float:
    """Compute the two-sided p value of a t test that the mean of at least two values is 0.

    Examples
    --------
    >>> f"{p_value([1.0, 2.0, 3.0, 4.0]):.4f}"
    '0.0305'
    """
    mean, spread = fmean(values), stdev(values)
    if spread == 0.0:
        return 0.0 if mean else 1.0
    return two_sided(mean / spread * math.sqrt(len(values)), len(values) - 1)


def two_sided(t: float, degrees: int) -> float:
    """Compute the probability that Student's t is farther from 0 than `t`."""
    return max(0.0, 1.0 - _within(abs(t), degrees))


def mean_and_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Compute the mean of at least two values and its interval of a confidence level.

    Examples
    --------
    >>> "{:.2f} [{:.2f}, {:.2f}]".format(*mean_and_interval([1.0, 2.0, 3.0]))
    '2.00 [-0.48, 4.48]'
    """
    mean = fmean(values)
    half = quantile(len(values) - 1, level) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


@lru_cache(maxsize=4096)
def quantile(degrees: int, level: float = LEVEL) -> float:
    """Compute the value that Student's t stays within with a probability.

    Examples
    --------
    >>> [round(quantile(degrees), 3) for degrees in (1, 2, 9, 29)]
    [12.706, 4.303, 2.262, 2.045]
    >>> round(quantile(4, 0.999), 3)
    8.61
    """
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if _within(middle, degrees) > level else (middle, high)
    return middle


def _within(t: float, degrees: int) -> float:
    """Compute the probability that Student's t is within ±`t` (Abramowitz and Stegun 26.7.3, 4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for n in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine**2 * (n - 1) / n
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
