"""Errors that begin with the place of what is not valid: a file, or a path in one."""

from sojourn import _core


def invalid(place: object, problem: str) -> _core.ScenarioError:
    """Return the error of a part of a scenario.

    Examples
    --------
    >>> raise invalid("links.up.rate", "expected a rate")
    Traceback (most recent call last):
    sojourn._core.ScenarioError: links.up.rate: expected a rate
    """
    return _core.ScenarioError(f"{place}: {problem}")


def invalid_file(place: object, problem: str) -> _core.ResultError:
    """Return the error of a file that is not a scenario, or of a part of it."""
    return _core.ResultError(f"{place}: {problem}")
