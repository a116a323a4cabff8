"""Compute how much each parameter affects metrics: designs and indices of SALib."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean, pvariance
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, in_argument, takes
from sojourn.arguments.common import POINTS, RUNS
from sojourn.deferred import Deferred
from sojourn.execute.executor import ExecutionPlan
from sojourn.expressions import Expression
from sojourn.scenario import Scenario
from sojourn.search import dimensions as dims
from sojourn.search import figures
from sojourn.search.dimensions import (
    Dimension,
    Values,
    check_paths,
    dimensions,
    listed,
    measured_links,
)
from sojourn.search.objectives import Objective, expression
from sojourn.search.plan import MAX_RUNS, Arm, PreparedSearch, SearchParameters
from sojourn.search.runner import Runner, executed
from sojourn.search.search_result import SearchResult
from sojourn.search.settings import of_arm
from sojourn.storage.saved import NUMBER, TEXT, Columns
from sojourn.sweeps.parameters import parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = npt.NDArray[np.float64]
Method = Literal["sobol", "morris"]
_DESIGNS = {name: Deferred(f"SALib.sample.{name}") for name in get_args(Method)}
_SOBOL, _MORRIS = Deferred("SALib.analyze.sobol"), Deferred("SALib.analyze.morris")
# Levels of the grid of Morris, as in the original paper.
_LEVELS = 4
# Samples by method.
SAMPLES: dict[Method, int] = {"sobol": 64, "morris": 16}
MAX_SAMPLES = 1 << 16
LEAST_SOBOL = 4
# Points per batch: an interrupt does not lose finished points.
_BATCH = 64


@dataclass(frozen=True)
class SensitivityPlan(ExecutionPlan):
    """The arguments of a sensitivity analysis."""

    scenario: Annotated[Scenario, Argument(help="The scenario.", option="FILE")]
    parameters: SearchParameters
    metrics: Annotated[
        str | Sequence[str],
        Argument(
            help="Metrics of runs, such as ping_ms_p99, or expressions of metrics.",
            least_items=1,
            example="ping_ms_p99",
            option="--metric",
            metavar="METRIC",
            heading=POINTS,
        ),
    ]
    _: KW_ONLY
    arm: Arm = None
    method: Annotated[
        Method,
        Argument(
            help="Method: sobol (shares of the variance) or morris (screening, fewer runs).",
            more="``'sobol'``: first and total order indices, from `samples` × (parameters + 2) "
            "points; ``'morris'``: elementary effects, from `samples` × (parameters + 1) points.",
            metavar="METHOD",
            heading=POINTS,
        ),
    ] = "sobol"
    samples: Annotated[
        int | None,
        Argument(
            help="Samples of Sobol, a power of two, or trajectories of Morris.",
            unset=" or ".join(f"{number} ({name})" for name, number in SAMPLES.items()),
            least=2,
            most=MAX_SAMPLES,
            metavar="N",
            heading=POINTS,
        ),
    ] = None
    # At least two, because one run does not show the noise.
    replications: Annotated[
        int,
        Argument(
            help="Runs per point; the analysis uses their mean.",
            more="With one run, the noise is unknown.",
            least=1,
            most=MAX_RUNS,
            metavar="N",
            heading=RUNS,
        ),
    ] = 2


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
        found = _SOBOL.analyze(
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
        problem = _problem(self.dimensions)
        found = _MORRIS.analyze(problem, self.shares, measured, num_levels=_LEVELS, seed=self.seed)
        return [
            Index(
                one.name,
                _with_ends("mu_star", found["mu_star"][n], found["mu_star_conf"][n])
                | {"mu": float(found["mu"][n]), "sigma": float(found["sigma"][n])},
            )
            for n, one in enumerate(self.dimensions)
        ]


def design(dimensions: Sequence[Dimension], method: Method, samples: int, seed: int) -> Design:
    """Choose the points of an analysis."""
    if method == "sobol" and samples & (samples - 1):
        near = 1 << (samples.bit_length() - 1)
        rule = f"expected a power of two for Sobol indices, such as {near}"
        raise ArgumentError("samples", samples, rule)
    try:
        draw = _DESIGNS[method].sample
    except ModuleNotFoundError:
        message = "sensitivity requires SALib; install it with: pip install SALib"
        raise _core.UnavailableError(message) from None
    problem = _problem(dimensions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "sobol":
            shares = draw(problem, samples, calc_second_order=False, seed=seed)
        else:
            shares = draw(problem, samples, num_levels=_LEVELS, seed=seed)
    return Design(method, tuple(dimensions), np.asarray(shares, dtype=np.float64), seed)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSensitivity(PreparedSearch):
    """A checked sensitivity analysis: the scenario has no arms."""

    metrics: tuple[Expression, ...]
    method: str
    samples: int
    design: Design

    @property
    def points(self) -> int:
        """Number of points."""
        return count(len(self.dimensions), self.method, self.samples)

    @property
    def changed(self) -> list[str]:
        """The paths that the points set, with ``*`` expanded."""
        (point,) = listed(self.scenario, self.design.points[:1])
        return list(point.changes)

    @property
    def runs(self) -> int:
        """The most runs that the analysis needs: equal points are run once."""
        return self.points * self.replications

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        return {
            "metrics": [one.text for one in self.metrics],
            "method": self.method,
            "samples": self.samples,
        }


# The columns of the indices by method.
_INDICES = {
    "sobol": ("first", "first_low", "first_high", "total", "total_low", "total_high"),
    "morris": ("mu_star", "mu_star_low", "mu_star_high", "mu", "sigma"),
}


class SensitivityResult(SearchResult):
    """How much each parameter affects each metric.

    Created by :func:`sojourn.sensitivity` and :meth:`load`.

    Parameters
    ----------
    manifest
        Scenario, parameters, method, seeds and version.
    indices
        The frame :attr:`indices`.
    noise
        The frame :attr:`noise`.
    points
        The frame :attr:`points`.
    """

    _KIND = "sensitivity"
    _TABLES = ("indices", "noise", "points")
    _IDENTITY = (
        *("sojourn", "scenario", "parameters", "metrics"),
        *("method", "samples", "replications", "seed"),
    )
    _FIELDS: ClassVar[Mapping[str, Any]] = {"metrics": list[str], "method": str, "samples": int}

    def __init__(
        self,
        manifest: dict[str, Any],
        indices: pl.DataFrame,
        noise: pl.DataFrame,
        points: pl.DataFrame,
    ) -> None:
        super().__init__(manifest, indices=indices, noise=noise, points=points)

    def __repr__(self) -> str:
        """Return the size of the analysis on one line."""
        return (
            f"SensitivityResult(method={self.method!r}, points={self.points.height}, "
            f"metrics={list(self.manifest['metrics'])})"
        )

    @property
    def indices(self) -> pl.DataFrame:
        """One row per metric and parameter, the most important first.

        ``metric``, ``parameter``, and with Sobol ``first`` (share of the variance that the
        parameter alone causes) and ``total`` (including interactions); with Morris ``mu_star``
        (mean absolute effect of a step, in the unit of the metric), ``mu`` (mean effect) and
        ``sigma`` (standard deviation of the effect, caused by interactions or curvature). ``_low``
        and ``_high`` are the ends of the 95 % interval that SALib computes by a bootstrap over
        samples.
        """
        return self._tables["indices"]

    @property
    def noise(self) -> pl.DataFrame:
        """One row per metric: ``mean``, ``deviation`` of the points, and ``noise``.

        ``noise`` estimates the share of the variance between points that is due to the seeds, not
        to a parameter: the variance of the runs without the means of points and of replications,
        because all points have the same seeds. It is null for one replication.
        """
        return self._tables["noise"]

    @property
    def points(self) -> pl.DataFrame:
        """One row per point: the parameters and the mean of each metric."""
        return self._tables["points"]

    @property
    def method(self) -> str:
        """``"sobol"`` or ``"morris"``."""
        return str(self.manifest["method"])

    @classmethod
    def _columns(cls, manifest: dict[str, Any]) -> dict[str, Columns]:
        metrics, of = manifest["metrics"], {"metric": TEXT, "parameter": TEXT}
        return {
            "indices": {**of, **dict.fromkeys(_INDICES[manifest["method"]], NUMBER)},
            "noise": {"metric": TEXT, **dict.fromkeys(("mean", "deviation", "noise"), NUMBER)},
            "points": {
                **dict.fromkeys(manifest["paths"], TEXT),
                **dict.fromkeys(metrics, NUMBER),
            },
        }

    @classmethod
    def _is_consistent(cls, manifest: dict[str, Any]) -> bool:
        return manifest["method"] in _INDICES

    def bars(self) -> "Figure":
        """Draw the total order index, or μ* of Morris, of each parameter with its interval.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        name, label = {
            "sobol": ("total", "total-order Sobol index"),
            "morris": ("mu_star", "μ* of Morris, in the unit of the metric"),
        }[self.method]
        table = self.indices.select(
            "metric",
            "parameter",
            value=pl.col(name),
            low=pl.col(f"{name}_low"),
            high=pl.col(f"{name}_high"),
        )
        return figures.bars(table, label).drawn()


