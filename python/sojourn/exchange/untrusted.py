"""Read files of other programs, which may be damaged or hostile: bounded sizes, plain messages."""

import bz2
import gzip
import io
import json
import math
import zlib
from pathlib import Path
from typing import Any, NoReturn

from sojourn import _core, files
from sojourn.errors import invalid_file

# A flent file of an hour has some megabytes; a log of Mahimahi some tens per minute at 100 Mbit/s.
MAX_FILE = 256 << 20
MAX_CONTENT = 256 << 20
# JSON needs several times its size as Python objects.
MAX_JSON = 64 << 20
# Enough to determine the format of a file.
BEGINNING = 4096
GZIP, BZIP2 = b"\x1f\x8b", b"BZh"


def damaged(path: str | Path, problem: str) -> NoReturn:
    """Raise the error of a file with invalid content."""
    message = f"{path}: {problem}"
    raise _core.DamagedResultError(message)


def content(path: str | Path, most: int = MAX_CONTENT) -> bytes:
    """Read a file, plain or compressed by gzip or bzip2."""
    data = _decompressed(path, most + 1)
    if len(data) > most:
        damaged(path, f"too large; expected at most {most} bytes of content")
    return data


def beginning(path: str | Path) -> bytes:
    """Read the first bytes of the content of a file, as :func:`content` does."""
    return _decompressed(path, BEGINNING)


def _decompressed(path: str | Path, size: int) -> bytes:
    """Read at most `size` bytes of the content of a file."""
    try:
        data = files.head(path, MAX_FILE + 1)
    except OSError as error:
        raise invalid_file(path, f"{error.strerror}") from None
    if len(data) > MAX_FILE:
        damaged(path, f"too large; expected at most {MAX_FILE} bytes")
    try:
        if data.startswith(GZIP):
            return gzip.GzipFile(fileobj=io.BytesIO(data)).read(size)
        if data.startswith(BZIP2):
            return bz2.BZ2File(io.BytesIO(data)).read(size)
    except (OSError, EOFError, ValueError, zlib.error):
        damaged(path, "the compressed data are damaged")
    return data[:size]


def read_object(path: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file, plain or compressed."""
    data = content(path, MAX_JSON)
    try:
        found = json.loads(data, parse_constant=lambda _: None)
    except RecursionError:
        damaged(path, "nested too deeply")
    except ValueError:
        damaged(path, "not valid JSON")
    if not isinstance(found, dict):
        damaged(path, "expected a JSON object")
    return found


def number(value: Any) -> float | None:
    """Return a finite number as float; None for everything else, such as null.

    Examples
    --------
    >>> number(3), number(None), number("3"), number(True), number(10**400)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def text(value: Any) -> str:
    """Return a string; the empty string for everything else."""
    return value if isinstance(value, str) else ""
