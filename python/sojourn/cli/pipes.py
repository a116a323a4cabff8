"""Handle closed standard streams and broken pipes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
