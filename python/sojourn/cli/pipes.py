"""Standard output that is closed, or a pipe whose reader has gone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def open_missing() -> None:
    """Replace standard streams that the parent process has closed by ``/dev/null``.

    Otherwise, the next file to be opened would be taken for standard output.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


@contextmanager
def tolerated() -> Iterator[None]:
    """Ignore that the reader of standard output has closed the pipe: it has what it wants."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        close_stdout()


def close_stdout() -> None:
    """Discard what is and will be written to standard output.

    Without this, Python reports a closed pipe again when it flushes the output at exit.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
