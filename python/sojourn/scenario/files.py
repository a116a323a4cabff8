"""Read scenario files."""

import sys
from pathlib import Path

from sojourn import _core, files

# Maximum size in bytes, enough for thousands of links. A parsed file needs about 100 times as much.
MAX_SCENARIO = 16_000_000


def read_scenario(path: str | Path) -> str:
    """Read the text of a scenario file."""
    try:
        content = files.head(path, MAX_SCENARIO + 1)
    except files.NotRegularError as error:
        message = f"{path}: {error.strerror}; expected a TOML file"
        raise _core.ScenarioError(message) from None
    return _text(content, f"{path}", "a TOML file")


def read_standard_input() -> str:
    """Read the text of a scenario from standard input."""
    return _text(sys.stdin.buffer.read(MAX_SCENARIO + 1), "standard input", "TOML")


def _text(content: bytes, place: str, expected: str) -> str:
    if len(content) > MAX_SCENARIO:
        message = f"{place}: too large; expected {expected} of at most {MAX_SCENARIO} bytes"
        raise _core.ScenarioError(message)
    try:
        # Convert line ends as in text mode: a file may come from Windows.
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"{place}: not valid UTF-8 at byte {error.start}; expected {expected} in UTF-8"
        raise _core.ScenarioError(message) from None
