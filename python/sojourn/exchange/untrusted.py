"""Read files of other programs, which may be damaged or hostile: bounded sizes, plain messages."""

import bz2
import contextlib
import gzip
import json
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from sojourn import _core, files
from sojourn.errors import invalid_file

# A flent file of an hour has some megabytes; a log of Mahimahi some tens per minute at 100 Mbit/s.
MAX_FILE = 256 << 20
MAX_CONTENT = 256 << 20
MAX_JSON = 64 << 20
# A capture of a minute at 1 Gbit/s has 0.5 GB with headers only, and 7.5 GB with payload.
LARGEST = 16 << 30
# A value of JSON takes up to 230 B as a Python object. The flent file of an hour has a million.
MAX_VALUES = 3_000_000
# Enough to determine the format of a file.
BEGINNING = 4096
# What a part of a file has at least, and a line at most.
PART = 1 << 22
MAX_LINE = 4096
GZIP, BZIP2 = b"\x1f\x8b", b"BZh"


def damaged(path: str | Path, problem: str) -> NoReturn:
    """Raise the error of a file with invalid content."""
    message = f"{path}: {problem}"
    raise _core.DamagedResultError(message)


def content(path: str | Path, most: int) -> bytes:
    """Read a file, plain or compressed by gzip or bzip2."""
    with _opened(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        damaged(path, f"too large; expected at most {most} bytes of content")
    return data


def beginning(path: str | Path) -> bytes:
    """Read the first bytes of the content of a file, as :func:`content` does."""
    with _opened(path, LARGEST) as stream:
        return stream.read(BEGINNING)


def parts(path: str | Path) -> Iterator[bytes]:
    """Read a file of text in parts of whole lines, plain or compressed."""
    with _opened(path) as stream:
        total = 0
        rest = b""
        while data := stream.read(PART):
            total += len(data)
            if total > MAX_CONTENT:
                damaged(path, f"too large; expected at most {MAX_CONTENT} bytes of content")
            whole, newline, end = data.rpartition(b"\n")
            if not newline and len(rest) + len(data) > PART + MAX_LINE:
                damaged(path, f"a line is longer than {MAX_LINE} bytes")
            if newline:
                yield rest + whole + newline
                rest = end
            else:
                rest += data
        if rest:
            yield rest


def chunks(path: str | Path) -> Iterator[bytes]:
    """Read a large binary file in parts, plain or compressed."""
    with _opened(path, LARGEST) as stream:
        total = 0
        while data := stream.read(PART):
            total += len(data)
            if total > LARGEST:
                damaged(path, f"too large; expected at most {LARGEST} bytes of content")
            yield data


@contextlib.contextmanager
def _opened(
    path: str | Path, most: int | None = None
) -> Iterator[IO[bytes] | gzip.GzipFile | bz2.BZ2File]:
    """Open the content of a file of bounded size, by default `MAX_FILE`."""
    most = MAX_FILE if most is None else most
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(files.opened(path))
            if os.fstat(file.fileno()).st_size > most:
                damaged(path, f"too large; expected at most {most} bytes")
            magic = file.read(len(BZIP2))
            file.seek(0)
            stream: IO[bytes] | gzip.GzipFile | bz2.BZ2File = file
            if magic.startswith(GZIP):
                stream = stack.enter_context(gzip.GzipFile(fileobj=file))
            elif magic == BZIP2:
                stream = stack.enter_context(bz2.BZ2File(file))
            yield stream
    except (EOFError, ValueError, zlib.error):
        damaged(path, "the compressed data are damaged")
    except OSError as error:
        if error.errno is None:
            damaged(path, "the compressed data are damaged")
        raise invalid_file(path, f"{error.strerror}") from None


def read_object(path: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file, plain or compressed."""
    return _parsed(path, _bounded(path))


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """Read a JSON object from each line of a file."""
    lines = enumerate(_bounded(path).splitlines(), 1)
    return [_parsed(path, line, f"line {n}: ") for n, line in lines if line.strip()]


def _bounded(path: str | Path) -> bytes:
    data = content(path, MAX_JSON)
    # Every value but the first follows one of these.
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        damaged(path, f"too large; expected at most {MAX_VALUES} values")
    return data


def _parsed(path: str | Path, data: bytes, place: str = "") -> dict[str, Any]:
    try:
        found = json.loads(data, parse_constant=lambda _: None)
    except RecursionError:
        damaged(path, f"{place}nested too deeply")
    except ValueError:
        damaged(path, f"{place}not valid JSON")
    if not isinstance(found, dict):
        damaged(path, f"{place}expected a JSON object")
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
