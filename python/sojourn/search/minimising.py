"""Simplify a scenario step by step while a property of it remains.

A greedy form of delta debugging (Zeller and Hildebrandt, 2002): every step is tried, and a step
that keeps the property is accepted, until no step keeps it.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, overridden
from sojourn.scenario.quantities import Quantity, in_base_units, quantity
from sojourn.search.dimensions import Dimension

# Least duration of a run, in seconds.
LEAST_S = 5.0
# Searches of the built-in scenario took 23 to 56 steps (6 searches of 8 trials, 25 November 2026).
MAX_STEPS = 100
_DIGITS = (1, 2)
_TIMES = ("duration", "warmup")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario as its differences from another one."""

    changes: Mapping[str, Value]
    dropped: frozenset[str] = frozenset()

    @property
    def kept(self) -> dict[str, Value]:
        """The values that differ, without those of removed traffic."""
        return {
            path: value
            for path, value in self.changes.items()
            if not any(path.startswith(f"traffic.{name}.") for name in self.dropped)
        }

    def scenario(self, base: Scenario) -> Scenario:
        """Return the scenario."""
        document = json.loads(base.checked.to_json())
        document["traffic"] = [
            block for block in document["traffic"] if block["name"] not in self.dropped
        ]
        rest = Scenario.from_json(json.dumps(document))
        kept = self.kept
        return overridden(rest, kept) if kept else rest


def minimised(
    base: Scenario,
    found: Candidate,
    dimensions: Sequence[Dimension],
    keeps: Callable[[Scenario], bool],
    allows: Callable[[Candidate], bool] = lambda _: True,
) -> list[Candidate]:
    """Simplify a candidate."""
    tried = 0
    seen = {_key(found)}
    accepted = [found]
    current = found
    again = True
    while again and tried < MAX_STEPS:
        again = False
        for simplify in (_without_traffic, _restored, _fewer, _rounded, _shorter):
            taken = True
            while taken and tried < MAX_STEPS:
                taken = False
                for candidate in simplify(base, current, dimensions):
                    if _key(candidate) in seen:
                        continue
                    seen.add(_key(candidate))
                    try:
                        scenario = candidate.scenario(base)
                    except _core.ScenarioError:
                        continue
                    if not allows(candidate):
                        continue
                    tried += 1
                    if keeps(scenario):
                        current, taken, again = candidate, True, True
                        accepted.append(candidate)
                        break
                    if tried >= MAX_STEPS:
                        break
    return accepted


def _key(candidate: Candidate) -> str:
    return json.dumps([dict(candidate.changes), sorted(candidate.dropped)], sort_keys=True)


def _without_traffic(
    base: Scenario, current: Candidate, _: Sequence[Dimension]
) -> Iterator[Candidate]:
    """Remove one group of traffic, but neither pings nor the last load."""
    if any(path.startswith("traffic[") for path in current.changes):
        # An index would point to another group.
        return
    kinds = _core.traffic_types()
    blocks = json.loads(base.checked.to_json())["traffic"]
    loads = [
        block["name"]
        for block in blocks
        if kinds[block["type"]]["carries_data"] and block["name"] not in current.dropped
    ]
    for name in loads if len(loads) > 1 else []:
        yield replace(current, dropped=current.dropped | {name})


def _restored(_: Scenario, current: Candidate, __: Sequence[Dimension]) -> Iterator[Candidate]:
    """Reset one parameter to its value in the scenario."""
    for path in current.changes:
        if path in _TIMES:
            # A longer run is not simpler.
            continue
        rest = {key: value for key, value in current.changes.items() if key != path}
        yield replace(current, changes=rest)


def _fewer(_: Scenario, current: Candidate, dimensions: Sequence[Dimension]) -> Iterator[Candidate]:
    """Reduce a whole number: to its least value, or halfway to it."""
    for one in dimensions:
        if one.range is None or one.range.distribution != "integers":
            continue
        path, least = one.paths[0], one.range.low.number
        number = quantity(_plain(current.changes.get(path)))
        if number is None or number.number <= least:
            continue
        half = math.floor((number.number + least) / 2)
        for smaller in dict.fromkeys((least, float(half), number.number - 1)):
            yield _with(current, path, Quantity(smaller, number.kind).written())


def _rounded(_: Scenario, current: Candidate, __: Sequence[Dimension]) -> Iterator[Candidate]:
    """Round a number to few digits."""
    for path, value in current.changes.items():
        number = quantity(_plain(value))
        if number is None or path in _TIMES:
            continue
        for digits in _DIGITS:
            rounded = Quantity(float(f"{number.number:.{digits}g}"), number.kind)
            if rounded.number == number.number:
                break
            yield _with(current, path, rounded.written())


def _shorter(base: Scenario, current: Candidate, _: Sequence[Dimension]) -> Iterator[Candidate]:
    """Halve the duration and the warm-up."""
    document = json.loads(base.checked.to_json())
    times = {
        key: in_base_units(_plain(current.changes.get(key, document[key])) or 0) for key in _TIMES
    }
    if times["duration"] / 2 >= LEAST_S:
        halved = {key: Quantity(time * 1e9 / 2, "time").written() for key, time in times.items()}
        yield replace(current, changes={**current.changes, **halved})


def _with(current: Candidate, path: str, value: Value) -> Candidate:
    return replace(current, changes={**current.changes, path: value})


def _plain(value: Any) -> str | float:
    """Return a value if it is a number or a text; other values are not quantities."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
