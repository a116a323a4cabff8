"""Quantities with their units.

Times, rates and sizes are strings with a unit, such as ``"5ms"`` or ``"20mbit"``, as in ``tc``. A
bare number is never a time or a rate; these functions add the unit to a number.

Examples
--------
>>> ms(40), s(10), mbit(20)
('40ms', '10s', '20mbit')
"""

import math

from sojourn._core import ScenarioError


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
    return _quantity(value, "s")


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
    return _quantity(value, "ms")


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
    return _quantity(value, "us")


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
    return _quantity(value, "kbit")


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
    return _quantity(value, "mbit")


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
    return _quantity(value, "gbit")


def _quantity(value: float, unit: str) -> str:
    if not math.isfinite(value) or value < 0:
        message = f"{value} {unit}: expected a finite number >= 0"
        raise ScenarioError(message)
    return f"{value:.12g}{unit}"
