"""Groups of points: scenarios whose arms are the points of a sweep.

A scenario with many arms is checked, stored and executed as one: the run store keeps the runs of a
group in one file, and no processor waits for the last run of each point.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sojourn import _core
from sojourn.document import plain
from sojourn.execute.runs import Run
from sojourn.scenario import Scenario

# Runs and least number of arms of a group. At the end of a group, processors become idle one
# after the other; the time to begin one grows with the number of groups in the store.
_RUNS = 1024
_LEAST_ARMS = 8
# Keys that a result has only once, so that arms of a group must share them.
_COMMON = ("duration", "warmup")
# Keys of traffic that do not decide which metrics exist. Metrics such as Jain's index depend on
# the flows of all arms of a result.
_HARMLESS = {"cc", "ecn", "rtt", "dscp", "rate", "interval", "start", "start_jitter", "stop"}
# Most characters of the name of an arm, and those of the digest that ends a longer one.
_LONGEST = 200
_DIGITS = 32


class Point(Protocol):
    """What a group needs of a point: its changes of the scenario, and its name in messages."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """New values by their path."""
        ...

    @property
    def label(self) -> str:
        """The values on one line."""
        ...


@dataclass(frozen=True, slots=True)
class PointArm:
    """An arm of the scenario at a point, and at the points with the same values if there are any.

    Samples of whole numbers may be equal; their runs are executed once.
    """

    points: tuple[int, ...]
    arm: str


@dataclass(frozen=True, slots=True)
class _Member:
    """An arm of a group: its name, its changes, and the arm and the points that it stands for."""

    name: str
    changes: Mapping[str, Any]
    arm: str
    points: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class PointGroup:
    """A scenario whose arms are those of points, each with `most` replications.

    No two have the same scenario; their hashes are those of objects, since they are keys for each
    row.
    """

    scenario: _core.Scenario
    arms: tuple[PointArm, ...]
    most: int

    def runs(self, arms: Iterable[int], first: int, after: int) -> list[Run]:
        """Return some replications of arms, all arms of one before the next."""
        of = list(arms)
        return [
            Run(self.scenario, arm * self.most + replication)
            for replication in range(first, after)
            for arm in of
        ]


def grouped(scenario: Scenario, points: Sequence[Point], most: int) -> Iterator[PointGroup]:
    """Group the points of a sweep."""
    document = json.loads(scenario.checked.to_json())
    document["replications"] = most
    arms = document.pop("arms", None) or [{"name": scenario.checked.arms[0], "set": {}}]
    alike: dict[str, dict[str, _Member]] = {}
    names: dict[str, str] = {}
    for number, point in enumerate(points):
        changes = {path: plain(path, value) for path, value in point.changes.items()}
        own = {path: value for path, value in changes.items() if path not in _COMMON}
        common = {path: changes[path] for path in _COMMON if path in changes}
        for arm in arms:
            merged = _merged(arm, own)
            identity = json.dumps([arm["name"], merged, common])
            members = alike.setdefault(json.dumps([common, _structure(merged)], sort_keys=True), {})
            if identity not in members:
                name = _name(arm["name"], changes, identity)
                if names.setdefault(name, identity) != identity:
                    name = _with_digest(name, identity)
                members[identity] = _Member(name, merged, arm["name"], [])
            members[identity].points.append(number)
    size = max(_RUNS // most, _LEAST_ARMS)
    for key, members in alike.items():
        common, every = json.loads(key)[0], list(members.values())
        for start in range(0, len(every), size):
            part = every[start : start + size]
            checked = _checked(document, common, part, points, has_arms=len(arms) > 1)
            of_points = (PointArm(tuple(member.points), member.arm) for member in part)
            yield PointGroup(checked, tuple(of_points), most)


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


def _name(arm: str, changes: Mapping[str, Any], identity: str) -> str:
    """Name an arm of a group by what it is.

    Errors of queues contain the name. Keys of runs contain it, too, so it is the same in another
    sweep with the same point.
    """
    values = ", ".join(f"{path}={_written(value)}" for path, value in changes.items())
    name = f"{arm} ({values})" if values else arm
    return name if len(name) <= _LONGEST else _with_digest(name, identity)


def _written(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def _with_digest(name: str, identity: str) -> str:
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 2]}… {digest}"


def _checked(
    document: Mapping[str, Any],
    common: Mapping[str, Any],
    members: Sequence[_Member],
    points: Sequence[Point],
    *,
    has_arms: bool,
) -> _core.Scenario:
    arms = [{"name": member.name, "set": member.changes} for member in members]
    try:
        return _core.Scenario.from_json(json.dumps({**document, **common, "arms": arms}))
    except _core.ScenarioError as error:
        failed = error
    # Applied to the scenario, not as an arm, so that the message has the path as the user wrote it.
    base = _core.Scenario.from_json(json.dumps(document))
    for member in members:
        changes = {**common, **member.changes}
        try:
            base.changed([(path, json.dumps(value)) for path, value in changes.items()])
        except _core.ScenarioError as error:
            of_arm = f'; arm "{member.arm}"' if has_arms else ""
            message = f"{error} (point {points[member.points[0]].label}{of_arm})"
            raise _core.ScenarioError(message) from None
    raise failed
