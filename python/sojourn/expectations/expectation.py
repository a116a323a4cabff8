"""Expectations as users write them, and the names that they may use."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.document import needs
from sojourn.expressions import Expression, Reference, parse
from sojourn.result.catalogue import By, of_scope
from sojourn.scenario import Scenario

# Statistics over runs; without one, the mean is meant.
QUANTILES = {
    "median": 0.5,
    **{f"p{percent}": percent / 100 for percent in (1, 5, 10, 25, 75, 90, 95, 99)},
}
FUNCTIONS = frozenset({"mean", "abs", *QUANTILES})
_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_KEYS = ("that", "name", "arm")
CAPACITY = "capacity"
EXAMPLE = "ping_ms_p99 < 40"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A comparison that a result should meet."""

    expression: Expression
    name: str | None = None
    arms: tuple[str, ...] | None = None
    place: str = "expectation"

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


def expectation(
    text: str,
    *,
    name: str | None = None,
    arms: Sequence[str] | None = None,
    place: str = "expect",
) -> Expectation:
    """Read an expectation.

    Examples
    --------
    >>> expectation("median(ping_ms_p99) < 40").metrics
    [Reference(name='ping_ms_p99', arm=None)]
    """
    try:
        found = parse(text, functions=FUNCTIONS, units=False, example=EXAMPLE)
    except _core.ScenarioError as error:
        message = f"{place} {error}"
        raise _core.ScenarioError(message) from None
    tree = found.comparison
    if tree is None or type(tree.ops[0]) not in _SIGNS or _compares(tree):
        message = f'{place} "{text}": expected one comparison by <, <=, > or >=, such as {EXAMPLE}'
        raise _core.ScenarioError(message)
    checked = Expectation(
        expression=found, name=name, arms=None if arms is None else tuple(arms), place=place
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


def expectations(tables: object, file: str = "") -> list[Expectation]:
    """Read the tables ``[[expect]]`` of a scenario file, which errors name.

    Examples
    --------
    >>> expectations([{"that": "ping_ms_p99 < 40", "arm": "codel"}])[0].arms
    ('codel',)
    """
    place = f"{file}: expect" if file else "expect"
    needs(place, tables, list, "tables [[expect]]")
    return [_of_table(f"{place}[{n}]", table) for n, table in enumerate(_list(tables))]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _of_table(place: str, table: object) -> Expectation:
    needs(place, table, Mapping, "a table [[expect]]")
    keys: dict[str, Any] = dict(table) if isinstance(table, Mapping) else {}
    for key in keys:
        if key not in _KEYS:
            message = f"{place}.{key}: unknown key; expected one of {', '.join(_KEYS)}"
            raise _core.ScenarioError(message)
    if "that" not in keys:
        message = f'{place}.that: missing; expected a comparison such as "{EXAMPLE}"'
        raise _core.ScenarioError(message)
    needs(f"{place}.that", keys["that"], str, "a comparison")
    if "name" in keys:
        needs(f"{place}.name", keys["name"], str, "a text")
    arms = keys.get("arm")
    if arms is not None:
        arms = [arms] if isinstance(arms, str) else arms
        needs(f"{place}.arm", arms, list, "the name of an arm, or a list of names")
        if not arms:
            message = f"{place}.arm: empty; expected the name of an arm, or a list of names"
            raise _core.ScenarioError(message)
        for arm in arms:
            needs(f"{place}.arm", arm, str, "names of arms")
    return expectation(keys["that"], name=keys.get("name"), arms=arms, place=f"{place}.that")


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
    for key in ("rate", "changes", "trace", "medium"):
        if f"links.{link}.{key}" in changes:
            keys[key] = changes[f"links.{link}.{key}"]
    if "rate" not in keys or any(keys.get(key) for key in ("changes", "trace", "medium")):
        return None
    return _core.parse_rate_bits_per_s(keys["rate"]) / 1e6
