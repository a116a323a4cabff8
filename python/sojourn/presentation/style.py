"""Colours that colour-blind readers can distinguish, dashes for monochrome print, and ticks."""

import itertools
import math
from collections.abc import Iterable

# Okabe and Ito, "Color Universal Design" (2008), ordered so that the first few differ most in
# lightness too, then colours of the scheme "muted" of P. Tol, "Colour Schemes" (2021); yellow, hard
# to see on white, comes last.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
    "#882255",
    "#44AA99",
    "#999933",
    "#AA4499",
    "#661100",
    "#888888",
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
    "#C8638F",
    "#5CC4B3",
    "#B8B850",
    "#CC70BC",
    "#B8604A",
    "#A8A8A8",
    "#F0E442",
)
# The number of the colour of well-known queues, the same in every figure; those of one number are
# rarely compared with each other.
QUEUES = {
    name: number
    for number, names in enumerate(
        (
            "pfifo fifo bfifo pfifo_fast pfifo_head_drop",
            "codel cobalt",
            "fq_codel",
            "pie",
            "cake cake_mq sfq afcd",
            "fq_nocodel sfq_codel afq",
            "dualpi2 sfb predict",
            "red ared cocoa",
            "fq fq_pie",
            "afd floq floq_share",
        )
    )
    for name in names.split()
}
# The numbers of colours that no well-known queue has, except yellow.
_UNRESERVED = range(max(QUEUES.values()) + 1, len(COLOURS) - 1)
# Patterns of dashes, as matplotlib has them.
DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (8, 3)), (0, (3, 3, 1, 3)))


def numbers(names: Iterable[str]) -> dict[str, int]:
    """Give each arm the number of its colour: that of the queue with which its name begins.

    A queue without parameters comes before its variants. Beside well-known queues, other names have
    the numbers that no queue has, then those of absent queues, the most common queues last.

    Examples
    --------
    >>> numbers(["mine", "codel target 5ms", "codel", "pfifo"])
    {'mine': 10, 'codel target 5ms': 11, 'codel': 1, 'pfifo': 0}
    >>> numbers(["mine", "yours"])
    {'mine': 0, 'yours': 1}
    """
    listed = list(dict.fromkeys(names))
    known: dict[int, str] = {}
    for name in sorted(listed, key=lambda name: name not in QUEUES):
        number = QUEUES.get(name.partition(" ")[0])
        if number is not None:
            known.setdefault(number, name)
    found = {name: number for number, name in known.items()}
    order = [*_UNRESERVED, *reversed(range(_UNRESERVED.start))] if known else []
    free = (
        number
        for number in dict.fromkeys(itertools.chain(order, range(len(order) + len(listed))))
        if number not in known
    )
    return {name: found[name] if name in found else next(free) for name in listed}


def colour(number: int) -> str:
    """Return a colour on a white page; colours repeat with other dash patterns."""
    return COLOURS[number % len(COLOURS)]


def dash(number: int, pattern: int = 0) -> tuple[int, tuple[float, ...]]:
    """Return the dashes of the number of a colour: solid until colours repeat, or others."""
    return DASHES[(number // len(COLOURS) + pattern) % len(DASHES)]


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