def prepared(plan: SensitivityPlan) -> PreparedSensitivity:
    """Check a sensitivity analysis."""
    samples = SAMPLES[plan.method] if plan.samples is None else plan.samples
    if plan.method == "sobol" and samples < LEAST_SOBOL:
        rule = f"expected {LEAST_SOBOL} to {MAX_SAMPLES} with Sobol"
        raise ArgumentError("samples", samples, rule)
    scenario = plan.scenario if plan.seed is None else plan.scenario.replace(seed=plan.seed)
    base = of_arm(scenario, plan.arm)
    found = dimensions(parameters(plan.parameters))
    check_paths(base, found)
    links = measured_links(base, found)
    metrics = []
    for text in dict.fromkeys(plan.metrics):
        with in_argument("metrics", text):
            metrics.append(expression(text, links))
    seed = int(json.loads(base.checked.to_json())["seed"])
    return PreparedSensitivity(
        scenario=base,
        dimensions=tuple(found),
        metrics=tuple(metrics),
        method=plan.method,
        samples=samples,
        replications=plan.replications,
        design=design(found, plan.method, samples, seed),
    )


def execute(planned: PreparedSensitivity, runner: Runner) -> SensitivityResult:
    """Execute a sensitivity analysis."""
    runner.planned = planned.runs
    points = planned.design.points
    frames: list[pl.DataFrame] = []
    for start in range(0, len(points), _BATCH):
        part = points[start : start + _BATCH]
        frames += runner.measure(
            planned.scenario, part, replications=planned.replications, seed=planned.seed
        )
    described = {path: [f"{values[path]}" for values in points] for path in planned.paths}
    indices, noise = [], []
    for metric in planned.metrics:
        runs = []
        for values, frame in zip(points, frames, strict=True):
            measured = Objective("min", metric, "metrics").measured(frame)
            if measured is None:
                rule = "not measured in all runs at the point {point}"
                raise ArgumentError("metrics", metric.text, rule, point=dims.label(values))
            runs.append(list(measured.values()))
        means = [fmean(found) for found in runs]
        described[metric.text] = means  # type: ignore[assignment]
        rows = [
            ({"metric": metric.text, "parameter": one.parameter, **one.values}, one.values)
            for one in planned.design.analyse(means)
        ]
        order = "total" if planned.method == "sobol" else "mu_star"
        rows.sort(key=lambda row: -row[1][order])
        indices += [row for row, _ in rows]
        noise.append((metric.text, fmean(means), pvariance(means) ** 0.5, _noise(runs, means)))
    return SensitivityResult(
        planned.document(),
        pl.DataFrame(indices, infer_schema_length=None),
        pl.DataFrame(
            noise,
            schema={
                "metric": pl.String,
                "mean": pl.Float64,
                "deviation": pl.Float64,
                "noise": pl.Float64,
            },
            orient="row",
        ),
        pl.DataFrame(described),
    )


