"""The points of a sweep: combinations of the values of its parameters."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn import _core
from sojourn.expressions import Expression, parse
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, depth, expanded
from sojourn.sweeps import conditions
from sojourn.sweeps.parameters import Parameter

MAX_POINTS = 1_000_000
_SAMPLE = re.compile(r"(?P<kind>lhs|sobol):(?P<count>[1-9]\d{0,6})")


@dataclass(frozen=True, slots=True)
class Sample:
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
    sample: Sample | None = None

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
            "sample": None if self.sample is None else self.sample.text,
        }


def space(
    parameters: Sequence[Parameter], where: Iterable[str] = (), sample: str | None = None
) -> Space:
    """Build the space of a sweep."""
    if not parameters:
        message = (
            "sweep: no parameters; expected -p PATH=VALUES, such as -p links.up.rate=5mbit,9mbit, "
            "or a table [sweep.parameters] in the scenario file"
        )
        raise _core.ScenarioError(message)
    paths = [path for one in parameters for path in one.paths]
    twice = next((path for n, path in enumerate(paths) if path in paths[:n]), None)
    if twice is not None:
        message = f"{twice}: given twice; expected each parameter once"
        raise _core.ScenarioError(message)
    ranged = [",".join(one.paths) for one in parameters if one.ranges]
    drawn = None if sample is None else _sample(sample)
    if ranged and drawn is None:
        message = f"{ranged[0]}: a range requires --sample, such as --sample lhs:64"
        raise _core.ScenarioError(message)
    if drawn is not None and not ranged:
        message = (
            f"--sample {sample}: no parameter has a range; expected one such as "
            "-p 'links.up.rate=loguniform(1mbit,100mbit)'"
        )
        raise _core.ScenarioError(message)
    checked = []
    for text in where:
        try:
            checked.append(parse(text))
        except _core.ScenarioError as error:
            message = f"--where {error}"
            raise _core.ScenarioError(message) from None
    return Space(parameters=tuple(parameters), where=tuple(checked), sample=drawn)


def _sample(text: str) -> Sample:
    found = _SAMPLE.fullmatch(text.strip())
    if found is None:
        message = f"--sample {text}: expected lhs:COUNT or sobol:COUNT, such as lhs:64"
        raise _core.ScenarioError(message)
    count = int(found["count"])
    if found["kind"] == "lhs":
        return Sample("lhs", count)
    if count & (count - 1):
        near = 2 ** math.floor(math.log2(count))
        message = f"--sample {text}: expected a power of two, such as sobol:{near}"
        raise _core.ScenarioError(message)
    return Sample("sobol", count)


def points(of: Space, scenario: Scenario) -> list[Point]:
    """List the points of a sweep."""
    document = json.loads(scenario.checked.to_json())
    ranged = [one for one in of.parameters if one.ranges]
    size = math.prod(len(one.values) for one in of.parameters if one.values)
    size *= 1 if of.sample is None else of.sample.count
    if size > MAX_POINTS:
        message = f"sweep: {size} points; expected at most {MAX_POINTS}"
        raise _core.ScenarioError(message)
    steps = [_steps(one) for one in of.parameters if one.values]
    if of.sample is not None:
        steps.insert(0, list(_drawn(ranged, of.sample, document["seed"])))
    wildcards = {path: expanded(document, path) for path in of.paths}
    concrete = [path for paths in wildcards.values() for path in paths]
    twice = next((path for n, path in enumerate(concrete) if path in concrete[:n]), None)
    if twice is not None:
        message = f"{twice}: two parameters set this value; expected each value once"
        raise _core.ScenarioError(message)
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
        message = f"sweep: none of {size} points meets --where; expected at least one"
        raise _core.ScenarioError(message)
    return found


def _steps(parameter: Parameter) -> list[dict[str, Value]]:
    return [dict(zip(parameter.paths, step, strict=True)) for step in parameter.values]


def _drawn(ranged: Sequence[Parameter], sample: Sample, seed: int) -> Iterator[dict[str, Value]]:
    """Draw samples: the same for the same seed, parameters and number."""
    try:
        # Imported here: few sweeps need it, and the import takes tenths of a second.
        from scipy.stats import qmc  # noqa: PLC0415
    except ModuleNotFoundError:
        message = "--sample requires scipy; install it with: pip install 'sojourn[sweep]'"
        raise _core.UnavailableError(message) from None
    named = [pair for one in ranged for pair in zip(one.paths, one.ranges, strict=True)]
    kinds = {"lhs": qmc.LatinHypercube, "sobol": qmc.Sobol}
    shares = kinds[sample.kind](len(named), seed=seed).random(sample.count)
    for row in shares:
        yield {path: of.at(float(share)) for (path, of), share in zip(named, row, strict=True)}
