"""Identity of a Python queue class: a hash of its source and of the values that it reads."""

import dis
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from sojourn.errors import invalid

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# Longer values are written as their SHA-256.
_LONGEST = 200


class Identity(NamedTuple):
    """The key that classes with the same behaviour share."""

    text: str
    """Source text, then, as comments, the values that it does not show."""
    opaque: tuple[object, ...]
    """Objects that the class reads and that cannot be written as text."""

    def equals(self, other: "Identity") -> bool:
        """Whether both are known to behave alike."""
        return (
            self.text == other.text
            and len(self.opaque) == len(other.opaque)
            and all(map(_same, self.opaque, other.opaque))
        )


def identity(bases: Iterable[type]) -> Identity:
    """Read the text of a class, and its values: attributes, closures, defaults and globals."""
    reader = _Reader(list(bases))
    return Identity(reader.text, tuple(reader.opaque))


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, CodeType) and one == other)


class _Reader:
    """Follows a class to everything in its modules that it uses."""

    def __init__(self, bases: list[type]) -> None:
        self.opaque: list[object] = []
        self._texts: list[str] = []
        self._values: list[str] = []
        self._modules = {base.__module__ for base in bases}
        self._globals: set[str] = set()
        self._known: dict[int, object] = {}  # classes and functions that were read, by id
        self._path: list[object] = []
        for base in bases:
            self._known[id(base)] = base
        for base in bases:
            self._read_class(base)

    @property
    def text(self) -> str:
        """The texts, then the values as comments."""
        return "\n".join(self._texts) + "".join(f"# {value}\n" for value in self._values)

    def _value(self, label: str, value: object) -> None:
        """Note a value, which `label` names."""
        shown = self._show(value)
        if len(shown) > _LONGEST:
            shown = f"SHA-256 {hashlib.sha256(shown.encode()).hexdigest()}"
        self._values.append(f"{label} = {shown}")

    def _show(self, value: Any) -> str:
        if type(value) in _ATOMS:
            return repr(value)
        if isinstance(value, FunctionType | type):
            self._follow(value)
            return f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if any(value is outer for outer in self._path):
            return "..."
        self._path.append(value)
        try:
            return f"{type(value).__qualname__}({', '.join(self._parts(value))})"
        finally:
            self._path.pop()

    def _parts(self, value: Any) -> Iterator[str]:
        """Show what an object consists of; one that does not tell is opaque."""
        if type(value) in (list, tuple):
            yield from map(self._show, value)
        elif type(value) in (set, frozenset):
            yield from sorted(map(self._show, value))
        elif type(value) is dict:
            yield from (f"{self._show(key)}: {self._show(part)}" for key, part in value.items())
        elif isinstance(value, staticmethod | classmethod):
            yield self._show(value.__func__)
        elif isinstance(value, cached_property):
            yield self._show(value.func)
        elif isinstance(value, property):
            yield from map(self._show, (value.fget, value.fset, value.fdel))
        else:
            yield from self._state(value)

    def _state(self, value: Any) -> Iterator[str]:
        try:
            state = value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001 - an object may refuse in any way
            self.opaque.append(value)
            return
        if isinstance(state, str):
            yield state
            yield self._show(getattr(value, "__wrapped__", None))
            return
        # Iterators of the items of a list and of a dict come fourth and fifth.
        yield from map(self._show, state[:3])
        for items in state[3:5]:
            yield self._show(list(items or ()))

    def _follow(self, value: Any) -> None:
        """Read a class or function of the user's modules; the name says enough of others."""
        if id(value) in self._known or (value.__module__ not in self._modules and _named(value)):
            return
        self._known[id(value)] = value
        if isinstance(value, type):
            self._read_class(value)
        else:
            self._read_function(value)

    def _read_class(self, cls: type) -> None:
        functions = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
        text = _text_of_class(cls, filter(self._is_own, functions))
        self._texts.append(text or f"class {cls.__qualname__}:\n")
        for function in functions:
            self._known[id(function)] = function
            self._read_function(function, cls if text is None else None)
        for name, value in vars(cls).items():
            if isinstance(value, FunctionType):
                continue
            if not name.startswith("__") or isinstance(value, staticmethod | classmethod):
                self._value(f"{cls.__qualname__}.{name}", value)

    def _is_own(self, function: FunctionType) -> bool:
        """Whether the code stands in the user's modules; that of a decorator may not."""
        return function.__globals__.get("__name__") in self._modules

    def _read_function(self, function: FunctionType, cls: type | None = None) -> None:
        """Read a function: a method if `cls` is given, whose text cannot be read as a whole."""
        label = function.__qualname__
        if self._is_own(function):
            self._read_text(function, cls)
            for name in sorted(_globals(function.__code__) & function.__globals__.keys()):
                self._global(f"{function.__module__}.{name}", function.__globals__[name])
        else:
            made_by = f"{function.__globals__.get('__name__')}.{function.__code__.co_qualname}"
            self._values.append(f"{label}: {made_by}")
        for name, value in _closure(function):
            self._value(f"{label}: {name}", value)
        for value in function.__defaults__ or ():
            self._value(f"{label}: default", value)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._value(f"{label}: default of {name}", value)

    def _read_text(self, function: FunctionType, cls: type | None) -> None:
        text = _text(function)
        if text is not None:
            if cls is not None:
                self._texts.append(textwrap.indent(text, "    "))
            elif not any(_holds(shown, text) for shown in self._texts):
                self._texts.append(text)
        elif cls is None or (is_dataclass(cls) and function.__name__.startswith("__")):
            # Made by a program, as the methods of a dataclass are. Codes compare by value.
            self.opaque.append(function.__code__)
        else:
            raise invalid(
                cls.__name__,
                f"the source of {function.__name__} cannot be read; "
                "define the class in a file or a notebook",
            )

    def _global(self, name: str, value: object) -> None:
        """Read a global name; what may change while the program runs is known by itself only."""
        if name in self._globals:
            return
        self._globals.add(name)
        if isinstance(value, (*_ATOMS, FunctionType, type, ModuleType, Enum, tuple, frozenset)):
            self._value(name, value)
        else:
            self.opaque.append(value)


def _named(value: Any) -> bool:
    """Whether the module and the name of a class or function lead to it."""
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _closure(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the names and values of the enclosing functions that a function reads."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # the cell is empty
            yield name, cell.cell_contents


def _globals(code: CodeType) -> set[str]:
    """List the global names that a code reads, those of the functions within it included."""
    names = {item.argval for item in dis.get_instructions(code) if item.opname == "LOAD_GLOBAL"}
    inner = (_globals(part) for part in code.co_consts if isinstance(part, CodeType))
    return names.union(*inner)


def _holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text`, at any indentation."""
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line.strip() for line in part.splitlines()]
    starts = range(len(lines) - len(wanted) + 1)
    return any(lines[start : start + len(wanted)] == wanted for start in starts)


def _text_of_class(cls: type, functions: Iterable[FunctionType]) -> str | None:
    """Return the source of a class if it is known and holds the functions that the class has.

    In a notebook the source of functions is known, that of classes may not be. Of two classes of
    one name in a file, it may be that of the other.
    """
    text = _text(cls)
    if text is None:
        return None
    own = filter(None, map(_text, functions))
    return text if all(_holds(text, part) for part in own) else None


@cache
def _text(value: type | FunctionType) -> str | None:
    """Return the source as it was when the class or function was first read."""
    try:
        # The code of a function leads to its own text, its `__wrapped__` to that of another.
        return textwrap.dedent(
            inspect.getsource(value if isinstance(value, type) else value.__code__)
        )
    except (OSError, TypeError):
        return None