def _noise(runs: Sequence[Sequence[float]], means: Sequence[float]) -> float | None:
    """Return the share of the variance of the means that is noise; None if it is unknown.

    Replication `k` has the same seed at all points. What a seed adds at all points is no variance
    between points, so the noise is what remains without the means of points and of replications.
    """
    total = pvariance(means)
    count = len(runs[0])
    if count < 2 or len(runs) < 2 or total == 0.0:  # noqa: PLR2004 - no residuals
        return None
    of_seed = [fmean(column) for column in zip(*runs, strict=True)]
    center = fmean(means)
    squares = sum(
        (value - mean - shared + center) ** 2
        for found, mean in zip(runs, means, strict=True)
        for value, shared in zip(found, of_seed, strict=True)
    )
    return min(squares / ((len(runs) - 1) * (count - 1)) / count / total, 1.0)


@takes(SensitivityPlan)
def sensitivity(plan: SensitivityPlan) -> SensitivityResult:
    """Compute how much each parameter affects metrics.

    Returns
    -------
    SensitivityResult
        The indices with their intervals, and the noise.

    Raises
    ------
    UnavailableError
        SALib or another package is not installed, or the cluster is not available.
    ScenarioError
        A parameter, a metric or a place is not valid.
    ResultError
        A store cannot be read or written.
    SweepInterrupted
        Ctrl-C ended the runs.
    """
    return executed(prepared(plan), execute, plan)
