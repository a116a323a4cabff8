"""Numbers with a unit, as scenarios write them: rates, times, sizes, shares and plain numbers.

Times, rates and sizes are strings with a unit, such as ``"5ms"`` or ``"20mbit"``, as in ``tc``. A
bare number is never a time or a rate; :func:`s`, :func:`mbit` and others add the unit to a number.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from sojourn import _core
from sojourn.arguments import checked

_NUMBER = re.compile(r"\s*(?P<number>[+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)\s*(?P<unit>[a-zA-Z%]*)\s*")
# A ratio, as congestion controls write theirs.
_RATIO = re.compile(r"\s*(?P<over>\d+)/(?P<under>0*[1-9]\d*)\s*")
# Units of each kind, the smallest first: their factor is the number of base units, which are whole.
_UNITS: dict[str, dict[str, int]] = {
    "rate": {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12},
    "time": {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9},
    "size": {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30},
}
# Digits of numbers that are computed.
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit."""

    number: float
    kind: str

    def written(self) -> str | int | float:
        """Write the quantity as a scenario does: with at most six digits, in a unit that fits.

        Examples
        --------
        >>> Quantity(31622776.6, "rate").written()
        '31.6228mbit'
        >>> Quantity(3.0, "").written()
        3
        """
        number = float(f"{self.number:.{DIGITS}g}")
        units = _UNITS.get(self.kind)
        if units is None:
            plain = int(number) if number.is_integer() else number
            return f"{plain}{self.kind}" if self.kind else plain
        whole = round(number)
        fitting = [item for item in units.items() if item[1] <= abs(whole)]
        unit, factor = fitting[-1] if fitting else next(iter(units.items()))
        if self.kind == "size" and whole % factor:
            unit, factor = "b", 1
        return f"{_decimal(Fraction(whole, factor))}{unit}"


def _decimal(value: Fraction) -> str:
    """Write a fraction whose denominator is a power of ten, exactly."""
    text = f"{float(value):.15g}"
    return text if "e" not in text else f"{float(value):f}"


def quantity(text: str | float) -> Quantity | None:
    """Read a number with a unit.

    Examples
    --------
    >>> quantity("10mbit")
    Quantity(number=10000000.0, kind='rate')
    >>> quantity("20p")
    Quantity(number=20.0, kind='p')
    >>> quantity("7/10")
    Quantity(number=0.7, kind='')
    >>> quantity("fq_codel") is None
    True
    """
    if isinstance(text, bool):
        return None
    if isinstance(text, int | float):
        return Quantity(float(text), "") if math.isfinite(text) else None
    ratio = _RATIO.fullmatch(text)
    if ratio is not None:
        return Quantity(int(ratio["over"]) / int(ratio["under"]), "")
    found = _NUMBER.fullmatch(text)
    return None if found is None else _with_unit(found["number"], found["unit"])


def _with_unit(digits: str, unit: str) -> Quantity | None:
    number = float(digits)
    if not math.isfinite(number):
        return None
    for kind, units in _UNITS.items():
        if unit.lower() in units:
            return Quantity(number * units[unit.lower()], kind)
    for kind, read in (
        ("rate", _core.parse_rate_bits_per_s),
        ("time", _time_ns),
        ("size", _core.parse_size_bytes),
    ):
        if unit:
            try:
                return Quantity(float(read(f"{digits}{unit}")), kind)
            except _core.ScenarioError:
                continue
    return Quantity(number, unit)


def _time_ns(text: str) -> float:
    return _core.parse_time_s(text) * 1e9


def in_base_units(text: str | float) -> float:
    """Convert a number with a unit to seconds, bit/s, bytes or a ratio.

    Examples
    --------
    >>> in_base_units("5ms"), in_base_units("10mbit"), in_base_units("50%")
    (0.005, 10000000.0, 0.5)
    """
    found = quantity(text)
    if found is None:
        message = f'"{text}": expected a number, with or without a unit, such as 10mbit or 5ms'
        raise _core.ScenarioError(message)
    if found.kind == "time":
        return found.number / 1e9
    return found.number / 100 if found.kind == "%" else found.number


@checked
def s(value: float) -> str:
    """Write `value` seconds.

    Parameters
    ----------
    value
        Seconds.

    Returns
    -------
    str
        The time as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> s(2.5)
    '2.5s'
    """
    return _united(value, "s")


@checked
def ms(value: float) -> str:
    """Write `value` milliseconds.

    Parameters
    ----------
    value
        Milliseconds.

    Returns
    -------
    str
        The time as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> ms(0.5)
    '0.5ms'
    """
    return _united(value, "ms")


@checked
def us(value: float) -> str:
    """Write `value` microseconds.

    Parameters
    ----------
    value
        Microseconds.

    Returns
    -------
    str
        The time as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> us(250)
    '250us'
    """
    return _united(value, "us")


@checked
def kbit(value: float) -> str:
    """Write a rate of `value` thousand bits per second.

    Parameters
    ----------
    value
        10³ bits per second.

    Returns
    -------
    str
        The rate as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> kbit(768)
    '768kbit'
    """
    return _united(value, "kbit")


@checked
def mbit(value: float) -> str:
    """Write a rate of `value` million bits per second.

    Parameters
    ----------
    value
        10⁶ bits per second.

    Returns
    -------
    str
        The rate as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> mbit(20)
    '20mbit'
    """
    return _united(value, "mbit")


@checked
def gbit(value: float) -> str:
    """Write a rate of `value` billion bits per second.

    Parameters
    ----------
    value
        10⁹ bits per second.

    Returns
    -------
    str
        The rate as Sojourn and ``tc`` read it.

    Examples
    --------
    >>> gbit(1)
    '1gbit'
    """
    return _united(value, "gbit")


def _united(value: float, unit: str) -> str:
    if not math.isfinite(value) or value < 0:
        message = f"{value} {unit}: expected a finite number >= 0"
        raise _core.ScenarioError(message)
    return f"{value:.12g}{unit}"
