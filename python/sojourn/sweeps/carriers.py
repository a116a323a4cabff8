"""Scenarios that carry the points of a sweep as their arms.

A scenario with many arms is checked, stored and executed as one: the run store keeps the runs of a
carrier in one file, and no processor waits for the last run of each point.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.document import plain
from sojourn.scenario import Scenario
from sojourn.sweeps.space import Point

# Runs and least number of arms of a carrier. At the end of a carrier, processors become idle one
# after the other; the time to begin one grows with the number of carriers in the store.
_RUNS = 1024
_LEAST_ARMS = 8
# Keys that a result has only once, so that arms of a carrier must share them.
_COMMON = ("duration", "warmup")
# Keys of traffic that do not decide which metrics exist. Metrics such as Jain's index depend on
# the flows of all arms of a result.
_HARMLESS = {"cc", "ecn", "rtt", "dscp", "rate", "interval", "start", "start_jitter", "stop"}
_PLACE = re.compile(r"^arms\[\d+\](\.set)?[:.]?\s*")
_ARM = re.compile(r' \(arm "[0-9a-f]+"\)$')
DIGITS = 32


@dataclass(frozen=True, slots=True)
class Cell:
    """An arm of the scenario at a point."""

    point: int
    arm: str


@dataclass(frozen=True, slots=True)
class _Member:
    """A cell with the changes that its arm of a carrier makes, and the name of that arm."""

    cell: Cell
    name: str
    changes: Mapping[str, Any]
    point: Point


@dataclass(frozen=True, slots=True)
class Carrier:
    """A scenario whose arms are cells."""

    scenario: _core.Scenario
    cells: tuple[Cell, ...]
    most: int

    def number(self, cell: int, replication: int) -> int:
        """Return the number of a run, counted arm by arm."""
        return cell * self.most + replication


def carriers(scenario: Scenario, points: Sequence[Point], most: int) -> Iterator[Carrier]:
    """Build the carriers of a sweep."""
    document = json.loads(scenario.checked.to_json())
    document["replications"] = most
    arms = document.pop("arms", None) or [{"name": scenario.checked.arms[0], "set": {}}]
    groups: dict[str, list[_Member]] = {}
    equal: Counter[str] = Counter()
    for number, point in enumerate(points):
        changes = {path: plain(path, value) for path, value in point.changes.items()}
        common = {path: changes.pop(path) for path in _COMMON if path in changes}
        for arm in arms:
            own = _merged(arm, changes)
            # Samples of whole numbers may be equal, but the arms of a scenario may not.
            name = _name(arm["name"], own)
            again = equal[name]
            equal[name] += 1
            key = json.dumps([common, _structure(own), again], sort_keys=True)
            member = _Member(Cell(number, arm["name"]), name, own, point)
            groups.setdefault(key, []).append(member)
    size = max(_RUNS // most, _LEAST_ARMS)
    for key, members in groups.items():
        common = json.loads(key)[0]
        for start in range(0, len(members), size):
            part = members[start : start + size]
            checked = _checked({**document, **common}, part)
            yield Carrier(checked, tuple(member.cell for member in part), most)


def _merged(arm: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of an arm with those of a point, which apply after them."""
    for path in changes:
        if any(own == path or own.startswith(f"{path}.") for own in arm["set"]):
            message = (
                f'{path}: arm "{arm["name"]}" sets this value or a part of it; expected '
                "a parameter that the arms share, or one within it, such as the target of a queue"
            )
            raise _core.ScenarioError(message)
    return {**arm["set"], **changes}


def _structure(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that may decide which metrics a run has."""
    return {
        path: value
        for path, value in changes.items()
        if path.startswith(("traffic", "pages")) and path.rsplit(".", 1)[-1] not in _HARMLESS
    }


def _checked(document: dict[str, Any], members: Sequence[_Member]) -> _core.Scenario:
    arms = [{"name": member.name, "set": member.changes} for member in members]
    try:
        return _core.Scenario.from_json(json.dumps({**document, "arms": arms}))
    except _core.ScenarioError as error:
        failed = error
    for arm, member in zip(arms, members, strict=True):
        try:
            _core.Scenario.from_json(json.dumps({**document, "arms": [arm]}))
        except _core.ScenarioError as error:
            text = _ARM.sub("", _PLACE.sub("", f"{error}"))
            of_arm = f'; arm "{member.cell.arm}"' if _has_arms(members) else ""
            message = f"{text} (point {member.point.label}{of_arm})"
            raise _core.ScenarioError(message) from None
    raise failed


def _has_arms(members: Sequence[_Member]) -> bool:
    return len({member.cell.arm for member in members}) > 1


def _name(arm: str, changes: Mapping[str, Any]) -> str:
    """Name an arm by what it is, so that another sweep with the same point reuses its runs."""
    text = json.dumps([arm, changes], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
