"""Shut the command down on Ctrl-C, SIGTERM and SIGHUP, within a second.

The first signal raises ``KeyboardInterrupt``; the command then stops the runs and prints what it
has stored. If this takes too long, for example in a long library call, a watchdog thread ends the
process. A second signal ends the process immediately.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Time limit of the shutdown, so that Ctrl-C takes effect within a second.
GRACE_S = 0.7
# Shells report 128 plus the signal number as the exit code.
SIGNALLED = 128
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read, set(handled)), daemon=True).start()


def ready() -> None:
    """Make signals raise ``KeyboardInterrupt`` from now on: the program is loaded."""
    _State.ready = True


@contextmanager
def loading() -> Iterator[None]:
    """Make signals end the process at once while modules are imported.

    If ``KeyboardInterrupt`` ends an import, Python may exit as if SIGINT had ended it.
    """
    before, _State.ready = _State.ready, False
    try:
        yield
    finally:
        _State.ready = before


def exit_code() -> int:
    """Return the exit code of a process that a signal has ended."""
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
