"""Format numbers for terminals, reports and notebooks."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sojourn.presentation.model import Estimate
from sojourn.result.catalogue import Metric

# More decimals have no meaning in network measurements.
MOST_DECIMALS = 3
# As many items as a message lists.
LISTED = 5


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "run"), counted(20, "run")
    ('1 run', '20 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(items: Iterable[str]) -> str:
    """Write the first items of a list, and how many follow.

    Examples
    --------
    >>> first_of(["a", "b"]), first_of("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    every = list(items)
    more = len(every) - LISTED
    return ", ".join(every[:LISTED]) + (f" and {more} more" if more > 0 else "")


def size(count: float) -> str:
    """Write a number of bytes in powers of 1000.

    Examples
    --------
    >>> size(1_024), size(13_000_000_000), size(999_000)
    ('1.0 kB', '13.0 GB', '999.0 kB')
    """
    scaled, units = count / 1000, ["TB", "GB", "MB", "kB"]
    while len(units) > 1 and scaled >= 1000:  # noqa: PLR2004 - the next unit
        scaled /= 1000
        units.pop()
    return f"{scaled:.1f} {units[-1]}"


def rate(bits_per_s: float) -> str:
    """Write a rate with its unit.

    Examples
    --------
    >>> rate(1e11), rate(144_400_000), rate(950_000), rate(64)
    ('100 Gbit/s', '144.4 Mbit/s', '950 kbit/s', '64 bit/s')
    """
    scales = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))
    scale, unit = next((one for one in scales if bits_per_s >= one[0]), (1.0, "bit/s"))
    return f"{bits_per_s / scale:g} {unit}"


def significant(number: float) -> str:
    """Write a number with three significant digits, below a million without an exponent.

    Examples
    --------
    >>> significant(6043.7), significant(0.56172), significant(12.0)
    ('6040', '0.562', '12')
    """
    return f"{float(f'{number:.3g}'):g}"


def decimals(half_width: float) -> int:
    """Count the decimals to show for a value with this uncertainty.

    The uncertainty keeps one significant digit, two if it begins with 1.

    Examples
    --------
    >>> decimals(0.031), decimals(0.013), decimals(4.2), decimals(13.0)
    (2, 3, 0, 0)
    """
    exponent = math.floor(math.log10(half_width))
    leading = half_width / 10.0**exponent
    return min(max(-exponent + (1 if leading < 2 else 0), 0), MOST_DECIMALS)  # noqa: PLR2004 - see above


def _places(half_width: float, metric: Metric) -> int:
    """Count the decimals of a value of `metric`; for ratios and counts, at most its own."""
    if half_width == 0.0:
        return metric.digits
    places = decimals(half_width)
    return places if metric.unit else min(places, metric.digits)


def estimate(row: Mapping[str, Any] | None, metric: Metric) -> Estimate:
    """Return a mean and its interval with the digits of its uncertainty."""
    if row is None or row["mean"] is None:
        return Estimate(None)
    low, high = row["low"], row["high"]
    places = metric.digits if low is None or high is None else _places((high - low) / 2.0, metric)
    return Estimate(row["mean"], low, high, places)


def of_columns(row: Mapping[str, Any], metric: Metric) -> Estimate:
    """Return the mean of a metric from a row that has it in a column, beside the ends."""
    ends = {"mean": "", "low": "_low", "high": "_high"}
    return estimate({key: row[f"{metric.column}{end}"] for key, end in ends.items()}, metric)


def change(row: Mapping[str, Any] | None, metric: Metric) -> Estimate:
    """Return a paired difference, such as ``"−68* [−72, −64]"``.

    The star marks an interval that excludes 0, unless the value rounds to 0.
    """
    found = estimate(row, metric)
    return replace(found, signed=True, clear=row is not None and row["significant"])
