"""Find and change values of a scenario by their path, and expand ``*`` in paths."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from sojourn import _core
from sojourn.document import plain
from sojourn.errors import invalid
from sojourn.scenario import Scenario

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")
Step = str | int


def expanded(document: Mapping[str, Any], path: str) -> list[str]:
    """Replace each ``*`` of a path by the links, or by the traffic blocks whose type has the key.

    A link that is ``"unlimited"`` has no keys. Whether the scenario sets the key of a link or of
    traffic, or leaves it at its default, makes no difference. ``*`` in other tables stands for the
    entries that set the key.


    Examples
    --------
    >>> links = {"up": {"rate": "1mbit"}, "down": {"rate": "9mbit"}, "lan": "unlimited"}
    >>> expanded({"links": links}, "links.*.rate")
    ['links.up.rate', 'links.down.rate']
    >>> expanded({"links": links}, "links.*.loss")
    ['links.up.loss', 'links.down.loss']
    """
    if "*" not in path:
        return [path]
    steps = _steps(path)
    found = [_written(matched) for matched in _matches(document, steps, f"{steps[0]}")]
    if not found:
        raise invalid(path, "nothing in the scenario matches; expected a path such as links.*.rate")
    return found


def is_expanded(pattern: str, path: str) -> bool:
    """Whether a path is one that a path with ``*`` stands for, or the same.

    Examples
    --------
    >>> is_expanded("traffic.*.cc", "traffic[0].cc"), is_expanded("links.*.rate", "links.up.qdisc")
    (True, False)
    """
    one, other = _steps(pattern), _steps(path)
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(step in {"*", own} for step, own in pairs)


def find(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path without ``*``, also of a parameter of a queue or a control.

    Examples
    --------
    >>> find({"links": {"up": {"qdisc": "codel limit 1000 target 5ms"}}}, "links.up.qdisc.target")
    '5ms'
    >>> find({"traffic": [{"cc": "cubic beta 1/2"}]}, "traffic[0].cc.fast_convergence")
    True
    """
    node: Any = document
    steps = _steps(path)
    for number, step in enumerate(steps):
        if isinstance(node, str):
            whole, rest = _written(steps[:number]), steps[number:]
            return _parameter(whole, node, f"{step}") if len(rest) == 1 else None
        node = _child(node, step)
    return node


def depth(path: str) -> int:
    """Return the number of steps of a path: the value at a longer one may be a part of a value.

    Examples
    --------
    >>> depth("traffic[0].cc") == depth("traffic.bulk.cc") < depth("traffic[0].cc.beta")
    True
    """
    return len(_steps(path))


def _steps(path: str) -> list[Step]:
    """Split a path into keys, indices and ``*``."""
    found = ((key, index) for key, index in _STEP.findall(path))
    return [_step(key or index) for key, index in found]


def _step(text: str) -> Step:
    return int(text) if text.isdecimal() else text


def _written(steps: list[Step]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _matches(node: Any, steps: list[Step], table: str) -> Iterator[list[Step]]:
    if not steps:
        yield []
        return
    step, rest = steps[0], steps[1:]
    if step != "*":
        child = _child(node, step)
        # What does not exist yet stays as it is written, and the core refuses it.
        for below in _matches(child, rest, table) if child is not None else [rest]:
            yield [step, *below]
        return
    children: list[tuple[Step, Any]] = []
    if isinstance(node, Mapping):
        children = [(key, child) for key, child in node.items() if isinstance(child, Mapping)]
    elif isinstance(node, list):
        children = list(enumerate(node))
    for key, child in children:
        if not rest or rest[0] == "*" or _has(child, f"{rest[0]}", table):
            for below in _matches(child, rest, table):
                yield [key, *below]


def _has(child: Any, key: str, table: str) -> bool:
    """Whether a link, a traffic block or another entry of a table may have a key."""
    kind = {"links": "link", "traffic": _child(child, "type")}.get(table)
    accepted = _core.scenario_keys().get(f"{kind}", ())
    return key in accepted or _child(child, key) is not None


def _child(node: Any, step: Step) -> Any:
    if isinstance(node, Mapping):
        return node.get(f"{step}")
    if not isinstance(node, list):
        return None
    if isinstance(step, int):
        return node[step] if step < len(node) else None
    named = (item for item in node if isinstance(item, Mapping) and item.get("name") == step)
    return next(named, None)


def _parameter(path: str, text: str, key: str) -> str | bool | None:
    """Return a parameter of the queue or control `text` at a path; a flag as a bool."""
    value = dict(_core.parameters_at(path, text)).get(key)
    flags = {"on": True, "off": False}
    return flags.get(value, value) if value is not None else None


Value = str | float | bool | list[Any] | dict[str, Any]


def assignment(text: str) -> tuple[str, Value]:
    """Read ``path=value``.

    Examples
    --------
    >>> assignment("links.up.rate=5mbit")
    ('links.up.rate', '5mbit')
    >>> assignment("replications=3")
    ('replications', 3)
    >>> assignment('links.up.medium={type="wifi"}')
    ('links.up.medium', {'type': 'wifi'})
    """
    path, sign, value = text.partition("=")
    if not sign or not path.strip():
        shown = text if text.strip() else f'"{text}"'
        message = f"-s {shown}: expected path=value, such as links.up.rate=5mbit"
        raise _core.ScenarioError(message)
    return path.strip(), value_of(f"-s {text}", value.strip())


def value_of(place: str, text: str) -> Value:
    """Read the value of an assignment.

    Examples
    --------
    >>> value_of("-s", "3"), value_of("-s", "5mbit")
    (3, '5mbit')
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        if text.startswith("{"):
            expected = 'expected one such as {type = "wifi"}'
            raise invalid(place, f"invalid TOML table; {expected}: {error}") from None
        return text
    return value if isinstance(value, str | int | float | bool | list | dict) else text


def overridden(scenario: Scenario, changes: Mapping[str, Value]) -> Scenario:
    """Return a scenario with some values changed."""
    as_json = [(path, json.dumps(plain(path, value))) for path, value in changes.items()]
    return Scenario.from_json(scenario.checked.changed(as_json).to_json())
