"""Build dataclasses from TOML tables, and refuse what they do not declare."""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sojourn import _core

T = TypeVar("T")
_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def build(cls: type[T], table: Any, place: str) -> T:
    """Build a dataclass from a table."""
    if not isinstance(table, Mapping):
        message = f"{place}: expected a table"
        raise _core.ResultError(message)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = get_type_hints(cls)
    if unknown := next((key for key in table if key not in fields), None):
        message = f'{place}: unknown key "{unknown}"; expected {", ".join(fields)}'
        raise _core.ResultError(message)
    values = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _value(hints[name], table[name], f"{place}.{name}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            message = f'{place}: missing key "{name}"'
            raise _core.ResultError(message)
    return cls(**values)


def _value(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (hint,) = (one for one in arguments if one is not types.NoneType)
        origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return _one_of(arguments, value, place)
    if origin in (Sequence, Mapping):
        return _values(origin, arguments, value, place)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, place)  # type: ignore[arg-type]
    if type(value) is not hint and (hint, type(value)) != (float, int):
        message = f"{place}: expected {_NAMES[hint]}"
        raise _core.ResultError(message)
    return hint(value)


def _one_of(accepted: tuple[Any, ...], value: Any, place: str) -> Any:
    """Check a literal; if no values are listed, accept any."""
    if accepted and value not in accepted:
        message = f'{place}: "{value}"; expected one of {", ".join(accepted)}'
        raise _core.ResultError(message)
    return value


def _values(origin: Any, arguments: tuple[Any, ...], value: Any, place: str) -> Any:
    if origin is Sequence and isinstance(value, list):
        return [_value(arguments[0], one, f"{place}[{at}]") for at, one in enumerate(value)]
    if origin is Mapping and isinstance(value, dict):
        return {key: _value(arguments[1], one, f"{place}.{key}") for key, one in value.items()}
    message = f"{place}: expected a {'list' if origin is Sequence else 'table'}"
    raise _core.ResultError(message)
