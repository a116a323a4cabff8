"""Format numbers for terminals, reports and notebooks."""

import math
from collections.abc import Iterable, Mapping

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


def estimate(mean: float | None, low: float | None, high: float | None, metric: Metric) -> str:
    """Write a mean with half the width of its interval."""
    if mean is None:
        return "–"
    half = 0.0 if low is None or high is None else (high - low) / 2.0
    if low is None:
        return f"{mean:z.{metric.digits}f}"
    places = _places(half, metric)
    return f"{mean:z.{places}f} ±{half:.{places}f}"


def interval(low: float | None, high: float | None, metric: Metric) -> str:
    """Write an interval, such as ``"9.09 to 9.15"``; empty if there is none."""
    if low is None or high is None:
        return ""
    half = (high - low) / 2.0
    places = _places(half, metric)
    return f"{low:z.{places}f} to {high:z.{places}f}"


def change(row: Mapping[str, float | None], metric: Metric) -> str:
    """Write a paired difference with its sign and interval, such as ``"−68* [−72, −64]"``.

    The star marks an interval that excludes 0, unless the value rounds to 0.
    """
    mean, low, high = row["mean"], row["low"], row["high"]
    if mean is None:
        return "–"
    if low is None or high is None:
        return _signed(mean, metric.digits)
    half = (high - low) / 2.0
    places = _places(half, metric)
    text = _signed(mean, places)
    star = "*" if row["significant"] and text[0] in "+−" else ""
    return f"{text}{star} [{_signed(low, places)}, {_signed(high, places)}]"


def _signed(value: float, places: int) -> str:
    """Write a number with its sign; a value that rounds to 0 has none."""
    text = f"{value:+.{places}f}"
    return (text if any(digit in "123456789" for digit in text) else text[1:]).replace("-", "−")
