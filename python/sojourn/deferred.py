"""Modules that are imported on first use, because importing them takes tenths of a second."""

from importlib import import_module
from typing import Any


class Deferred:
    """A module that is imported when one of its names is first used.

    Examples
    --------
    >>> Deferred("math").sqrt(9.0)
    3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module."""
        return getattr(import_module(self._name), name)
