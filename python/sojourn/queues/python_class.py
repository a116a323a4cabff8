"""Classes that users write in Python and pass to scenarios: queues and controllers."""

import hashlib
from typing import Any

from sojourn import _core
from sojourn.errors import invalid
from sojourn.queues.identity import Identity, identity

# The classes that scenarios of this process may name.
_registered: dict[str, "PythonClass"] = {}


class PythonClass(type):
    """The class of such classes, which scenarios contain by name."""

    # What messages call the class, and the methods that it must define.
    kind: str
    needed: tuple[str, ...]

    def register(cls, name: str, source: str) -> None:
        """Make the class usable in the core."""
        raise NotImplementedError

    @property
    def spec(cls) -> str:
        """The name of the class in scenarios, such as ``python:TailDrop:0123456789ab``.

        It holds the first 12 digits of the SHA-256 of the source and of the values that the
        class reads, so an edited class or a variant is a different one.
        """
        base = root(cls)
        for method in cls.needed:
            if getattr(cls, method) is getattr(base, method):
                raise invalid(
                    cls.__name__,
                    f"missing method {method}; a {cls.kind} must define {' and '.join(cls.needed)}",
                )
        own = _identity(cls)
        name = _name(cls, own.text)
        other = _registered.get(name, cls)
        if other is not cls:
            others = _identity(other)
            # A class that has changed since is no longer what the name says.
            if others.text == own.text and not others.equals(own):
                raise invalid(
                    cls.__name__,
                    "two different classes have this name and the same source; "
                    "make the difference a class attribute, or name one of them differently",
                )
        cls.register(name, own.text)
        _registered[name] = cls
        return name


def registered(name: str) -> tuple[Any, str]:
    """Return the class that scenarios call `name`, and its source."""
    if name not in _registered:
        raise invalid(
            name, "the class is not loaded; define the class and pass it to a scenario again"
        )
    found = _registered[name]
    source = _identity(found).text
    if _name(found, source) != name:
        raise invalid(
            name,
            "the class, or a value that it reads, has changed since the class was passed "
            f"as a {found.kind}; define variants as subclasses, keep state in the instance, and "
            "pass the class again",
        )
    return found, source


def root(cls: type) -> type:
    """Return the base that Sojourn defines, such as :class:`PythonQueue`."""
    return next(base for base in reversed(cls.__mro__) if isinstance(base, PythonClass))


def defining(cls: type) -> list[type]:
    """Return the class and its bases below the one that Sojourn defines."""
    return [base for base in cls.__mro__ if base not in root(cls).__mro__]


def _name(cls: type, source: str) -> str:
    digest = hashlib.sha256(source.encode()).hexdigest()
    return f"{_core.python_prefix()}{cls.__name__}:{digest[:12]}"


def _identity(cls: type) -> Identity:
    return identity(defining(cls))
