"""Changing single values of a scenario by their path, as ``-s`` and studies do."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from sojourn import _core
from sojourn.scenario import Scenario

Value = str | float | bool | list[Any] | dict[str, Any]


def assignment(text: str) -> tuple[str, Value]:
    """Read ``path=value``.

    Parameters
    ----------
    text
        A path, an equals sign, a value: a number, ``true``, ``false``, a list in brackets, a table
        in braces as TOML writes them, or else text.

    Returns
    -------
    tuple of str and value
        The path and the value.

    Raises
    ------
    ScenarioError
        There is no path or no equals sign, or a table is not one of TOML.

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
        message = f"-s {text}: write path=value, such as links.up.rate=5mbit"
        raise _core.ScenarioError(message)
    try:
        return path.strip(), _value(value.strip())
    except tomllib.TOMLDecodeError as error:
        message = f'-s {text}: not a table of TOML such as {{type = "wifi"}}: {error}'
        raise _core.ScenarioError(message) from None


def _value(text: str) -> Value:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if text.startswith("{"):
            raise
        return text
    return value if isinstance(value, str | int | float | bool | list | dict) else text


def overridden(scenario: Scenario, changes: Mapping[str, Value]) -> Scenario:
    """Return a scenario with some values changed.

    Parameters
    ----------
    scenario
        The scenario.
    changes
        Values by their path: ``duration``, ``links.up.qdisc``, ``traffic[0].count``, by the
        name of the group ``traffic.bulk.count``, of all groups ``traffic[*].cc``.

    Returns
    -------
    Scenario
        The changed scenario.

    Raises
    ------
    ScenarioError
        A path names nothing, or a value is not valid there.
    """
    document = json.loads(scenario.checked.to_json())
    for path, value in changes.items():
        _put(document, path, value)
    return Scenario.from_json(json.dumps(document))


def refuse_hidden(scenario: Scenario, changes: Mapping[str, Value]) -> None:
    """Refuse a change that no run would see, since every arm sets the value itself.

    Parameters
    ----------
    scenario
        The scenario, not yet changed.
    changes
        Values by their path.

    Raises
    ------
    ScenarioError
        Every arm sets one of the values, or what holds it.
    """
    of_arms = [{_plain(path) for path in arm.set} for arm in scenario.arms]
    for path in changes:
        if of_arms and all(any(_within(path, whole) for whole in paths) for paths in of_arms):
            message = (
                f"-s {path}: every arm sets it itself, so that nothing would change; edit arms"
            )
            raise _core.ScenarioError(message)


def _plain(path: str) -> str:
    return path.replace("[", ".").replace("]", "")


def _within(path: str, whole: str) -> bool:
    steps, above = _plain(path).split("."), whole.split(".")
    return len(above) <= len(steps) and all(
        whole_step in {step, "*"} for step, whole_step in zip(steps, above, strict=False)
    )


def _put(document: dict[str, Any], path: str, value: Value) -> None:
    *parents, key = _plain(path).split(".")
    places: list[Any] = [document]
    for depth, step in enumerate(parents):
        above = ".".join(parents[: depth + 1])
        places = [below for place in places for below in _step(place, step, above)]
    for place in places:
        if isinstance(place, list):
            message = f"{path}: set a key of one item, such as {parents[0]}[0].name"
            raise _core.ScenarioError(message)
        if not isinstance(place, dict):
            message = f"{path}: {'.'.join(parents)} is one value: set it as a whole"
            raise _core.ScenarioError(message)
        place[key] = value


def _step(place: Any, step: str, path: str) -> list[Any]:
    """Go one step down: by key, by index, by the name of an entry of a list, or to all of them."""
    if isinstance(place, list) and step == "*":
        return place
    if isinstance(place, dict):
        choices = place
    elif isinstance(place, list):
        choices = {str(index): entry for index, entry in enumerate(place)}
        choices |= {entry["name"]: entry for entry in place if entry.get("name")}
    else:
        choices = {}
    if step not in choices:
        message = f"{path}: there is no {step!r}; there are: {', '.join(choices)}"
        if isinstance(place, dict):
            message += f"; or give it whole, as a table: {path}={{key = value}}"
        raise _core.ScenarioError(message)
    return [choices[step]]
