"""Read scenario files, and the tables in them that are not part of the scenario."""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
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


class Tables(dict[str, Any]):
    """The tables of a scenario file that are not part of the scenario; it knows their lines."""

    def __init__(self, tables: Mapping[str, Any], text: str = "", file: str = "") -> None:
        super().__init__(tables)
        self._text = text
        self.file = file

    def located(self, problem: str, table: str, keys: Sequence[str]) -> str:
        r"""Write a problem with the file and the line of the first of the keys in the table.

        Examples
        --------
        >>> tables = Tables({}, 'rtt = "9s"\n[tune]\ntrials = 0\n', "a.toml")
        >>> tables.located("expected at least 1", "tune", ["trials"])
        'a.toml: expected at least 1 (line 3)'
        """
        line = self._text.count("\n", 0, self._position(table, keys)) + 1
        return f"{self.file}: {problem} (line {line})"

    def _position(self, table: str, keys: Sequence[str]) -> int:
        """Return the position of the first of the keys that the table has, else of the table."""
        headers = list(_HEADER.finditer(self._text))
        ends = [*(header.start() for header in headers[1:]), len(self._text)]
        parts = [
            (header, end)
            for header, end in zip(headers, ends, strict=True)
            if header["name"].strip("\"'") == table
        ]
        for key in keys:
            own = re.compile(rf"""^[ \t]*["']?{re.escape(key)}["']?[ \t]*[.=]""", re.MULTILINE)
            for header, end in parts:
                if found := own.search(self._text, header.start(), end):
                    return found.start()
                if f".{key}]" in header[0]:
                    return header.start()
        return parts[0][0].start() if parts else 0


def split(text: str, file: str = "") -> tuple[str, Tables]:
    r"""Separate the tables from a scenario in TOML.

    Examples
    --------
    >>> scenario, tables = split('duration = "9s"\n[sweep]\nsample = "lhs:8"\n')
    >>> tables
    {'sweep': {'sample': 'lhs:8'}}
    """
    if not any(name in text for name in NAMES):
        return text, Tables({})
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # The core says what is wrong.
        return text, Tables({})
    found = {name: document.pop(name) for name in NAMES if name in document}
    tables = Tables(found, text, file)
    if not tables:
        return text, Tables({})
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
