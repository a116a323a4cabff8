"""Captures of packets: which runs can be captured, and where the file is written."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sojourn import _core, files
from sojourn.arguments import OutputError, in_argument

# The begin of a pcapng file: the type of the section header block, its length, and a byte-order
# magic in either byte order.
SECTION_HEADER = b"\n\r\r\n"
BYTE_ORDERS = (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d")
HEAD_BYTES = 12


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
