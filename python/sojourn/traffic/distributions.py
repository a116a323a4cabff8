"""Distributions of sizes and waiting times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sojourn.document import Table, check_within


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal(Table):
    """Sizes with a lognormal distribution.

    Parameters
    ----------
    median
        The median size, with its unit.
    sigma
        Standard deviation of the logarithm, 0 to 5.

    Examples
    --------
    >>> Lognormal(median="36kb", sigma=1.0).median
    '36kb'
    """

    tag = ("distribution", "lognormal")

    median: str
    sigma: float

    def __post_init__(self) -> None:
        """Have the core check the distribution."""
        _check_size(self.document())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto(Table):
    """Sizes with a Pareto distribution.

    Parameters
    ----------
    least
        The smallest size, with its unit.
    shape
        Shape parameter, 0.1 to 100. The mean is finite above 1.

    Examples
    --------
    >>> Pareto(least="4kb", shape=1.2).shape
    1.2
    """

    tag = ("distribution", "pareto")

    least: str
    shape: float

    def __post_init__(self) -> None:
        """Have the core check the distribution."""
        _check_size(self.document())


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Table):
    """Sizes or waiting times with an exponential distribution.

    Parameters
    ----------
    mean
        The mean, with the unit of a size or of a time.

    Examples
    --------
    >>> Exponential(mean="5s").mean
    '5s'
    """

    tag = ("distribution", "exponential")

    mean: str


Size = str | int
RandomSize = Size | Lognormal | Exponential | Pareto | Mapping[str, str | float]
Wait = str | Exponential | Mapping[str, str]

SIZES = (Lognormal, Exponential, Pareto)
WAITS = (Exponential,)


def _check_size(document: Mapping[str, Any]) -> None:
    block = {"type": "tcp", "direction": "up", "bytes": document}
    check_within("traffic", block, "bytes")
