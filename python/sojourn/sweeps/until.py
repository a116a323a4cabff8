"""The precision at which a sweep stops adding replications."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.arguments import ArgumentError
from sojourn.result.student import mean_and_interval

# With fewer runs, the interval is unreliable: the sweep stops at points whose runs happen to be
# close to each other.
LEAST_RUNS = 6
_UNTIL = re.compile(r"(?P<metric>\w+)\s*(?:±|\+-|\+/-)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%?)")


@dataclass(frozen=True, slots=True)
class Until:
    """A metric and the required half-width of its 95 % interval."""

    metric: str
    width: float
    relative: bool

    @property
    def text(self) -> str:
        """The precision as text, such as ``ping_ms_p99 ±5 %``."""
        return f"{self.metric} ±{self.width * 100 if self.relative else self.width:g}" + (
            " %" if self.relative else ""
        )

    def met(self, values: Sequence[float]) -> bool:
        """Whether the interval of Student's t distribution is narrow enough.

        Tables of sweeps with `until` show the same interval.
        """
        if not values:
            raise ArgumentError(
                "until",
                self.text,
                "no run of a point measured the metric; expected one that all points measure",
            )
        if len(values) < LEAST_RUNS:
            return False
        mean, low, high = mean_and_interval(values)
        allowed = self.width * abs(mean) if self.relative else self.width
        return (high - low) / 2 <= allowed


def until(text: str) -> Until:
    """Read a precision.

    Examples
    --------
    >>> until("ping_ms_p99 +-5%")
    Until(metric='ping_ms_p99', width=0.05, relative=True)
    """
    found = _UNTIL.fullmatch(text.strip())
    if found is None or float(found["number"]) == 0.0:
        raise ArgumentError(
            "until",
            text,
            "expected a metric and the half-width of its interval, such as 'ping_ms_p99 ±5 %' or "
            "'goodput_down ±0.1'",
        )
    relative = bool(found["unit"])
    return Until(found["metric"], float(found["number"]) / (100 if relative else 1), relative)
