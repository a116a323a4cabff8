"""Sensitivity indices by SALib: designs of points, and the analysis of their results."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.search.dimensions import Dimension, Values

Numbers = npt.NDArray[np.float64]
Method = Literal["sobol", "morris"]
METHODS: tuple[Method, ...] = ("sobol", "morris")
# Levels of the grid of Morris, as in the original paper.
_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Index:
    """The indices of a parameter for one metric."""

    parameter: str
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Design:
    """The points of an analysis."""

    method: Method
    dimensions: tuple[Dimension, ...]
    shares: Numbers
    seed: int

    @property
    def points(self) -> list[Values]:
        """The values of the parameters at each point."""
        found: list[Values] = []
        for row in self.shares.tolist():
            values: dict[str, Any] = {}
            for one, share in zip(self.dimensions, row, strict=True):
                values |= one.at(share)
            found.append(values)
        return found

    def analyse(self, outputs: Sequence[float]) -> list[Index]:
        """Compute the indices of each parameter."""
        measured = np.array(outputs, dtype=np.float64)
        if np.ptp(measured) == 0.0:
            # There is no variance to attribute.
            names = ("first", "total") if self.method == "sobol" else ("mu_star", "mu", "sigma")
            zero = {f"{name}{end}": 0.0 for name in names for end in ("", "_low", "_high")}
            return [Index(one.name, dict(zero)) for one in self.dimensions]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._sobol(measured) if self.method == "sobol" else self._morris(measured)

    def _sobol(self, measured: Numbers) -> list[Index]:
        from SALib.analyze import sobol  # noqa: PLC0415 - was imported before

        found = sobol.analyze(
            _problem(self.dimensions), measured, calc_second_order=False, seed=self.seed
        )
        return [
            Index(
                one.name,
                _with_ends("first", found["S1"][n], found["S1_conf"][n])
                | _with_ends("total", found["ST"][n], found["ST_conf"][n]),
            )
            for n, one in enumerate(self.dimensions)
        ]

    def _morris(self, measured: Numbers) -> list[Index]:
        from SALib.analyze import morris  # noqa: PLC0415 - was imported before

        problem = _problem(self.dimensions)
        found = morris.analyze(problem, self.shares, measured, num_levels=_LEVELS, seed=self.seed)
        return [
            Index(
                one.name,
                _with_ends("mu_star", found["mu_star"][n], found["mu_star_conf"][n])
                | {"mu": float(found["mu"][n]), "sigma": float(found["sigma"][n])},
            )
            for n, one in enumerate(self.dimensions)
        ]


def design(
    dimensions: Sequence[Dimension], method: str, samples: int, seed: int, command: str
) -> Design:
    """Choose the points of an analysis."""
    known = known_method(method)
    if known == "sobol" and samples & (samples - 1):
        near = 1 << (samples.bit_length() - 1)
        message = f"--samples {samples}: expected a power of two for Sobol indices, such as {near}"
        raise _core.ScenarioError(message)
    try:
        # Imported here: only this needs it, and the import takes tenths of a second.
        from SALib.sample import morris, sobol  # noqa: PLC0415
    except ModuleNotFoundError:
        message = f"{command} requires SALib; install it with: pip install 'sojourn[sensitivity]'"
        raise _core.UnavailableError(message) from None
    problem = _problem(dimensions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if known == "sobol":
            shares = sobol.sample(problem, samples, calc_second_order=False, seed=seed)
        else:
            shares = morris.sample(problem, samples, num_levels=_LEVELS, seed=seed)
    return Design(known, tuple(dimensions), np.asarray(shares, dtype=np.float64), seed)


def known_method(method: str) -> Method:
    """Return a method by its name."""
    known = next((one for one in METHODS if one == method), None)
    if known is None:
        message = f"--method {method}: unknown; expected {' or '.join(METHODS)}"
        raise _core.ScenarioError(message)
    return known


def count(dimensions: int, method: str, samples: int) -> int:
    """Return the number of points of a design.

    Examples
    --------
    >>> count(3, "sobol", 64), count(3, "morris", 16)
    (320, 64)
    """
    return samples * (dimensions + (2 if method == "sobol" else 1))


def _problem(dimensions: Sequence[Dimension]) -> dict[str, Any]:
    return {
        "num_vars": len(dimensions),
        "names": [one.name for one in dimensions],
        "bounds": [[0.0, 1.0]] * len(dimensions),
    }


def _with_ends(name: str, value: float, half: float) -> dict[str, float]:
    value, half = float(value), float(half)
    return {name: value, f"{name}_low": value - half, f"{name}_high": value + half}
