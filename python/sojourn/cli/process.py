"""Standard streams and signals: how a command ends that loses its reader or is interrupted."""

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
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


def tolerate_encoding() -> None:
    """Escape characters that the encoding of standard output lacks, such as bytes of file names."""
    # Tests and notebooks replace the stream.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def tolerated() -> Iterator[None]:
    """Ignore a broken pipe on standard output: the reader needs no more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        close_stdout()
    except SystemExit as ended:
        # Rich ends the process with code 1 if the pipe closes while it prints help.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        close_stdout()


def close_stdout() -> None:
    """Discard buffered and later output to standard output.

    Without this, Python reports a closed pipe again when it flushes the output at exit.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


# Time limit of the shutdown, so that Ctrl-C takes effect within a second.
GRACE_S = 0.7
# Shells report 128 plus the signal number as the exit code.
SIGNALLED = 128
# Windows has no SIGHUP.
NUMBERS = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
)
_SHOW_CURSOR = "\x1b[?25h"


class Stopped(Exception):  # noqa: N818 - it is not an error
    """A signal ended the command."""


class _State:
    """State shared by the signal handler and the watchdog thread."""

    installed = False
    # The first signal.
    received: int | None = None
    # Until the libraries are imported, there is nothing to stop or store.
    ready = False
    # Whether the watchdog must wait, because finished runs are not in the store.
    patient = False
    # Printed when the process is ended.
    message = "interrupted"


def install() -> None:
    """Handle the signals, except those that the parent process has ignored.

    A second call has no effect.
    """
    if _State.installed or threading.current_thread() is not threading.main_thread():
        return
    _State.installed = True
    handled = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _handle)
    read, write = os.pipe()
    # Windows has this from Python 3.12 on.
    if hasattr(os, "set_blocking"):
        os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read, set(handled)), daemon=True).start()


def ready() -> None:
    """Make signals raise ``KeyboardInterrupt`` from now on: the program is loaded."""
    _State.ready = True


def exit_code() -> int:
    """Return the exit code of a process that a signal has ended."""
    # If KeyboardInterrupt ends code in a string, as imports with data classes have it, CPython ends
    # `python -m sojourn` by SIGINT whatever its exit code. It forgets that with the next string.
    exec("")  # noqa: S102 - it is empty
    return SIGNALLED + (_State.received or signal.SIGINT)


def on_exit(message: str, *, patient: bool) -> None:
    """Set the message that is printed if a signal ends the process."""
    _State.message, _State.patient = message, patient


def message() -> str:
    """Return the message that is printed if a signal ends the process."""
    return _State.message


def _handle(number: int, _frame: FrameType | None) -> None:
    if _State.received is None:
        _State.received = number
    if not _State.ready:
        _exit(number)
    raise KeyboardInterrupt


def _watch(wakeup: int, handled: set[int]) -> None:
    """End the process `GRACE_S` after the first signal, or immediately on the second."""
    first: int | None = None
    # A daemon thread: it runs until the process ends.
    while True:
        for number in os.read(wakeup, 1):
            if number not in handled:
                continue
            if first is not None:
                _exit(first)
            first = number
            if not _State.patient:
                threading.Thread(target=_end_late, args=(first,), daemon=True).start()


def _end_late(number: int) -> None:
    time.sleep(GRACE_S)
    _exit(number)


def _exit(number: int) -> None:
    """End the process immediately, without cleanup."""
    cursor = _SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""
    try:
        os.write(2, f"{cursor}sojourn: {_State.message}\n".encode())
    finally:
        os._exit(SIGNALLED + number)


def with_short_names(text: str) -> str:
    """Name queues from outside Sojourn without the digits that identify them."""
    # As below.
    from sojourn import _core  # noqa: PLC0415

    if _core.python_prefix() in text or _core.plugin_prefix() in text:
        # Slow to import.
        from sojourn.queues.queue_file import short  # noqa: PLC0415

        return short(text)
    return text


def say(text: str) -> None:
    """Print a line to stderr, wrapped at words on a terminal.

    Control characters are escaped, because names may come from an untrusted file.
    """
    # Not loaded before Ctrl-C has a handler.
    from sojourn import _core  # noqa: PLC0415

    line = _core.printable(with_short_names(text))
    if sys.stderr.isatty():
        # Only terminals need them.
        import shutil  # noqa: PLC0415
        import textwrap  # noqa: PLC0415

        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr)
