"""Handle standard streams that are closed or cannot be written, and broken pipes."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDERR = 2


def open_missing() -> None:
    """Replace standard streams that the parent process has closed by ``/dev/null``.

    Otherwise the next file to be opened would get the descriptor of standard output.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


class _Discarding(io.RawIOBase):
    """Standard error: what cannot be written, as on a full disk, is discarded."""

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return os.write(STDERR, data)
        except OSError:
            return memoryview(data).nbytes

    def fileno(self) -> int:
        return STDERR

    def isatty(self) -> bool:
        return os.isatty(STDERR)


def tolerate_stderr() -> None:
    """Continue without messages if standard error cannot be written.

    The results and the exit code do not depend on whether anybody can read the messages.
    """
    # Tests and notebooks replace the stream.
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Discarding()),
            encoding=sys.stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


@contextmanager
def tolerated() -> Iterator[None]:
    """Ignore a broken pipe on standard output: the reader needs no more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        close_stdout()


def close_stdout() -> None:
    """Discard buffered and later output to standard output.

    Without this, Python reports a closed pipe again when it flushes the output at exit.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
