"""The parameters of a search as dimensions: a share from 0 to 1 selects a value of each."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.execute.points import grouped
from sojourn.result.naming import queued_links
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, expanded
from sojourn.scenario.quantities import Quantity, quantity
from sojourn.sweeps.parameters import Parameter, Range
from sojourn.sweeps.space import Point, Space, points, space

Values = Mapping[str, Value]
DIGITS = 3
# Points that are tried to find a valid one.
_TRIED = 64


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a search."""

    paths: tuple[str, ...]
    steps: tuple[tuple[Value, ...], ...] = ()
    range: Range | None = None

    @property
    def name(self) -> str:
        """The paths on one line."""
        return ",".join(self.paths)

    def labels(self) -> list[str]:
        """Return a unique name for each step."""
        return [json.dumps(list(step)) for step in self.steps]

    def at(self, share: float) -> dict[str, Value]:
        """Return the values at a position from 0 to 1 on the dimension.

        Examples
        --------
        >>> Dimension(("rtt",), (("10ms",), ("20ms",))).at(0.7)
        {'rtt': '20ms'}
        """
        if self.range is not None:
            return {self.paths[0]: _rounded(self.range, share)}
        return self.step(min(int(share * len(self.steps)), len(self.steps) - 1))

    def step(self, number: int) -> dict[str, Value]:
        """Return the values at a step."""
        return dict(zip(self.paths, self.steps[number], strict=True))


def _rounded(of: Range, share: float) -> Value:
    """Return a value of a range with few digits: a search needs no more, and `tc` rejects more."""
    exact = of.at(share)
    found = quantity(exact) if isinstance(exact, str | int | float) else None
    if found is None or of.distribution == "integers":
        return exact
    number = float(f"{found.number:.{DIGITS}g}")
    within = of.low.number <= number <= of.high.number
    return Quantity(number, found.kind).written() if within else exact


def dimensions(parameters: Sequence[Parameter], *, varying: bool = True) -> list[Dimension]:
    """List the dimensions of the parameters; `varying`: each must have at least two values.

    Examples
    --------
    >>> from sojourn.sweeps.parameters import parameters
    >>> [one.name for one in dimensions(parameters({"rtt": "uniform(5ms,50ms)"}))]
    ['rtt']
    """
    if not parameters:
        rule = (
            "none given; expected ranges or values by path, such as "
            "links.down.qdisc.target=loguniform(1ms,50ms)"
        )
        raise ArgumentError("parameters", rule=rule)
    # For its checks: a search draws its samples itself.
    space(parameters, sampling="lhs:1" if any(one.ranges for one in parameters) else None)
    found = []
    for one in parameters:
        if len(one.values) == 1 and varying:
            raise ArgumentError(
                "parameters",
                rule="only one value, {only}; expected a range such as uniform(low,high), at least "
                "two values, or a change of the scenario",
                key=",".join(one.paths),
                only="/".join(f"{value}" for value in one.values[0]),
            )
        if one.values:
            found.append(Dimension(one.paths, steps=one.values))
        else:
            pairs = zip(one.paths, one.ranges, strict=True)
            found += [Dimension((path,), range=of_path) for path, of_path in pairs]
    return found


def document(found: Sequence[Dimension]) -> dict[str, list[list[Value]] | str]:
    """Describe dimensions as JSON, for manifests."""
    return {
        one.name: [list(step) for step in one.steps]
        if one.range is None
        else f"{one.range.distribution}({one.range.low.written()},{one.range.high.written()})"
        for one in found
    }


def label(values: Values) -> str:
    """Write values on one line."""
    return ", ".join(f"{path}={value}" for path, value in values.items())


def check_paths(scenario: Scenario, of: Sequence[Dimension]) -> None:
    """Check that the paths of a search exist, before its first run.

    A path that does not exist is wrong at all points, so points from the whole space are tried
    until one is valid or two have different faults.
    """
    drawn = random.Random(1)  # noqa: S311 - for samples
    fault: _core.ScenarioError | None = None
    for number in range(_TRIED):
        values: dict[str, Value] = {}
        for one in of:
            # Both ends first.
            values |= one.at(float(number) if number <= 1 else drawn.random())
        try:
            list(grouped(scenario, listed(scenario, [values]), 1))
        except _core.ScenarioError as error:
            if fault is not None and _place(error) != _place(fault):
                return
            fault = fault or error
        else:
            return
    if fault is not None:
        raise fault


def _place(error: _core.ScenarioError) -> str | None:
    """Return the parameter, or else the part of the scenario, that an error is about."""
    return error.key if isinstance(error, ArgumentError) else error.path


def measured_links(scenario: Scenario, of: Sequence[Dimension]) -> list[str]:
    """List the links of which runs of a search have metrics: those with a queue at some point."""
    base = json.loads(scenario.checked.to_json())
    changes = [
        {
            path: value
            for name, value in zip(one.paths, step, strict=True)
            for path in expanded(base, name)
        }
        for one in of
        for step in one.steps
    ]
    return queued_links(scenario.checked, [{}, *changes])


def listed(scenario: Scenario, changes: Sequence[Mapping[str, Value]]) -> Sequence[Point]:
    """Return the points at which the parameters have the given values."""
    paths = tuple(changes[0]) if changes else ()
    if not paths:
        return [Point({}, {}) for _ in changes]
    steps = tuple(tuple(values[path] for path in paths) for values in changes)
    return points(Space(parameters=(Parameter(paths, values=steps),)), scenario)
