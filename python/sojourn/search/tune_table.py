"""The table ``[tune]`` of scenario files."""

from dataclasses import dataclass

from sojourn.scenario import Scenario
from sojourn.search.objectives import objectives
from sojourn.search.planned import check_numbers
from sojourn.search.tuning import INTERVALS, REPLICATIONS, TRIALS, Tuning, tuning
from sojourn.sweeps.origins import naming_keys
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.table import NUMBER, TEXT, entries, names, texts

# The keys beside `parameters` and `where`: the type of their value.
_KEYS = {
    "objectives": (list | str, "a list of objectives"),
    "arm": TEXT,
    "trials": NUMBER,
    "replications": NUMBER,
    "intervals": NUMBER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneTable:
    """The content of a table ``[tune]``."""

    parameters: tuple[Parameter, ...] = ()
    objectives: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    arm: str | None = None
    trials: int = TRIALS
    replications: int = REPLICATIONS
    intervals: int = INTERVALS
    keys: frozenset[str] = frozenset()

    def plan(self, scenario: Scenario) -> Tuning:
        """Check the search of a scenario."""
        with naming_keys("tune", self.keys):
            return tuning(
                scenario,
                self.parameters,
                self.objectives,
                arm=self.arm,
                where=self.where,
                trials=self.trials,
                replications=self.replications,
                intervals=self.intervals,
            )


def tune_table(table: object) -> TuneTable:
    """Read a table ``[tune]``.

    Examples
    --------
    >>> found = tune_table({"objectives": "min drops", "parameters": {"rtt": "uniform(5ms,50ms)"}})
    >>> found.objectives, found.trials
    (('min drops',), 100)
    """
    found = entries("tune", table, _KEYS)
    if "objectives" in found:
        place = "tune.objectives"
        found["objectives"] = tuple(texts(place, found["objectives"], "objectives"))
        # For its checks, whose messages name the table.
        objectives(found["objectives"], place)
    read = TuneTable(**found, keys=names(table))
    check_numbers(
        trials=read.trials,
        replications=read.replications,
        intervals=read.intervals,
        place="tune.",
    )
    return read
