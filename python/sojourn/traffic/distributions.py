"""Distributions of sizes and waiting times."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from sojourn import _core
from sojourn.document import Table, check_within, needs
from sojourn.errors import invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution(Table):
    """Base of distributions of sizes."""

    def __post_init__(self) -> None:
        """Have the core check the distribution."""
        block = {"type": "tcp", "direction": "up", "bytes": self.document()}
        check_within("traffic", block, "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal(Distribution):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto(Distribution):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Distribution):
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

    def __post_init__(self) -> None:
        """Check that the mean is a size or a time; what uses it knows which."""
        expected = 'a size or a time, such as "36kb" or "5s"'
        needs("mean", self.mean, str, expected)
        for read in (_core.parse_size_bytes, _core.parse_time_s):
            with contextlib.suppress(_core.ScenarioError):
                read(self.mean)
                return
        raise invalid("mean", f'"{self.mean}": expected {expected}')


Size = str | int
RandomSize = Size | Lognormal | Exponential | Pareto | Mapping[str, str | float]
Wait = str | Exponential | Mapping[str, str]

SIZES = (Lognormal, Exponential, Pareto)
WAITS = (Exponential,)
