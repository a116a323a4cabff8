"""Colours that colour-blind readers can distinguish, dashes for monochrome print, and ticks."""

import math

# Okabe and Ito, "Color Universal Design" (2008), ordered so that the first few differ most in
# lightness too; yellow, hard to see on white, comes last.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
# Lighter variants of colours that are too dark on a dark background.
COLOURS_ON_DARK = (
    "#3D9BD9",
    "#F07F35",
    "#21B98F",
    "#E69F00",
    "#D995BB",
    "#8CCBF2",
    "#E8E8E8",
    "#F0E442",
)
DASHES = ("", "6 3", "2 2", "8 3 2 3", "10 4", "4 2", "1 3", "12 3 3 3")


def slot(index: int) -> int:
    """Return the colour index of arm number `index`; colours repeat with other dash patterns."""
    return index % len(COLOURS)


def colour(index: int) -> str:
    """Return the colour of arm number `index` on a white page."""
    return COLOURS[slot(index)]


def dash(index: int) -> str:
    """Return the dash pattern of arm number `index`: solid for the first eight arms."""
    return DASHES[(index // len(COLOURS)) % len(DASHES)]


# Fewer ticks than this do not show the scale of an axis.
FEWEST = 3
# A logarithmic axis over fewer decades than this has room for labels at 2 and 5.
NARROW_DECADES = 2.6
# Ticks of a linear axis, about.
_STEPS = 5


def linear(low: float, high: float) -> list[float]:
    """List about five values in equal steps.

    Examples
    --------
    >>> linear(0.0, 10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    least = 0.8 * (high - low) / _STEPS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def logarithmic(low: float, high: float) -> list[float]:
    """List powers of ten, with 2 and 5 between them where there is room.

    A range that contains fewer than three of these has values in equal steps.

    Examples
    --------
    >>> logarithmic(0.05, 500.0), logarithmic(3.0, 60.0), logarithmic(15.0, 80.0)
    ([0.1, 1.0, 10.0, 100.0], [5.0, 10.0, 20.0, 50.0], [20.0, 40.0, 60.0, 80.0])
    """
    decades = _powers(low, high, (1.0,))
    narrow = math.log10(high / low) < NARROW_DECADES
    if len(decades) >= FEWEST and not narrow:
        return decades
    finer = _powers(low, high, (1.0, 2.0, 5.0))
    return finer if len(finer) >= FEWEST else linear(low, high)


def _powers(low: float, high: float, steps: tuple[float, ...]) -> list[float]:
    """List the multiples of powers of ten in a range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [value for value in values if low <= value <= high]
