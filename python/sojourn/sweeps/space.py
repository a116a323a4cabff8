"""The points of a sweep: combinations of the values of its parameters."""

import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.expressions import Expression, parse
from sojourn.queues.queue_file import named, short
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, depth, expanded, is_expanded
from sojourn.sweeps import conditions
from sojourn.sweeps.parameters import Parameter

MAX_POINTS = 1_000_000
_SAMPLING = re.compile(r"(?P<kind>lhs|sobol):(?P<count>[1-9]\d{0,6})")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How samples are drawn from the ranges."""

    kind: Literal["lhs", "sobol"]
    count: int

    @property
    def text(self) -> str:
        """How it is written: ``lhs:64``."""
        return f"{self.kind}:{self.count}"


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values."""

    values: Mapping[str, Value]
    changes: Mapping[str, Value]

    @property
    def label(self) -> str:
        """The values on one line."""
        return ", ".join(f"{path}={value}" for path, value in self.values.items())

    def parameter(self, path: str) -> str:
        """Return the path of the parameter that changes a path, which may contain ``*``."""
        return next((one for one in self.values if is_expanded(one, path)), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The parameters of a sweep and the conditions on its points."""

    parameters: tuple[Parameter, ...]
    where: tuple[Expression, ...] = ()
    sampling: Sampling | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of all parameters."""
        return [path for one in self.parameters for path in one.paths]

    def document(self) -> dict[str, Any]:
        """Describe the space as JSON, for manifests."""
        values = {
            ",".join(one.paths): [list(step) for step in one.values]
            if one.values
            else [
                f"{found.distribution}({found.low.written()},{found.high.written()})"
                for found in one.ranges
            ]
            for one in self.parameters
        }
        return {
            "parameters": values,
            "where": [condition.text for condition in self.where],
            "sample": None if self.sampling is None else self.sampling.text,
        }


def space(
    parameters: Sequence[Parameter], where: Iterable[str] = (), sampling: str | None = None
) -> Space:
    """Build the space of a sweep."""
    if not parameters:
        rule = "none given; expected values by path, such as links.up.rate=5mbit,9mbit"
        raise ArgumentError("parameters", rule=rule)
    paths = [path for one in parameters for path in one.paths]
    twice = next((path for n, path in enumerate(paths) if path in paths[:n]), None)
    if twice is not None:
        rule = "given twice; expected each parameter once"
        raise ArgumentError("parameters", rule=rule, key=twice)
    ranged = [",".join(one.paths) for one in parameters if one.ranges]
    drawn = None if sampling is None else _sampling(sampling)
    if ranged and drawn is None:
        rule = "a range requires {sampling}, such as lhs:64"
        raise ArgumentError("parameters", rule=rule, key=ranged[0])
    if drawn is not None and not ranged:
        rule = (
            "no parameter has a range; expected one such as links.up.rate=loguniform(1mbit,100mbit)"
        )
        raise ArgumentError("sampling", sampling, rule)
    checked = []
    for text in where:
        with in_argument("where", text):
            checked.append(parse(text))
    return Space(parameters=tuple(parameters), where=tuple(checked), sampling=drawn)


def _sampling(text: str) -> Sampling:
    found = _SAMPLING.fullmatch(text.strip())
    if found is None:
        rule = "expected lhs:COUNT or sobol:COUNT, such as lhs:64"
        raise ArgumentError("sampling", text, rule)
    count = int(found["count"])
    if found["kind"] == "lhs":
        return Sampling("lhs", count)
    if count & (count - 1):
        near = 2 ** math.floor(math.log2(count))
        raise ArgumentError("sampling", text, f"expected a power of two, such as sobol:{near}")
    return Sampling("sobol", count)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values of parameters that change together, by number."""

    count: int
    at: Callable[[int], Mapping[str, Value]]


@dataclass(frozen=True, slots=True, eq=False)
class Points(Sequence[Point]):
    """The points of a sweep. Each is made when it is used, so a million take little memory."""

    _axes: tuple[_Axis, ...]
    # The paths that each path of a parameter stands for, in the order of the parameters.
    _expanded: Mapping[str, Sequence[str]]
    # The combinations of values, counted with the last axis first, that meet the conditions.
    _numbers: Sequence[int]
    # The names of queues written in Python, by the texts that the core reads.
    _names: Mapping[Value, str]

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Point: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Point]: ...

    def __getitem__(self, place: int | slice) -> Point | Sequence[Point]:
        if isinstance(place, slice):
            return Points(self._axes, self._expanded, self._numbers[place], self._names)
        rest, merged = self._numbers[place], dict[str, Value]()
        for axis in reversed(self._axes):
            rest, number = divmod(rest, axis.count)
            merged |= axis.at(number)
        values = {path: merged[path] for path in self._expanded}
        changed = {path: value for name, value in values.items() for path in self._expanded[name]}
        if self._names:
            for path, value in values.items():
                if isinstance(value, str):
                    values[path] = self._names.get(value, value)
        # A queue or a control is replaced before its parameters are set, and not after.
        return Point(values, dict(sorted(changed.items(), key=lambda change: depth(change[0]))))


def points(of: Space, scenario: Scenario) -> Points:
    """List the points of a sweep."""
    document = json.loads(scenario.checked.to_json())
    axes = [_listed(one) for one in of.parameters if one.values]
    size = math.prod(axis.count for axis in axes)
    size *= 1 if of.sampling is None else of.sampling.count
    if size > MAX_POINTS:
        rule = f"{size} points; expected at most {MAX_POINTS}"
        raise ArgumentError("parameters", rule=rule)
    if of.sampling is not None:
        axes.insert(0, _drawn(of, of.sampling, document["seed"]))
    wildcards = {path: _expanded(document, path) for path in of.paths}
    concrete = [path for paths in wildcards.values() for path in paths]
    twice = next((path for n, path in enumerate(concrete) if path in concrete[:n]), None)
    if twice is not None:
        rule = "two parameters set this value; expected each value once"
        raise ArgumentError("parameters", rule=rule, key=twice)
    queues = {
        value: None
        for one in of.parameters
        for step in one.values
        for value in step
        if isinstance(value, str) and short(value) != value
    }
    names: dict[Value, str] = {text: name for name, text in named(queues).items()}
    found = Points(tuple(axes), wildcards, range(size), names)
    if not of.where:
        return found
    for condition in of.where:
        conditions.check(condition, found[0].changes, document)
    numbers = array("L")
    for number, point in enumerate(found):
        if all(conditions.holds(condition, point.changes, document) for condition in of.where):
            numbers.append(number)
    if not numbers:
        rule = f"none of {size} points meets the conditions; expected at least one"
        raise ArgumentError("where", rule=rule)
    return Points(tuple(axes), wildcards, numbers, names)


def _expanded(document: Mapping[str, Any], path: str) -> list[str]:
    try:
        return expanded(document, path)
    except _core.ScenarioError as error:
        rule = "{problem}"
        raise ArgumentError("parameters", rule=rule, key=path, problem=error.problem) from None


def _listed(parameter: Parameter) -> _Axis:
    paths, values = parameter.paths, parameter.values
    return _Axis(len(values), lambda number: dict(zip(paths, values[number], strict=True)))


def _drawn(of: Space, sampling: Sampling, seed: int) -> _Axis:
    """Draw samples: the same for the same seed, parameters and number."""
    try:
        # Imported here: few sweeps need it, and the import takes tenths of a second.
        from scipy.stats import qmc  # noqa: PLC0415
    except ModuleNotFoundError:
        message = "samples require scipy; install it with: pip install scipy"
        raise _core.UnavailableError(message) from None
    ranged = [one for one in of.parameters if one.ranges]
    named = [pair for one in ranged for pair in zip(one.paths, one.ranges, strict=True)]
    kinds = {"lhs": qmc.LatinHypercube, "sobol": qmc.Sobol}
    shares = kinds[sampling.kind](len(named), seed=seed).random(sampling.count)

    def at(number: int) -> dict[str, Value]:
        return {
            path: of_path.at(float(share))
            for (path, of_path), share in zip(named, shares[number], strict=True)
        }

    return _Axis(sampling.count, at)
