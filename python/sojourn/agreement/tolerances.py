"""The tolerances within which simulated and live runs agree, each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.result.metric import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a live mean may differ from the simulated one."""

    quantity: str
    begins: str
    relative: float
    absolute: Mapping[str, float]
    reason: str

    def of(self, simulated: float, unit: str) -> float:
        """Return the tolerance of a metric with this simulated mean, in its unit.

        Examples
        --------
        >>> [round(DELAY.of(mean, "ms"), 2) for mean in (4.0, 50.0)]
        [1.0, 5.0]
        """
        return max(self.relative * abs(simulated), self.absolute[unit])

    def __str__(self) -> str:
        """Write the share and the least value, such as ``"10 %, at least 1 ms"``."""
        least = [f"{value:g} {unit}" for unit, value in self.absolute.items() if value]
        share = f"{self.relative:.0%}".replace("%", " %")
        return f"{share}, at least {least[0]}" if least else share


GOODPUT = Tolerance(
    quantity="goodput",
    begins="goodput",
    relative=0.05,
    absolute={"Mbit/s": 0.0},
    reason="Kernels differ in slow start, pacing and offloads, which determine when a queue is "
    "empty after a loss; over a run of tens of seconds, the rate of a saturated link varies less.",
)
DELAY = Tolerance(
    quantity="delays and durations",
    begins="",
    relative=0.10,
    absolute={"ms": 1.0, "s": 0.001},
    reason="The timers and the scheduler of a machine make live packets late by up to 1 ms: a run "
    "in which 1 % of the events of the datapath are later than that is invalid. The percentage "
    "covers the phase of congestion control, which differs between runs.",
)

#: The first tolerance that applies to a metric is used.
TOLERANCES = (GOODPUT, DELAY)

INFORMATIONAL = (
    "Counts, shares and indices have no tolerance: drops and marks are few per run, and one more "
    "or less is a large relative change."
)


def tolerance(metric: Metric) -> Tolerance | None:
    """Return the tolerance of a metric; None if it is informational."""
    for one in TOLERANCES:
        if metric.unit in one.absolute and metric.column.startswith(one.begins):
            return one
    return None
