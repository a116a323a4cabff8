"""What may stand at a place of a scenario that is written in Python.

The core checks what a scenario says; before that, what it is made of is checked here, so that a
wrong object is refused in a line that names its place, as a wrong value is.
"""

import math
from collections.abc import Mapping
from pathlib import PurePath
from types import UnionType
from typing import Any

from sojourn import _core
from sojourn.qdisc import Queue
from sojourn.traffic import Page


def needs(place: str, value: object, kinds: type | UnionType, what: str) -> None:
    """Refuse what is not of the class that a place needs.

    Parameters
    ----------
    place
        Where it stands, such as ``traffic[0]``.
    value
        What stands there.
    kinds
        The classes that may.
    what
        What they are called, such as ``"a Link"``.

    Raises
    ------
    ScenarioError
        `value` is of another class, or a mapping with other keys than text.
    """
    if not isinstance(value, kinds):
        message = f"{place}: needs {what}, not {_kind(value)}"
        raise _core.ScenarioError(message)
    for key in value if isinstance(value, Mapping) else ():
        needs(place, key, str, "text as a name")


def plain(place: str, value: object) -> Any:
    """Write a value as JSON has it: a queue as its text, a path as its text.

    Parameters
    ----------
    place
        Where it stands, such as ``links.up.qdisc``.
    value
        The value.

    Returns
    -------
    value
        Text, a number, a flag, nothing, or a list or table of such.

    Raises
    ------
    ScenarioError
        It is of another class, or a number that is not finite.
    """
    if isinstance(value, Queue):
        return value.spec
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        needs(place, value, Mapping, "a table")
        return {key: plain(f"{place}.{key}", part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(f"{place}[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{place}: needs a finite number, not {value}"
        raise _core.ScenarioError(message)
    if value is None or isinstance(value, str | int | float):
        return value
    message = f"{place}: {_kind(value)} cannot be a value here"
    if isinstance(value, Page):
        message += ": it stands in the scenario's pages, under the name that traffic has as page"
    raise _core.ScenarioError(message)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of class {type(value).__name__}"
