"""Read untrusted files, and write files atomically or into new directories.

A path may refer to a FIFO without a writer, an endless device, a file of any size, or a symbolic
link to another file of the user.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sojourn import _core
from sojourn.arguments import ArgumentError

# Memory of the values of a text in JSON besides their letters. An object with one key takes 232
# bytes, an item of a list or an object less than 100 (CPython 3.11 to 3.14).
MAX_VALUES = 512 << 20
_OBJECT = 232
_VALUE = 100


def opened(path: str | Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file to read it."""
    return os.fdopen(_core.open_regular(path, follow=follow), "rb")


def head(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """Read the first bytes of a regular file."""
    with opened(path, follow=follow) as stream:
        return stream.read(most)


def read_json(path: str | Path, most: int, *, follow: bool = True) -> Any:
    """Read a file in JSON."""
    return parsed_json(head(path, most + 1, follow=follow), most)


def parsed_json(content: bytes, most: int) -> Any:
    """Parse JSON of at most `most` bytes."""
    if len(content) > most:
        message = f"too large; expected at most {most} bytes"
        raise ValueError(message)
    values = content.count(b"{") * _OBJECT + sum(map(content.count, (b",", b"["))) * _VALUE
    if values > MAX_VALUES:
        message = f"has too many values; expected at most {MAX_VALUES >> 20} MiB of them in memory"
        raise ValueError(message)
    try:
        return json.loads(content)
    except RecursionError:
        message = "nested too deeply"
        raise ValueError(message) from None


def warn_of_locks(directory: str | Path) -> None:
    """Warn of a directory that other processes could write to at the same time."""
    text = f"{directory}: the file system has no locks; let only one process write to it"
    warnings.warn(text, stacklevel=3)


def replace(path: str | Path, data: bytes) -> None:
    """Write a file atomically; an existing file keeps its permissions."""
    with replacing(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file atomically, in parts; after an error in the body, it is as before."""
    with _core.Replacement(path) as temporary, temporary.open("wb") as stream:
        yield stream


def write_new(place: Path, content: str | Mapping[str, str], argument: str) -> None:
    """Write a new file, or the files of a new directory; `argument` gave its name."""
    try:
        if isinstance(content, str):
            with place.open("x", encoding="utf-8") as stream:
                stream.write(content)
            return
        place.mkdir(parents=True)
        for name, text in content.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        rule = "{place} exists; expected another name"
        raise ArgumentError(argument, place.stem, rule, place=place) from None
    except OSError as error:
        message = f"cannot write {place}: {error.strerror}"
        raise _core.ResultError(message) from None
