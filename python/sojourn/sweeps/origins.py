"""Where arguments come from: options of a command, or keys of a table of the scenario file."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sojourn import _core

# The options of keys with another name.
_OPTIONS = {"objectives": "objective"}


@contextmanager
def naming_keys(table: str, keys: Iterable[str]) -> Iterator[None]:
    """Let errors name the keys of a table instead of the options that the user did not give.

    Examples
    --------
    >>> with naming_keys("tune", ["arm"]):
    ...     raise _core.ScenarioError("--arm x: the scenario has no arms")
    Traceback (most recent call last):
    sojourn._core.ScenarioError: tune.arm "x": the scenario has no arms
    """
    try:
        yield
    except _core.ScenarioError as error:
        text = f"{error}"
        message = text
        for key in keys:
            message = _named(message, table, key)
        if message == text:
            raise
        raise _core.ScenarioError(message) from None


def _named(text: str, table: str, key: str) -> str:
    place = f"{table}.{key}"
    option = f"--{_OPTIONS.get(key, key)}"
    if key == "arm":
        text = re.sub(rf"^{option} ([^:]+):", rf'{place} "\1":', text)
    elif key == "until":
        # Its value may be any text.
        text = re.sub(rf"^{option} [^:]*: ", f"{place}: ", text)
    elif key == "most":
        # What it requires is a key too.
        text = text.replace(f"{option}: requires --until", f"{place}: requires {table}.until")
    # Options inside of a message, such as "none meets --where".
    return re.sub(rf"(?<![\w-]){option}(?![\w-])", place, text)
