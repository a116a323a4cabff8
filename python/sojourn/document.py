"""Typed objects as the JSON of a scenario file, checked by the core as they are built.

The core knows every key, unit and range. Here only what JSON cannot hold is refused: objects of
another type, keys that are not strings, numbers that are not finite.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path, PurePath
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from sojourn import _core
from sojourn.errors import alternatives, invalid

PartKind = Literal["link", "traffic", "page", "arm"]

# What the names of files with queues end with: Python files, and shared libraries.
LIBRARIES = (".so", ".dylib", ".dll")
_ENDINGS = (".py", *LIBRARIES)
# What loads the queues that a text names by their files; sojourn.queues sets it.
queue_loaders: list[Callable[[str, Path | None], str]] = []
# The same for controllers; sojourn.scenario sets it.
controller_loaders: list[Callable[[str, Path | None], str]] = []

# Fields whose name in a scenario file is a word that Python reserves.
_FILE_NAMES = {"reverse": "return"}
_FIELD_NAMES = {value: key for key, value in _FILE_NAMES.items()}


@runtime_checkable
class Specified(Protocol):
    """An object that is a string in scenario files, such as a queue."""

    @property
    def spec(self) -> str:
        """The string."""


class Brief:
    """A part whose ``repr`` has only the values that were given."""

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Keep :func:`dataclass` from writing all of its fields."""
        super().__init_subclass__(**more)
        cls.__repr__ = Brief._given  # type: ignore[assignment, method-assign]

    def _given(self) -> str:
        values = [(item.name, getattr(self, item.name)) for item in fields(self)]  # type: ignore[arg-type]
        given = (f"{name}={value!r}" for name, value in values if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Brief):
    """A typed part of a scenario that is a table in scenario files.

    Its fields are the keys of the table; a field that is ``None`` is left out, so that it takes
    the default of the scenario file.
    """

    # The key and the value that tell this table from others in the same place.
    tag: ClassVar[tuple[str, str] | None] = None

    def document(self, place: str = "") -> Any:
        """Convert the object to the JSON table of a scenario file."""
        given = {
            _FILE_NAMES.get(item.name, item.name): getattr(self, item.name) for item in fields(self)
        }
        tag = {} if self.tag is None else dict([self.tag])
        return tag | {
            name: plain(f"{place}.{name}" if place else name, value)
            for name, value in given.items()
            if value is not None
        }

    @classmethod
    def from_document(cls, table: Mapping[str, Any]) -> Self:
        """Build the object from a table that the core accepted."""
        key = None if cls.tag is None else cls.tag[0]
        return cls(
            **{_FIELD_NAMES.get(name, name): part for name, part in table.items() if name != key}
        )


def typed(value: Any, *classes: type[Table]) -> Any:
    """Convert a table that the core accepted to an object; return other values unchanged."""
    if not isinstance(value, Mapping):
        return value
    for cls in classes:
        if cls.tag is None or value.get(cls.tag[0]) == cls.tag[1]:
            return cls.from_document(value)
    raise invalid(dict(value), f"expected {alternatives(cls.__name__ for cls in classes)}")


def convert(part: Table, name: str, *classes: type[Table]) -> None:
    """Replace the tables in field `name` of `part`, one or a list, by typed objects."""
    value = getattr(part, name)
    items = isinstance(value, list | tuple)
    new = [typed(item, *classes) for item in value] if items else typed(value, *classes)
    object.__setattr__(part, name, new)


def check(kind: PartKind, document: Mapping[str, Any]) -> None:
    """Have the core check one link, traffic block, page or arm."""
    _core.check_part(kind, json.dumps(document))


def check_within(kind: PartKind, document: Mapping[str, Any], path: str) -> None:
    """Have the core check one part, at `path`, of a link, traffic block or page."""
    try:
        check(kind, document)
    except _core.ScenarioError as error:
        if error.path is None or error.problem is None:
            raise
        within = error.path.removeprefix(path).removeprefix(".")
        raise invalid(within, error.problem) from None


def needs(place: str, value: object, kinds: type | UnionType, what: str) -> None:
    """Check the type of a value."""
    if not isinstance(value, kinds):
        raise invalid(place, f"expected {what}, not {described(value)}{hint(value)}")
    for key in value if isinstance(value, Mapping) else ():
        needs(place, key, str, "string keys")


def plain(place: str, value: object) -> Any:
    """Convert a value to JSON: a queue and a path to a string, an object to a table."""
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(place, f"expected a finite number, not {value}")
    # First: these are most values of large sweeps, and the checks below are slow.
    if value is None or isinstance(value, str | int | float):
        is_of_file = isinstance(value, str) and may_name_file(value)
        return of_file(place, value) if is_of_file else value
    if isinstance(value, Table):
        return value.document(place)
    # The class Cubic has a spec, too: a property, not a string; that of a class of queues is one.
    if isinstance(value, Specified) and isinstance(value.spec, str):
        return value.spec
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        needs(place, value, Mapping, "a table")
        return {key: plain(f"{place}.{key}", part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(f"{place}[{index}]", part) for index, part in enumerate(value)]
    raise invalid(
        place,
        f"expected a string, a number, a list or a table, not {described(value)}{hint(value)}",
    )


def may_name_file(text: str) -> bool:
    """Whether a queue may be named by its file."""
    return any(ending in text for ending in _ENDINGS)


def of_file(place: str, value: object, folder: Path | None = None) -> Any:
    """Write a queue or controller that is named by its file as the core reads it."""
    if place.endswith("qdisc"):
        return queue_text(place, value, folder)
    return controller_text(place, value, folder) if place.endswith("controller") else value


def queue_text(place: str, value: object, folder: Path | None = None) -> Any:
    """Write a queue, given in any form, as the text that the core reads; return others unchanged.

    The name of a file of a queue, such as ``./mine.py:Ramp`` or ``./libramp.so``, is relative to
    `folder`.
    """
    return _loaded(queue_loaders, place, value, folder)


def controller_text(place: str, value: object, folder: Path | None = None) -> Any:
    """Write a controller, given in any form, as the text that the core reads."""
    return _loaded(controller_loaders, place, value, folder)


def _loaded(
    loaders: list[Callable[[str, Path | None], str]],
    place: str,
    value: object,
    folder: Path | None,
) -> Any:
    # The specification of a class of queues is that of an object with all defaults.
    text = value.spec if isinstance(value, Specified) else value
    if not isinstance(text, str):
        return value
    if not may_name_file(text):
        return text
    try:
        for load in loaders:
            text = load(text, folder)
        return text  # noqa: TRY300 - the loop belongs to the block
    except _core.ScenarioError as error:
        if not place:
            # The caller names the place, and the value if the error has it.
            raise
        raise invalid(place, f"{error}") from error.__cause__


def word(name: str, value: str | float) -> str:
    """Write the value of a parameter as the one word that the core reads."""
    text = f"{value}"
    if not text or any(character.isspace() for character in text):
        raise invalid(name, f'"{text}" is not a single value; expected a string without spaces')
    return text


def hint(value: object) -> str:
    """Return what to pass instead, if a class and an object of it were confused."""
    if isinstance(value, type):
        takes_objects = issubclass(value, Table) or isinstance(value, Specified)
        return f"; pass an object: {value.__name__}()" if takes_objects else ""
    if isinstance(value, timedelta):
        return '; write a time as a string, such as "5ms"'
    # The class of a queue written in Python has a spec; its objects have none.
    if isinstance(type(value), Specified):
        return f"; pass the class itself: {type(value).__name__}"
    return ""


def described(value: object) -> str:
    """Describe a value that is not accepted, for an error message."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"
