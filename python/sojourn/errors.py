"""Errors that begin with the place of what is not valid, a file or a path in one; warnings."""

import os
from collections.abc import Iterable

from sojourn import _core

# The rule for texts of the command line and names of files.
NOT_UTF_8 = "not UTF-8; expected text in UTF-8"


class QueueWarning(UserWarning):
    """What ``tc`` reads otherwise than a reader of a queue may expect, such as a bare time."""


def invalid(place: object, problem: str) -> _core.ScenarioError:
    """Return the error of a part of a scenario; an empty place is the whole.

    Examples
    --------
    >>> raise invalid("links.up.rate", "expected a rate")
    Traceback (most recent call last):
    sojourn._core.ScenarioError: links.up.rate: expected a rate
    """
    error = _core.ScenarioError(f"{place}: {problem}" if place else problem)
    error.path, error.problem = f"{place}", problem
    return error


def invalid_value(what: str, value: str, instead: str) -> _core.ScenarioError:
    """Return the error of a text that is none of those that are known.

    Examples
    --------
    >>> raise invalid_value("traffic", "tpc", 'did you mean "tcp_1up"?')
    Traceback (most recent call last):
    sojourn._core.ScenarioError: unknown traffic "tpc"; did you mean "tcp_1up"?
    """
    error = _core.ScenarioError(f'unknown {what} "{value}"; {instead}')
    error.value, error.problem = value, f"unknown {what}; {instead}"
    return error


def invalid_file(place: object, problem: str) -> _core.ResultError:
    """Return the error of a file that is not a scenario, or of a part of it."""
    return _core.ResultError(f"{place}: {problem}")


def alternatives(names: Iterable[object]) -> str:
    """Write what is accepted as a list; nothing is an empty text.

    Examples
    --------
    >>> alternatives(["sim", "live", "linux-6.12"])
    'sim, live or linux-6.12'
    """
    listed = [f"{name}" for name in names]
    return " or ".join([", ".join(listed[:-1]), listed[-1]] if listed[1:] else listed)


def undecoded(text: str) -> str | None:
    r"""Return a text of the operating system that is not UTF-8 so that it can be shown, else None.

    Examples
    --------
    >>> undecoded("b\udcff.toml")
    'b�.toml'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode(errors="replace")
    return None
