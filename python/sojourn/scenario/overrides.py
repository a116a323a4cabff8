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
        A path, an equals sign and a value: a number, ``true``, ``false``, a list or a table in
        TOML syntax, or else text.

    Returns
    -------
    tuple of str and value
        The path and the value.

    Raises
    ------
    ScenarioError
        The path or the equals sign is missing, or a table is not valid TOML.

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
    try:
        return path.strip(), _value(value.strip())
    except tomllib.TOMLDecodeError as error:
        message = f'-s {text}: invalid TOML table; expected one such as {{type = "wifi"}}: {error}'
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
        Values by their path: ``duration``, ``links.up.qdisc``, one parameter of a queue
        ``links.up.qdisc.target``, ``traffic[0].count``, by the name of the group
        ``traffic.bulk.count``, or in all groups ``traffic[*].cc``.

    Returns
    -------
    Scenario
        The changed scenario.

    Raises
    ------
    ScenarioError
        A path does not exist, or a value is not valid there.
    """
    document = json.loads(scenario.checked.to_json())
    for path, value in changes.items():
        _put(document, path, value)
    return Scenario.from_json(json.dumps(document))


def refuse_hidden(scenario: Scenario, changes: Mapping[str, Value]) -> None:
    """Refuse a change without effect: every arm sets the value itself.

    Parameters
    ----------
    scenario
        The scenario, not yet changed.
    changes
        Values by their path.

    Raises
    ------
    ScenarioError
        Every arm sets one of the values, or a table that contains it.
    """
    of_arms = [{_plain(path) for path in arm.set} for arm in scenario.arms]
    for path in changes:
        if of_arms and all(any(_within(path, whole) for whole in paths) for paths in of_arms):
            message = (
                f"-s {path}: no effect, since every arm sets this value; change it in the arms"
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
    if parents[-1:] == ["qdisc"]:
        for link in _holders(document, parents[:-1]):
            link["qdisc"] = _changed_queue(path, link["qdisc"], key, value)
        return
    for holder in _holders(document, parents):
        if isinstance(holder, list):
            message = f"{path}: cannot replace an item as a whole; set one of its keys, such as "
            raise _core.ScenarioError(message + f"{parents[0]}[0].name")
        if not isinstance(holder, dict):
            above = ".".join(parents)
            message = f"{path}: {above} is a single value without keys; set {above} itself"
            raise _core.ScenarioError(message)
        holder[key] = value


def _holders(document: dict[str, Any], parents: list[str]) -> list[Any]:
    """List the tables, lists or values that a path leads to."""
    holders: list[Any] = [document]
    for depth, step in enumerate(parents):
        above = ".".join(parents[: depth + 1])
        holders = [below for holder in holders for below in _step(holder, step, above)]
    return holders


def _changed_queue(path: str, queue: str, key: str, value: Value) -> str:
    """Set one parameter of a queue in canonical form."""
    items = value if isinstance(value, list) else [value]
    texts = [str(item).lower() if isinstance(item, bool) else f"{item}" for item in items]
    try:
        return _core.change_qdisc(queue, key, " ".join(texts))
    except _core.ScenarioError as error:
        message = f"{path}: {error}"
        raise _core.ScenarioError(message) from None


def _step(holder: Any, step: str, path: str) -> list[Any]:
    """Go one step down: by key, by index, by the name of a list item, or ``*`` to all items."""
    if isinstance(holder, list) and step == "*":
        return holder
    if isinstance(holder, dict):
        choices = holder
    elif isinstance(holder, list):
        choices = {str(index): entry for index, entry in enumerate(holder)}
        choices |= {entry["name"]: entry for entry in holder if entry.get("name")}
    else:
        choices = {}
    if step not in choices:
        message = f'{path}: unknown key "{step}"; expected one of {", ".join(choices)}'
        if isinstance(holder, dict):
            message += f"; or set the whole table: {path}={{key = value}}"
        raise _core.ScenarioError(message)
    return [choices[step]]
