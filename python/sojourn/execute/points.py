"""Groups of points: scenarios whose arms are the points of a sweep.

A scenario with many arms is checked, stored and executed as one: the run store keeps the runs of a
group in one file, and no processor waits for the last run of each point.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.document import plain
from sojourn.execute.runs import Run
from sojourn.scenario import Scenario

# Runs and least number of arms of a group. At the end of a group, processors become idle one
# after the other; the time to begin one grows with the number of groups in the store.
_RUNS = 1024
_LEAST_ARMS = 8
# Most arms that wait for others of the same structure: each takes about 2 kB.
_WAITING = 16 * _RUNS
# Keys that a result has only once, so that arms of a group must share them.
_COMMON = ("duration", "warmup")
# Keys of traffic that do not decide which metrics exist. Metrics such as Jain's index depend on
# the flows of all arms of a result.
_HARMLESS = {"cc", "ecn", "rtt", "dscp", "ip", "rate", "interval", "start", "start_jitter", "stop"}
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

    def parameter(self, path: str) -> str:
        """Return the path of the parameter that changes a path."""
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
    points: tuple[int, ...]


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
    """Group the points of a sweep.

    Only the groups that are being filled are in memory, and 8 bytes per arm of each point.
    """
    document = json.loads(scenario.checked.to_json())
    document["replications"] = most
    arms = document.pop("arms", None) or [{"name": scenario.checked.arms[0], "set": {}}]
    equal = _equal(arms, points)
    size = max(_RUNS // most, _LEAST_ARMS)

    def checked(key: str, members: Iterable[_Member]) -> PointGroup:
        part = list(members)
        found = _checked(document, json.loads(key)[0], part, points, has_arms=len(arms) > 1)
        return PointGroup(found, tuple(PointArm(one.points, one.arm) for one in part), most)

    # Members by their names, of groups with the same structure.
    alike: dict[str, dict[str, _Member]] = {}
    waiting = 0
    for number, (arm, changes, common, merged) in _members(arms, points):
        identity = json.dumps([arm, merged, common])
        numbers = equal.get(identity, (number,))
        if numbers[0] != number:
            continue
        key = json.dumps([common, _structure(merged)], sort_keys=True)
        members = alike.setdefault(key, {})
        name = _name(arm, changes, identity)
        if name in members:
            name = _with_digest(name, identity)
        members[name] = _Member(name, merged, arm, tuple(numbers))
        waiting += 1
        if len(members) == size or waiting == _WAITING:
            # Of many structures, the oldest is the least likely to be continued.
            first = key if len(members) == size else next(iter(alike))
            waiting -= len(alike[first])
            yield checked(first, alike.pop(first).values())
    for key, members in alike.items():
        yield checked(key, members.values())


# An arm at a point: its name, the changes of the point, those that all arms share, and its own.
_Changes = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]


def _members(
    arms: Sequence[Mapping[str, Any]], points: Sequence[Point]
) -> Iterator[tuple[int, _Changes]]:
    """Yield the number of each point with each of its arms."""
    for number, point in enumerate(points):
        changes = {path: plain(path, value) for path, value in point.changes.items()}
        own = {path: value for path, value in changes.items() if path not in _COMMON}
        common = {path: changes[path] for path in _COMMON if path in changes}
        for arm in arms:
            yield number, (arm["name"], changes, common, _merged(arm, own, point))


def _equal(arms: Sequence[Mapping[str, Any]], points: Sequence[Point]) -> "dict[str, array[int]]":
    """Return the numbers of the points at which an arm is the same, by its identity."""
    import numpy as np  # noqa: PLC0415 - slow to import

    def identities() -> Iterator[tuple[int, str]]:
        for number, (arm, _, common, merged) in _members(arms, points):
            yield number, json.dumps([arm, merged, common])

    hashes = np.sort(np.fromiter((hash(identity) for _, identity in identities()), np.int64))
    repeated = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    found: dict[str, array[int]] = {}
    for number, identity in identities() if repeated else ():
        if hash(identity) in repeated:
            found.setdefault(identity, array("L")).append(number)
    return found


def _merged(arm: Mapping[str, Any], changes: Mapping[str, Any], point: Point) -> dict[str, Any]:
    """Return the changes of an arm with those of a point, which apply after them."""
    for path in changes:
        if any(own == path or own.startswith(f"{path}.") for own in arm["set"]):
            rule = (
                'arm "{of_arm}" sets this value or a part of it; expected a parameter that the '
                "arms share, or one within it, such as the target of a queue"
            )
            key = point.parameter(path)
            raise ArgumentError("parameters", rule=rule, key=key, of_arm=arm["name"])
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
            place = f"(point {points[member.points[0]].label}{of_arm})"
            point = points[member.points[0]]
            path = _cause(base, point.changes, error)
            if path is None:
                message = f"{error} {place}"
                raise _core.ScenarioError(message) from None
            key = point.parameter(path)
            problem = error.problem if error.path == key else f"{error}"
            raise ArgumentError(
                "parameters",
                rule="{problem} {place}",
                key=key,
                problem=problem,
                place=place,
            ) from None
    raise failed


def _cause(
    base: _core.Scenario, changes: Mapping[str, Any], error: _core.ScenarioError
) -> str | None:
    """Return the change of a point that an error is about; None if it is about something else."""
    for path in changes:
        if error.path is not None and (error.path == path or error.path.startswith(f"{path}.")):
            return path
    # Errors have the index of traffic that the path names.
    for path, value in changes.items():
        try:
            base.changed([(path, json.dumps(plain(path, value)))])
        except _core.ScenarioError as alone:
            if (alone.path, alone.problem) == (error.path, error.problem):
                return path
    return None
