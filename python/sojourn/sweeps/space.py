"""The points of a sweep: combinations of the values of its parameters."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.expressions import Expression, parse
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, depth, expanded
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


def points(of: Space, scenario: Scenario) -> list[Point]:
    """List the points of a sweep."""
    document = json.loads(scenario.checked.to_json())
    ranged = [one for one in of.parameters if one.ranges]
    size = math.prod(len(one.values) for one in of.parameters if one.values)
    size *= 1 if of.sampling is None else of.sampling.count
    if size > MAX_POINTS:
        rule = f"{size} points; expected at most {MAX_POINTS}"
        raise ArgumentError("parameters", rule=rule)
    steps = [_steps(one) for one in of.parameters if one.values]
    if of.sampling is not None:
        steps.insert(0, list(_drawn(ranged, of.sampling, document["seed"])))
    wildcards = {path: expanded(document, path) for path in of.paths}
    concrete = [path for paths in wildcards.values() for path in paths]
    twice = next((path for n, path in enumerate(concrete) if path in concrete[:n]), None)
    if twice is not None:
        rule = "two parameters set this value; expected each value once"
        raise ArgumentError("parameters", rule=rule, key=twice)
    order = of.paths
    found = []
    for number, combination in enumerate(itertools.product(*steps)):
        merged = {path: value for part in combination for path, value in part.items()}
        values = {path: merged[path] for path in order}
        changed = {path: value for name, value in values.items() for path in wildcards[name]}
        # A queue or a control is replaced before its parameters are set, and not after.
        changes = dict(sorted(changed.items(), key=lambda change: depth(change[0])))
        if number == 0:
            for condition in of.where:
                conditions.check(condition, changes, document)
        if all(conditions.holds(condition, changes, document) for condition in of.where):
            found.append(Point(values, changes))
    if not found:
        rule = f"none of {size} points meets the conditions; expected at least one"
        raise ArgumentError("where", rule=rule)
    return found


def _steps(parameter: Parameter) -> list[dict[str, Value]]:
    return [dict(zip(parameter.paths, step, strict=True)) for step in parameter.values]


def _drawn(
    ranged: Sequence[Parameter], sampling: Sampling, seed: int
) -> Iterator[dict[str, Value]]:
    """Draw samples: the same for the same seed, parameters and number."""
    try:
        # Imported here: few sweeps need it, and the import takes tenths of a second.
        from scipy.stats import qmc  # noqa: PLC0415
    except ModuleNotFoundError:
        message = "samples require scipy; install it with: pip install 'sojourn[sweep]'"
        raise _core.UnavailableError(message) from None
    named = [pair for one in ranged for pair in zip(one.paths, one.ranges, strict=True)]
    kinds = {"lhs": qmc.LatinHypercube, "sobol": qmc.Sobol}
    shares = kinds[sampling.kind](len(named), seed=seed).random(sampling.count)
    for row in shares:
        yield {path: of.at(float(share)) for (path, of), share in zip(named, row, strict=True)}
