"""Modules that are imported on first use, because importing them takes tenths of a second."""

from collections.abc import Collection
from importlib import import_module
from typing import Any


class Deferred:
    """A module that is imported when one of its names is first used.

    With ``names`` it has no others; the method ``__getattr__`` is then that of a package that
    re-exports these names, of one or several modules.

    Examples
    --------
    >>> Deferred("math").sqrt(9.0)
    3.0
    """

    def __init__(self, *modules: str, names: Collection[str] | None = None) -> None:
        self._modules = modules
        self._names = names

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module."""
        if self._names is not None and name not in self._names:
            modules = ", ".join(self._modules)
            message = f"no attribute {name!r}; imported on first use: {modules}"
            raise AttributeError(message)
        *others, last = self._modules
        for module in others:
            if hasattr(imported := import_module(module), name):
                return getattr(imported, name)
        return getattr(import_module(last), name)
