"""Changing single values of a scenario by their path, as ``-s`` and studies do."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from sojourn import _core
from sojourn.document import plain
from sojourn.scenario import Scenario

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
        message = f"-s {text}: expected path=value, such as links.up.rate=5mbit"
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
            message = f"{place}: invalid TOML table; {expected}: {error}"
            raise _core.ScenarioError(message) from None
        return text
    return value if isinstance(value, str | int | float | bool | list | dict) else text


def overridden(scenario: Scenario, changes: Mapping[str, Value]) -> Scenario:
    """Return a scenario with some values changed."""
    as_json = [(path, json.dumps(plain(path, value))) for path, value in changes.items()]
    return Scenario.from_json(scenario.checked.changed(as_json).to_json())
