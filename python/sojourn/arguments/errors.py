"""Errors that know their argument, and how each way of writing arguments spells them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sojourn import _core

# The value of an error that is not about a value; a singleton, also when it is pickled.
NOT_GIVEN: Any = ...
# A placeholder of a rule or a help text: a text, or another argument.
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Spelling(Protocol):
    """How arguments are written where the caller wrote them."""

    def name(self, argument: str, beside: str | None = None) -> str:
        """Write the name of an argument; `beside` is the one whose error names it."""

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""

    def located(self, problem: str, argument: str, key: str | None) -> str:
        """Write where the problem of an argument, or of an entry of it, is; it names both."""


class Source(Protocol):
    """A file with tables of arguments."""

    def located(self, problem: str, table: str, argument: str, key: str | None = None) -> str:
        """Write a problem with the file and the line of an argument of a table, or of its entry."""


class PythonSpelling:
    """Arguments of a Python function: ``trials=0``."""

    def name(self, argument: str, beside: str | None = None) -> str:  # noqa: ARG002 - protocol
        """Write the name of an argument."""
        return argument

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""
        return f"{argument}[{key!r}]"

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""
        return f"{argument}={value!r}"

    def located(self, problem: str, argument: str, key: str | None) -> str:  # noqa: ARG002 - same
        """Write nothing more: the caller knows where."""
        return problem


class FileSpelling:
    """Keys of a table of a scenario file: ``tune.trials 0``."""

    def __init__(self, table: str, source: Source | None = None) -> None:
        self._table = table
        self._source = source

    def located(self, problem: str, argument: str, key: str | None) -> str:
        """Write a problem with the file and the line of its key."""
        if self._source is None:
            return problem
        return self._source.located(problem, self._table, argument, key)

    def name(self, argument: str, beside: str | None = None) -> str:  # noqa: ARG002 - protocol
        """Write the name of an argument."""
        return f"{self._table}.{argument}" if self._table else argument

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""
        return f"{self.name(argument)}: {key}"

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"{value}"
        return f"{self.name(argument)} {text}"


class ArgumentError(_core.ScenarioError):
    """An argument is not valid.

    Parameters
    ----------
    argument
        The name of the argument.
    value
        Its value; ``...`` if the error is not about one.
    rule
        What is wrong and what is accepted. A placeholder ``{name}`` stands for one of the `texts`,
        or else for another argument, which is written as its caller writes it.
    key
        The entry that is not valid, if the argument is a mapping.
    **texts
        Texts in the rule.
    """

    def __init__(
        self,
        argument: str,
        value: object = NOT_GIVEN,
        rule: str = "",
        *,
        key: str | None = None,
        **texts: object,
    ) -> None:
        super().__init__(argument, rule)
        self.argument = argument
        self.value: Any = value
        self.rule = rule
        # The entry, if the argument is a mapping.
        self.key = key
        self.texts = texts
        # As a Python function is called, unless :func:`spelled` sets it.
        self.spelling: Spelling | None = None

    def __str__(self) -> str:
        """Write the argument, its value and the rule on one line."""
        spelling = self.spelling or PythonSpelling()
        if self.key is not None:
            place = spelling.entry(self.argument, self.key)
        elif self.value is NOT_GIVEN:
            place = spelling.name(self.argument)
        else:
            place = spelling.given(self.argument, self.value)

        def text(found: re.Match[str]) -> str:
            name = found[1]
            return (
                f"{self.texts[name] if name in self.texts else spelling.name(name, self.argument)}"
            )

        problem = f"{place}: {PLACEHOLDER.sub(text, self.rule)}"
        return spelling.located(problem, self.argument, self.key)


class OutputError(_core.ResultError):
    """Output cannot be written or made; what would permit it is an argument.

    A placeholder ``{name}`` in the message stands for one of the `texts`, or else for an argument,
    which is written as its caller writes it.
    """

    def __init__(self, message: str, **texts: object) -> None:
        super().__init__(message)
        self.message = message
        self.texts = texts
        self.spelling: Spelling | None = None

    def __str__(self) -> str:
        """Write the message on one line."""
        spelling = self.spelling or PythonSpelling()

        def text(found: re.Match[str]) -> str:
            name = found[1]
            return f"{self.texts[name] if name in self.texts else spelling.name(name)}"

        return PLACEHOLDER.sub(text, self.message)


@contextmanager
def replaceable() -> Iterator[None]:
    """Name the argument that lets another result be replaced."""
    try:
        yield
    except _core.OccupiedError as error:
        message = "{problem}, or {force} to replace it"
        raise OutputError(message, problem=error) from None


@contextmanager
def in_argument(argument: str, value: object = NOT_GIVEN) -> Iterator[None]:
    """Name the argument in errors of what reads its value.

    Examples
    --------
    >>> with in_argument("score", "min x"):
    ...     raise _core.ScenarioError("unknown metric x")
    Traceback (most recent call last):
    sojourn.arguments.errors.ArgumentError: score='min x': unknown metric x
    """
    try:
        yield
    except ArgumentError:
        raise
    except _core.ScenarioError as error:
        # The argument and its value are written before the problem.
        is_of = error.path in {None, argument} and (error.value is None or error.value == value)
        problem = error.problem if is_of and error.problem is not None else f"{error}"
        raise ArgumentError(argument, value, "{problem}", problem=problem) from None


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Let errors write arguments as `spelling` does, unless a spelling within it was set."""
    try:
        yield
    except (ArgumentError, OutputError) as error:
        error.spelling = error.spelling or spelling
        raise
