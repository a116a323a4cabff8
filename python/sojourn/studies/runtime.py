"""``runtime.json`` of a study: how long a run of each scenario took, for estimates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn import files
from sojourn.errors import invalid_file
from sojourn.result.formatting import counted
from sojourn.scenario import Scenario
from sojourn.studies.study import Scale

FILE = "runtime.json"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the time that a study takes."""

    runs: int
    seconds: float
    unknown: int

    def __str__(self) -> str:
        """Write the estimate for a terminal.

        Examples
        --------
        >>> print(Estimate(20, 120.0, 1))
        20 runs, about 2 min of CPU time, excluding 1 scenario of unknown duration
        >>> print(Estimate(1, 0.0, 1))
        1 run of unknown duration
        """
        runs = counted(self.runs, "run")
        if not self.seconds and self.unknown:
            return f"{runs} of unknown duration"
        text = f"{runs}, about {duration(self.seconds)} of CPU time"
        if not self.unknown:
            return text
        return f"{text}, excluding {counted(self.unknown, 'scenario')} of unknown duration"


class Remaining:
    """The time that the rest of a study takes, from recorded times and the speed so far."""

    def __init__(self, expected_s: Mapping[str, float]) -> None:
        self._expected_s = dict(expected_s)
        self._total = len(self._expected_s)
        self._done_s = self._elapsed_s = 0.0

    def finished(self, key: str, elapsed_s: float) -> None:
        """Record that the runs of a scenario have finished, and how long they took."""
        self._done_s += self._expected_s.pop(key)
        self._elapsed_s += elapsed_s

    def __str__(self) -> str:
        """Write the number of the next scenario and, once it is known, the total time left.

        Examples
        --------
        >>> remaining = Remaining({"a": 10.0, "b": 30.0})
        >>> remaining.finished("a", 20.0)
        >>> str(remaining)
        '2/2, about 60 s left in total'
        """
        count = f"{self._total - len(self._expected_s) + 1}/{self._total}"
        if not self._done_s or not all(self._expected_s.values()):
            return count
        left_s = sum(self._expected_s.values()) * self._elapsed_s / self._done_s
        return f"{count}, about {duration(left_s)} left in total"


def expected_s(folder: Path, scenarios: Mapping[str, Scenario], scale: Scale) -> dict[str, float]:
    """Return the recorded processor time of the runs of each scenario; 0 if unknown."""
    known = load(folder / FILE).get(scale, {})
    return {key: known.get(key, 0.0) * scenario.runs for key, scenario in scenarios.items()}


def estimate(scenarios: Mapping[str, Scenario], known: Mapping[str, float]) -> Estimate:
    """Estimate the time of the runs of scenarios from the times of :func:`expected_s`."""
    runs = sum(scenario.runs for scenario in scenarios.values())
    return Estimate(runs, sum(known.values()), sum(not seconds for seconds in known.values()))


def load(file: Path) -> dict[str, dict[str, float]]:
    """Read recorded times: seconds per run by scale and scenario; empty if there are none."""
    try:
        found = files.read_json(file, _MAX_BYTES)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise invalid_file(file, f"cannot read times: {error}") from None
    return {scale: dict(found.get(scale, {})) for scale in ("quick", "full")}


def written(seconds: Mapping[str, float], scale: Scale) -> str:
    """Write times as JSON."""
    rounded = {key: float(f"{value:.3g}") for key, value in seconds.items()}
    return json.dumps({scale: rounded}, indent=1, sort_keys=True)


def duration(seconds: float) -> str:
    """Write a duration with its unit.

    Examples
    --------
    >>> duration(7200), duration(200), duration(60)
    ('2.0 h', '3 min', '60 s')
    """
    for unit, length, digits in (("h", 3600, 1), ("min", 60, 0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{digits}f} {unit}"
    return f"{seconds:.0f} s"
