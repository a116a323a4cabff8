"""The values of a parameter as positions on an axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from sojourn.scenario.quantities import Quantity, quantity
from sojourn.sweeps.estimates import in_order

# Units of each kind of quantity, the largest first, in the smallest unit of the kind.
_UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "rate": (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)),
    "time": (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)),
    "size": (("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)),
}
_NAMES = {"p": "packets"}
# An axis is logarithmic from this ratio of the largest and the smallest value: of two values, and
# of more values at about equal ratios.
_LOGARITHMIC = 20.0
_LEAST = 4.0
_TWO = 2
# Axes and colours are logarithmic from this ratio of the largest and the smallest mean of a metric.
_WIDE = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The values of a parameter, and their positions on an axis."""

    path: str
    values: tuple[object, ...]
    numbers: tuple[float, ...] | None
    unit: str
    logarithmic: bool

    @property
    def label(self) -> str:
        """The parameter and its unit."""
        return f"{self.path} [{self.unit}]" if self.unit else self.path

    def position(self, value: object) -> float:
        """Return the position of a value: its number, or its place in the order."""
        place = self.values.index(value)
        return float(place) if self.numbers is None else self.numbers[place]

    def text(self, value: object) -> str:
        """Write a value for an axis: its number, or its name."""
        return f"{value}" if self.numbers is None else f"{self.position(value):.3g}"


def scale(path: str, values: pl.Series) -> Scale:
    """Choose unit and scale of the axis of a parameter.

    Examples
    --------
    >>> found = scale("rate", pl.Series(["100mbit", "1mbit", "10mbit"]))
    >>> found.label, found.numbers, found.logarithmic
    ('rate [Mbit/s]', (1.0, 10.0, 100.0), True)
    """
    order = tuple(in_order(values))
    found = [quantity(one) for one in order if isinstance(one, str | int | float)]
    quantities = [one for one in found if one is not None]
    kinds = {one.kind for one in quantities}
    if len(quantities) < len(order) or len(kinds) != 1:
        return Scale(path=path, values=order, numbers=None, unit="", logarithmic=False)
    unit, factor = _unit(quantities)
    numbers = tuple(one.number / factor for one in quantities)
    return Scale(
        path=path,
        values=order,
        numbers=numbers,
        unit=unit,
        logarithmic=_is_logarithmic(numbers),
    )


def _unit(quantities: Sequence[Quantity]) -> tuple[str, float]:
    """Return the largest unit in which no value but 0 is less than 1, and its size."""
    kind = quantities[0].kind
    if kind not in _UNITS:
        return _NAMES.get(kind, kind), 1.0
    least = min((abs(one.number) for one in quantities if one.number), default=1.0)
    return next((one for one in _UNITS[kind] if one[1] <= least), _UNITS[kind][-1])


def _is_logarithmic(numbers: Sequence[float]) -> bool:
    if len(numbers) < _TWO or numbers[0] <= 0.0:
        return False
    ratio = numbers[-1] / numbers[0]
    if len(numbers) == _TWO:
        return ratio >= _LOGARITHMIC
    distances = [high - low for low, high in pairwise(numbers)]
    ratios = [math.log(high / low) for low, high in pairwise(numbers)]
    return ratio >= _LEAST and max(ratios) * min(distances) < max(distances) * min(ratios)


def is_wide(low: float, high: float) -> bool:
    """Whether a linear scale would hide the small values of a range of a metric.

    Examples
    --------
    >>> is_wide(1.0, 900.0), is_wide(0.0, 900.0), is_wide(80.0, 95.0)
    (True, False, False)
    """
    return low > 0 and high / low >= _WIDE
