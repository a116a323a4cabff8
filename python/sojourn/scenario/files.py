"""Read scenario files, and the tables in them that are not part of the scenario."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.document import controller_text, may_name_file, queue_text
from sojourn.errors import invalid
from sojourn.queues.base import queues_in, texts_of
from sojourn.queues.queue_file import toml_string

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
    rf"^[ \t]*(?P<list>\[)?\[[ \t]*(?P<path>(?P<name>{_KEY})(?:[ \t]*\.[ \t]*{_KEY})*)"
    rf"[ \t]*\]\]?[ \t]*(?:#[^\n]*)?$",
    re.MULTILINE,
)


# A key of a queue or controller with its value, a basic or literal string.
_QUEUE = re.compile(
    r"""(?P<key>(?:qdisc|controller)["']?[ \t]*=[ \t]*)"""
    r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
)


class Tables(dict[str, Any]):
    """Tables of a file in TOML; they know the lines of their keys."""

    def __init__(self, tables: Mapping[str, Any], text: str = "", file: str = "") -> None:
        super().__init__(tables)
        self._text = text
        self.file = file

    def located(self, problem: str, table: str, argument: str, key: str | None = None) -> str:
        r"""Write a problem with the file and the line of an argument of a table, or of its entry.

        Examples
        --------
        >>> tables = Tables({}, 'rtt = "9s"\n[[tune]]\n[[tune]]\ntrials = 0\n', "a.toml")
        >>> tables.located("expected at least 1", "tune[1]", "trials")
        'a.toml: expected at least 1 (line 4)'
        """
        line = self._text.count("\n", 0, self._position(table, argument, key)) + 1
        return f"{self.file}: {problem} (line {line})"

    def _position(self, table: str, argument: str, key: str | None = None) -> int:
        """Return the position of an entry, an argument, its table or what this table is in."""
        parts = dict(_parts(self._text))
        path = f"{table}.{argument}" if table else argument
        for of, name in ((path, key), (table, argument)):
            own = re.compile(
                rf"""^[ \t]*["']?{re.escape(f"{name}")}["']?[ \t]*[.=]""", re.MULTILINE
            )
            if of in parts and (found := own.search(self._text, *parts[of])):
                return found.start()
        for of in (path, f"{path}[0]", table):
            if of in parts:
                return parts[of][0]
        outer, _, last = table.rpartition(".")
        return self._position(outer, last.partition("[")[0])


def _parts(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    r"""Yield the path of each table that has a header, and where the part below the header is.

    Examples
    --------
    >>> [path for path, _ in _parts("[a.b]\n[[c]]\n[[c]]\n[[c.d]]\n")]
    ['', 'a.b', 'c[0]', 'c[1]', 'c[1].d[0]']
    """
    headers = list(_HEADER.finditer(text))
    ends = [*(header.start() for header in headers), len(text)]
    counts: dict[str, int] = {}
    yield "", (0, ends[0])
    for header, end in zip(headers, ends[1:], strict=True):
        path = ""
        keys = [found.strip("\"'") for found in re.findall(_KEY, header["path"])]
        for number, name in enumerate(keys, start=1):
            path = f"{path}.{name}" if path else name
            if header["list"] and number == len(keys):
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = f"{path}[{counts[path]}]"
        yield path, (header.start(), end)


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
    if file:
        found = _with_queue_files(found, Path(file).parent)
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


def with_queue_files(text: str, folder: Path) -> str:
    """Load the queues and controllers that a scenario in TOML names by their files.

    The scenario then has the names of their classes. Names of files are relative to `folder`, as
    those of traces are.
    """
    if not may_name_file(text):
        return text
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # The core says what is wrong.
        return text
    queues, controllers = set(queues_in(document)), set(texts_of("controller", document))
    names = {queue: queue_text("", queue, folder) for queue in queues if may_name_file(queue)}
    names |= {one: controller_text("", one, folder) for one in controllers if may_name_file(one)}

    def named(found: re.Match[str]) -> str:
        try:
            queue = tomllib.loads(f"queue = {found['value']}")["queue"]
        except tomllib.TOMLDecodeError:
            # In a comment.
            return found[0]
        return f"{found['key']}{toml_string(names[queue])}" if queue in names else found[0]

    return _QUEUE.sub(named, text)


def _with_queue_files(value: Any, folder: Path, path: str = "") -> Any:
    """Load the queues that the parameters of a table name by their files."""
    if isinstance(value, Mapping):
        return {key: _with_queue_files(one, folder, f"{key}") for key, one in value.items()}
    if not path.endswith("qdisc"):
        return value
    if isinstance(value, list):
        return [_with_queue_files(one, folder, path) for one in value]
    if isinstance(value, str) and may_name_file(value) and "," not in path:
        return ",".join(queue_text(path, one.strip(), folder) for one in value.split(","))
    return value


def is_scenario(path: Path) -> bool:
    """Whether a file in TOML has the links of a scenario."""
    try:
        return "links" in tomllib.loads(read_scenario(path))
    except (OSError, ValueError, _core.SojournError):
        return False


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
