"""The result of a sensitivity analysis: indices per metric and parameter."""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.search.search_result import SearchResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def bars(self) -> "Figure":
        """Draw the total order index, or μ* of Morris, of each parameter with its interval.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from sojourn.search import figures  # noqa: PLC0415 - matplotlib is slow to import

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
        return figures.bars(table, label)
