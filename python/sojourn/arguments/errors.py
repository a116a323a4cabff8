"""Errors that know their argument, and how each way of writing arguments spells them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sojourn import _core

# The value of an error that is not about a value.
NOT_GIVEN: Any = object()
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


class FileSpelling:
    """Keys of a table of a scenario file: ``tune.trials 0``."""

    def __init__(self, table: str) -> None:
        self._table = table

    def name(self, argument: str, beside: str | None = None) -> str:  # noqa: ARG002 - protocol
        """Write the name of an argument."""
        return f"{self._table}.{argument}"

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""
        return f"{self.name(argument)}: {key}"

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"{value}"
        return f"{self.name(argument)} {text}"


class ArgumentError(_core.ScenarioError):
    """An argument is not valid.

    The rule says what is wrong and what is accepted. A placeholder ``{name}`` in it stands for one
    of the `texts`, or else for another argument, which is written as its caller writes it.
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
        self.value = value
        self.rule = rule
        # The entry, if the argument is a mapping.
        self.key = key
        self.texts = texts
        self.spelling: Spelling = PythonSpelling()

    def __str__(self) -> str:
        """Write the argument, its value and the rule on one line."""
        if self.key is not None:
            place = self.spelling.entry(self.argument, self.key)
        elif self.value is NOT_GIVEN:
            place = self.spelling.name(self.argument)
        else:
            place = self.spelling.given(self.argument, self.value)
        return f"{place}: {PLACEHOLDER.sub(self._text, self.rule)}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error, which another process may have raised."""
        value = None if self.value is NOT_GIVEN else (self.value,)
        return _restored, (self.argument, value, self.rule, self.key, self.texts)

    def _text(self, found: re.Match[str]) -> str:
        name = found[1]
        if name in self.texts:
            return f"{self.texts[name]}"
        return self.spelling.name(name, self.argument)


def _restored(
    argument: str,
    value: tuple[object] | None,
    rule: str,
    key: str | None,
    texts: dict[str, object],
) -> ArgumentError:
    given = NOT_GIVEN if value is None else value[0]
    return ArgumentError(argument, given, rule, key=key, **texts)


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
        # Errors of expressions begin with the text of the expression.
        problem = getattr(error, "problem", f"{error}")
        raise ArgumentError(argument, value, "{problem}", problem=problem) from None


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Let errors write arguments as `spelling` does."""
    try:
        yield
    except ArgumentError as error:
        error.spelling = spelling
        raise
