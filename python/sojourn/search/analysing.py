"""Analyse how much each parameter affects a metric."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.document import bounded, needs
from sojourn.expressions import Expression
from sojourn.scenario import Scenario
from sojourn.search import dimensions as dims
from sojourn.search.dimensions import check_paths, dimensions, listed, measured_links
from sojourn.search.indices import Design, Method, count, design, known_method
from sojourn.search.laboratory import Laboratory, executed
from sojourn.search.objectives import Objective, expression
from sojourn.search.planned import MAX_RUNS, Search
from sojourn.search.sensitivity_result import SensitivityResult
from sojourn.search.settings import of_arm
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.parameters import parameters as read_parameters

# Samples by method.
SAMPLES: dict[Method, int] = {"sobol": 64, "morris": 16}
# At least two, because one run does not show the noise.
REPLICATIONS = 2
MAX_SAMPLES = 1 << 16
# Points per batch: an interrupt does not lose finished points.
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Search):
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


def analysis(
    scenario: Scenario,
    parameters: Sequence[Parameter],
    metrics: Sequence[str],
    *,
    arm: str | None = None,
    method: str = "sobol",
    samples: int | None = None,
    replications: int = REPLICATIONS,
) -> Analysis:
    """Check a sensitivity analysis; the parameters are those of :func:`sensitivity`."""
    chosen = SAMPLES[known_method(method)] if samples is None else samples
    bounded("--samples", chosen, 2 if method == "morris" else 4, MAX_SAMPLES)
    bounded("--replications", replications, 1, MAX_RUNS)
    if not metrics:
        message = "--metric: none given; expected at least one, such as ping_ms_p99"
        raise _core.ScenarioError(message)
    base = of_arm(scenario, arm, "sensitivity")
    found = dimensions(parameters, "sensitivity")
    check_paths(base, found)
    links = measured_links(base, found)
    seed = int(json.loads(base.checked.to_json())["seed"])
    return Analysis(
        scenario=base,
        dimensions=tuple(found),
        metrics=tuple(expression(text, "--metric", links) for text in dict.fromkeys(metrics)),
        method=method,
        samples=chosen,
        replications=replications,
        design=design(found, method, chosen, seed, "sensitivity"),
    )


def execute(planned: Analysis, laboratory: Laboratory) -> SensitivityResult:
    """Execute a sensitivity analysis."""
    laboratory.planned = planned.runs
    points = planned.design.points
    frames: list[pl.DataFrame] = []
    for start in range(0, len(points), _BATCH):
        part = points[start : start + _BATCH]
        frames += laboratory.measure(
            planned.scenario, part, replications=planned.replications, seed=planned.seed
        )
    described = {path: [f"{values[path]}" for values in points] for path in planned.paths}
    indices, noise = [], []
    for metric in planned.metrics:
        place = f'--metric "{metric.text}"'
        runs = []
        for values, frame in zip(points, frames, strict=True):
            measured = Objective("min", metric).measured(frame, place)
            if measured is None:
                message = f"{place}: not measured in all runs at the point {dims.label(values)}"
                raise _core.ScenarioError(message)
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


def sensitivity(
    scenario: Scenario,
    parameters: Mapping[Any, Any],
    metrics: str | Sequence[str],
    *,
    arm: str | None = None,
    method: str = "sobol",
    samples: int | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    store: str | Path | None = None,
    on: str | None = None,
    shared: str | Path | None = None,
    max_memory: str | None = None,
) -> SensitivityResult:
    """Compute how much each parameter affects metrics.

    Parameters
    ----------
    scenario
        The scenario.
    parameters
        Values or ranges by their path, as for :func:`tune`.
    metrics
        Metrics of runs, or expressions of metrics.
    arm
        Name of the arm, if the scenario has several.
    method
        ``"sobol"``: first and total order indices, from `samples` × (parameters + 2) points;
        ``"morris"``: elementary effects, from `samples` × (parameters + 1) points.
    samples
        Number of samples: by default 64 with Sobol, where it must be a power of two, and 16 with
        Morris.
    replications
        Runs per point; the analysis uses their mean. With one run, the noise is unknown.
    seed
        Replaces the seed of the scenario, for the runs, the points and the intervals.
    jobs, progress, backend, on, shared, max_memory
        As for :func:`sweep`.
    store
        Directory in which each run is stored when it finishes.

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
    needs("sensitivity", scenario, Scenario, "a Scenario")
    if not isinstance(parameters, Mapping):
        # The keys of parameters that change together are tuples.
        needs("parameters", parameters, Mapping, "a mapping from paths to values")
    chosen = scenario if seed is None else scenario.replace(seed=seed)
    planned = analysis(
        chosen,
        read_parameters(parameters),
        [metrics] if isinstance(metrics, str) else list(metrics),
        arm=arm,
        method=method,
        samples=samples,
        replications=replications,
    )
    return executed(
        planned,
        execute,
        jobs=jobs,
        progress=progress,
        backend=backend,
        store=store,
        on=on,
        shared=shared,
        max_memory=max_memory,
    )
