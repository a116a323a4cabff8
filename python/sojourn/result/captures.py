"""Captures of packets: which runs can be captured, where the file is written, and its packets."""

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sojourn import _core, files
from sojourn.arguments import OutputError, in_argument

# The begin of a pcapng file: the type of the section header block, its length, and a byte-order
# magic in either byte order.
SECTION_HEADER = b"\n\r\r\n"
BYTE_ORDERS = (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d")
HEAD_BYTES = 12
# Blocks and options of pcapng that a capture of Sojourn has.
_INTERFACE, _PACKET = 1, 6
_END, _COMMENT, _NAME, _ID, _QUEUE = 0, 1, 2, 5, 6
_HEAD, _FIXED = struct.Struct("<II"), struct.Struct("<IIIII")
_OPTION, _WORD, _LONG = struct.Struct("<HH"), struct.Struct("<I"), struct.Struct("<Q")


class NotWrittenError(OutputError):
    """A capture cannot be written."""


def partial(path: str | Path) -> Path:
    """Return the name of a capture that is not complete.

    Examples
    --------
    >>> partial("run.pcapng").name
    'run.pcapng.partial'
    """
    target = Path(path)
    return target.with_name(f"{target.name}.partial")


def is_capture(path: str | Path) -> bool:
    """Return whether a regular file begins as a pcapng capture does."""
    try:
        head = files.head(path, HEAD_BYTES, follow=False)
    except OSError:
        return False
    return head.startswith(SECTION_HEADER) and head[8:] in BYTE_ORDERS


def check(scenario: _core.Scenario, path: str | Path, *, backend: str | None, force: bool) -> None:
    """Check before a run that its packets can be captured."""
    with in_argument("pcap", f"{path}"):
        _core.check_capture(scenario, backend)
    _check_free(path, force=force)


def _check_free(path: str | Path, *, force: bool) -> None:
    """Refuse to replace a file, except a capture if `force` is true."""
    if not os.path.lexists(path):
        return
    if not is_capture(path):
        message = f"cannot write {path}: it exists and is not a pcapng file; choose another name"
        raise NotWrittenError(message)
    if not force:
        message = "cannot write {path}: it exists; {force} replaces it"
        raise NotWrittenError(message, path=path)


@contextlib.contextmanager
def capturing(path: str | Path | None, *, force: bool) -> Iterator[_core.Capture | None]:
    """Write a capture, which gets its name when it is complete.

    After an error in the body, the packets captured so far are kept under the name of
    :func:`partial`, unless a file of this name is not a capture.
    """
    if path is None:
        yield None
        return
    _check_free(path, force=force)
    target = Path(path)
    rest = partial(target)
    kept = rest if is_capture(rest) or not os.path.lexists(rest) else None
    of_body: OSError | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _core.Replacement(target, rest=kept) as temporary:
            capture = _core.Capture(temporary)
            try:
                yield capture
            except OSError as error:
                of_body = error
                raise
            if capture.failure is not None:
                raise OSError(capture.failure)  # noqa: TRY301 - as any other error of the file
    except OSError as error:
        if error is of_body:
            raise
        message = f"cannot write {path}: {error.strerror or error}"
        raise NotWrittenError(message) from None


class Record(NamedTuple):
    """A packet at an observation point of a capture."""

    point: str
    # Nanoseconds since the start of the run.
    at: int
    number: int
    # Length of the IP packet, and its first bytes.
    length: int
    head: bytes
    queue: int | None
    comment: str


def records(path: str | Path) -> Iterator[Record]:
    """Read the packets of a simulated run from a capture that Sojourn wrote."""
    points: list[str] = []
    with Path(path).open("rb") as file:
        while head := file.read(_HEAD.size):
            kind, length = _HEAD.unpack(head)
            block = file.read(length - _HEAD.size)
            if kind == _PACKET:
                interface, high, low, stored, whole = _FIXED.unpack_from(block)
                first = block[_FIXED.size : _FIXED.size + stored]
                found = _options(block, _FIXED.size + stored + -stored % 4)
                queue = found.get(_QUEUE)
                yield Record(
                    points[interface],
                    high << 32 | low,
                    _LONG.unpack(found[_ID])[0],
                    whole,
                    first,
                    None if queue is None else _WORD.unpack(queue)[0],
                    found.get(_COMMENT, b"").decode(),
                )
            elif kind == _INTERFACE:
                points.append(_options(block, _HEAD.size)[_NAME].decode())


def _options(block: bytes, at: int) -> dict[int, bytes]:
    """Read the options of a block, by their code."""
    found = {}
    while at < len(block) - _WORD.size:
        code, length = _OPTION.unpack_from(block, at)
        if code == _END:
            break
        at += _OPTION.size
        found[code] = block[at : at + length]
        at += length + -length % 4
    return found
