"""Expectations as users write them, and the names that they may use."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import Argument, Plan, build
from sojourn.expressions import Expression, Reference, parse
from sojourn.result.catalogue import By, of_scope
from sojourn.result.naming import unit
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables

# Statistics over runs; without one, the mean is meant.
QUANTILES = {
    "median": 0.5,
    **{f"p{percent}": percent / 100 for percent in (1, 5, 10, 25, 75, 90, 95, 99)},
}
FUNCTIONS = frozenset({"mean", "abs", *QUANTILES})
_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
CAPACITY = "capacity"
EXAMPLE = "ping_ms_p99 < 40"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A comparison that a result should meet."""

    expression: Expression
    name: str | None = None
    arms: tuple[str, ...] | None = None
    place: str = "expectation"
    # The file with its table, if it has one.
    source: Tables | None = field(default=None, compare=False)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Let errors name the file and the line of the expectation."""
        with _located(self.place, self.source):
            yield

    @property
    def text(self) -> str:
        """The comparison as it was written."""
        return self.expression.text

    @property
    def title(self) -> str:
        """Its name, or else its text."""
        return self.name or self.text

    @property
    def sides(self) -> tuple[ast.expr, str, ast.expr]:
        """The left side, the sign and the right side."""
        tree = self.expression.comparison
        if tree is None:  # Not after `expectation`.
            message = f'"{self.text}": expected a comparison'
            raise _core.ScenarioError(message)
        return tree.left, _SIGNS[type(tree.ops[0])], tree.comparators[0]

    @property
    def metrics(self) -> list[Reference]:
        """The metrics in it."""
        return [one for one in self.expression.references if not is_capacity(one)]

    @property
    def named_arms(self) -> list[str]:
        """The arms that it names in brackets."""
        found = (one.arm for one in self.expression.references)
        return list(dict.fromkeys(arm for arm in found if arm is not None))


def is_capacity(reference: Reference) -> bool:
    """Whether a name is the capacity of a link."""
    return reference.name == CAPACITY or reference.name.startswith(f"{CAPACITY}_")


def _unit(reference: Reference) -> str:
    return "Mbit/s" if is_capacity(reference) else unit(reference.name)


def expectation(
    text: str,
    *,
    name: str | None = None,
    arms: Sequence[str] | None = None,
    place: str = "expect",
    source: Tables | None = None,
) -> Expectation:
    """Read an expectation.

    Examples
    --------
    >>> expectation("median(ping_ms_p99) < 40").metrics
    [Reference(name='ping_ms_p99', arm=None)]
    """
    try:
        found = parse(text, functions=FUNCTIONS, unit_of=_unit, example=EXAMPLE)
    except _core.ScenarioError as error:
        message = f"{place} {error}"
        raise _core.ScenarioError(message) from None
    tree = found.comparison
    if tree is None or type(tree.ops[0]) not in _SIGNS or _compares(tree):
        message = f'{place} "{text}": expected one comparison by <, <=, > or >=, such as {EXAMPLE}'
        raise _core.ScenarioError(message)
    checked = Expectation(
        expression=found,
        name=name,
        arms=None if arms is None else tuple(arms),
        place=place,
        source=source,
    )
    if not checked.metrics:
        message = f'{place} "{text}": no metric; expected one such as ping_ms_p99'
        raise _core.ScenarioError(message)
    return checked


def _compares(tree: ast.Compare) -> bool:
    """Whether a side of a comparison contains another one, or texts."""
    within = [node for side in (tree.left, *tree.comparators) for node in ast.walk(side)]
    refused = ast.Compare | ast.BoolOp | ast.Not
    return any(isinstance(node, refused) for node in within) or any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_arm(node, within)
        for node in within
    )


def _is_arm(constant: ast.Constant, nodes: Sequence[ast.AST]) -> bool:
    return any(isinstance(node, ast.Subscript) and node.slice is constant for node in nodes)


@dataclass(frozen=True, kw_only=True)
class ExpectPlan(Plan):
    """A table ``[[expect]]`` of a scenario file."""

    that: Annotated[str, Argument(help="A comparison, such as ping_ms_p99 < 40.", in_files=True)]
    name: Annotated[str | None, Argument(help="Its name in reports.", in_files=True)] = None
    arm: Annotated[
        str | Sequence[str] | None,
        Argument(
            help="Arms that it is about; by default all.",
            least_items=1,
            example="codel",
            in_files=True,
        ),
    ] = None


def expectations(tables: Sequence[Any], source: Tables | None = None) -> list[Expectation]:
    """Read the tables ``[[expect]]`` of a scenario file, which errors name.

    Examples
    --------
    >>> expectations([{"that": "ping_ms_p99 < 40", "arm": "codel"}])[0].arms
    ('codel',)
    """
    return [_of_table(f"expect[{n}]", table, source) for n, table in enumerate(tables)]


def _of_table(name: str, table: Mapping[str, object], source: Tables | None) -> Expectation:
    given = build(ExpectPlan, name, table, source)
    place = f"{name}.that"
    with _located(place, source):
        return expectation(given.that, name=given.name, arms=given.arm, place=place, source=source)


@contextmanager
def _located(place: str, source: Tables | None) -> Iterator[None]:
    """Let errors name the file and the line of a key."""
    try:
        yield
    except _core.ScenarioError as error:
        if source is None:
            raise
        table, _, key = place.rpartition(".")
        raise _core.ScenarioError(source.located(f"{error}", table, key)) from None


def groups(scenario: Scenario) -> dict[str, list[str]]:
    """List the groups of traffic of a scenario that have metrics, in any of its arms."""
    document = json.loads(scenario.checked.to_json())
    blocks = list(document["traffic"])
    for arm in document.get("arms", []):
        for path, value in arm["set"].items():
            blocks += _blocks(path, value)
    found: dict[str, list[str]] = {}
    for block in blocks:
        # The type of a block that an arm renames is not looked up: all metrics are accepted.
        scopes: tuple[By | None, ...] = ("group", "application")
        if "type" in block:
            scopes = (_core.traffic_types()[block["type"]]["measured"],)
        columns = [metric.column for by in scopes if by is not None for metric in of_scope(by)]
        if columns and "name" in block:
            known = found.setdefault(block["name"], [])
            known += [column for column in columns if column not in known]
    return found


def _blocks(path: str, value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the traffic blocks that a change of an arm adds or renames."""
    if not path.startswith("traffic"):
        return
    if isinstance(value, list):
        yield from (block for block in value if isinstance(block, Mapping))
    elif isinstance(value, Mapping):
        yield value
    elif path.endswith(".name"):
        yield {"name": value}


def capacities(
    scenario: Scenario, changes: Mapping[str, Any] | None = None
) -> dict[str, dict[str, float | None]]:
    """Return the rate of each link of each arm."""
    document = json.loads(scenario.checked.to_json())
    arms = document.get("arms") or [{"name": scenario.checked.arms[0], "set": {}}]
    return {
        arm["name"]: {
            link: _rate(link, table, {**arm["set"], **(changes or {})})
            for link, table in document["links"].items()
        }
        for arm in arms
    }


def _rate(link: str, table: Any, changes: Mapping[str, Any]) -> float | None:
    whole = changes.get(f"links.{link}", {})
    if not isinstance(table, Mapping) or not isinstance(whole, Mapping):
        return None  # "unlimited"
    # A change of a table keeps the keys that it does not name.
    keys = {**table, **whole}
    for key in ("rate", "changes", "trace", "rate_trace", "medium"):
        if f"links.{link}.{key}" in changes:
            keys[key] = changes[f"links.{link}.{key}"]
    if "rate" not in keys or any(
        keys.get(key) for key in ("changes", "trace", "rate_trace", "medium")
    ):
        return None
    return _core.parse_rate_bits_per_s(keys["rate"]) / 1e6
