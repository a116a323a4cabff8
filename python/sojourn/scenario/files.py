"""Read scenario files, and the tables in them that are not part of the scenario."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.errors import invalid

# Maximum size in bytes, enough for thousands of links. A parsed file needs about 100 times as much.
MAX_SCENARIO = 16_000_000


def read_scenario(path: str | Path) -> str:
    """Read the text of a scenario file."""
    try:
        content = files.head(path, MAX_SCENARIO + 1)
    except _core.NotRegularError as error:
        raise invalid(path, f"{error.strerror}; expected a TOML file") from None
    return _text(content, f"{path}", "a TOML file")


def read_standard_input() -> str:
    """Read the text of a scenario from standard input."""
    return _text(sys.stdin.buffer.read(MAX_SCENARIO + 1), "standard input", "TOML")


def _text(content: bytes, place: str, expected: str) -> str:
    if len(content) > MAX_SCENARIO:
        raise invalid(place, f"too large; expected {expected} of at most {MAX_SCENARIO} bytes")
    try:
        # Convert line ends as in text mode: a file may come from Windows.
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise invalid(
            place, f"not valid UTF-8 at byte {error.start}; expected {expected} in UTF-8"
        ) from None


# The headers of the tables by their name.
HEADERS = {"sweep": "[sweep]", "tune": "[tune]", "expect": "[[expect]]"}
NAMES = tuple(HEADERS)
_KEY = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
# Not a line of an array, such as `["10mbit", "1mbit"],`.
_HEADER = re.compile(
    rf"^[ \t]*\[\[?[ \t]*(?P<name>{_KEY})(?:[ \t]*\.[ \t]*{_KEY})*[ \t]*\]\]?[ \t]*(?:#[^\n]*)?$",
    re.MULTILINE,
)


def split(text: str) -> tuple[str, dict[str, Any]]:
    r"""Separate the tables from a scenario in TOML.

    Examples
    --------
    >>> scenario, tables = split('duration = "9s"\n[sweep]\nsample = "lhs:8"\n')
    >>> tables
    {'sweep': {'sample': 'lhs:8'}}
    """
    if not any(name in text for name in NAMES):
        return text, {}
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # The core says what is wrong.
        return text, {}
    tables = {name: document.pop(name) for name in NAMES if name in document}
    if not tables:
        return text, {}
    without = _blanked(text)
    try:
        is_separated = tomllib.loads(without) == document
    except tomllib.TOMLDecodeError:
        is_separated = False
    if not is_separated:
        headers = " and ".join(HEADERS[name] for name in tables)
        raise invalid(" and ".join(tables), f"expected tables with headers, such as {headers}")
    return without, tables


def _blanked(text: str) -> str:
    """Replace the lines of the tables by empty ones."""
    headers = list(_HEADER.finditer(text))
    ends = [*(header.start() for header in headers), len(text)]
    kept = [text[: ends[0]]]
    for header, end in zip(headers, ends[1:], strict=True):
        part = text[header.start() : end]
        is_table = header["name"].strip("\"'") in NAMES
        kept.append("\n" * part.count("\n") if is_table else part)
    return "".join(kept)
