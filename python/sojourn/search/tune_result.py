"""The result of tuning: trials, Pareto front, importance of the parameters, settings."""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value
from sojourn.search.search_result import SearchResult
from sojourn.search.settings import Settings, changed, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEST = "best.toml"


class TuneResult(SearchResult):
    """Trials of settings, and measurements of the best trials with new seeds.

    Created by :func:`sojourn.tune` and :meth:`load`.

    Parameters
    ----------
    manifest
        Scenario, parameters, objectives, seeds and version.
    trials
        The frame :attr:`trials`.
    front
        The frame :attr:`front`.
    importance
        The frame :attr:`importance`.
    """

    _KIND = "tune"
    _TABLES = ("trials", "front", "importance")
    _TEXTS = (_BEST,)
    _IDENTITY = (
        *("sojourn", "scenario", "parameters", "objectives", "where"),
        *("trials", "replications", "intervals", "seed"),
    )

    def __init__(
        self,
        manifest: dict[str, Any],
        trials: pl.DataFrame,
        front: pl.DataFrame,
        importance: pl.DataFrame,
    ) -> None:
        super().__init__(manifest, trials=trials, front=front, importance=importance)

    def __repr__(self) -> str:
        """Return the size of the search on one line."""
        return (
            f"TuneResult(trials={self.trials.height}, objectives={self.objectives}, "
            f"best=trial {self.best})"
        )

    @property
    def trials(self) -> pl.DataFrame:
        """One row per trial: ``trial``, the parameters, ``state``, ``front``, and per objective.

        The state is ``"complete"``, ``"failed"`` (no valid scenario, or an objective was not
        measured) or ``"pruned"`` (excluded by a condition; no runs).

        The columns of the objectives are means over the runs of the search. For the best of many
        trials, they are biased: use :attr:`front`.
        """
        return self._tables["trials"]

    @property
    def front(self) -> pl.DataFrame:
        """One row per trial on the Pareto front, measured again with new seeds.

        ``trial``, the parameters, ``n``, ``dominated`` (with the new seeds, another trial
        dominates it), and per objective its mean, ``<objective>_low`` and
        ``<objective>_high``, and ``<objective>_change`` with the same ends: the paired difference
        from the original scenario. The intervals are 95 % bootstrap intervals. The last row, whose
        trial is null, is the original scenario.
        """
        return self._tables["front"]

    @property
    def importance(self) -> pl.DataFrame:
        """One row per objective and parameter: ``importance``, ``low`` and ``high``.

        PED-ANOVA: the share of a parameter in the difference between the best tenth of the trials
        and all trials, from 0 to 1, with the 95 % interval of a bootstrap over trials.
        """
        return self._tables["importance"]

    @property
    def parameters(self) -> list[str]:
        """The paths of the parameters."""
        return list(self.manifest["paths"])

    @property
    def objectives(self) -> list[str]:
        """The objectives, such as ``min ping_ms_p99``; also the names of their columns."""
        return list(self.manifest["objectives"])

    @property
    def best(self) -> int | None:
        """The proposed trial: on the front, the nearest to the best values of all objectives."""
        best = self.manifest["best"]
        return None if best is None else int(best)

    def values(self, trial: int | None = None) -> dict[str, Value]:
        """Return the values of the parameters in a trial, by default the best one.

        Raises
        ------
        ResultError
            There is no such trial.
        """
        number = self.best if trial is None else trial
        points: dict[str, dict[str, Value]] = self.manifest["points"]
        if f"{number}" not in points:
            message = f"trial {number}: not on the front; expected one of {', '.join(points)}"
            raise _core.ResultError(message)
        return points[f"{number}"]

    def settings(self, trial: int | None = None) -> Settings:
        """Return the settings of a trial on the front: lines for ``tc``, and options.

        Parameters
        ----------
        trial
            Its number; by default the best.

        Raises
        ------
        ResultError
            The trial is not on the front.
        """
        return settings(self.scenario, self.values(trial))

    def tuned(self, trial: int | None = None) -> Scenario:
        """Return the scenario with the settings of a trial on the front, by default the best.

        Raises
        ------
        ResultError
            The trial is not on the front.
        """
        return changed(self.scenario, self.values(trial))

    def pareto(self, x: str | None = None, y: str | None = None) -> "Figure":
        """Draw all trials and the front, with the intervals of the new seeds, over two objectives.

        Parameters
        ----------
        x, y
            The objectives; by default the first two. With one objective: its values by trial.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        ResultError
            An objective is unknown.
        """
        from sojourn.search import figures  # noqa: PLC0415 - matplotlib is slow to import

        first = self._objective(x, 0)
        second = self._objective(y, 1) if len(self.objectives) > 1 else None
        return figures.pareto(self.trials, self.front, first, second, self.best)

    def importances(self) -> "Figure":
        """Draw the importance of each parameter for each objective, with its interval.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from sojourn.search import figures  # noqa: PLC0415 - matplotlib is slow to import

        return figures.bars(
            self.importance.rename({"objective": "metric", "importance": "value"}),
            "share of the importance (PED-ANOVA)",
        )

    def _texts(self) -> dict[str, str | None]:
        return {_BEST: None if self.best is None else self.tuned().to_toml()}

    def _objective(self, name: str | None, place: int) -> str:
        if name is None:
            return self.objectives[place]
        if name not in self.objectives:
            message = f'unknown objective "{name}"; expected one of {", ".join(self.objectives)}'
            raise _core.ResultError(message)
        return name
